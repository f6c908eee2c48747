"""Whether a result holds, as one bit: a secret number between zero and one is compared, and the bit opened.

The number is rounded to a grid of a few hundred points, between two of which the threshold lies. x <- x^2 and
x <- 1 - (1 - x)^2, in turns, then drive every point of the grid to zero or to one, within 2^-50. Every
provider adds noise of 2^-10 when that is opened: whatever the number was, two numbers on one side of the
threshold give openings whose distributions differ by less than 2^-40.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, floor, log2, sqrt

import numpy as np

from atoll.protocols.pca.sfpca.recipes.deflation import FRACTION, one_minus
from atoll.secret_matrices.machine import Machine, Shared

THRESHOLD = (sqrt(5) - 1) / 2
"""What squaring, and then its mirror image, leave as it is."""
_NOISE = 10
_DECIDED = Fraction(1, 2**56)
_WIDE = 200
_ROOM, _MARGIN = 15 / 16, 1 / 32
"""Rounding may leave the ends of the grid by 1/64: it is made a little smaller, and moved up."""


async def product_of(machine: Machine, column: Shared) -> Shared:
    """All entries of a column of numbers in [0, 1], multiplied."""
    while (size := column.shape[0]) > 1:
        half = size // 2
        first, second, rest = (
            machine.part(column, rows, slice(0, 1))
            for rows in (slice(0, half), slice(half, 2 * half), slice(2 * half, size))
        )
        made = await machine.product(
            (first, second), fraction=column.fraction, bits=1, name="evidence", entrywise=True, ahead=True
        )
        column = machine.vstack([made, rest]) if size % 2 else made
    return column


async def powered(machine: Machine, x: Shared, squarings: int) -> Shared:
    """x^(2^squarings) of a number in [0, 1]."""
    for _ in range(squarings):
        x = await machine.product((x, x), fraction=FRACTION, bits=1, name="evidence", ahead=True)
    return x


async def passes(machine: Machine, x: Shared) -> bool:
    """Whether a secret number in [0, 1] is above the threshold; opens that bit."""
    digits = grid_digits(machine.n_providers)
    one = machine.plus_public(machine.combine([(0.0, x)], bits=0), np.ones((1, 1)))
    coarse = await machine.product((x, one), fraction=digits, bits=1, name="grid", ahead=True)
    x = machine.combine([(_ROOM, coarse)], identity=offset(digits), fraction=FRACTION, bits=1)
    for turn in range(turns(digits)):
        y = one_minus(machine, x) if turn % 2 else x
        y = await machine.product((y, y), fraction=FRACTION, bits=1, name="verdict", ahead=True)
        x = one_minus(machine, y) if turn % 2 else y
    opened = await machine.opened(x, smudge_bits=FRACTION - _NOISE)
    return bool(opened[0, 0] > 0.5)


def grid_digits(n_providers: int) -> int:
    """Of which half a unit for each party, and one more, is at most 1/64."""
    return 5 + ceil(log2(n_providers + 1))


def offset(digits: int) -> float:
    """What brings the threshold into the middle between two points of the grid, and all points above zero."""
    below = floor((THRESHOLD - _MARGIN) / _ROOM * 2.0**digits)
    return THRESHOLD - _ROOM * (below + 0.5) * 2.0**-digits


@cache
def turns(digits: int) -> int:
    """Until the two points next to the threshold, and with them all others, are decided."""
    half = _ROOM * 2.0**-digits / 2
    low, high, count = Fraction(THRESHOLD - half), Fraction(THRESHOLD + half), 0
    while low > _DECIDED or 1 - high > _DECIDED:
        low, high = (1 - (1 - x) ** 2 if count % 2 else x**2 for x in (low, high))
        low, high = (Fraction(round(x * 2**_WIDE), 2**_WIDE) for x in (low, high))
        count += 1
    return count
