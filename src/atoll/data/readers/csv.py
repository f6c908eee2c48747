"""Comma-separated text with a header line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.data.readers.base import Reader
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


class CSV(Reader):
    """As pandas reads it."""

    def read(self, path: Path) -> pd.DataFrame:
        return pd.read_csv(path)

    def names(self, path: Path, table: pd.DataFrame) -> list[str]:
        # pandas gives the second of two columns with one name another, and names those that have none.
        written = list(self.columns(path))
        return written if len(written) == table.shape[1] else super().names(path, table)

    def columns(self, path: Path) -> tuple[str, ...]:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.reader(lines):
                if row:
                    return tuple(row)
        raise DataError(f"{path} is empty", hint="its first line names the columns")

    def rows(self, path: Path) -> int:
        with path.open("rb") as lines:
            return max(0, sum(1 for line in lines if line.strip()) - 1)

    def place(self, row: int, path: Path) -> str:
        return f"row {row} (line {row + 2} of {path.name})"
