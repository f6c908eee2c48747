"""The columns, their types and the number of rows of a table file, without reading more than needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from atoll.data.headers import without_index
from atoll.data.readers import Reader, files_of, reader_of
from atoll.data.tables.base import NUMBERS
from atoll.errors import AtollError, DataError

T = TypeVar("T")


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names of a table's columns; of several files, those of the first."""
    first = files_of(Path(path), Path(path).stem)[0]
    return tuple(without_index(_looked(first, lambda reader, file: reader.columns(file))))


class ColumnKind(NamedTuple):
    """What a column holds, and its type in its owner's words."""

    holds: str
    kind: str

    @property
    def is_number(self) -> bool:
        return self.holds == NUMBERS

    @property
    def words(self) -> str:
        """For the screen."""
        return self.kind if self.is_number else self.holds


def column_kinds(path: str | Path) -> dict[str, ColumnKind]:
    """Names and types of a table's columns; of several files, those of the first."""
    first = files_of(Path(path), Path(path).stem)[0]
    found = _looked(first, lambda reader, file: reader.kinds(file))
    left = len(without_index([name for name, _, _ in found]))
    return {name: ColumnKind(holds, kind) for name, holds, kind in found[len(found) - left :]}


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
