"""The Go library against an independent reading of its messages in plain integers."""

from __future__ import annotations

import lattice_reference as reference
import numpy as np
import pytest

from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE,
    INSECURE_TEST_COLLECTIVE_SHORT,
    INSECURE_TEST_SINGLE,
    INSECURE_TEST_SINGLE_SHORT,
    LatticeParameters,
)

SINGLE = pytest.mark.parametrize(
    "row", [INSECURE_TEST_SINGLE, INSECURE_TEST_SINGLE_SHORT], ids=lambda row: row.name
)
COLLECTIVE = pytest.mark.parametrize(
    "row", [INSECURE_TEST_COLLECTIVE, INSECURE_TEST_COLLECTIVE_SHORT], ids=lambda row: row.name
)


def random_limbs(n: int, seed: int) -> lattice.Limbs:
    """Of either sign and below 2^190."""
    values = np.random.default_rng(seed).integers(0, 2**64, (3, n), dtype=np.uint64)
    values[2] = (values[2].astype(np.int64) >> 1).astype(np.uint64)
    return values


@SINGLE
@pytest.mark.parametrize(("n", "width"), [(1, 1), (1024, 1), (2500, 2)])
def test_ciphertexts_open_without_the_library(row: LatticeParameters, n: int, width: int) -> None:
    pair = lattice.keygen(parameters=row, width=width, for_tests=True)
    vectors = [random_limbs(n, i) for i in range(3)]
    with lattice.PublicKey(pair.public, for_tests=True) as key:
        total = lattice.add([key.encrypt(v) for v in vectors], for_tests=True)
    opened, _ = reference.decrypt(total, pair.secret)
    columns = zip(*(reference.to_integers(v) for v in vectors), strict=True)
    assert opened == [sum(column) % 2**192 for column in columns]


@SINGLE
def test_noise_is_as_wide_as_the_formula_says(row: LatticeParameters) -> None:
    pair = lattice.keygen(parameters=row, for_tests=True)
    with lattice.PublicKey(pair.public, for_tests=True) as key:
        ciphertext = key.encrypt(random_limbs(1024, 1))
    noise = np.array(reference.decrypt(ciphertext, pair.secret)[1]).reshape(row.coefficients, -1)
    for k, (modulus, own) in enumerate(zip(row.moduli, noise, strict=True)):
        step = modulus / np.prod([float(p) for p in row.primes])
        fraction = modulus / 2.0 ** (8 * row.cipher_bytes)
        predicted = row.degree * (2 / 3) * (2 * 10.5 * step**2 + fraction**2 / 12)
        if k > 0:  # residues that are not on the wire's grid have noise of 2^20 units on either side
            predicted += (2.0**21 * fraction) ** 2 / 12
        assert 0.7 < own.var() / predicted < 1.4


@COLLECTIVE
def test_smudging_is_uniform_and_as_wide_as_the_table_says(row: LatticeParameters) -> None:
    pairs = [lattice.key_share(bytes(32), parameters=row, for_tests=True) for _ in range(2)]
    public = lattice.aggregate([pair.public for pair in pairs], for_tests=True)
    with lattice.PublicKey(public, for_tests=True) as key:
        ciphertext = key.encrypt(random_limbs(1024 // row.coefficients, 1))
        with lattice.SecretKey(pairs[0].secret, for_tests=True) as secret:
            share = secret.decryption_share(key, ciphertext)
    half_width = 2.0 ** (row.smudge_bits - 1 + row.carried_bits - 8 * row.cipher_bytes)
    assert half_width == 2.0**-9
    smudge = np.array(reference.smudging(share, ciphertext, pairs[0].secret)) / half_width
    assert np.abs(smudge).max() <= 1.01
    counts, _ = np.histogram(smudge, bins=8, range=(-1.01, 1.01))
    mean = smudge.size / 8
    assert ((counts - mean) ** 2 / mean).sum() < 35  # 7 degrees of freedom: exceeded once in 1e5 runs
