"""Rows that were read once and are needed until the run is over: in memory, or in a private scratch file.

The file has no name (where the system can do that), is readable by its owner alone, and is gone when the
table is, however the process ends. Every batch in it has a digest in memory; what does not come back as it
was written is refused.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from atoll.data.tables.arrow import ArrowTable
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = lazy("pyarrow")

IN_MEMORY = 64 << 20
"""Tables of more bytes go to a file."""


class _Stored(NamedTuple):
    """Where a batch lies in the file, and what it is."""

    start: int
    length: int
    digest: bytes


class Scratch(ArrowTable):
    """Record batches, added one after the other and then read as often as needed."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.columns = tuple(schema.names)
        self._rows = 0
        self._bytes = 0
        self._held: list[Any] = []
        self._stored: list[_Stored] = []
        self._file: IO[bytes] | None = None

    @property
    def n_rows(self) -> int:
        return self._rows

    @property
    def on_disk(self) -> bool:
        """Whether the rows went to a file."""
        return self._file is not None

    def add(self, batch: Any) -> None:
        """Keep a batch."""
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        self._held.append(batch)
        if self._file is None and self._bytes > IN_MEMORY:
            self._file = tempfile.TemporaryFile(prefix="atoll-")  # noqa: SIM115 (closed with the table)
            weakref.finalize(self, self._file.close)
        if self._file is not None:
            for held in self._held:
                self._store(held)
            self._held.clear()

    def _store(self, batch: Any) -> None:
        assert self._file is not None
        data = memoryview(batch.serialize())
        start = self._stored[-1].start + self._stored[-1].length if self._stored else 0
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"the scratch file cannot be written: {error.strerror}",
                hint=f"{tempfile.gettempdir()} needs room for all rows; TMPDIR names another folder",
            ) from error
        self._stored.append(_Stored(start, len(data), hashlib.sha256(data).digest()))
        self.scratch_bytes += len(data)

    @classmethod
    def filled(cls, schema: Any, batches: Iterable[Any]) -> Scratch:
        """All batches of something that can be read only once, or only slowly."""
        table = cls(schema)
        for batch in batches:
            table.add(batch)
        return table

    def batches(self, places: Sequence[int]) -> Iterator[Any]:
        yield from (batch.select(list(places)) for batch in self._held)
        for one in self._stored:
            yield self._read(one).select(list(places))

    def _read(self, one: _Stored) -> Any:
        assert self._file is not None
        data = os.pread(self._file.fileno(), one.length, one.start)
        if hashlib.sha256(data).digest() != one.digest:
            raise DataError(
                "the scratch file does not hold what was written to it",
                hint="somebody else wrote there, or the disk is damaged: run the study again",
            )
        return pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)
