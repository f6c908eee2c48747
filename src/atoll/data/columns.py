"""The column names and the number of rows of a table file, without reading more of it than needed."""

from __future__ import annotations

import csv
from pathlib import Path

from atoll.data.island import as_island
from atoll.errors import DataError


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names in a csv file's first line, a parquet file's schema, or a NumPy archive."""
    path = Path(path)
    if path.suffix == ".csv" and path.is_file():
        return _first_line(path)
    if path.suffix == ".parquet" and path.is_file():
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_schema(path).names)
    return as_island(path.stem, path).columns


def row_count(path: str | Path) -> int:
    """The lines of a csv file below the first, or what a parquet file says of itself."""
    path = Path(path)
    if path.suffix == ".csv" and path.is_file():
        with path.open("rb") as lines:
            return max(0, sum(1 for line in lines if line.strip()) - 1)
    if path.suffix == ".parquet" and path.is_file():
        import pyarrow.parquet

        return int(pyarrow.parquet.read_metadata(path).num_rows)
    return as_island(path.stem, path).n_rows


def _first_line(path: Path) -> tuple[str, ...]:
    """The names that a csv file begins with; read without pandas, which takes long to import."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.reader(lines):
            if row:
                return tuple(row)
    raise DataError(f"{path} is empty", hint="its first line names the columns")
