"""Lattice sums: exactness for any sign, size and number of islands; refusals; what travels."""

from __future__ import annotations

import dataclasses
import math

import crc32c_reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll import errors
from atoll.crypto.hazmat import golib, lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE,
    INSECURE_TEST_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE,
    INSECURE_TEST_SINGLE_SHORT,
    LATTICE_COLLECTIVE,
    LATTICE_COLLECTIVE_SHORT,
    LATTICE_SINGLE,
    LATTICE_SINGLE_SHORT,
    LATTICE_TABLE,
    LatticeParameters,
    lattice_parameters,
)

REFERENCE = bytes(range(32))
MODULUS = 2**192


def to_limbs(values: list[int]) -> lattice.Limbs:
    return np.array([[(v >> (64 * k)) % 2**64 for v in values] for k in range(3)], dtype=np.uint64)


def random_limbs(n: int, seed: int) -> lattice.Limbs:
    """Of either sign and below 2^190."""
    values = np.random.default_rng(seed).integers(0, 2**64, (3, n), dtype=np.uint64)
    values[2] = (values[2].astype(np.int64) >> 1).astype(np.uint64)
    return values


def plain_sum(vectors: list[lattice.Limbs]) -> lattice.Limbs:
    """The sum modulo 2^192, with carries."""
    total = np.zeros_like(vectors[0])
    for vector in vectors:
        carry = np.zeros(vector.shape[1], dtype=np.uint64)
        for limb in range(3):
            with_carry = vector[limb] + carry
            carry = (with_carry < carry).astype(np.uint64)
            total[limb] += with_carry
            carry += (total[limb] < with_carry).astype(np.uint64)
    return total


class Members:
    """All members of a collective key, in one place."""

    def __init__(
        self, count: int, *, width: int = 1, row: LatticeParameters = INSECURE_TEST_COLLECTIVE
    ) -> None:
        self.pairs = [
            lattice.key_share(REFERENCE, width=width, parameters=row, for_tests=True) for _ in range(count)
        ]
        self.public_bytes = lattice.aggregate([pair.public for pair in self.pairs], for_tests=True)
        self.public = lattice.PublicKey(self.public_bytes, for_tests=True)
        self.secrets = [lattice.SecretKey(pair.secret, for_tests=True) for pair in self.pairs]

    def open(self, ciphertext: bytes) -> lattice.Limbs:
        return self.public.combine(ciphertext, self.shares(ciphertext))

    def shares(self, ciphertext: bytes) -> list[bytes]:
        return [secret.decryption_share(self.public, ciphertext) for secret in self.secrets]


def sum_with_single_key(
    vectors: list[lattice.Limbs], row: LatticeParameters, width: int, summands: int = 1
) -> lattice.Limbs:
    pair = lattice.keygen(parameters=row, width=width, for_tests=True)
    with lattice.PublicKey(pair.public, for_tests=True) as key:
        total = lattice.add((key.encrypt(v, summands=summands) for v in vectors), for_tests=True)
    with lattice.SecretKey(pair.secret, for_tests=True) as secret:
        return secret.decrypt(total)


def sum_with_collective_key(
    vectors: list[lattice.Limbs], row: LatticeParameters, width: int, count: int
) -> lattice.Limbs:
    members = Members(count, width=width, row=row)
    return members.open(lattice.add([members.public.encrypt(v) for v in vectors], for_tests=True))


class TestExactness:
    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_any_sign_and_number_of_islands(self, data: st.DataObject) -> None:
        islands = data.draw(st.integers(2, 50))
        n = data.draw(st.integers(1, 5))
        limit = 2**191 // islands  # two islands or more: below 2^190
        integer = st.integers(-limit + 1, limit - 1)
        values = [data.draw(st.lists(integer, min_size=n, max_size=n)) for _ in range(islands)]
        wanted = to_limbs([sum(column) for column in zip(*values, strict=True)])
        vectors = [to_limbs(v) for v in values]
        for row in (INSECURE_TEST_SINGLE, INSECURE_TEST_SINGLE_SHORT):
            assert np.array_equal(sum_with_single_key(vectors, row, 1), wanted)
        for row in (INSECURE_TEST_COLLECTIVE, INSECURE_TEST_COLLECTIVE_SHORT):
            assert np.array_equal(sum_with_collective_key(vectors, row, 1, min(islands, 5)), wanted)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 9000), st.integers(2, 6), st.integers(1, 16), st.integers(0, 2**32))
    def test_any_size_and_width(self, n: int, islands: int, width: int, seed: int) -> None:
        vectors = [random_limbs(n, seed + i) for i in range(islands)]
        wanted = plain_sum(vectors)
        for row in (INSECURE_TEST_SINGLE, INSECURE_TEST_SINGLE_SHORT):
            assert np.array_equal(sum_with_single_key(vectors, row, width), wanted)
        for row in (INSECURE_TEST_COLLECTIVE, INSECURE_TEST_COLLECTIVE_SHORT):
            assert np.array_equal(sum_with_collective_key(vectors, row, width, 2), wanted)

    @pytest.mark.parametrize("n", [1, 8191, 8192, 8193, 100_000, 1_000_000])
    def test_planned_parameters_with_one_key_holder(self, n: int) -> None:
        vectors = [random_limbs(n, i) for i in range(2)]
        assert np.array_equal(sum_with_single_key(vectors, *lattice.plan(n)), plain_sum(vectors))

    @pytest.mark.parametrize("n", [1, 16_384, 100_000])
    def test_planned_parameters_with_a_collective_key(self, n: int) -> None:
        vectors = [random_limbs(n, i) for i in range(3)]
        opened = sum_with_collective_key(vectors, *lattice.plan(n, collective=True), 3)
        assert np.array_equal(opened, plain_sum(vectors))

    @pytest.mark.parametrize("row", [INSECURE_TEST_SINGLE, INSECURE_TEST_SINGLE_SHORT], ids=lambda r: r.name)
    def test_as_many_summands_as_allowed(self, row: LatticeParameters) -> None:
        """Also of the largest values, whose sum wraps at 2^192 many times."""
        vectors = [random_limbs(3, i) for i in range(1023)] + [to_limbs([-1, -(2**190), 2**190 - 1])]
        assert np.array_equal(sum_with_single_key(vectors, row, 1), plain_sum(vectors))
        for value in (-1, -(2**190), 2**190 - 1):
            assert np.array_equal(
                sum_with_single_key([to_limbs([value])] * 1024, row, 1), to_limbs([1024 * value])
            )

    @pytest.mark.parametrize(
        "row", [INSECURE_TEST_COLLECTIVE, INSECURE_TEST_COLLECTIVE_SHORT], ids=lambda r: r.name
    )
    def test_as_many_members_as_allowed(self, row: LatticeParameters) -> None:
        vector = random_limbs(1000, 1)
        assert np.array_equal(sum_with_collective_key([vector], row, 1, 256), vector)

    def test_sums_of_sums(self) -> None:
        vectors = [random_limbs(7, i) for i in range(4)]
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            parts = [key.encrypt(v) for v in vectors]
        left, right = (lattice.add(half, for_tests=True) for half in (parts[:2], parts[2:]))
        total = lattice.add([left, right], for_tests=True)
        assert lattice.inspect(total, for_tests=True).count == 4
        assert total == lattice.add(parts, for_tests=True)

    @pytest.mark.parametrize(
        "row", [INSECURE_TEST_COLLECTIVE, INSECURE_TEST_COLLECTIVE_SHORT], ids=lambda r: r.name
    )
    def test_carries_make_the_sum_one_of_integers(self, row: LatticeParameters) -> None:
        members = Members(2, row=row)
        parts = [members.public.encrypt(random_limbs(40, i)) for i in range(256)]
        with lattice.Adder(for_tests=True) as adder:
            for part in parts:
                adder.add(part)
            total = adder.finish()
            carries = adder.carries(total)
            adder.add(parts[0])
            with pytest.raises(errors.ParameterError, match="at most 256"):
                adder.carries(total)

        def integers(ciphertext: bytes) -> list[int]:
            body, size = lattice.coefficients(ciphertext)
            return [int.from_bytes(body[i : i + size], "little") for i in range(0, len(body), size)]

        wanted = [sum(column) for column in zip(*map(integers, parts), strict=True)]
        unit = 2 ** (8 * row.cipher_bytes)
        assert [c + unit * k for c, k in zip(integers(total), carries, strict=True)] == wanted
        assert max(carries) > 100

    def test_a_sum_under_one_key_keeps_no_carries(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with lattice.PublicKey(pair.public, for_tests=True) as key, lattice.Adder(for_tests=True) as adder:
            adder.add(key.encrypt(to_limbs([1])))
            with pytest.raises(errors.ParameterError, match="collective key"):
                adder.carries(adder.finish())

    def test_a_strided_vector(self) -> None:
        wide = random_limbs(10, 3)
        vectors = [wide[:, ::2], wide[:, 1::2]]
        assert np.array_equal(sum_with_single_key(vectors, INSECURE_TEST_SINGLE, 1), plain_sum(vectors))


class TestHeadroom:
    def test_a_value_that_leaves_no_room_is_refused(self) -> None:
        with pytest.raises(errors.RangeOverflow, match="headroom for a sum of 3"):
            sum_with_single_key([to_limbs([2**189])], INSECURE_TEST_SINGLE, 1, summands=3)
        with pytest.raises(errors.RangeOverflow):
            sum_with_single_key([to_limbs([-(2**189) - 1])], INSECURE_TEST_SINGLE, 1, summands=3)

    def test_residues_hold_values_of_up_to_2_to_190(self) -> None:
        for row in (INSECURE_TEST_SINGLE_SHORT, INSECURE_TEST_SINGLE):
            edge = to_limbs([2**190 - 1, -(2**190)])
            assert np.array_equal(sum_with_single_key([edge], row, 1), edge)
        for value in (2**190, -(2**190) - 1):
            with pytest.raises(errors.RangeOverflow, match="headroom"):
                sum_with_single_key([to_limbs([value])], INSECURE_TEST_SINGLE_SHORT, 1)
            whole = to_limbs([value])
            assert np.array_equal(sum_with_single_key([whole], INSECURE_TEST_SINGLE, 1), whole)

    def test_the_largest_that_leaves_room_is_not(self) -> None:
        vectors = [to_limbs([2**189 - 1, -(2**189)])] * 4
        wanted = to_limbs([2**191 - 4, -(2**191)])
        assert np.array_equal(sum_with_single_key(vectors, INSECURE_TEST_SINGLE, 1, summands=4), wanted)

    def test_too_many_summands_are_refused(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            one = key.encrypt(to_limbs([1]))
        many = lattice.add([one] * 1024, for_tests=True)
        with pytest.raises(errors.RangeOverflow, match="1025"):
            lattice.add([many, one], for_tests=True)


class TestRefusals:
    @pytest.fixture
    def pair(self) -> lattice.KeyPair:
        return lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)

    @pytest.fixture
    def ciphertext(self, pair: lattice.KeyPair) -> bytes:
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            return key.encrypt(random_limbs(20, 0))

    def test_a_foreign_key(self, ciphertext: bytes) -> None:
        other = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with lattice.SecretKey(other.secret, for_tests=True) as secret, pytest.raises(errors.KeyMismatch):
            secret.decrypt(ciphertext)
        with lattice.PublicKey(other.public, for_tests=True) as key:
            foreign = key.encrypt(random_limbs(20, 0))
        with pytest.raises(errors.KeyMismatch):
            lattice.add([ciphertext, foreign], for_tests=True)

    def test_a_failed_summand_leaves_the_sum_as_it_was(self, ciphertext: bytes) -> None:
        with lattice.Adder(for_tests=True) as adder:
            adder.add(ciphertext)
            with pytest.raises(errors.MessageError):
                adder.add(ciphertext[:-1])
            assert adder.finish() == ciphertext

    @pytest.mark.parametrize("cut", [0, 1, 35, 36, 1000, -1])
    def test_a_truncated_buffer(self, pair: lattice.KeyPair, ciphertext: bytes, cut: int) -> None:
        with lattice.SecretKey(pair.secret, for_tests=True) as secret, pytest.raises(errors.MessageError):
            secret.decrypt(ciphertext[:cut])
        for opener in (lattice.PublicKey, lattice.SecretKey):
            with pytest.raises(errors.MessageError):
                opener(pair.public[:cut], for_tests=True)

    def test_other_lengths_do_not_add(self, pair: lattice.KeyPair, ciphertext: bytes) -> None:
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            other = key.encrypt(random_limbs(21, 0))
        with pytest.raises(errors.MessageError, match="21 values"):
            lattice.add([ciphertext, other], for_tests=True)

    def test_nothing_to_add(self) -> None:
        with pytest.raises(errors.ParameterError, match="nothing was added"):
            lattice.add([])

    @pytest.mark.parametrize(
        "wrong",
        [
            np.zeros((3, 0), np.uint64),
            np.zeros((2, 4), np.uint64),
            np.zeros((3, 4), np.int64),
            np.zeros(3, np.uint64),
        ],
    )
    def test_what_is_no_limb_vector(self, pair: lattice.KeyPair, wrong: lattice.Limbs) -> None:
        with lattice.PublicKey(pair.public, for_tests=True) as key, pytest.raises(errors.ParameterError):
            key.encrypt(wrong)

    @pytest.mark.parametrize("width", [-1, 0, 17, 2**40])
    def test_a_width_out_of_range(self, width: int) -> None:
        with pytest.raises(errors.ParameterError, match="width"):
            lattice.keygen(width=width)

    def test_a_short_seed(self) -> None:
        with pytest.raises(errors.ParameterError, match="32 bytes"):
            lattice.keygen(seed=b"short")

    def test_a_public_key_that_was_changed(self, pair: lattice.KeyPair) -> None:
        changed = bytearray(pair.public)
        changed[500] ^= 1
        with pytest.raises(errors.MessageError):
            lattice.PublicKey(bytes(changed), for_tests=True)

    def test_the_wrong_form(self) -> None:
        with pytest.raises(errors.MessageError, match="no secret key"):
            lattice.keygen(parameters=LATTICE_COLLECTIVE)
        with pytest.raises(errors.MessageError, match="no secret share"):
            lattice.key_share(REFERENCE, parameters=LATTICE_SINGLE)


class TestCollective:
    def test_a_share_is_the_same_however_often_it_is_made(self) -> None:
        members = Members(2)
        total = members.public.encrypt(random_limbs(5, 1))
        again = lattice.SecretKey(members.pairs[0].secret, for_tests=True)
        assert again.decryption_share(members.public, total) == members.shares(total)[0]

    def test_a_missing_or_doubled_share(self) -> None:
        members = Members(3)
        total = members.public.encrypt(random_limbs(5, 1))
        shares = members.shares(total)
        with pytest.raises(errors.ParameterError, match="3 members"):
            members.public.combine(total, shares[:2])
        with pytest.raises(errors.MessageError, match="same member"):
            members.public.combine(total, [shares[0], shares[1], shares[1]])

    def test_shares_for_another_ciphertext(self) -> None:
        members = Members(2)
        first, second = (members.public.encrypt(random_limbs(5, i)) for i in range(2))
        with pytest.raises(errors.MessageError, match="another ciphertext"):
            members.public.combine(first, members.shares(second))

    def test_all_but_one_learn_nothing(self) -> None:
        """Every share but the last, added to c0, is as far from the values as a coin could put it."""
        members = Members(3)
        vector = to_limbs([0] * 1000)
        total = members.public.encrypt(vector)
        shares = members.shares(total)
        forged = [shares[0], shares[1], members_share_of_nobody(shares[2])]
        with pytest.raises(errors.MessageError, match="does not open"):
            members.public.combine(total, forged)

    def test_a_member_of_another_key(self) -> None:
        members, others = Members(2), Members(2)
        total = members.public.encrypt(random_limbs(5, 1))
        with pytest.raises(errors.KeyMismatch, match="no part"):
            others.secrets[0].decryption_share(members.public, total)
        with pytest.raises(errors.KeyMismatch):
            members.secrets[0].decryption_share(members.public, others.public.encrypt(random_limbs(5, 1)))

    def test_one_member_cannot_decrypt(self) -> None:
        members = Members(2)
        total = members.public.encrypt(random_limbs(5, 1))
        with pytest.raises(errors.ParameterError, match="one member"):
            members.secrets[0].decrypt(total)

    def test_shares_of_different_references_do_not_aggregate(self) -> None:
        pairs = [
            lattice.key_share(bytes([i]) * 32, parameters=INSECURE_TEST_COLLECTIVE, for_tests=True)
            for i in range(2)
        ]
        with pytest.raises(errors.KeyMismatch):
            lattice.aggregate([pair.public for pair in pairs], for_tests=True)

    def test_the_same_share_twice_does_not_aggregate(self) -> None:
        pair = lattice.key_share(REFERENCE, parameters=INSECURE_TEST_COLLECTIVE, for_tests=True)
        with pytest.raises(errors.MessageError, match="twice"):
            lattice.aggregate([pair.public] * 2, for_tests=True)


def members_share_of_nobody(share: bytes) -> bytes:
    """A well-formed share whose body is zero."""
    forged = bytearray(share)
    forged[36 + 32 :] = bytes(len(share) - 36 - 32)
    crc32c_reference.mend(forged)
    return bytes(forged)


class TestParameters:
    def test_go_and_python_hold_the_same_table(self) -> None:
        ours = [{**dataclasses.asdict(row), "primes": list(row.primes)} for row in LATTICE_TABLE]
        assert lattice.table() == ours

    def test_the_table_is_pinned(self) -> None:
        rows = [
            (r.id, r.name, r.log_n, sum(p.bit_length() for p in r.primes), r.coefficients, r.cipher_bytes,
             r.share_bytes, r.smudge_bits, r.max_summands, r.max_members, r.security_bits, r.insecure)
            for r in LATTICE_TABLE
        ]  # fmt: skip
        assert rows == [
            (1, "single-13", 13, 212, 1, 26, 0, 0, 1024, 0, 128, False),
            (2, "collective-14", 14, 280, 1, 35, 26, 80, 1024, 256, 128, False),
            (5, "single-12", 12, 104, 3, 12, 0, 0, 1024, 0, 128, False),
            (6, "collective-13", 13, 162, 3, 20, 12, 78, 1024, 256, 128, False),
            (129, "test-single-10", 10, 212, 1, 26, 0, 0, 1024, 0, 0, True),
            (130, "test-collective-10", 10, 280, 1, 35, 26, 80, 1024, 256, 0, True),
            (133, "test-single-9", 9, 104, 3, 12, 0, 0, 1024, 0, 0, True),
            (134, "test-collective-9", 9, 162, 3, 20, 12, 78, 1024, 256, 0, True),
        ]

    @pytest.mark.parametrize("row", [row for row in LATTICE_TABLE if not row.insecure], ids=lambda r: r.name)
    def test_a_secure_row_keeps_to_the_security_tables(self, row: LatticeParameters) -> None:
        allowed = {12: 106, 13: 214, 14: 430}  # log2 Q at 128 bits, ternary secret (Bossuat et al. 2024)
        assert math.prod(row.primes) <= 2 ** allowed[row.log_n]

    @pytest.mark.parametrize("row", LATTICE_TABLE, ids=lambda row: row.name)
    def test_noise_at_the_limits_stays_far_below_a_quarter(self, row: LatticeParameters) -> None:
        """The table's own promise, from the formulas; test_lattice_reference measures the noise itself."""
        members, fraction = max(1, row.max_members), 2.0 ** (row.carried_bits - 8 * row.cipher_bytes)
        step = 2**row.carried_bits / math.prod(row.primes)
        errors_variance = 2 * row.degree * (2 / 3) * 10.5 * members * step**2
        rounding_variance = row.degree * (2 / 3) * members / 12 * fraction**2
        noise = math.sqrt(row.max_summands * (errors_variance + rounding_variance))
        if not row.collective:
            assert 15 * noise < 0.25
            return
        half_width = 2.0 ** (row.smudge_bits - 1) * fraction
        assert half_width > 2**59 * noise
        # A million coefficients: E|noise| / (2 half_width) each, below 2^-40 together.
        assert 1e6 * 0.8 * noise / (2 * half_width) < 2.0**-40
        assert 13 * half_width * math.sqrt(members / 3) < 0.25

    def test_insecure_rows_are_refused(self) -> None:
        with pytest.raises(errors.ParameterError, match="insecure"):
            lattice_parameters("test-single-10")
        with pytest.raises(errors.ParameterError, match="insecure"):
            lattice.keygen(parameters=INSECURE_TEST_SINGLE)
        assert lattice_parameters("single-13") is LATTICE_SINGLE
        with pytest.raises(errors.ParameterError, match="unknown"):
            lattice_parameters("other")

    def test_insecure_messages_are_refused_too(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with pytest.raises(errors.ParameterError, match="insecure"):
            lattice.PublicKey(pair.public)
        with pytest.raises(errors.ParameterError, match="insecure"):
            lattice.SecretKey(pair.secret)
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            ciphertext = key.encrypt(to_limbs([1]))
        with pytest.raises(errors.ParameterError, match="insecure"):
            lattice.add([ciphertext])

    def test_a_values_coefficients_wrap_where_the_table_says(self) -> None:
        """Without a common factor, and wide enough for 1,024 values of 2^190 of either sign."""
        for row in LATTICE_TABLE:
            if row.coefficients == 1:
                assert row.moduli == (2**192,)
                continue
            assert row.moduli == (2**74, 2**64 - 1, 2**64 - 3)
            assert math.lcm(*row.moduli) == math.prod(row.moduli) > 2 * 1024 * 2**190

    def test_a_plan_takes_the_small_ring_for_short_vectors(self) -> None:
        assert lattice.plan(78) == (LATTICE_SINGLE_SHORT, 1)
        assert lattice.plan(190_653).parameters is LATTICE_SINGLE
        assert lattice.plan(78, collective=True) == (LATTICE_COLLECTIVE_SHORT, 1)
        assert lattice.plan(190_653, collective=True).parameters is LATTICE_COLLECTIVE

    def test_a_plan_for_many_rounds_takes_a_wider_key(self) -> None:
        assert lattice.plan(190_653, rounds=100).width > lattice.plan(190_653).width > 1

    @pytest.mark.parametrize("collective", [False, True])
    @pytest.mark.parametrize("n", [1, 5000, 60_000])
    def test_a_plan_counts_the_bytes_that_travel(self, n: int, collective: bool) -> None:
        chosen = lattice.plan(n, rounds=2, collective=collective)
        vector = random_limbs(n, 0)
        if collective:
            members = Members(2, width=chosen.width, row=chosen.parameters)
            ciphertext = members.public.encrypt(vector)
            share = members.shares(ciphertext)[0]
            travelled = 2 * len(members.pairs[0].public) + 2 * (2 * len(ciphertext) + len(share))
            with lattice.Adder() as adder:
                adder.add(ciphertext)
                carries = adder.carries(adder.finish())
            assert len(carries) == lattice.carry_bytes(chosen, n)
        else:
            pair = lattice.keygen(parameters=chosen.parameters, width=chosen.width)
            travelled = len(pair.public) + 2 * len(lattice.PublicKey(pair.public).encrypt(vector))
        assert 0 <= travelled - lattice._island_bytes(chosen, n, 2) < 500  # headers

    def test_a_plan_for_nothing(self) -> None:
        with pytest.raises(errors.ParameterError):
            lattice.plan(0)


class TestSecrets:
    def test_nothing_secret_is_printed(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        assert repr(pair) == f"KeyPair(secret=<68 bytes>, public=<{len(pair.public)} bytes>)"
        with lattice.SecretKey(pair.secret, for_tests=True) as secret:
            assert repr(secret) == "SecretKey(<hidden>)"

    def test_encryption_is_randomised_but_follows_its_seed(self) -> None:
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        vector = to_limbs([1, 2, 3])
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            assert key.encrypt(vector) != key.encrypt(vector)
            assert key.encrypt(vector, seed=REFERENCE) == key.encrypt(vector, seed=REFERENCE)

    def test_a_seed_used_twice_does_not_show_the_difference(self) -> None:
        """Were the mask the same, c1 would be."""
        pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
        with lattice.PublicKey(pair.public, for_tests=True) as key:
            first, second = (key.encrypt(to_limbs([v]), seed=REFERENCE) for v in (1, 2))
        assert first[36:136] != second[36:136]


def test_closed_objects_are_refused() -> None:
    pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
    key = lattice.PublicKey(pair.public, for_tests=True)
    key.close()
    key.close()
    with pytest.raises(errors.ParameterError, match="closed"):
        key.encrypt(to_limbs([1]))


def test_handles_are_freed() -> None:
    pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
    before = golib.live_handles()
    key = lattice.PublicKey(pair.public, for_tests=True)
    with lattice.SecretKey(pair.secret, for_tests=True):
        assert golib.live_handles() == before + 2
    del key
    assert golib.live_handles() == before
