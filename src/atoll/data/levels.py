"""Levels of columns with categories: every value as the name of its level, the same on all islands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atoll.data.island import Island
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

MAX_LEVELS = 1000
"""A column of more levels is no category but an identifier."""


def levels_of(island: Island, column: str) -> tuple[str, ...]:
    """The levels that occur in a column of categories."""
    seen: set[str] = set()
    for found_there in island.mapped((), (column,), _levels_in):
        seen |= found_there
    found = sorted_levels(seen - {""})
    if len(found) > MAX_LEVELS:
        raise DataError(
            f"{island.name}: column {column!r} holds {len(found):,} different values: that is no category",
            hint="levels are told to all parties; leave the column out, or group its values",
        )
    return tuple(found)


def _levels_in(block: npt.NDArray[np.float64], values: list[npt.NDArray[Any]]) -> set[str]:
    del block
    return set(as_levels(_distinct(values[0])[0]))


def check_classes(levels: Sequence[str], island: str, target: str) -> None:
    """Refuse numbers with fractions: each would be a class of its own, with coefficients of its own."""
    if any(_is_fraction(level) for level in levels):
        raise DataError(
            f"{island}: the target {target!r} holds numbers with fractions, which are no classes",
            hint="classes are words or whole numbers; a number is explained by LinearRegression or GLM",
        )


def _is_fraction(level: str) -> bool:
    try:
        return not float(level).is_integer()
    except (ValueError, OverflowError):
        return False


def as_levels(values: npt.NDArray[Any]) -> list[str]:
    """Every value as the name of its level; missing ones as the empty name."""
    return [_level(value) for value in values.tolist()]


def _distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The different values, and which of them each value is; -1 for a missing one."""
    if values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=True) != "string":
        return values, np.arange(len(values))  # 1 and True are one to a hash table, and two levels here
    which, found = pd.factorize(values)
    return np.asarray(found), which.astype(np.int64)


def _level(value: object) -> str:
    if value is None or value != value:  # nan
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def sorted_levels(levels: set[str]) -> list[str]:
    """Numbers by size, everything else by the alphabet."""
    try:
        return sorted(levels, key=float)
    except ValueError:
        return sorted(levels)


def codes(values: npt.NDArray[Any], levels: Sequence[str], island: str, column: str) -> npt.NDArray[np.int64]:
    """Every value as the place of its level; -1 where it is missing."""
    places = {level: place for place, level in enumerate(levels)} | {"": -1}
    found, which = _distinct(values)
    try:
        known = np.array([*(places[level] for level in as_levels(found)), -1], dtype=np.int64)
        return known[which]  # the last one is that of a missing value
    except KeyError:
        raise DataError(
            f"{island}: column {column!r} holds a level that the study does not name",
            hint=f"its levels are {', '.join(map(repr, list(levels)[:5]))}",
        ) from None
