"""An island: one party's table, read where it lies, checked before anything is computed from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from atoll.data.capacity import checked_capacity
from atoll.data.chosen import Chosen as Chosen
from atoll.data.headers import check_header, warn_of_index, without_index
from atoll.data.numbers import Matrix as Matrix
from atoll.data.numbers import OfRows, check_floats, cut, matrix, raw
from atoll.data.readers import READERS, Reader, files_of, opened, reader_of
from atoll.data.tables.arrays import ArrayTable, two_dimensional
from atoll.data.tables.base import NUMBERS, Column, Piece, Table, length
from atoll.data.tables.cluster import DaskTable, is_dask
from atoll.data.tables.frames import FrameTable
from atoll.data.tables.sql import read_sql
from atoll.data.tables.streams import speaks_arrow, streamed
from atoll.errors import DataError, ParameterError, named, several
from atoll.lazy import lazy

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

R = TypeVar("R")

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
    __slots__ = (
        "_origin",
        "_places",
        "_table",
        "_whole",
        "capacity",
        "columns",
        "identity",
        "name",
        "named",
        "order",
        "source",
    )

    def __init__(
        self,
        table: npt.NDArray[Any] | pd.DataFrame | Table,
        *,
        name: str = "island",
        columns: Sequence[str] | None = None,
        source: Path | None = None,
        identity: str | None = None,
        capacity: int | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self.capacity = checked_capacity(name, capacity)
        self.source = source
        self.order = ""
        """The order of rows that an alignment gave, by its name; empty: the owner's own."""
        self._origin: npt.NDArray[np.int64] | None = None
        self._whole: Island | None = None
        """What an alignment took the rows from, and where they stood there."""
        self._table = _as_table(table)
        self.named = columns is not None
        width = len(self._table.columns)
        self.columns = tuple(columns) if columns is not None else tuple(self._table.columns)
        # An index that a program wrote in the first place is no column.
        self._places = dict(zip(self.columns, range(width - len(self.columns), width), strict=True))
        self._check_names()

    def __repr__(self) -> str:
        return f"<Island {self.name!r}: {self.n_rows} rows x {len(self.columns)} columns>"

    @property
    def n_rows(self) -> int:
        return self._table.n_rows

    @property
    def index(self) -> pd.Index[Any] | None:
        """The rows' labels, where the owner handed in a frame whose order no alignment gave."""
        if self.order or self.source is not None or not isinstance(self._table, FrameTable):
            return None
        return self._table.frame.index

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
        table = two_dimensional(array, name)
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
        """A pandas or polars frame (a lazy one is run once, batch by batch), or an Arrow table or reader."""
        with named(name):
            table = streamed(frame)
        if table is None and not isinstance(frame, pd.DataFrame):
            made = (
                "to_pandas() makes one" if hasattr(frame, "to_pandas") else "pandas.DataFrame(...) makes one"
            )
            raise DataError(f"{name}: a {type(frame).__name__} is not a pandas or polars frame", hint=made)
        table = FrameTable(frame) if table is None else table
        written = table.columns
        columns = without_index(written)
        check_header(columns, "the frame", name)
        if len(columns) < len(written):
            warn_of_index("the frame", name)
        return cls(table, name=name, columns=columns, identity=identity, capacity=capacity)

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
    def from_bed(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """Genotypes of PLINK: .bed with .bim and .fam beside it (``pip install 'atoll[genomics]'``)."""
        return cls._from_file(Path(path), READERS["bed"](), name, identity)

    @classmethod
    def from_h5ad(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """Cells x genes of an anndata file, sparse or not (``pip install 'atoll[singlecell]'``)."""
        return cls._from_file(Path(path), READERS["h5ad"](), name, identity)

    @classmethod
    def from_sql(cls, url: str, query: str, *, name: str = "island", identity: str | None = None) -> Island:
        """What a query to SQLite or PostgreSQL answers (``pip install 'atoll[sql]'``), read once."""
        with named(name):
            table = read_sql(url, query)
        check_header(table.columns, "the query", name)
        return cls(table, name=name, columns=table.columns, identity=identity)

    @classmethod
    def from_dask(
        cls, data: Any, *, scheduler: str | None = None, name: str = "island", identity: str | None = None
    ) -> Island:
        """A Dask array or data frame; statistics are computed where its partitions lie
        (``pip install 'atoll[dask]'``). ``scheduler``: the address of the cluster, else Dask's own choice."""
        with named(name):
            table = DaskTable(data, scheduler)
        if not hasattr(data, "columns"):
            return cls(table, name=name, identity=identity)
        check_header(table.columns, "the data frame", name)
        return cls(table, name=name, columns=table.columns, identity=identity)

    @classmethod
    def from_file(cls, path: str | Path, *, name: str | None = None, identity: str | None = None) -> Island:
        """A table file of any format that is known by the ending of its name."""
        path = Path(path)
        return cls._from_file(path, reader_of(path, name or path.stem), name, identity)

    @classmethod
    def _from_file(cls, path: Path, reader: Reader, name: str | None, identity: str | None) -> Island:
        name = name or path.stem
        files = files_of(path, name)
        table = opened(files, reader, name)
        columns = without_index(table.columns)
        if len(columns) < len(table.columns):
            warn_of_index(path.name, name)
        return cls(table, name=name, columns=columns, source=path, identity=identity)

    # ---- looking at it ----

    def holds(self, column: str) -> str:
        """What a column holds, as far as its type says."""
        return self._table.holds(self._places[column])

    def kind(self, column: str) -> str:
        """A column's type, in the words of whatever holds it."""
        return self._table.kind(self._places[column])

    @property
    def scratch_bytes(self) -> int:
        """How much of it lies in a scratch file."""
        return self._table.scratch_bytes

    def check_numbers(self, columns: Sequence[str]) -> None:
        """Refuse text in the named columns, with its place."""
        for column in columns:
            held = self.holds(column)
            if held != NUMBERS:
                check_floats(self, column, held)

    def blocks(self, columns: Sequence[str], rows: int | None = None) -> Iterator[Matrix]:
        """The named columns, in that order, as doubles: all rows, so many at a time.

        The one way in which roles read rows. Text is refused by its place; missing and infinite values are
        refused later, in the pass that reads every block anyway. An empty table is one empty block.
        """
        for block, _ in self.mixed(columns, (), rows):
            yield block

    def values_in_blocks(self, columns: Sequence[str], rows: int | None = None) -> Iterator[list[Column]]:
        """The same as they are, numbers or not: one array for each column."""
        for _, values in self.mixed((), columns, rows):
            yield values

    def mixed(
        self, numbers: Sequence[str], others: Sequence[str], rows: int | None = None
    ) -> Iterator[tuple[Matrix, list[Column]]]:
        """Blocks of columns with numbers, and beside them the same rows of others as they are."""
        step = rows or max(1, BLOCK_BYTES // (8 * max(1, len(numbers) + len(others))))
        places = self._standing((*numbers, *others))
        start = 0
        for parts in cut(self._pieces(places), step) if places else ():
            block = matrix(self, parts, numbers, start)
            yield block, [raw(parts, place) for place in range(len(numbers), len(places))]
            start += sum(map(length, parts))
        if not places or not self.n_rows:
            for first in range(0, max(1, self.n_rows), step):
                nothing = np.empty((min(step, self.n_rows - first), len(numbers)))
                yield nothing, [np.empty(0) for _ in others]
        elif start != self.n_rows:
            raise DataError(
                f"{self.name}: {self.n_rows} rows were announced and {start} read",
                hint="the table changed while it was read: let whoever writes it finish, and start again",
            )

    def _standing(self, columns: tuple[str, ...]) -> Sequence[int]:
        """The places of these columns; all of them, of which there may be very many, are not looked up."""
        if columns == self.columns:
            return range(len(self._table.columns) - len(columns), len(self._table.columns))
        return [self._places[column] for column in columns]

    def _pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        """As the table gives them; what goes wrong there names the island."""
        try:
            with named(self.name):
                yield from self._table.pieces(places)
        except DataError:
            raise
        except Exception as error:  # each kind of table has its own exceptions
            where = self.source.name if self.source is not None else "the table"
            raise DataError(
                f"{self.name}: {where} cannot be read any further ({type(error).__name__})",
                hint="it is damaged, or whatever holds it went away; nothing more is sent",
            ) from error

    def each_part(
        self, numbers: Sequence[str], others: Sequence[str], function: Callable[[Matrix, list[Column]], R]
    ) -> Iterator[R] | None:
        """A function of some rows after the other, as ``mixed`` gives them, computed where they lie; None
        where they lie here. It travels there, with all that it holds."""
        work = OfRows(function, self.name, tuple(numbers))
        parts = self._table.each_part(self._standing((*numbers, *others)), work)
        return None if parts is None else self._named(parts)

    def _named(self, parts: Iterator[R]) -> Iterator[R]:
        """What goes wrong on the way names the island, as it does where rows are read."""
        try:
            yield from parts
        except DataError as error:
            if error.message.startswith(f"{self.name}: "):
                raise
            raise type(error)(f"{self.name}: {error.message}", hint=error.hint) from None

    def mapped(
        self, numbers: Sequence[str], others: Sequence[str], function: Callable[[Matrix, list[Column]], R]
    ) -> Iterator[R]:
        """The same wherever they lie."""
        there = self.each_part(numbers, others, function)
        return (function(*read) for read in self.mixed(numbers, others)) if there is None else there

    @property
    def lies_here(self) -> bool:
        """Whether this process reads the rows; else they are on a cluster, and so is the work."""
        return self._table.lies_here

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
        if isinstance(self._table, ArrayTable) and self._table.array.dtype.kind in "fiub":
            for block in self._table.written([self._places[column] for column in self.columns]):
                mac.update(block)
            return mac.hexdigest()
        for values in self.values_in_blocks(self.columns):
            for column in values:
                if column.dtype.kind in "fiub":
                    mac.update(str(column.dtype).encode())
                    mac.update(np.ascontiguousarray(column).data)
                else:
                    mac.update(repr(column.tolist()).encode())
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

    def aligned(self, rows: npt.NDArray[np.int64], order: str, on: str) -> Island:
        """These rows alone, in this order, which is called ``order`` at all islands of an alignment; without
        the column of ids, which has done its work."""
        kept = [column for column in self.columns if column != on]
        whole = self._table
        taken: npt.NDArray[Any] | pd.DataFrame
        if isinstance(whole, ArrayTable):
            taken = whole.array[rows][:, [self._places[column] for column in kept]]
        else:
            taken = self.frame().iloc[rows][kept]
        island = self._with(taken, self.name, kept)
        island.order = order
        island._origin = rows if self._origin is None else self._origin[rows]
        island._whole = self if self._whole is None else self._whole
        return island

    def _with(
        self, table: npt.NDArray[Any] | pd.DataFrame | Table, name: str, columns: Sequence[str] | None = None
    ) -> Island:
        """Another table or another name, and the same in everything else."""
        island = Island(
            table,
            name=name,
            columns=(columns or self.columns) if self.named else None,
            source=self.source,
            identity=self.identity,
            capacity=self.capacity,
        )
        island.order, island._origin, island._whole = self.order, self._origin, self._whole
        return island

    def with_table(self, table: Table) -> Island:
        """The same owner's island with a table that was made of its own."""
        island = self._with(table, self.name, table.columns)
        island.columns, island.named = table.columns, True
        island._places = {column: place for place, column in enumerate(table.columns)}
        return island

    def frame(self) -> pd.DataFrame:
        """The table as a frame, for its owner to look at and to go on with."""
        table = self._table
        if isinstance(table, FrameTable):
            columns = [self._places[column] for column in self.columns]
            return table.frame.iloc[:, columns].set_axis(list(self.columns), axis=1)
        if isinstance(table, ArrayTable):
            return pd.DataFrame(table.array, columns=list(self.columns))
        return pd.DataFrame({column: self._column(column) for column in self.columns})

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

    def _column(self, column: str) -> Column:
        return self._table.column(self._places[column])

    def place(self, row: int) -> str:
        """A row as its owner finds it."""
        if self._origin is not None and self._whole is not None:
            return self._whole.place(int(self._origin[row]))
        return self._table.place(row)

    def _check_names(self) -> None:
        if len(self._places) < len(self.columns):
            twice = next(c for i, c in enumerate(self.columns) if c in self.columns[:i])
            raise DataError(f"{self.name}: there are two columns called {twice!r}")


def _as_table(table: npt.NDArray[Any] | pd.DataFrame | Table) -> Table:
    if isinstance(table, Table):
        return table
    return ArrayTable(table) if isinstance(table, np.ndarray) else FrameTable(table)


def as_island(name: str, data: Any) -> Island:
    """Whatever a user hands in as one island's data."""
    if isinstance(data, Island):
        return data._with(data._table, name)
    if isinstance(data, str | Path):
        return Island.from_file(data, name=name)
    if is_dask(data):
        return Island.from_dask(data, name=name)
    if speaks_arrow(data) or (hasattr(data, "columns") and not isinstance(data, np.ndarray)):
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
