"""Lattice sums with all roles in one place, and the sums that they must equal."""

from __future__ import annotations

import numpy as np

from atoll.crypto.hazmat import lattice
from atoll.crypto.hazmat.parameters import (
    INSECURE_TEST_COLLECTIVE,
    LatticeParameters,
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
