"""Products of two parties' numbers under the Paillier key of one of them, as shares for both (Gilboa 1999).

The first sends E(a), one ciphertext for each number; the second answers E(a b + r) for a mask r of its own.
The first opens a b + r, the second has -r. The mask is so wide that it hides the product, and E(r) is a
fresh encryption: nothing of b is left in the ciphertext.
"""

from __future__ import annotations

from collections.abc import Sequence

import gmpy2
from gmpy2 import mpz

from atoll.crypto.hazmat.ciphertexts import multiplied, seal, unseal
from atoll.crypto.hazmat.paillier import PublicKey, SecretKey, encrypt_raw
from atoll.errors import MessageError
from atoll.threads import in_threads, joined, spans

KIND_FACTORS = 3

__all__ = ["decrypted", "encrypted", "times_plus"]


def encrypted(key: PublicKey, numbers: Sequence[int], seed: bytes) -> bytes:
    """Natural numbers, one in each ciphertext."""
    return seal(key, KIND_FACTORS, b"", encrypt_raw(key, [mpz(a) for a in numbers], seed, b"factors"))


def times_plus(
    key: PublicKey, batch: bytes, factors: Sequence[int], masks: Sequence[int], seed: bytes
) -> bytes:
    """Each number times a factor of its own, plus a mask."""
    ciphertexts = _of_count(key, batch, len(factors))
    pairs = list(zip(ciphertexts, factors, strict=True))

    def powers(part: slice) -> list[mpz]:
        return [gmpy2.powmod(c, mpz(b), key.n_squared) for c, b in pairs[part]]

    raised = joined(in_threads(powers, spans(len(pairs), 64)))
    fresh = encrypt_raw(key, [mpz(r) for r in masks], seed, b"masks")
    return seal(key, KIND_FACTORS, b"", multiplied(key, raised, fresh))


def decrypted(key: SecretKey, batch: bytes, count: int) -> list[int]:
    """The numbers below n that ``count`` ciphertexts hold."""
    return [int(m) for m in key.decrypt_raw(_of_count(key.public, batch, count))]


def _of_count(key: PublicKey, batch: bytes, count: int) -> list[mpz]:
    description, ciphertexts = unseal(key, KIND_FACTORS, batch)
    if description or len(ciphertexts) != count:
        raise MessageError(f"{len(ciphertexts)} encrypted factors arrived where {count} were due")
    return ciphertexts
