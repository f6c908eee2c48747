"""Shamir's secret sharing of 32-byte secrets, threshold t of n, over the field of 2^521 - 1.

The Mersenne prime is larger than any 256-bit secret, so a secret needs no reduction and is recovered
byte for byte. Coefficients are expanded from a seed, so that sharing again gives the same shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from atoll import randomness
from atoll.errors import MessageError

_PRIME = (1 << 521) - 1
SHARE_BYTES = 66
SECRET_BYTES = 32


def split(secret: bytes, threshold: int, points: list[int], seed: bytes) -> dict[int, bytes]:
    """One share per point (points are distinct and positive)."""
    coefficients = [int.from_bytes(secret, "little")]
    for index in range(1, threshold):
        # 16 bytes more than the field keep the bias of the reduction below 2^-120.
        stream = randomness.expand(seed, SHARE_BYTES + 16, "atoll/shamir/v1", index)
        coefficients.append(int.from_bytes(stream, "little") % _PRIME)
    return {point: _evaluate(coefficients, point).to_bytes(SHARE_BYTES, "little") for point in points}


def _evaluate(coefficients: list[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % _PRIME
    return value


def _weights(points: tuple[int, ...]) -> list[tuple[int, int]]:
    """Lagrange's weights at zero, by a single inversion: a receiver recovers one secret per contributor."""
    whole = prod(points)
    below = [point * prod(other - point for other in points if other != point) % _PRIME for point in points]
    before = [1]
    for factor in below:
        before.append(before[-1] * factor % _PRIME)
    inverse, weights = pow(before[-1], -1, _PRIME), []
    for point, factor, rest in zip(reversed(points), reversed(below), reversed(before[:-1]), strict=True):
        weights.append((point, whole * inverse * rest % _PRIME))
        inverse = inverse * factor % _PRIME
    return weights


def recover(shares: Mapping[int, bytes]) -> bytes:
    """The secret from a threshold's worth of shares."""
    if not shares or any(len(share) != SHARE_BYTES for share in shares.values()):
        raise MessageError("a secret cannot be recovered from these shares")
    weights = _weights(tuple(shares))
    secret = sum(weight * int.from_bytes(shares[point], "little") for point, weight in weights) % _PRIME
    if secret >> (8 * SECRET_BYTES):
        raise MessageError("a secret cannot be recovered from these shares")
    return secret.to_bytes(SECRET_BYTES, "little")
