"""Comma-separated text with a header line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from atoll.data.readers.base import Reader


class CSV(Reader):
    """As pandas reads it."""

    def read(self, path: Path) -> pd.DataFrame:
        return pd.read_csv(path)

    def columns(self, path: Path) -> tuple[str, ...]:
        return tuple(str(column) for column in pd.read_csv(path, nrows=0).columns)

    def rows(self, path: Path) -> int:
        with path.open("rb") as lines:
            return max(0, sum(1 for line in lines if line.strip()) - 1)

    def place(self, row: int, path: Path) -> str:
        return f"row {row} (line {row + 2} of {path.name})"
