"""Square root, inverse square root and division of secret numbers of any size: no intervals to choose.

A number's highest bit says, in secret, by which power of two it comes to lie in [1/2, 1); there a few steps
of Newton's method from a line are exact to the last places, and the power's own root is in a public table
that the secret bit picks from (Aliasgari, Blanton, Zhang, Steele 2013; Markstein 2004).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from atoll.secret_numbers.bits import highest_bit, sign
from atoll.secret_numbers.field import FRACTION, MAGNITUDE, Elements, elements
from atoll.secret_numbers.machine import Parties

__all__ = ["divided", "inverse_square_root", "reciprocal", "signed_one", "square_root"]

_FINE: Final = 60
"""Bits after the point between 1/2 and 2."""
_ROOT_STEPS: Final = 5
"""The line 1.81 - y is within 0.19 of the inverse root; a step squares that, times 1.5: 2^-58 after five."""
_RECIPROCAL_STEPS: Final = 4
"""The line 2.9142 - 2 y is within 0.086 of the reciprocal; a step squares the error: 2^-56 after four."""
_TABLE: Final = 44
"""Bits after the point of the table of powers."""


class _Normal(NamedTuple):
    """A positive number as fraction times 2^(place + 1 - FRACTION)."""

    fraction: Elements
    place: Elements
    """One where the highest bit is; all zeros for zero."""

    def __repr__(self) -> str:
        return f"_Normal({self.fraction.shape[1:]})"


async def _normal(parties: Parties, x: Elements) -> _Normal:
    place = await highest_bit(parties, x)
    lift = np.array([1 << (MAGNITUDE - 1 - i) for i in range(MAGNITUDE)], dtype=object)
    raised = await parties.product(x, elements((place * lift).sum(axis=-1)))
    return _Normal(await parties.rounded(raised, MAGNITUDE - _FINE, MAGNITUDE), place)


async def _fine(parties: Parties, x: Elements, y: Elements) -> Elements:
    return await parties.times(x, y, bits=_FINE, magnitude=2 * _FINE + 4)


def _line(parties: Parties, y: Elements, at_zero: float, slope: int) -> Elements:
    """A public line through a number of _FINE bits: a whole slope needs no rounding."""
    return elements(parties.constant(np.full(y.shape[1:], at_zero), _FINE) + slope * y)


def _power(place: Elements, half: bool, negative: bool) -> Elements:
    """2^(place + 1 - FRACTION), its root or its inverse, picked from a table by the secret place."""
    exponents = np.arange(MAGNITUDE) + 1.0 - FRACTION
    exponents = exponents / 2 if half else exponents
    table = np.array([round(2.0 ** (-e if negative else e) * 2.0**_TABLE) for e in exponents], dtype=object)
    return elements((place * table).sum(axis=-1))


async def _inverse_root_of_fraction(parties: Parties, y: Elements) -> Elements:
    z = _line(parties, y, 1.81, -1)
    three = parties.constant(np.full(y.shape[1:], 3.0), _FINE)
    for _ in range(_ROOT_STEPS):
        squared = await _fine(parties, z, z)
        rest = elements(three - await _fine(parties, y, squared))
        z = await parties.times(z, rest, bits=_FINE + 1, magnitude=2 * _FINE + 4)
    return z


async def inverse_square_root(parties: Parties, x: Elements) -> Elements:
    """1 / sqrt(x) for x >= 0; zero for zero."""
    normal = await _normal(parties, x)
    z = await _inverse_root_of_fraction(parties, normal.fraction)
    power = _power(normal.place, half=True, negative=True)
    return await parties.times(z, power, bits=_FINE + _TABLE - FRACTION, magnitude=_FINE + _TABLE + 24)


async def square_root(parties: Parties, x: Elements) -> Elements:
    """sqrt(x) for x >= 0."""
    normal = await _normal(parties, x)
    z = await _inverse_root_of_fraction(parties, normal.fraction)
    root = await _fine(parties, normal.fraction, z)
    power = _power(normal.place, half=True, negative=False)
    return await parties.times(root, power, bits=_FINE + _TABLE - FRACTION, magnitude=_FINE + _TABLE + 24)


async def reciprocal(parties: Parties, x: Elements) -> Elements:
    """1 / x for x > 0; zero for zero."""
    normal = await _normal(parties, x)
    y = normal.fraction
    z = _line(parties, y, 2.9142, -2)
    two = parties.constant(np.full(y.shape[1:], 2.0), _FINE)
    for _ in range(_RECIPROCAL_STEPS):
        z = await _fine(parties, z, elements(two - await _fine(parties, y, z)))
    power = _power(normal.place, half=False, negative=True)
    return await parties.times(z, power, bits=_FINE + _TABLE - FRACTION, magnitude=_FINE + _TABLE + 42)


async def signed_one(parties: Parties, x: Elements) -> Elements:
    """1 or -1 as fixed-point numbers."""
    return elements((await sign(parties, x)) << FRACTION)


async def divided(parties: Parties, x: Elements, y: Elements) -> Elements:
    """x / y for y of either sign."""
    s = await sign(parties, y)
    size = await parties.product(s, y)
    return await parties.times(await parties.product(s, x), await reciprocal(parties, size))
