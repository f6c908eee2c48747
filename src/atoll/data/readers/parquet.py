"""Apache Parquet: read from the file at every pass, a few rows of the wanted columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from atoll.data.readers.base import Reader, State, check_unchanged
from atoll.data.tables.arrow import ArrowTable
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa, pq = lazy("pyarrow"), lazy("pyarrow.parquet")

_PIECE_BYTES: Final = 16 << 20
# Row groups may be larger than memory: pages are read one after the other, not a group at once. Writers may
# leave a checksum with each.
_READING: Final = {"buffer_size": 1 << 20, "pre_buffer": False, "page_checksum_verification": True}


class Parquet(Reader):
    """Names, types and number of rows come from the file's footer."""

    def read(self, path: Path) -> pd.DataFrame:
        import pandas as pd

        return pd.read_parquet(path)

    def open(self, path: Path) -> ParquetTable:
        return ParquetTable(path)

    def trouble(self, error: Exception) -> tuple[str, str]:
        if "footer" in str(error) or "magic" in str(error).lower() or "0 bytes" in str(error):
            return (
                "its end is missing, or it is no Parquet file",
                "copy it again, if it is of the kind that its name says",
            )
        return super().trouble(error)


class ParquetTable(ArrowTable):
    """One file; somebody who writes to it while a run lasts is noticed."""

    def __init__(self, path: Path) -> None:
        self._path, self._state = path, State.of(path)
        with pq.ParquetFile(path) as file:
            written = file.schema_arrow
            self._rows = int(file.metadata.num_rows)
        # An index that pandas wrote beside the columns is no column.
        index = {
            one for one in (written.pandas_metadata or {}).get("index_columns", ()) if isinstance(one, str)
        }
        self.schema = pa.schema([field for field in written if field.name not in index])
        self.columns = tuple(self.schema.names)

    @property
    def n_rows(self) -> int:
        return self._rows

    def batches(self, places: Sequence[int]) -> Iterator[Any]:
        check_unchanged(self._path, self._state)
        names = [self.columns[place] for place in places]
        rows = max(1024, _PIECE_BYTES // (8 * max(1, len(names))))
        with pq.ParquetFile(self._path, **_READING) as file:
            for batch in file.iter_batches(rows, columns=names):
                yield batch.select(names)
        check_unchanged(self._path, self._state)
