"""What a reader of table files brings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class Reader(ABC):
    """One format of files. Errors of any kind are reported with the island's and the file's name."""

    @abstractmethod
    def read(self, path: Path) -> pd.DataFrame:
        """The whole table."""

    def names(self, path: Path, table: pd.DataFrame) -> list[str]:
        """The names as the file has them, of a table that was read from it."""
        del path
        return [str(column) for column in table.columns]

    def columns(self, path: Path) -> tuple[str, ...]:
        """The column names; a format that can say them without reading the rows does so."""
        return tuple(str(column) for column in self.read(path).columns)

    def rows(self, path: Path) -> int:
        """The number of rows, likewise."""
        return len(self.read(path))

    def place(self, row: int, path: Path) -> str:
        """A row as its owner finds it in the file."""
        del path
        return f"row {row}"
