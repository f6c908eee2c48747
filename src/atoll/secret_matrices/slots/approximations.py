"""Square root, sign and inverse square root as Chebyshev series on agreed intervals.

A place in the program has a path of names, as ``power/3/0/root``; its interval is agreed before the run. In
the paper one party runs the algorithm in the clear on its own rows, drawn again up to the size of all, and
takes what it sees: :class:`Recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Approximation, Values

__all__ = ["FUNCTIONS", "Approximations", "Exact", "Interval", "Recording", "agreed", "series"]

Interval = tuple[float, float]


def _root(x: Values) -> Values:
    return np.sqrt(np.maximum(x, 0.0))


def _sign(x: Values) -> Values:
    return np.where(x < 0, -1.0, 1.0)


def _inverse(x: Values) -> Values:
    return 1 / np.sqrt(np.maximum(x, np.finfo(float).tiny))


FUNCTIONS: Mapping[str, Callable[[Values], Values]] = {"root": _root, "sign": _sign, "inverse": _inverse}
"""What is approximated, by the last name of a path."""


def series(name: str, interval: Interval, degree: int) -> Approximation:
    """The function interpolated at the Chebyshev points of the interval."""
    low, high = interval
    if not low < high:
        raise ParameterError(f"{name}: an interval from {low:g} to {high:g} is empty")
    angles = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    values = FUNCTIONS[name.rsplit("/", 1)[-1]]((low + high + np.cos(angles) * (high - low)) / 2)
    coefficients = 2 / (degree + 1) * np.cos(np.outer(np.arange(degree + 1), angles)) @ values
    coefficients[0] /= 2
    return Approximation(name, low, high, tuple(map(float, coefficients)))


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

    def inside(self, name: str) -> Approximations:
        """Those of a part of this part."""
        return replace(self, path=f"{self.path}{name}/")

    def __getitem__(self, function: str) -> Approximation:
        name = self.path + function
        if name not in self.table:
            raise ParameterError(f"no interval was agreed for {name}")
        return self.table[name]


@dataclass(frozen=True)
class Recording(Approximations):
    """The functions themselves under every path, with the levels that a degree takes; ``seen`` fills up."""

    table: Mapping[str, Approximation] = field(default_factory=dict)
    degree: int = 31
    seen: dict[str, Interval] = field(default_factory=dict)

    def __getitem__(self, function: str) -> Approximation:
        return Exact(self.path + function, -1.0, 1.0, (0.0,) * (self.degree + 1), self.seen)


def agreed(intervals: Mapping[str, Interval], degree: int = 31) -> Approximations:
    """Series of one degree on the agreed intervals."""
    return Approximations({name: series(name, interval, degree) for name, interval in intervals.items()})
