"""Shamir's secret sharing, threshold t of n, over the field of 2^521 - 1: of 32-byte secrets, and of many
whole numbers at once.

The Mersenne prime is larger than any 256-bit secret, so a secret needs no reduction and is recovered
byte for byte; whole numbers may have either sign. Coefficients are expanded from a seed, so that sharing
again gives the same shares. Shares of numbers may be added up: they are then shares of the sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.errors import MessageError

Numbers = npt.NDArray[Any]
"""A row of whole numbers of any size (dtype object)."""

PRIME = (1 << 521) - 1
SHARE_BYTES = 66
SECRET_BYTES = 32


def split(secret: bytes, threshold: int, points: list[int], seed: bytes) -> dict[int, bytes]:
    """One share per point (points are distinct and positive)."""
    secrets = _row([int.from_bytes(secret, "little")], 1)
    shares = _dealt(secrets, threshold, points, seed, "atoll/shamir/v1")
    return {point: int(share[0]).to_bytes(SHARE_BYTES, "little") for point, share in shares.items()}


def _dealt(
    values: Numbers, threshold: int, points: Sequence[int], seed: bytes, domain: str
) -> dict[int, Numbers]:
    coefficients = [values % PRIME]
    for index in range(1, threshold):
        coefficients.append(uniform(len(values), seed, domain, index))
    return {point: _evaluate(coefficients, point) for point in points}


def _evaluate(coefficients: Sequence[Numbers], point: int) -> Numbers:
    value: Numbers = 0 * coefficients[0]
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value


def uniform(count: int, seed: bytes, *domain: str | int) -> Numbers:
    """So many numbers of the field, from a seed."""
    # 16 bytes more than the field keep the bias of the reduction below 2^-120.
    size = SHARE_BYTES + 16
    stream = randomness.expand(seed, size * count, *domain)
    drawn = (int.from_bytes(stream[i : i + size], "little") % PRIME for i in range(0, size * count, size))
    return _row(drawn, count)


def _row(values: Any, count: int) -> Numbers:
    out = np.empty(count, dtype=object)
    out[:] = list(values)
    return out


def _weights(points: tuple[int, ...]) -> list[tuple[int, int]]:
    """Lagrange's weights at zero, by a single inversion: a receiver recovers one secret per contributor."""
    whole = prod(points)
    below = [point * prod(other - point for other in points if other != point) % PRIME for point in points]
    before = [1]
    for factor in below:
        before.append(before[-1] * factor % PRIME)
    inverse, weights = pow(before[-1], -1, PRIME), []
    for point, factor, rest in zip(reversed(points), reversed(below), reversed(before[:-1]), strict=True):
        weights.append((point, whole * inverse * rest % PRIME))
        inverse = inverse * factor % PRIME
    return weights


def recover(shares: Mapping[int, bytes]) -> bytes:
    """The secret from a threshold's worth of shares."""
    if not shares or any(len(share) != SHARE_BYTES for share in shares.values()):
        raise MessageError("a secret cannot be recovered from these shares")
    weights = _weights(tuple(shares))
    secret = sum(weight * int.from_bytes(shares[point], "little") for point, weight in weights) % PRIME
    if secret >> (8 * SECRET_BYTES):
        raise MessageError("a secret cannot be recovered from these shares")
    return secret.to_bytes(SECRET_BYTES, "little")


# ---- many numbers at once ----


def deal(values: Numbers, threshold: int, points: Sequence[int], seed: bytes) -> dict[int, Numbers]:
    """Every point's shares of the numbers, each of magnitude below half the prime."""
    return _dealt(values, threshold, points, seed, "atoll/shamir/numbers/v1")


def weights(points: Sequence[int]) -> list[int]:
    """What each point's share is multiplied by; the products add up to the number, modulo the prime."""
    return [weight for _, weight in _weights(tuple(points))][::-1]


def joined(shares: Mapping[int, Numbers], threshold: int) -> Numbers:
    """The numbers from a threshold's worth of shares or more, which must all belong together."""
    points = list(shares)
    if len(points) < threshold:
        raise MessageError(f"{len(points)} shares do not give numbers of which {threshold} must be there")
    few, more = points[:threshold], points[threshold:]
    for point in more:
        if any(_sum_at(shares, few, point) != shares[point] % PRIME):
            raise MessageError("shares of one secret do not belong together: one of them is wrong")
    return centred(_sum_at(shares, few, 0))


def centred(values: Numbers) -> Numbers:
    """Residues as the numbers of smallest magnitude."""
    return np.where(values > PRIME // 2, values - PRIME, values)


def _sum_at(shares: Mapping[int, Numbers], points: Sequence[int], at: int) -> Numbers:
    """The polynomials' values at a place, from their values at the points."""
    by = weights([point - at for point in points])
    total: Numbers = np.zeros(1, dtype=object)
    for point, weight in zip(points, by, strict=True):
        total = total + weight * shares[point]
    return total % PRIME


def numbers_to_bytes(values: Numbers) -> bytes:
    return b"".join(int(value).to_bytes(SHARE_BYTES, "little") for value in values)


def numbers_from_bytes(data: bytes | memoryview, count: int) -> Numbers:
    """So many residues as they travelled."""
    if len(data) != SHARE_BYTES * count:
        raise MessageError(f"{len(data)} bytes are not {count} shares")
    raw = bytes(data)
    found = [int.from_bytes(raw[i : i + SHARE_BYTES], "little") for i in range(0, len(raw), SHARE_BYTES)]
    if max(found, default=0) >= PRIME:
        raise MessageError("a share is no residue of the field")
    return _row(found, count)
