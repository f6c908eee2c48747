"""Sign and inverse square root as Chebyshev series on agreed intervals.

A place in the program has a path of names, as ``power/3/0/length``; its interval is agreed before the run. In
the paper one party runs the algorithm in the clear on its own rows, drawn again up to the size of all, and
takes what it sees: :class:`Recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log2
from typing import NamedTuple, Self

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Approximation, Slots, Values, Vector

__all__ = [
    "FUNCTIONS",
    "HIGHEST",
    "Approximations",
    "Divided",
    "Exact",
    "Interval",
    "Recording",
    "agreed",
    "power_of",
    "series",
]

Interval = tuple[float, float]


def _sign(x: Values) -> Values:
    return np.where(x < 0, -1.0, 1.0)


def _inverse(x: Values) -> Values:
    return 1 / np.sqrt(np.maximum(x, np.finfo(float).tiny))


FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {"length": _inverse, "sign": _sign, "inverse": _inverse}
"""What is approximated, by the last name of a path: 1 / |v| of |v|^2, the sign of v_0 / |v|, and 1 / |u|."""

LARGEST = 1.5
"""No number of a row is larger, once it is divided by what a series says is its length."""
HIGHEST = 8.0
"""Nor is |u|^2."""
TOP, MOST_RAISED = 8, 10
"""Rows are raised so that squares of their lengths are below two to the first; so much costs no level."""
TURN, SIGN_GAP = -0.75, 0.2
"""Where a sign changes, and how far from there its series says so.

Not at zero: a row that is hardly there has a number near zero, and a side near zero would leave of u nothing
that could be made longer. A row near the axis keeps most of itself whatever the side is.
"""
SIGN_SLOPE = 2.0**-30
"""What a constant sign still takes of its argument: a constant alone leaves no ciphertext, but
the same number in the clear every time, which no machine refreshes twice."""


def series(name: str, interval: Interval, degree: int) -> Approximation:
    """The series that is nearest to the function on the interval."""
    low, high = interval
    if not low < high:
        raise ParameterError(f"{name}: an interval from {low:g} to {high:g} is empty")
    function = name.rsplit("/", 1)[-1]
    if function == "sign":
        return _sign_series(name, interval, degree)
    if low < 0:
        raise ParameterError(f"{name}: no values below zero, but the interval starts at {low:g}")
    # By relative errors: on a wide interval interpolation would be as far off at its upper end, where the
    # inverse root is small, as at its lower.
    angles = np.pi * (np.arange(8 * (degree + 1)) + 0.5) / (8 * (degree + 1))
    values = FUNCTIONS[function]((low + high + np.cos(angles) * (high - low)) / 2)
    terms = np.cos(np.outer(angles, np.arange(degree + 1))) / values[:, None]
    coefficients = np.linalg.lstsq(terms, np.ones(len(angles)), rcond=None)[0]
    return Approximation(name, low, high, tuple(map(float, coefficients)))


def _sign_series(name: str, interval: Interval, degree: int) -> Approximation:
    """On one side of zero a constant, which makes a reflection for values of the other sign too.

    Else least squares on both sides of a gap. What an interval says is on which sides of zero there are
    numbers; how large they are is known.
    """
    low, high = interval
    end = LARGEST
    if not low < 0 < high:
        constant = (1.0 if high > 0 else -1.0, SIGN_SLOPE, *(0.0,) * (degree - 1))
        return Approximation(name, -end, end, constant)
    steps = (1 - np.cos(np.linspace(0, np.pi, 20 * degree))) / 2
    sides = [
        TURN + SIGN_GAP + (end - TURN - SIGN_GAP) * steps,
        TURN - SIGN_GAP - (end + TURN - SIGN_GAP) * steps,
    ]
    x, due = np.concatenate(sides) / end, np.repeat([1.0, -1.0], len(steps))
    terms = np.cos(np.outer(np.arccos(np.clip(x, -1, 1)), np.arange(degree + 1)))
    coefficients = np.linalg.lstsq(terms, due, rcond=None)[0]
    return Approximation(name, -end, end, tuple(map(float, coefficients)))


@dataclass(frozen=True, eq=False)
class Exact(Approximation):
    """The function itself, for a run in the clear that notes between which values it is taken."""

    seen: dict[str, Interval]

    def at(self, x: Values) -> Values:
        """Its values, noted."""
        low, high = self.seen.get(self.name, (np.inf, -np.inf))
        self.seen[self.name] = (min(low, float(x.min())), max(high, float(x.max())))
        return FUNCTIONS[self.name.rsplit("/", 1)[-1]](x)


class Divided(NamedTuple):
    """A row divided by what is found to be its length."""

    inverse: Vector
    """What it is multiplied with."""
    norm_2: Vector
    """The square of its length then: one, but for the approximation."""
    along: Vector
    """Its number then."""
    side: Vector
    """The sign of that."""


@dataclass(frozen=True)
class Approximations:
    """The approximations of a part of the program."""

    table: Mapping[str, Approximation]
    path: str = ""
    powers: Mapping[str, int] = field(default_factory=dict)
    """The powers of two that rows are raised by before they are divided by their length, by path."""

    def inside(self, name: str) -> Self:
        """Those of a part of this part."""
        return replace(self, path=f"{self.path}{name}/")

    def raised(self, v: Vector, length: int) -> int:
        """By which power of two a row is multiplied before its reflection, which does not depend on it."""
        del v, length
        return self.powers.get(self.path, 0)

    @property
    def levels_of_length(self) -> int:
        """Levels that a row's length takes."""
        return self["length"].depth

    async def divided(self, m: Slots, norm_2: Vector, v_0: Vector) -> Divided:
        """A row by its length, from |v|^2 and its number v_0; with levels left for three products."""
        length, sign = self["length"], self["sign"]
        [norm_2] = await m.room([norm_2], length.depth)
        both = [m.polynomial(norm_2, length), v_0]
        inverse, v_0 = await m.room(both, min(1 + sign.depth, m.fresh_level - m.lowest))
        along = m.times(v_0, inverse)
        [argument] = await m.room([along], sign.depth)
        [side] = await m.room([m.polynomial(argument, sign)], 3)
        return Divided(inverse, m.times(norm_2, m.times(inverse, inverse)), argument, side)

    async def inverse_root(self, m: Slots, k: Vector) -> Vector:
        """One over the root of a positive number."""
        inverse = self["inverse"]
        [k] = await m.room([k], min(inverse.depth + 1, m.fresh_level - m.lowest))
        return m.polynomial(k, inverse)

    def __getitem__(self, function: str) -> Approximation:
        name = self.path + function
        if name not in self.table:
            raise ParameterError(f"no interval was agreed for {name}")
        return self.table[name]


@dataclass(frozen=True)
class Recording(Approximations):
    """The functions themselves under every path, with the levels that a degree takes.

    Run on one party's rows, drawn again up to the number of all: a few draws show how far a value may be off.
    """

    table: Mapping[str, Approximation] = field(default_factory=dict)
    degree: int = 31
    seen: dict[str, Interval] = field(default_factory=dict)

    def __getitem__(self, function: str) -> Approximation:
        return Exact(self.path + function, -1.0, 1.0, (0.0,) * (self.degree + 1), self.seen)

    def intervals(self, margin: float = 2.0) -> dict[str, Interval]:
        """What to agree upon: everything that was seen, and as many times less and more as the margin says.

        A number whose sign was always the same is taken to keep it.
        """
        out: dict[str, Interval] = {}
        for name, (low, high) in self.seen.items():
            if name.endswith("sign"):
                out[name] = (-1.0 if low < 0 else 0.0, 1.0 if high > 0 else 0.0)
            else:
                out[name] = (low / margin, high * margin)
        return out


def power_of(interval: Interval) -> int:
    """The power of two that rows are raised by, of which an interval of squares of lengths is agreed."""
    return max(0, min(MOST_RAISED, floor((TOP - log2(interval[1])) / 2)))


def agreed(intervals: Mapping[str, Interval], degree: int = 31) -> Approximations:
    """Series of one degree on the agreed intervals; those of lengths are of rows before they are raised."""
    table, powers = {}, {}
    for name, (low, high) in intervals.items():
        unit = 1.0
        if name.endswith("length"):
            power = powers[name.removesuffix("length")] = power_of((low, high))
            unit = 4.0**power
        table[name] = series(name, (low * unit, high * unit), degree)
    return Approximations(table, powers=powers)
