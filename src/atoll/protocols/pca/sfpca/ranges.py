"""The public range of the data: the study's bounds, or the largest power of two, opened.

Masks are only as good as the bounds they are made for, so every value is checked against its range
before anything that depends on a row leaves.

Without bounds, all providers together learn the smallest 2^e that no value exceeds: for every level
2^l a provider adds 0 if it has no larger value and a uniform element of the group else, by a secure sum of
which the coordinator sees only totals; zero or not is all they say. A coalition of all other providers with
the coordinator so learns the last one's own power of two. Columns that are to be standardised have a power
of two each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll import fixedpoint, randomness
from atoll.data.island import Chosen, Matrix
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, ParameterError, RangeOverflow, SchemaError
from atoll.fixedpoint import Limbs
from atoll.protocols.checked import refuse
from atoll.study.address import Address

Bounds = float | tuple[tuple[float, float], ...] | Mapping[str, tuple[float, float]]

LEVELS = range(-64, 65)
_WIDEN = "widen the study's bounds, or correct the value"


class Range(NamedTuple):
    """Columns lie within 2^exponent of their centre."""

    exponent: int
    centre: Matrix


class Units(NamedTuple):
    """Every column lies within its own 2^exponent of its centre."""

    exponents: npt.NDArray[np.int64]
    centre: Matrix

    def applied(self, X: Matrix) -> Matrix:
        """The columns in these units, within [-1, 1]."""
        return np.asarray(np.ldexp(X - self.centre, -self.exponents))


class Declared(NamedTuple):
    """The study's bounds of each column."""

    low: Matrix
    high: Matrix

    def range(self) -> Range:
        """Midpoints, and the power of two that covers the widest column."""
        return Range(int(_covering(self._reach.max())), self._centre)

    def units(self) -> Units:
        """Midpoints, and the power of two that covers each column."""
        return Units(_covering(self._reach), self._centre)

    def most_variance(self) -> float:
        """What the columns' variances cannot exceed together, in units of the range's power of two."""
        return float((np.ldexp(self._reach, -self.range().exponent) ** 2).sum())

    @property
    def _centre(self) -> Matrix:
        return np.asarray((self.low + self.high) / 2)

    @property
    def _reach(self) -> Matrix:
        """How far from their centre values may be, rounded as their own differences will be."""
        return np.maximum(self.high - self._centre, self._centre - self.low)

    def of(self, own: slice) -> Declared:
        """The bounds of one party's columns."""
        return Declared(self.low[own], self.high[own])

    def check(self, table: Chosen) -> None:
        """Refuse values beyond their declared range, naming island, column and row."""
        start = 0
        for rows, wrong in table.mapped(partial(_beyond, low=self.low, high=self.high)):
            if wrong is not None:
                row, column = wrong
                raise RangeOverflow(
                    f"{table.island.name}: column {table.columns[column]!r} holds a value beyond its "
                    f"declared range at {table.island.place(start + row)}; no number was sent",
                    hint=_WIDEN,
                )
            start += rows


def _beyond(X: Matrix, low: Matrix, high: Matrix) -> tuple[int, tuple[int, int] | None]:
    """How many rows there are, and the first place with a value that is out of bounds."""
    wrong = np.argwhere((low > X) | (high < X))
    return len(X), (int(wrong[0, 0]), int(wrong[0, 1])) if len(wrong) else None


def _covering(reach: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The exponents of the smallest powers of two that are no smaller; 0 for 0."""
    significand, exponent = np.frexp(reach)
    return np.asarray(exponent - (significand == 0.5), dtype=np.int64)


def units(bounds: Declared | None, opened: Sequence[int]) -> Units:
    """From the study's bounds, or the opened exponents of each column."""
    if bounds is not None:
        return bounds.units()
    return Units(np.array(opened, dtype=np.int64), np.zeros(len(opened)))


def declared(bounds: Bounds | None, columns: Sequence[str]) -> Declared | None:
    """The study's bounds for the agreed columns; None where it has none."""
    if bounds is None:
        return None
    if isinstance(bounds, int | float):
        pairs = [(-float(bounds), float(bounds))] * len(columns)
    elif isinstance(bounds, Mapping):
        missing = [c for c in columns if c not in bounds]
        if missing:
            raise SchemaError(f"the study's bounds lack the column {missing[0]!r}", hint="name every column")
        pairs = [bounds[c] for c in columns]
    else:
        pairs = list(bounds) * (len(columns) if len(bounds) == 1 else 1)
    if len(pairs) != len(columns):
        raise SchemaError(
            f"the study has bounds for {len(pairs)} columns, the tables have {len(columns)}",
            hint="one pair (low, high) per column, or one for all of them",
        )
    return Declared(*(np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True)))


def check_bounds(bounds: Bounds | None) -> None:
    """What can be refused before the columns are known."""
    if bounds is None:
        return
    if isinstance(bounds, int | float):
        pairs: Sequence[tuple[float, float]] = [(-bounds, bounds)]
    else:
        pairs = list(bounds.values()) if isinstance(bounds, Mapping) else bounds
    if not pairs or not all(isfinite(a) and isfinite(b) and a <= b for a, b in pairs):
        raise ParameterError("a column's bounds are two finite numbers, the lower first")
    if not any(a < b for a, b in pairs):
        raise ParameterError("the bounds leave no room for any value", hint="bounds = 100.0, say")


def check_table(table: Chosen) -> None:
    """Refuse empty tables, missing and infinite values."""
    if not table.n_rows:
        name = table.island.name
        raise DataError(f"{name}: the table has no rows", hint="leave the island out of the study")
    raise_for_missing(table)


def exceeded(table: Chosen, seed: bytes, *, by_column: bool = False) -> Limbs:
    """What a provider adds for every level (of each column): zero, or any element of the group.

    Uniform over all of the group that sums are taken in: a sum then says nothing of how many exceeded.
    """
    columns = table.largest()
    largest = (columns if by_column else columns.max(keepdims=True)).reshape(-1, 1)
    if largest.max() > 2.0 ** LEVELS[-1]:
        column = table.columns[int(np.argmax(columns))]
        raise RangeOverflow(
            f"{table.island.name}: column {column!r} has a value beyond 2^{LEVELS[-1]}; no number was sent",
            hint="give the study bounds, or other units",
        )
    above = (largest > 2.0 ** np.array(LEVELS, dtype=np.float64)).ravel()
    words = randomness.expand_words(seed, fixedpoint.LIMBS * len(above), "atoll/sfpca/range")
    return np.where(above, words.reshape(fixedpoint.LIMBS, len(above)), np.uint64(0))


def check_opened(exponents: Sequence[int], levels: int, table: Chosen, sender: Address) -> None:
    """Refuse a range that is no level, or that does not cover this island: bounds would not hold."""
    if len(exponents) != levels or any(e not in LEVELS for e in exponents):
        raise refuse(sender, f"a range that is not {levels} of the levels 2^{LEVELS[0]} to 2^{LEVELS[-1]}")
    beyond = np.flatnonzero(table.largest() > 2.0 ** np.array(exponents, dtype=np.float64))
    if len(beyond):
        column = table.columns[int(beyond[0])]
        raise refuse(sender, f"a range to {table.island.name} that the values of column {column!r} exceed")


def smallest_covers(totals: Limbs) -> tuple[int, ...]:
    """The lowest level that nobody exceeds: of all values, or of each column."""
    free = ~np.any(totals, axis=0).reshape(-1, len(LEVELS))
    return tuple(int(LEVELS[i]) for i in np.argmax(free, axis=1))
