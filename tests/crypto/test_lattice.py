"""Lattice sums: exactness for any sign, size and number of islands; refusals; what travels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import crc32c_reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.handles import opened
from tests.support.lattice_sums import (
    REFERENCE,
    Members,
    plain_sum,
    random_limbs,
    sum_with_collective_key,
    sum_with_single_key,
    to_limbs,
)

from atoll import errors
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE,
    INSECURE_TEST_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE,
    INSECURE_TEST_SINGLE_SHORT,
    LATTICE_COLLECTIVE,
    LATTICE_SINGLE,
    LatticeParameters,
)
from atoll.secure_sums.lattice import Lattice, LatticeServerKey


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


@pytest.mark.parametrize("key", ["server", "collective"])
def test_a_sum_asks_for_the_headroom_of_all_its_contributors(key: str) -> None:
    """A value that fits alone may wrap in a sum of three."""
    members = Members(3)
    single = lattice.PublicKey(lattice.keygen(seed=bytes(32)).public)
    session: Any = SimpleNamespace(
        contributors=("a", "b", "c"), _public=single if key == "server" else members.public
    )
    encrypt: Any = LatticeServerKey.encrypt if key == "server" else Lattice._encrypt
    assert encrypt(session, to_limbs([2**189 - 1, -(2**189)]), bytes(32))
    for value in (2**189, -(2**189) - 1):
        with pytest.raises(errors.RangeOverflow, match="headroom for a sum of 3"):
            encrypt(session, to_limbs([value]), bytes(32))


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

    def test_a_share_says_which_ciphertext_it_opens_and_with_another_digest_it_is_refused(self) -> None:
        members = Members(1)
        first, second = (members.public.encrypt(random_limbs(5, i)) for i in range(2))
        secret = lattice.SecretKey(members.pairs[0].secret, for_tests=True)
        share = secret.decryption_share(members.public, first, lattice.digest_of(first))
        assert share == secret.decryption_share(members.public, first)
        wrong = secret.decryption_share(members.public, first, lattice.digest_of(second))
        with pytest.raises(errors.MessageError, match="another ciphertext"):
            members.public.combine(first, [wrong])
        with pytest.raises(errors.ParameterError, match="digest"):
            secret.decryption_share(members.public, first, b"short")

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


def test_handles_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
    with opened(monkeypatch) as found:
        key = lattice.PublicKey(pair.public, for_tests=True)
        with lattice.SecretKey(pair.secret, for_tests=True):
            assert found.alive == 2
        assert found.alive == 1
        del key
        assert found.alive == 0


@pytest.mark.parametrize(
    "limbs",
    [
        np.zeros((2, 3), np.uint64),
        np.zeros((4, 3), np.uint64),
        np.zeros((3, 0), np.uint64),
        np.zeros(3, np.uint64),
        np.zeros((3, 2), np.int64),
    ],
    ids=lambda limbs: f"{limbs.dtype}-{limbs.shape}",
)
def test_values_come_as_three_rows_of_limbs(limbs: np.ndarray) -> None:
    pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
    key = lattice.PublicKey(pair.public, for_tests=True)
    with pytest.raises(errors.ParameterError, match=r"values must be a \(3, n\) array of uint64 limbs"):
        key.encrypt(limbs)


def test_an_insecure_set_is_for_tests_in_every_way_in() -> None:
    pair = lattice.keygen(parameters=INSECURE_TEST_SINGLE, for_tests=True)
    for use in (
        lambda: lattice.keygen(parameters=INSECURE_TEST_SINGLE),
        lambda: lattice.key_share(bytes(32), parameters=INSECURE_TEST_COLLECTIVE),
        lambda: lattice.PublicKey(pair.public),
        lambda: lattice.SecretKey(pair.secret),
        lambda: lattice.inspect(pair.public),
    ):
        with pytest.raises(errors.ParameterError):
            use()
