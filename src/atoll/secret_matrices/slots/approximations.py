"""Square root, sign and inverse square root as Chebyshev series on agreed intervals.

A place in the program has a path of names, as ``power/3/0/root``; its interval is agreed before the run. In
the paper one party runs the algorithm in the clear on its own rows, drawn again up to the size of all, and
takes what it sees: :class:`Recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Approximation, Slots, Values, Vector

__all__ = ["FLOOR", "FUNCTIONS", "Approximations", "Exact", "Interval", "Recording", "agreed", "series"]

Interval = tuple[float, float]


def _root(x: Values) -> Values:
    return np.sqrt(np.maximum(x, 0.0))


def _sign(x: Values) -> Values:
    return np.where(x < 0, -1.0, 1.0)


def _inverse(x: Values) -> Values:
    return 1 / np.sqrt(np.maximum(x, np.finfo(float).tiny))


FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {"root": _root, "sign": _sign, "inverse": _inverse}
"""What is approximated, by the last name of a path."""

FLOOR = 2.0**-24
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


@dataclass(frozen=True, eq=False)
class Exact(Approximation):
    """The function itself, for a run in the clear that notes between which values it is taken."""

    seen: dict[str, Interval]

    def at(self, x: Values) -> Values:
        """Its values, noted."""
        low, high = self.seen.get(self.name, (np.inf, -np.inf))
        self.seen[self.name] = (min(low, float(x.min())), max(high, float(x.max())))
        return FUNCTIONS[self.name.rsplit("/", 1)[-1]](x)


@dataclass(frozen=True)
class Approximations:
    """The approximations of a part of the program."""

    table: Mapping[str, Approximation]
    path: str = ""
    floor: float = FLOOR
    """Added to the square of a norm before its root is taken."""

    def inside(self, name: str) -> Self:
        """Those of a part of this part."""
        return replace(self, path=f"{self.path}{name}/")

    @property
    def levels_of_root(self) -> int:
        """Levels that root and sign take, side by side."""
        return max(self["root"].depth, self["sign"].depth)

    async def root_and_sign(self, m: Slots, norm_2: Vector, v_0: Vector) -> tuple[Vector, Vector, Vector]:
        """The root of a number that is not negative, the sign of another, and that other to go on with."""
        norm_2, v_0 = await m.room([norm_2, v_0], self.levels_of_root)
        lifted = m.plus(norm_2, np.full(m.slots, self.floor))
        return m.polynomial(lifted, self["root"]), m.polynomial(v_0, self["sign"]), v_0

    async def inverse_root(self, m: Slots, k: Vector) -> Vector:
        """One over the root of a positive number; a level is left."""
        inverse = self["inverse"]
        [k] = await m.room([k], inverse.depth + 1)
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

        A number whose sign was always the same is taken to keep it; it is no larger than its row.
        """
        out: dict[str, Interval] = {}
        for name, (low, high) in self.seen.items():
            if not name.endswith("sign"):
                out[name] = (low / margin, high * margin)
                continue
            _, square = self.seen[name.removesuffix("sign") + "root"]
            end = float(np.sqrt(square * margin))
            out[name] = (-end if low < 0 else 0.0, end if high > 0 else 0.0)
        return out


def agreed(intervals: Mapping[str, Interval], degree: int = 31, floor: float = FLOOR) -> Approximations:
    """Series of one degree on the agreed intervals."""
    table = {name: series(name, interval, degree) for name, interval in intervals.items()}
    return Approximations(table, floor=floor)
