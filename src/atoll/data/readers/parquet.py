"""Apache Parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from atoll.data.readers.base import Reader


class Parquet(Reader):
    """Names and number of rows come from the file's footer."""

    def read(self, path: Path) -> pd.DataFrame:
        return pd.read_parquet(path)

    def columns(self, path: Path) -> tuple[str, ...]:
        import pyarrow.parquet

        return tuple(pyarrow.parquet.read_schema(path).names)

    def rows(self, path: Path) -> int:
        import pyarrow.parquet

        return int(pyarrow.parquet.read_metadata(path).num_rows)
