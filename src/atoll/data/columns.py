"""The column names of a table file, without reading its rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from atoll.data.island import as_island


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names in a csv file's first line, a parquet file's schema, or a NumPy archive."""
    path = Path(path)
    if path.suffix == ".csv" and path.is_file():
        return tuple(str(column) for column in pd.read_csv(path, nrows=0).columns)
    if path.suffix == ".parquet" and path.is_file():
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_schema(path).names)
    return as_island(path.stem, path).columns
