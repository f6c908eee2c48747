"""The column names and the number of rows of a table file, without reading more of it than needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from atoll.data.headers import without_index
from atoll.data.readers import Reader, files_of, reader_of
from atoll.errors import AtollError, DataError

T = TypeVar("T")


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names of a table's columns; of several files, those of the first."""
    first = files_of(Path(path), Path(path).stem)[0]
    return tuple(without_index(_looked(first, lambda reader, file: reader.columns(file))))


def row_count(path: str | Path) -> int:
    """How many rows a table has."""
    files = files_of(Path(path), Path(path).stem)
    return sum(_looked(one, lambda reader, file: reader.rows(file)) for one in files)


def _looked(path: Path, look: Callable[[Reader, Path], T]) -> T:
    reader = reader_of(path, path.stem)
    try:
        return look(reader, path)
    except (AtollError, OSError, ValueError):
        raise
    except Exception as error:  # each reader has its own exceptions
        reason, hint = reader.trouble(error)
        raise DataError(f"{path.name} cannot be read: {reason}", hint=hint) from error
