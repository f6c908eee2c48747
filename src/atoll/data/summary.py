"""What an island would bring, for its owner's eyes: types, ranges, missing values, and what reading takes."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from atoll.data.island import BLOCK_BYTES, Island
from atoll.data.tables.base import NUMBERS
from atoll.lazy import lazy

pd = lazy("pandas")

_MOST_LEVELS: Final = 1000


class ColumnSummary(NamedTuple):
    """One column. ``low`` and ``high``: of numbers; ``levels``: how many values anything else has."""

    name: str
    kind: str
    missing: int
    low: float | None = None
    high: float | None = None
    levels: int | None = None

    def remark(self, rows: int) -> str:
        """What its owner should know before a study uses it."""
        if rows and self.missing == rows:
            return "no value at all"
        if self.missing:
            return "missing values are refused unless the study says otherwise"
        if self.low is not None and self.low == self.high:
            return "constant"
        if self.levels is not None and self.levels > _MOST_LEVELS:
            return "an id? too many values for categories"
        if self.levels is not None and 1 < self.levels == rows:
            return "an id? no value is there twice"
        return ""


class TableSummary(NamedTuple):
    """All columns, and bytes: of all rows as doubles, of a block, of columns x columns, in a scratch file."""

    rows: int
    columns: tuple[ColumnSummary, ...]
    as_doubles: int
    block: int
    squares: int
    scratch: int


def summary(island: Island) -> TableSummary:
    """Read once, block by block."""
    numbers = [name for name in island.columns if island.holds(name) == NUMBERS]
    others = [name for name in island.columns if name not in set(numbers)]
    d = len(numbers)
    low, high, missing = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d, np.int64)
    levels: dict[str, set[object]] = {name: set() for name in others}
    absent = dict.fromkeys(others, 0)
    for X, values in island.mixed(numbers, others):
        there = np.isfinite(X)
        low = np.minimum(low, np.where(there, X, np.inf).min(axis=0, initial=np.inf))
        high = np.maximum(high, np.where(there, X, -np.inf).max(axis=0, initial=-np.inf))
        missing += len(X) - there.sum(axis=0)
        for name, column in zip(others, values, strict=True):
            gone = np.asarray(pd.isna(column))
            absent[name] += int(gone.sum())
            if len(levels[name]) <= _MOST_LEVELS:
                levels[name].update(map(str, column[~gone].tolist()))
    found = {
        name: ColumnSummary(
            name, island.kind(name), int(gone), *((float(a), float(b)) if a <= b else (None, None))
        )
        for name, gone, a, b in zip(numbers, missing, low, high, strict=True)
    }
    for name in others:
        found[name] = ColumnSummary(name, island.kind(name), absent[name], levels=len(levels[name]))
    kept = island.scratch_bytes
    size = 8 * island.n_rows * d
    return TableSummary(
        island.n_rows,
        tuple(found[name] for name in island.columns),
        size,
        min(size, BLOCK_BYTES),
        8 * d * d,
        kept,
    )
