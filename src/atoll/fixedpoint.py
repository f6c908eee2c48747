"""One public grid for all data: 192-bit two's complement integers, 100 of the bits after the point.

A column of 1e9 beside one of 1e-6, squared and summed over a million rows, keeps every bit a double
has: 1e24 needs 80 bits before the point, and the 53rd bit of 1e-12 stands 93 bits after it. Because
the grid is the same for everyone, no magnitude is revealed by a choice of scale.

A vector of n such integers is a *planar* array of shape (3, n) of uint64 limbs, the least significant
first, so that every operation is a NumPy operation on contiguous rows. Arithmetic is modulo 2**192.
Whoever contributes to a sum checks first that its values leave room for everybody else's, so the true
sum cannot wrap: overflow is an error, never a wrong number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atoll.errors import RangeOverflow

LIMBS = 3
WIDTH_BITS = 64 * LIMBS
FRACTION_BITS = 100
BYTES_PER_VALUE = 8 * LIMBS

Limbs = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_MANTISSA_BITS = 53
_WORD = np.uint64(64)
_HALVES_LIMIT = 1 << 31  # how many 32-bit halves may be added in 64 bits before carrying


def bound(contributors: int) -> float:
    """The largest magnitude each of ``contributors`` may add so that the sum cannot wrap."""
    # Half a unit for two's complement's asymmetry, and rounding may add one unit each: one bit spare.
    return float(2.0 ** (WIDTH_BITS - 2 - FRACTION_BITS)) / contributors


def encode(values: npt.ArrayLike, *, contributors: int = 1) -> Limbs:
    """Doubles to the grid, rounded to the nearest unit (ties away from zero)."""
    x = np.ascontiguousarray(values, dtype=np.float64).ravel()
    check_range(x, contributors)
    mantissa, exponent = np.frexp(np.abs(x))
    units = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.uint64)
    limbs = _shift(units, exponent.astype(np.int64) - _MANTISSA_BITS + FRACTION_BITS)
    return np.where(np.signbit(x), negate(limbs), limbs)


def check_range(x: Floats, contributors: int) -> None:
    """Refuse what is not finite or would leave no room for the other contributors."""
    limit = bound(contributors)
    wrong = ~(np.abs(x) < limit)  # also true for nan
    if wrong.any():
        entry = int(np.argmax(wrong))
        raise RangeOverflow(
            f"entry {entry} is outside the fixed-point range, "
            f"which is ±{limit:.3g} for {contributors} contributors",
            hint="divide the columns by a public power of ten so that sums of squares stay below it",
            entry=entry,
        )


def _shift(units: npt.NDArray[np.uint64], by: npt.NDArray[np.int64]) -> Limbs:
    """``units * 2**by`` as limbs; a negative ``by`` rounds to nearest."""
    down = np.clip(-by, 0, 63).astype(np.uint64)
    half = np.where(down > 0, np.uint64(1) << (np.maximum(down, 1) - np.uint64(1)), np.uint64(0))
    units = (units + half) >> down
    up = np.maximum(by, 0)
    word, bit = up // 64, (up % 64).astype(np.uint64)
    low = units << bit
    # A shift by 64 is undefined, so the high part is shifted in two steps.
    high = (units >> np.uint64(1)) >> (np.uint64(63) - bit)
    limbs = np.zeros((LIMBS, units.size), np.uint64)
    for index in range(LIMBS):
        limbs[index] = np.where(word == index, low, 0) + np.where(word == index - 1, high, 0)
    return limbs


def decode(limbs: Limbs) -> Floats:
    """The grid back to doubles, within one unit in the last place."""
    negative = (limbs[-1] >> np.uint64(63)).astype(bool)
    magnitude = np.where(negative, negate(limbs), limbs).astype(np.float64)
    total = np.zeros(limbs.shape[1], np.float64)
    for index in reversed(range(LIMBS)):
        total += np.ldexp(magnitude[index], 64 * index - FRACTION_BITS)
    return np.where(negative, -total, total)


def negate(limbs: Limbs) -> Limbs:
    """Two's complement negation."""
    flipped = ~limbs
    one = np.zeros_like(limbs)
    one[0] = 1
    return add(flipped, one)


def add(a: Limbs, b: Limbs) -> Limbs:
    """``a + b`` modulo 2**192."""
    total = np.empty_like(a)
    carry = np.zeros(a.shape[1], np.uint64)
    for index in range(LIMBS):
        partial = a[index] + b[index]
        overflow = partial < a[index]
        np.add(partial, carry, out=total[index])
        carry = (overflow | (total[index] < partial)).astype(np.uint64)
    return total


def subtract(a: Limbs, b: Limbs) -> Limbs:
    """``a - b`` modulo 2**192."""
    return add(a, negate(b))


class Accumulator:
    """Sums many vectors modulo 2**192 without carrying after each: 32-bit halves in 64-bit words."""

    def __init__(self, n: int) -> None:
        self._plus = np.zeros((LIMBS, 2 * n), np.uint64)
        self._minus = np.zeros((LIMBS, 2 * n), np.uint64)
        self._added = 0

    def add(self, limbs: Limbs) -> None:
        self._accumulate(self._plus, limbs)

    def subtract(self, limbs: Limbs) -> None:
        self._accumulate(self._minus, limbs)

    def _accumulate(self, into: Limbs, limbs: Limbs) -> None:
        into += np.ascontiguousarray(limbs).view(np.uint32)
        self._added += 1
        if self._added >= _HALVES_LIMIT:
            raise RangeOverflow("too many summands for one accumulator")

    def total(self) -> Limbs:
        return subtract(_carried(self._plus), _carried(self._minus))


def _carried(halves: Limbs) -> Limbs:
    """Propagate the carries of 32-bit halves held in 64-bit words."""
    low_mask = np.uint64(0xFFFFFFFF)
    limbs = np.empty((LIMBS, halves.shape[1] // 2), np.uint64)
    carry = np.zeros(limbs.shape[1], np.uint64)
    for index in range(LIMBS):
        low = halves[index, 0::2] + carry
        high = halves[index, 1::2] + (low >> np.uint64(32))
        limbs[index] = (low & low_mask) | (high << np.uint64(32))
        carry = high >> np.uint64(32)
    return limbs


def from_int64(values: npt.ArrayLike, *, contributors: int = 1) -> Limbs:
    """64-bit integers as they are, in units of the grid's last bit: nothing is scaled or rounded."""
    integers = np.ascontiguousarray(values)
    if integers.dtype != np.int64:
        raise RangeOverflow(f"expected 64-bit integers, got {integers.dtype}")
    if contributors >= 1 << (WIDTH_BITS - 64):
        raise RangeOverflow(f"{contributors} contributors are too many for a sum of 64-bit integers")
    sign = (integers.ravel() >> 63).astype(np.uint64)  # all ones where negative
    return np.stack([integers.ravel().view(np.uint64), *(sign for _ in range(LIMBS - 1))])


def to_integers(limbs: Limbs) -> list[int]:
    """Signed Python integers, for tests and for crypto that works on integers."""
    rows = np.ascontiguousarray(limbs.T.astype("<u8")).tobytes()
    return [
        int.from_bytes(rows[start : start + BYTES_PER_VALUE], "little", signed=True)
        for start in range(0, len(rows), BYTES_PER_VALUE)
    ]


def from_integers(values: list[int]) -> Limbs:
    """Signed Python integers to limbs; out of range is an error."""
    try:
        rows = b"".join(value.to_bytes(BYTES_PER_VALUE, "little", signed=True) for value in values)
    except OverflowError:
        raise RangeOverflow(f"an integer does not fit {WIDTH_BITS} bits") from None
    return np.ascontiguousarray(np.frombuffer(rows, "<u8").reshape(-1, LIMBS).T.astype(np.uint64))
