"""The column names and the number of rows of a table file, without reading more of it than needed."""

from __future__ import annotations

from pathlib import Path

from atoll.data.headers import without_index
from atoll.data.readers import reader_of


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names of a table's columns."""
    path = Path(path)
    return tuple(without_index(reader_of(path, path.stem).columns(path)))


def row_count(path: str | Path) -> int:
    """How many rows a table has."""
    path = Path(path)
    return reader_of(path, path.stem).rows(path)
