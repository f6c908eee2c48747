"""Columns as all parties know them before anybody looks at a row: kinds, bounds, levels; and rows as cells.

A synthetic table has as many cells per column as its schema says: a category has its levels, a boolean two,
a number or an integer the bins between its public bounds. Nothing of a schema may come from the rows: a level
that only one person has, or a bound that is somebody's income, would be told to everybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.data.island import Island
from atoll.data.levels import as_levels
from atoll.errors import DataError, SchemaError, StudyError

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Kind = Literal["number", "integer", "boolean", "category"]
Outside = Literal["refuse", "clip"]

MAX_CELLS = 1000
"""Of one column; more are an identifier, not something to be counted."""
MAX_COLUMNS = 500
BOOLEAN = ("False", "True")


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One column. ``low`` and ``high``: public bounds of a number, both included; ``edges``: public places
    between them where cells begin (else ``bins`` cells of equal width); ``levels``: all values that a
    category may have, as text; ``dtype``: what a frame of synthetic rows holds, where it is not the kind's
    own."""

    name: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    edges: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    dtype: str = ""

    @property
    def is_number(self) -> bool:
        return self.kind in ("number", "integer")


class Cells(NamedTuple):
    """A column of numbers cut into cells: cell i holds starts[i] <= x < starts[i + 1]."""

    starts: Floats
    whole: bool

    def __len__(self) -> int:
        return len(self.starts) - 1


def cells_of(column: Column, bins: int) -> Cells:
    """The cells of a number or an integer, whose last one ends after the upper bound."""
    assert column.low is not None
    assert column.high is not None
    whole = column.kind == "integer"
    end = column.high + 1 if whole else column.high
    if column.edges:
        inner = np.array(column.edges, dtype=np.float64)
    else:
        count = min(bins, round(end - column.low)) if whole else bins
        inner = np.linspace(column.low, end, count + 1)[1:-1]
        inner = np.ceil(inner) if whole else inner
    return Cells(np.concatenate([[column.low], inner, [end]]), whole)


def sizes_of(schema: Sequence[Column], bins: int) -> tuple[int, ...]:
    """How many cells each column has."""
    return tuple(len(cells_of(c, bins)) if c.is_number else len(levels_of(c)) for c in schema)


def levels_of(column: Column) -> tuple[str, ...]:
    """The levels of a boolean or a category."""
    return BOOLEAN if column.kind == "boolean" else column.levels


def cell_names(column: Column, bins: int) -> Sequence[str]:
    """A column's cells in words."""
    if not column.is_number:
        return levels_of(column)
    cells = cells_of(column, bins)
    last = cells.starts[1:] - 1 if cells.whole else cells.starts[1:]
    return [f"{low:g} to {high:g}" for low, high in zip(cells.starts[:-1], last, strict=True)]


# ---- what a study may say ----


def check_schema(schema: Sequence[Column], bins: int) -> None:
    """What a study's types cannot say of its columns."""
    if not 2 <= bins <= MAX_CELLS:
        raise StudyError(f"bins must be 2 to {MAX_CELLS}", path=("parameters", "bins"))
    if not 2 <= len(schema) <= MAX_COLUMNS:
        raise StudyError(
            f"the schema names {len(schema)} columns; 2 to {MAX_COLUMNS} can be synthesised",
            path=("parameters", "schema"),
        )
    seen: set[str] = set()
    for i, column in enumerate(schema):
        wrong = _twice(column, seen) or _wrong_number(column) or _wrong_levels(column)
        if wrong:
            raise StudyError(f"column {column.name!r} {wrong}", path=("parameters", "schema", i))
        seen.add(column.name)


def _twice(column: Column, seen: set[str]) -> str:
    return "is there twice" if column.name in seen else ""


def _wrong_number(column: Column) -> str:
    low, high, edges = column.low, column.high, column.edges
    if not column.is_number:
        given = low is not None or high is not None or edges
        return "has bounds or edges, and holds no numbers" if given else ""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low < high):
        return "needs two finite public bounds, low below high"
    if column.kind == "integer" and (low != round(low) or high != round(high)):
        return "holds whole numbers, so its bounds are whole"
    inside = all(a < b for a, b in zip((low, *edges), (*edges, high), strict=True))
    if edges and (not inside or len(edges) >= MAX_CELLS):
        return f"needs edges that rise, between its bounds, and fewer than {MAX_CELLS}"
    whole = column.kind != "integer" or all(edge == round(edge) for edge in edges)
    return "" if whole else "holds whole numbers, so its edges are whole"


def _wrong_levels(column: Column) -> str:
    levels = column.levels
    if column.kind != "category":
        return "has levels, and is no category" if levels else ""
    if not levels or len(levels) > MAX_CELLS:
        return f"needs 1 to {MAX_CELLS} public levels"
    if len(set(levels)) < len(levels) or "" in levels:
        return "has a level twice, or an empty one"
    return ""


# ---- rows as cells ----


def encode(island: Island, schema: Sequence[Column], bins: int, outside: Outside) -> Codes:
    """Every row as the places of its cells; refused by column and row where the schema has no place."""
    missing = [column.name for column in schema if column.name not in island.columns]
    if missing:
        raise SchemaError(
            f"{island.name}: there is no column {missing[0]!r}, which the study uses",
            hint=f"its columns are {', '.join(map(repr, island.columns[:5]))}",
        )
    found = [_encoded(island, column, bins, outside) for column in schema]
    return np.column_stack(found).astype(np.int64)


def _encoded(island: Island, column: Column, bins: int, outside: Outside) -> Codes:
    if column.is_number:
        return _binned(island, column, cells_of(column, bins), outside)
    levels, values = levels_of(column), island.values(column.name)
    if column.kind == "boolean" and values.dtype.kind in "iuf":
        levels = ("0", "1")
    places = {level: place for place, level in enumerate(levels)}
    found = np.array([places.get(level, -1) for level in as_levels(values)], dtype=np.int64)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        what = "is missing" if as_levels(values[row : row + 1]) == [""] else "is not one of its public levels"
        raise DataError(
            f"{island.name}: the value of {column.name!r} at {island.place(row)} {what}",
            hint="add the level to the study (for all islands), recode the row, or drop it",
        )
    return found


def _binned(island: Island, column: Column, cells: Cells, outside: Outside) -> Codes:
    island.check_numbers([column.name])
    values = island.features([column.name])[:, 0]
    _refuse(island, column, np.isnan(values), "is missing", "fill it in, or drop the row")
    if column.kind == "integer":
        with np.errstate(invalid="ignore"):
            broken = np.isfinite(values) & (values != np.round(values))
        _refuse(
            island,
            column,
            broken,
            "is not a whole number",
            'round it, or kind = "number" (in Python, bounds with a point: (0.0, 1.0))',
        )
    if outside == "refuse":
        assert column.low is not None
        assert column.high is not None
        beyond = (values < column.low) | (values > column.high)
        bounds = f"outside its public bounds, {column.low:g} to {column.high:g}"
        _refuse(island, column, beyond, f"lies {bounds}", 'outside = "clip" counts it as the nearest bound')
    place = np.searchsorted(cells.starts, values, side="right") - 1
    return np.clip(place, 0, len(cells) - 1).astype(np.int64)


def _refuse(island: Island, column: Column, wrong: npt.NDArray[np.bool_], what: str, hint: str) -> None:
    if wrong.any():
        where = island.place(int(np.argmax(wrong)))
        raise DataError(f"{island.name}: the value of {column.name!r} at {where} {what}", hint=hint)


# ---- cells as values ----


class Wanted(NamedTuple):
    """What of a column a row may have: a weight for every cell, and for numbers the range inside."""

    weights: Floats
    low: float
    high: float


def anything(column: Column, size: int) -> Wanted:
    """No condition."""
    low = column.low if column.low is not None else 0.0
    high = column.high if column.high is not None else 0.0
    return Wanted(np.ones(size), low, high)


def wanted(column: Column, bins: int, value: Any) -> Wanted:
    """A condition: a level or several of them; of numbers one value, or a pair (low, high)."""
    if column.is_number:
        return _wanted_range(column, cells_of(column, bins), value)
    asked = list(value) if isinstance(value, list | tuple | set | frozenset | np.ndarray) else [value]
    levels = levels_of(column)
    named = as_levels(np.array(asked, dtype=object))
    if column.kind == "boolean":
        named = [{"0": "False", "1": "True"}.get(level, level) for level in named]
    strange = [level for level in named if level not in levels]
    if strange or not named:
        raise DataError(
            f"column {column.name!r} has no level {strange[0] if strange else ''!r}",
            hint=f"its levels are {', '.join(map(repr, levels[:8]))}",
        )
    return anything(column, len(levels))._replace(
        weights=np.array([float(level in named) for level in levels])
    )


def _wanted_range(column: Column, cells: Cells, value: Any) -> Wanted:
    pair = value if isinstance(value, list | tuple) and len(value) == 2 else (value, value)
    low, high = (float(end) for end in pair)
    assert column.low is not None
    assert column.high is not None
    if not column.low <= low <= high <= column.high:
        raise DataError(
            f"column {column.name!r} lies between {column.low:g} and {column.high:g}",
            hint=f"where={{{column.name!r}: ({column.low:g}, {column.high:g})}}, or a part of it",
        )
    end = np.floor(high) + 1 if cells.whole else high
    start = np.ceil(low) if cells.whole else low
    inside = np.minimum(cells.starts[1:], end) - np.maximum(cells.starts[:-1], start)
    weights = np.maximum(inside, 0.0) / np.diff(cells.starts)
    if not weights.any() and low == high and not cells.whole:  # one point of a number: its cell
        weights[min(int(np.searchsorted(cells.starts, low, side="right")) - 1, len(cells) - 1)] = 1.0
    if not weights.any():
        raise DataError(f"column {column.name!r} has no whole number between {low:g} and {high:g}")
    return Wanted(weights, low, high)


def decode(
    codes: Codes, column: Column, bins: int, asked: Wanted, rng: randomness.Public
) -> npt.NDArray[Any]:
    """Cells as values: a number is drawn evenly within its cell."""
    if not column.is_number:
        levels = levels_of(column)
        values = np.array([level == "True" for level in levels] if column.kind == "boolean" else levels)
        return np.asarray(values[codes])
    cells = cells_of(column, bins)
    start, end = cells.starts[codes], cells.starts[codes + 1]
    if cells.whole:
        start, end = np.maximum(start, np.ceil(asked.low)), np.minimum(end, np.floor(asked.high) + 1)
        return np.asarray(np.floor(start + rng.random(len(codes)) * (end - start)).astype(np.int64))
    start, end = np.maximum(start, asked.low), np.minimum(end, asked.high)
    return np.asarray(np.clip(start + rng.random(len(codes)) * (end - start), asked.low, asked.high))
