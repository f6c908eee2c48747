"""What a reader of table files brings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.data.tables.base import Table
from atoll.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


class Reader(ABC):
    """One format of files. Errors of any kind are reported with the island's and the file's name."""

    @abstractmethod
    def read(self, path: Path) -> pd.DataFrame:
        """The whole table."""

    def open(self, path: Path) -> Table:
        """The table, to be read piece by piece; a format that can do so does not read it as a whole."""
        from atoll.data.tables.frames import FrameTable

        return FrameTable(self.read(path))

    def columns(self, path: Path) -> tuple[str, ...]:
        """The column names; a format that can say them without reading the rows does so."""
        return self.open(path).columns

    def kinds(self, path: Path) -> list[tuple[str, str, str]]:
        """Name, what it holds and type of every column, likewise."""
        table = self.open(path)
        return [(name, table.holds(place), table.kind(place)) for place, name in enumerate(table.columns)]

    def rows(self, path: Path) -> int:
        """The number of rows, likewise."""
        return self.open(path).n_rows

    def trouble(self, error: Exception) -> tuple[str, str]:
        """Why a file could not be read, and what to do about it; no value of the table is quoted."""
        return str(error).split("\n", 1)[0], "is it a whole file of the kind that its name says?"


class PieceReader(Reader):
    """A format that is always read piece by piece, by tables of one kind."""

    table: Callable[[Path], Table]

    def read(self, path: Path) -> pd.DataFrame:
        return as_frame(self.open(path))

    def open(self, path: Path) -> Table:
        return type(self).table(path)


def as_frame(table: Table) -> pd.DataFrame:
    """All of a table that is otherwise read piece by piece."""
    import pandas as pd

    whole = pd.DataFrame({place: table.column(place) for place in range(len(table.columns))})
    return whole.set_axis(list(table.columns), axis=1)


class State(NamedTuple):
    """A file as it is now: whoever writes to it changes this."""

    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> State:
        """As the file system tells it."""
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


def check_unchanged(path: Path, before: State) -> None:
    """Refuse a file that somebody wrote to since."""
    if State.of(path) != before:
        raise DataError(
            f"{path.name} changed while it was read",
            hint="let whoever writes it finish, or work on a copy; then start again",
        )
