"""An island: one party's table, read where it lies, checked before anything is computed from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.data.headers import check_header, warn_of_index, without_index
from atoll.data.readers import READERS, Reader, reader_of
from atoll.errors import DataError, ParameterError, several
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

Matrix = npt.NDArray[np.float64]

BLOCK_BYTES = 1 << 21
"""Of a block of rows, unless its reader asks for another size: a piece that fits the cache."""


class Island:
    """A named table, made by one of the ``from_...`` methods.

    ``identity``: the data set as its owner knows it, whatever file holds it now; releases are booked under
    it.
    ``capacity``: as many rows as the table could ever have, declared by its owner and never taken from the
    rows; a private study that takes rows in pairs may ask for it.
    """

    # No other attributes: a ledger that is put here instead of beside the island would book nothing.
    __slots__ = ("_places", "_table", "capacity", "columns", "identity", "name", "named", "reader", "source")

    def __init__(
        self,
        table: npt.NDArray[Any] | pd.DataFrame,
        *,
        name: str = "island",
        columns: Sequence[str] | None = None,
        source: Path | None = None,
        identity: str | None = None,
        capacity: int | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self.capacity = _checked_capacity(name, capacity)
        self.source = source
        self.reader: Reader | None = None
        self._table = table
        self.named = columns is not None
        self.columns = (
            tuple(columns) if columns is not None else tuple(f"x{i}" for i in range(table.shape[1]))
        )
        self._check_names()
        self._places = {column: place for place, column in enumerate(self.columns)}

    def __repr__(self) -> str:
        return f"<Island {self.name!r}: {self.n_rows} rows x {len(self.columns)} columns>"

    @property
    def n_rows(self) -> int:
        return int(self._table.shape[0])

    @property
    def index(self) -> pd.Index[Any] | None:
        """The rows' labels, where the owner handed in a frame."""
        return self._table.index if isinstance(self._table, pd.DataFrame) and self.source is None else None

    # ---- making one ----

    @classmethod
    def from_array(
        cls,
        array: npt.ArrayLike,
        *,
        columns: Sequence[str] | None = None,
        name: str = "island",
        identity: str | None = None,
        capacity: int | None = None,
    ) -> Island:
        """A two-dimensional array; columns are x0, x1, ... unless named."""
        table = _as_table(array, name)
        if columns is not None:
            columns = [str(column) for column in columns]
            if len(columns) != table.shape[1]:
                raise DataError(f"{name}: {len(columns)} column names for {table.shape[1]} columns")
            check_header(columns, "the array", name)
        return cls(table, name=name, columns=columns, identity=identity, capacity=capacity)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        name: str = "island",
        identity: str | None = None,
        capacity: int | None = None,
    ) -> Island:
        """A pandas or polars frame."""
        if type(frame).__module__.split(".")[0] == "polars":
            frame = frame.collect() if hasattr(frame, "collect") else frame
            frame = pd.DataFrame({column: frame[column].to_numpy() for column in frame.columns})
        if not isinstance(frame, pd.DataFrame):
            raise DataError(f"{name}: a {type(frame).__name__} is not a pandas or polars frame")
        written = [str(column) for column in frame.columns]
        columns = without_index(written)
        check_header(columns, "the frame", name)
        if len(columns) < len(written):
            frame = frame.iloc[:, 1:]
            warn_of_index("the frame", name)
        return cls(frame, name=name, columns=columns, identity=identity, capacity=capacity)

    @classmethod
    def from_csv(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """A comma-separated file with a header line."""
        return cls._from_file(Path(path), READERS["csv"](), name, identity)

    @classmethod
    def from_parquet(
        cls, path: str | Path, *, name: str | None = None, identity: str | None = None
    ) -> Island:
        """A Parquet file."""
        return cls._from_file(Path(path), READERS["parquet"](), name, identity)

    @classmethod
    def from_npz(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """A NumPy archive with ``X`` and, optionally, ``feature_names`` and ``y`` (as column ``y``)."""
        return cls._from_file(Path(path), READERS["npz"](), name, identity)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """A table file of any format that is known by the ending of its name."""
        path = Path(path)
        return cls._from_file(path, reader_of(path, name or path.stem), name, identity)

    @classmethod
    def _from_file(cls, path: Path, reader: Reader, name: str | None, identity: str | None) -> Island:
        name = name or path.stem
        if not path.is_file():
            raise DataError(f"{name}: there is no file {path}", hint="paths are relative to the study file")
        try:
            frame = reader.read(path)
        except Exception as error:  # each reader has its own exceptions
            reason = str(error).split("\n", 1)[0]
            raise DataError(f"{name}: {path.name} cannot be read: {reason}") from error
        written = reader.names(path, frame)
        columns = without_index(written)
        check_header(columns, path.name, name)
        if len(columns) < len(written):
            frame = frame.iloc[:, 1:]
            warn_of_index(path.name, name)
        island = cls(frame, name=name, columns=columns, source=path, identity=identity)
        island.reader = reader
        return island

    # ---- looking at it ----

    def check_numbers(self, columns: Sequence[str]) -> None:
        """Refuse text in the named columns, with its place."""
        for column in columns:
            values = self._column(column)
            if values.dtype.kind not in "fiub":
                self._as_floats(values, [column])

    def blocks(self, columns: Sequence[str], rows: int | None = None) -> Iterator[Matrix]:
        """The named columns, in that order, as doubles: all rows, so many at a time.

        The one way in which roles read rows. Text is refused by its place; missing and infinite values are
        refused later, in the pass that reads every block anyway. An empty table is one empty block.
        """
        step = rows or max(1, BLOCK_BYTES // (8 * max(1, len(columns))))
        whole = isinstance(self._table, np.ndarray) and tuple(columns) == self.columns
        parts = [] if whole else [self._column(column) for column in columns]
        for start in range(0, max(1, self.n_rows), step):
            part = slice(start, start + step)
            if whole:
                yield self._as_floats(np.asarray(self._table)[part], columns, start)
            else:
                read = [self._as_floats(v[part], [c], start) for v, c in zip(parts, columns, strict=True)]
                rows_here = len(range(*part.indices(self.n_rows)))
                yield np.column_stack(read) if read else np.empty((rows_here, 0))

    def features(self, columns: Sequence[str]) -> Matrix:
        """The same as one matrix, for what cannot be done block by block."""
        return next(self.blocks(columns, max(1, self.n_rows)))

    def chosen(self, columns: Sequence[str]) -> Chosen:
        """These columns alone, to be read later."""
        return Chosen(self, tuple(columns))

    def digest(self) -> str:
        """Tells whether the table has changed: of all columns, values and the capacity. For its owner
        alone."""
        mac = hashlib.sha256(repr((self.columns, self.n_rows, self.capacity)).encode())
        for column in self.columns:
            values = self._column(column)
            if values.dtype.kind in "fiub":
                mac.update(str(values.dtype).encode())
                mac.update(np.ascontiguousarray(values).data)
            else:
                mac.update(repr(values.tolist()).encode())
        return mac.hexdigest()

    def labels(self, column: str) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
        """A label column: numbers as they are, text as codes and the classes they stand for."""
        values = self._column(column)
        missing = np.asarray(pd.isna(values))
        if missing.any():
            raise DataError(
                f"{self.name}: the label {column!r} is missing at {self.place(int(np.argmax(missing)))}",
                hint="drop the row, or give it a label",
            )
        if values.dtype.kind in "iub":
            return values.astype(np.bool_ if values.dtype.kind == "b" else np.int64), ()
        if values.dtype.kind == "f":
            return values.astype(np.float64), ()
        classes, codes = np.unique(values.astype(str), return_inverse=True)
        return codes.astype(np.int64), tuple(str(c) for c in classes)

    def values(self, column: str) -> npt.NDArray[Any]:
        """A column as it is, numbers or not; for what cannot be read as numbers, such as categories."""
        return self._column(column)

    def row_ids(self, column: str) -> tuple[str, ...]:
        """A column that tells the rows apart, as text; none missing, none twice."""
        values = self._column(column)
        missing = np.asarray(pd.isna(values))
        if missing.any():
            raise DataError(
                f"{self.name}: the row id {column!r} is missing at {self.place(int(np.argmax(missing)))}",
                hint="give every row an id, or leave row_ids out",
            )
        ids = tuple(str(value) for value in values)
        if len(set(ids)) < len(ids):
            first = {one: row for row, one in reversed(list(enumerate(ids)))}
            twice = next(row for row, one in enumerate(ids) if first[one] < row)
            raise DataError(
                f"{self.name}: the row id {column!r} at {self.place(twice)} is there twice",
                hint="ids must tell rows apart; leave row_ids out if they do not",
            )
        return ids

    def _column(self, column: str) -> npt.NDArray[Any]:
        index = self._places[column]
        if isinstance(self._table, np.ndarray):
            return self._table[:, index]
        series = self._table.iloc[:, index]
        if series.dtype.kind in "fiub" and not isinstance(series.dtype, np.dtype):
            # pandas' nullable numbers: a missing value becomes nan, which the statistics refuse by place.
            return series.to_numpy(dtype=np.float64, na_value=np.nan)
        return series.to_numpy()

    def _as_floats(self, values: npt.NDArray[Any], columns: Sequence[str], start: int = 0) -> Matrix:
        if values.dtype.kind == "c":
            raise DataError(f"{self.name}: complex data not supported")
        if values.dtype.kind in "mM":
            raise DataError(
                f"{self.name}: column {columns[0]!r} holds dates or times where numbers are needed",
                hint="turn it into a number first, for example days since a public date",
            )
        converted = _floats_or_none(values)
        if converted is None:
            # Raised here rather than where the conversion failed, whose error quotes the cell.
            self._raise_for_text(np.atleast_2d(values.T).T, columns, start)
            raise DataError(f"{self.name}: column {columns[0]!r} cannot be read as numbers")
        return converted

    def _raise_for_text(self, values: npt.NDArray[Any], columns: Sequence[str], start: int) -> None:
        for j, column in enumerate(columns):
            for row, value in enumerate(values[:, j], start):
                if not _is_number(value):
                    raise DataError(
                        f"{self.name}: column {column!r} holds text at {self.place(row)}",
                        hint="leave the column out (columns = [...]), or name it as the label",
                    )

    def place(self, row: int) -> str:
        """A row as its owner finds it."""
        if self.source is None or self.reader is None:
            return f"row {row}"
        return self.reader.place(row, self.source)

    def _check_names(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column in seen:
                raise DataError(f"{self.name}: there are two columns called {column!r}")
            seen.add(column)


class Chosen(NamedTuple):
    """Some columns of an island, in order: what a role reads of it."""

    island: Island
    columns: tuple[str, ...]
    units: Callable[[Matrix], Matrix] | None = None
    """What is done to every block before it is read: a shift, other units."""

    @property
    def n_rows(self) -> int:
        return self.island.n_rows

    def blocks(self, rows: int | None = None) -> Iterator[Matrix]:
        """All rows, so many at a time."""
        read = self.island.blocks(self.columns, rows)
        return read if self.units is None else map(self.units, read)

    def whole(self) -> Matrix:
        """All rows at once."""
        return next(self.blocks(max(1, self.n_rows)))

    def largest(self) -> Matrix:
        """The largest magnitude of each column."""
        return np.asarray(reduce(np.maximum, (np.abs(block).max(axis=0) for block in self.blocks())))


def _floats_or_none(values: npt.NDArray[Any]) -> Matrix | None:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _as_table(array: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    if hasattr(array, "tocsr"):
        raise DataError(
            f"{name}: a sparse matrix cannot be used", hint="X.toarray() makes it dense; PCA centres anyway"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise DataError(
            f"{name}: a masked array cannot be used", hint="fill the masked values, or drop the rows"
        )
    table = np.asarray(array)
    if table.ndim != 2:
        raise DataError(
            f"{name}: expected 2D array, got {table.ndim}D array instead",
            hint="Reshape your data: rows are samples, columns are features",
        )
    return table


def _checked_capacity(name: str, capacity: int | None) -> int | None:
    if capacity is None:
        return None
    if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 1:
        raise ParameterError(f"{name}: capacity={capacity!r} must be a whole number from 1")
    return int(capacity)


def as_island(name: str, data: Any) -> Island:
    """Whatever a user hands in as one island's data."""
    if isinstance(data, Island):
        island = Island(
            data._table,
            name=name,
            columns=data.columns if data.named else None,
            source=data.source,
            identity=data.identity,
            capacity=data.capacity,
        )
        island.reader = data.reader
        return island
    if isinstance(data, str | Path):
        return Island.from_file(data, name=name)
    if hasattr(data, "columns") and not isinstance(data, np.ndarray):
        return Island.from_frame(data, name=name)
    return Island.from_array(data, name=name)


def _each(data: Mapping[Any, Any]) -> dict[str, Island]:
    """Every island, or one error that names all that are wrong."""
    islands, problems = {}, []
    for name, value in data.items():
        try:
            islands[str(name)] = as_island(str(name), value)
        except DataError as error:
            problems.append(error)
    if problems:
        raise several(problems)
    return islands


def as_islands(data: Any) -> dict[str, Island]:
    """A list or a mapping of islands' data; a bare table is refused."""
    if isinstance(data, Mapping):
        if len({str(name) for name in data}) < len(data):
            raise ParameterError("two islands have the same name", hint="names are compared as text")
        return _each(data)
    if isinstance(data, list | tuple):
        return as_islands({f"island-{i}": value for i, value in enumerate(data)})
    raise ParameterError(
        f"fit needs one table per island, got a single {type(data).__name__}",
        hint="fit([X1, X2, ...]) or fit({'st-mary': X1, ...}); for one table use scikit-learn",
    )
