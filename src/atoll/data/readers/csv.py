"""Text with a header line: values between commas (csv) or tabs (tsv), as they are or compressed (.gz)."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, cast

from atoll.data.readers.base import Reader
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


class CSV(Reader):
    """As pandas reads it."""

    separator: ClassVar[str] = ","

    def read(self, path: Path) -> pd.DataFrame:
        return pd.read_csv(path, sep=self.separator)

    def names(self, path: Path, table: pd.DataFrame) -> list[str]:
        # pandas gives the second of two columns with one name another, and names those that have none.
        written = list(self.columns(path))
        return written if len(written) == table.shape[1] else super().names(path, table)

    def columns(self, path: Path) -> tuple[str, ...]:
        with _opened(path) as data:
            lines = (line.decode("utf-8-sig" if i == 0 else "utf-8") for i, line in enumerate(data))
            for row in csv.reader(lines, delimiter=self.separator):
                if row:
                    return tuple(row)
        raise DataError(f"{path} is empty", hint="its first line names the columns")

    def rows(self, path: Path) -> int:
        with _opened(path) as lines:
            return max(0, sum(1 for line in lines if line.strip()) - 1)

    def place(self, row: int, path: Path) -> str:
        return f"row {row} (line {row + 2} of {path.name})"


class TSV(CSV):
    """The same with tabs."""

    separator = "\t"


def _opened(path: Path) -> IO[bytes]:
    """The bytes of the text, unpacked where the name says so."""
    packed = path.suffix == ".gz"
    return cast("IO[bytes]", gzip.open(path) if packed else path.open("rb"))
