"""Rows that nobody has, in a table's own columns and types: what a study is rehearsed on.

Names and types are read where the table says them (a csv file in its first block); no value is used. What
the study would refuse of the real types, such as text where numbers are needed, it refuses of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from atoll import randomness
from atoll.data.columns import ColumnKind
from atoll.data.island import Island
from atoll.data.tables.base import NUMBERS, OTHER, TIMES
from atoll.lazy import lazy
from atoll.study.model import Study

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

ROWS: Final = 60
_MADE_UP_LEVELS: Final = ("level 1", "level 2")
_HOLES: Final = 7
"""Where a study takes missing values, every so many rows have one."""

Schema = Mapping[str, ColumnKind]


def unknown_schema(study: Study) -> dict[str, ColumnKind]:
    """Where no table is at hand: columns of numbers, those that the study names or some."""
    named = study.table.columns or study.parameters.get("columns") or [f"x{i}" for i in range(8)]
    return {str(name): ColumnKind(NUMBERS, "number") for name in named}


def made_up(study: Study, me: str, schema: Schema) -> Island:
    """An island of the study's own columns and those of the schema."""
    kinds = dict(schema)
    label = study.parameters.get("label")
    for name in (*(study.table.columns or ()), *(study.parameters.get("columns") or ())):
        kinds.setdefault(str(name), ColumnKind(NUMBERS, "number"))
    for name in (*study.table.categorical, *([str(label)] if label else [])):
        kinds.setdefault(name, ColumnKind(OTHER, "text"))
    rows = max(ROWS, study.guards.min_rows + _HOLES + study.guards.min_rows // (_HOLES - 1))
    draw = randomness.public(list(me.encode()))
    values = {name: _column(study, name, kind, rows, draw) for name, kind in kinds.items()}
    island = Island.from_frame(pd.DataFrame(values), name=me)
    island.capacity = 2 * rows
    return island


def _column(study: Study, name: str, kind: ColumnKind, rows: int, draw: randomness.Public) -> Any:
    levels = _levels(study, name, kind)
    if levels is not None:
        return [levels[i % len(levels)] for i in range(rows)]
    if kind.holds == TIMES:
        return pd.date_range("2000-01-01", periods=rows)
    if study.table.missing == "allele frequency":
        values = draw.integers(0, 3, rows).astype(np.float64)
    else:
        values = draw.uniform(*_range(study.parameters), rows)
    if study.table.missing != "refuse" and not _along(study, name):
        values[len(name) % _HOLES :: _HOLES] = np.nan
    return values


def _levels(study: Study, name: str, kind: ColumnKind) -> tuple[str, ...] | None:
    """Of a column that holds no numbers, or is told to hold categories."""
    stated = {**(study.parameters.get("levels") or {}), **study.table.levels}
    if name in stated:
        return tuple(stated[name])
    if name == study.parameters.get("row_ids"):
        return tuple(f"row {i}" for i in range(10_000))
    if name == study.parameters.get("label"):
        return ("no", "yes")
    categories = (*study.table.categorical, *(study.parameters.get("categorical") or ()))
    return _MADE_UP_LEVELS if kind.holds not in (NUMBERS, TIMES) or name in categories else None


def _along(study: Study, name: str) -> bool:
    return name in (study.parameters.get("label"), study.parameters.get("row_ids"))


def _range(parameters: Mapping[str, Any]) -> tuple[float, float]:
    """Numbers that every column's bounds take."""
    bounds = parameters.get("bounds")
    if bounds is None:
        return -1.0, 1.0
    flat = np.asarray(list(bounds.values()) if isinstance(bounds, Mapping) else bounds, dtype=float)
    if flat.ndim == 0:
        return -float(flat), float(flat)
    pairs = flat.reshape(-1, 2)
    return float(pairs[:, 0].max()), float(pairs[:, 1].min())


def existing(path: str | None) -> Path | None:
    """A table that is at hand, as a file or a pattern."""
    if path is None:
        return None
    place = Path(path)
    return place if place.exists() or any(mark in place.name for mark in "*?[") else None
