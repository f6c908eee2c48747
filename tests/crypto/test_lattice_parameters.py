"""The table of lattice parameters: what it promises, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import pytest
from tests.support.lattice_sums import Members, random_limbs, to_limbs

from atoll import errors
from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_SINGLE,
    LATTICE_COLLECTIVE,
    LATTICE_COLLECTIVE_SHORT,
    LATTICE_SINGLE,
    LATTICE_SINGLE_SHORT,
    LATTICE_TABLE,
    LatticeParameters,
    lattice_parameters,
)


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
            blur = 2.0**20 / math.sqrt(3) * 2.0 ** (64 - 96)  # of the second and third residue
            assert 50 * math.sqrt(row.max_summands) * blur < 0.25
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
