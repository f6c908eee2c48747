"""Shamir's secret sharing of 32-byte secrets, threshold t of n, over the field of 2^521 - 1.

The Mersenne prime is larger than any 256-bit secret, so a secret needs no reduction and is recovered
byte for byte. Coefficients are expanded from a seed, so that sharing again gives the same shares.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll import randomness
from atoll.errors import MessageError

_PRIME = (1 << 521) - 1
_FIELD_BYTES = 66
SECRET_BYTES = 32


def split(secret: bytes, threshold: int, points: list[int], seed: bytes) -> dict[int, bytes]:
    """One share per point (points are distinct and positive)."""
    coefficients = [int.from_bytes(secret, "little")]
    for index in range(1, threshold):
        # 16 bytes more than the field keep the bias of the reduction below 2^-120.
        stream = randomness.expand(seed, _FIELD_BYTES + 16, "atoll/shamir/v1", index)
        coefficients.append(int.from_bytes(stream, "little") % _PRIME)
    return {point: _evaluate(coefficients, point).to_bytes(_FIELD_BYTES, "little") for point in points}


def _evaluate(coefficients: list[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % _PRIME
    return value


def recover(shares: Mapping[int, bytes]) -> bytes:
    """The secret from a threshold's worth of shares."""
    if not shares or any(len(share) != _FIELD_BYTES for share in shares.values()):
        raise MessageError("a secret cannot be recovered from these shares")
    secret = 0
    for point, share in shares.items():
        weight = 1
        for other in shares:
            if other != point:
                weight = weight * other * pow(other - point, -1, _PRIME) % _PRIME
        secret = (secret + weight * int.from_bytes(share, "little")) % _PRIME
    if secret >> (8 * SECRET_BYTES):
        raise MessageError("a secret cannot be recovered from these shares")
    return secret.to_bytes(SECRET_BYTES, "little")
