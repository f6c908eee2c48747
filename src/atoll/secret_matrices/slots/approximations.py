"""Square root, sign and inverse square root as Chebyshev series on agreed intervals.

A place in the program has a path of names, as ``power/3/0/root``; its interval is agreed before the run. In
the paper one party runs the algorithm in the clear on its own rows, drawn again up to the size of all, and
takes what it sees: :class:`Recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import floor, log2
from typing import Self

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Approximation, Slots, Values, Vector

__all__ = [
    "ALWAYS",
    "FUNCTIONS",
    "INVERSE",
    "MOST_RAISED",
    "TOP",
    "WIDEST",
    "Approximations",
    "Exact",
    "Interval",
    "Recording",
    "agreed",
    "always",
    "degree_of",
    "raised_by",
    "series",
]

Interval = tuple[float, float]


def _sign(x: Values) -> Values:
    return np.where(x < 0, -1.0, 1.0)


def _inverse(x: Values) -> Values:
    return 1 / np.sqrt(np.maximum(x, np.finfo(float).tiny))


FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {
    "length": _inverse,
    "second": _inverse,
    "sign": _sign,
    "inverse": lambda x: _inverse(x) / 4,
}
"""What is approximated, by the last name of a path. ``length``: one over the length of a row, from its square;
``second``: what the first of its series leaves to do; ``inverse``: a quarter of one over the length of u."""

WIDEST = 16
"""Powers of two between the ends of an interval of squares of lengths, at most."""
TOP = 8
"""Rows are multiplied so that the squares of their lengths are below two to this power."""
MOST_RAISED = 19
"""Whole powers of two up to this cost no level."""
SECOND = (2.0**-5.5, 1.5)
"""Of |v|^2 times the square of the first series, on the widest interval."""
INVERSE = (2.0**-5, 18.0)
"""Of |u|^2, for a v of length two, or much shorter: the sign may be wrong up to an angle of 7 degrees."""
LARGEST_SIGN = 1.25
"""No number of a row exceeds this, after the first series."""
SIGN_GAP = 1 / 8
"""A sign on an interval around zero is fitted to what is not smaller than this part of it."""
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

    Around zero, least squares on both sides of a gap, odd terms only.
    """
    low, high = interval
    end = max(-low, high)
    if not low < 0 < high:
        constant = (1.0 if high > 0 else -1.0, SIGN_SLOPE, *(0.0,) * (degree - 1))
        return Approximation(name, -end, end, constant)
    x = SIGN_GAP + (1 - SIGN_GAP) * (1 - np.cos(np.linspace(0, np.pi, 20 * degree))) / 2
    odd = np.arange(1, degree + 1, 2)
    fitted = np.linalg.lstsq(np.cos(np.outer(np.arccos(x), odd)), np.ones(len(x)), rcond=None)[0]
    coefficients = np.zeros(degree + 1)
    coefficients[odd] = fitted
    return Approximation(name, -end, end, tuple(map(float, coefficients)))


ALWAYS = {"second": SECOND, "inverse": INVERSE}
"""Intervals that are the same at every place, unless another was agreed."""


@cache
def always(function: str, degree: int) -> Approximation:
    """A series on the interval that is the same at every place."""
    return series(function, ALWAYS[function], degree_of(function, degree))


@dataclass(frozen=True, eq=False)
class Exact(Approximation):
    """The function itself, for a run in the clear that notes between which values it is taken."""

    seen: dict[str, Interval]

    def at(self, x: Values) -> Values:
        """Its values, noted."""
        low, high = self.seen.get(self.name, (np.inf, -np.inf))
        self.seen[self.name] = (min(low, float(x.min())), max(high, float(x.max())))
        return FUNCTIONS[self.name.rsplit("/", 1)[-1]](x)


def raised_by(interval: Interval) -> int:
    """The power of two that a row is multiplied by, of which an interval of squares of lengths is agreed."""
    return max(0, min(MOST_RAISED, floor((TOP - log2(interval[1])) / 2)))


def degree_of(function: str, degree: int) -> int:
    """The second series of a length has half as many terms: with the product before it, it fits too."""
    return (degree + 1) // 2 - 1 if function == "second" else degree


@dataclass(frozen=True)
class Approximations:
    """The approximations of a part of the program."""

    table: Mapping[str, Approximation]
    path: str = ""
    raises: Mapping[str, int] = field(default_factory=dict)
    """The powers of two that rows are multiplied by, by the path of their reflection."""
    degree: int = 31

    def inside(self, name: str) -> Self:
        """Those of a part of this part."""
        return replace(self, path=f"{self.path}{name}/")

    @property
    def levels_of_length(self) -> int:
        """Levels that the first series of a length takes."""
        return self["length"].depth

    def raised(self, v: Vector, length: int, at: int) -> int:
        """By which power of two a row is multiplied before its reflection, which does not depend on it."""
        del v, length, at
        return self.raises.get(self.path, 0)

    async def inverse_and_sign(self, m: Slots, norm_2: Vector, v_0: Vector) -> tuple[Vector, Vector, Vector]:
        """One over the length of a row, the sign of one of its numbers, and that number to go on with.

        The sign is that of what the first series makes of the number.
        """
        first, second, sign = self["length"], self["second"], self["sign"]
        [norm_2] = await m.room([norm_2], first.depth)
        y = m.polynomial(norm_2, first)
        y, v_0 = await m.room([y, v_0], min(1 + sign.depth, m.fresh_level - m.lowest))
        left, near = await m.room([m.times(norm_2, m.times(y, y)), m.times(v_0, y)], second.depth)
        [near] = await m.room([near], sign.depth)
        rest, side = await m.room([m.polynomial(left, second), m.polynomial(near, sign)], 3)
        return m.times(y, rest), side, v_0

    async def inverse_root(self, m: Slots, k: Vector) -> Vector:
        """One over the root of a positive number.

        The series gives a quarter of it, y, and two steps of Newton's method follow: y (3 - 16 k y^2) is half of
        what the first finds. Each squares the error, and leaves nothing too large.
        """
        inverse = self["inverse"]
        [k] = await m.room([k], inverse.depth)
        y, k = await m.room([m.polynomial(k, inverse), k], 7)
        for unit in (16, 4):
            over = m.times(k, m.times(y, y))
            y = m.times(y, m.plus(m.scaled(over, -unit), np.full(m.slots, 3.0)))
        return y

    def __getitem__(self, function: str) -> Approximation:
        name = self.path + function
        if name in self.table:
            return self.table[name]
        if function in ALWAYS:
            return replace(always(function, self.degree), name=name)
        raise ParameterError(f"no interval was agreed for {name}")


@dataclass(frozen=True)
class Recording(Approximations):
    """The functions themselves under every path, with the levels that a degree takes.

    Run on one party's rows, drawn again up to the number of all: a few draws show how far a value may be off.
    """

    table: Mapping[str, Approximation] = field(default_factory=dict)
    degree: int = 31
    seen: dict[str, Interval] = field(default_factory=dict)

    def __getitem__(self, function: str) -> Approximation:
        terms = degree_of(function, self.degree) + 1
        return Exact(self.path + function, -1.0, 1.0, (0.0,) * terms, self.seen)

    def intervals(self, margin: float = 2.0) -> dict[str, Interval]:
        """What to agree upon: everything that was seen, and as many times less and more as the margin says.

        A number whose sign was always the same is taken to keep it.
        """
        out: dict[str, Interval] = {}
        for name, (low, high) in self.seen.items():
            sides = (-1.0 if low < 0 else 0.0, 1.0 if high > 0 else 0.0)
            out[name] = sides if name.endswith("sign") else (low / margin, high * margin)
        return out


def agreed(intervals: Mapping[str, Interval], degree: int = 31) -> Approximations:
    """Series of one degree on the agreed intervals: of squares of lengths before rows are multiplied."""
    table, raises = {}, {}
    for name, (low, high) in intervals.items():
        function = name.rsplit("/", 1)[-1]
        unit = 1.0
        if function == "length":
            path = name.removesuffix(function)
            raises[path] = raised_by((low, high))
            unit = 4.0 ** raises[path]
        if function == "sign":
            low, high, unit = -float(low < 0), float(high > 0), LARGEST_SIGN
        table[name] = series(name, (low * unit, high * unit), degree_of(function, degree))
    return Approximations(table, raises=raises, degree=degree)
