"""Fingerprints of long vectors: short numbers that add as the vectors do.

The fingerprint of x_0, x_1, ... at a point z is the sum of x_j z^j modulo a prime p. Parties who each know
one summand of a sum check the sum with it: all fix what they have (a digest of the sum is compared), then a
coin is tossed that nobody could foresee (:func:`points`), everybody tells the fingerprint of its own
summand, and these must add up to the fingerprint of the sum. A sum that differs in any place passes with a
probability of at most L/p at each of two points: less than 2^-76 for a million numbers.

A party that lies about its own fingerprint is not found out by this: it could as well have sent another
summand.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.crypto.hazmat import golib
from atoll.errors import MessageError

_PRIME_BITS: Final = 61
_WORD_BYTES: Final = 8
_CANDIDATES: Final = 1024  # 1 in 21 is prime: that none is happens once in 2^72 times

golib.declare("""
int32_t atoll_fingerprint(uint8_t*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t*, uint64_t*, char*,
    uint64_t);
int32_t atoll_fingerprint_prime(uint64_t*, uint64_t, uint64_t*, char*, uint64_t);
""")


class Point(NamedTuple):
    """Where a fingerprint is taken."""

    modulus: int
    z: int


Points = tuple[Point, Point]
Pair = tuple[int, int]


@functools.lru_cache(maxsize=64)
def points_modulo(prime: int, coin: bytes) -> Points:
    """Two points modulo a prime, for vectors of residues modulo it."""
    drawn = (randomness.expand(coin, 16, "atoll/fingerprint/point/1", prime, i) for i in range(2))
    first, second = (Point(prime, int.from_bytes(data, "little") % prime) for data in drawn)
    return first, second


@functools.lru_cache(maxsize=16)
def points(coin: bytes) -> Points:
    """Two points modulo two primes of 61 bits, for vectors of integers.

    The primes are drawn too: integers that differ by a multiple of a fixed prime would pass.
    """
    first, second = (_prime(coin, i) for i in range(2))
    return points_modulo(first, coin)[0], points_modulo(second, coin)[1]


def _prime(coin: bytes, index: int) -> int:
    words = randomness.expand_words(coin, _CANDIDATES, "atoll/fingerprint/prime/1", index)
    top = np.uint64(1 << (_PRIME_BITS - 1))
    candidates = top | words % top | np.uint64(1)
    return first_prime(candidates)


def first_prime(candidates: npt.NDArray[np.uint64]) -> int:
    """The first of the candidates that is prime; no pseudoprime passes."""
    found = golib.ffi.new("uint64_t*")
    golib.call("atoll_fingerprint_prime", *golib.words_in(candidates), found)
    return int(found[0])


def evaluate(data: bytes | memoryview, size: int, at: Points) -> Pair:
    """The fingerprints of the little-endian integers of ``size`` bytes in ``data``, at two points."""
    return evaluate_rows(data, size, len(data) // size, [at])[0]


def evaluate_rows(data: bytes | memoryview, size: int, count: int, at: Sequence[Points]) -> list[Pair]:
    """The same for vectors that take turns: ``count`` integers of each one, and over again."""
    where = golib.ffi.new("uint64_t[]", [number for pair in at for point in pair for number in point])
    found = golib.ffi.new("uint64_t[]", 2 * len(at))
    golib.call("atoll_fingerprint", *golib.bytes_in(data), size, count, len(at), where, found)
    return [(int(found[2 * i]), int(found[2 * i + 1])) for i in range(len(at))]


def plus(at: Points, parts: Iterable[Pair]) -> Pair:
    """What fingerprints add up to."""
    columns = list(zip(*parts, strict=True))
    return sum(columns[0]) % at[0].modulus, sum(columns[1]) % at[1].modulus


def to_bytes(pairs: Sequence[Pair]) -> bytes:
    """Fingerprints as they travel."""
    return b"".join(value.to_bytes(_WORD_BYTES, "little") for pair in pairs for value in pair)


def from_bytes(data: bytes, count: int) -> list[Pair]:
    """Fingerprints as they arrive."""
    if len(data) != 2 * _WORD_BYTES * count:
        raise MessageError(f"{len(data)} bytes are not {count} pairs of fingerprints")
    words = [int.from_bytes(data[i : i + _WORD_BYTES], "little") for i in range(0, len(data), _WORD_BYTES)]
    return list(zip(words[::2], words[1::2], strict=True))
