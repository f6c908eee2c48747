"""NumPy arrays as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.data.tables.base import Piece, Table, held_by
from atoll.errors import DataError

_WRITTEN_BYTES = 8 << 20


@lru_cache(maxsize=1)
def numbered(width: int) -> tuple[str, ...]:
    """Names for columns without: the islands of a run have as many, and share them."""
    return tuple(f"x{place}" for place in range(width))


class ArrayTable(Table):
    """Nothing is copied."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array
        self.columns = numbered(array.shape[1])

    @property
    def n_rows(self) -> int:
        return len(self.array)

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        whole = range(self.array.shape[1])
        if places == whole or list(places) == list(whole):
            yield self.array
        else:
            yield [self.array[:, place] for place in places]

    def holds(self, place: int) -> str:
        del place
        return held_by(self.array.dtype)

    def kind(self, place: int) -> str:
        del place
        return str(self.array.dtype)

    def column(self, place: int) -> npt.NDArray[np.generic]:
        return self.array[:, place]

    def written(self, places: Sequence[int]) -> Iterator[memoryview]:
        """The type and the values of every column, many columns at a time: there may be thousands of short
        ones."""
        table = self.array
        kind = np.frombuffer(str(table.dtype).encode(), np.uint8)
        size = len(table) * table.dtype.itemsize
        step = max(1, _WRITTEN_BYTES // max(1, size))
        for first in range(0, len(places), step):
            columns = np.ascontiguousarray(table[:, places[first : first + step]].T)
            written = np.empty((len(columns), len(kind) + size), np.uint8)
            written[:, : len(kind)] = kind
            written[:, len(kind) :] = columns.view(np.uint8).reshape(len(columns), size)
            yield written.data


def two_dimensional(array: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """An array of rows and columns, or an error that says what else was handed in."""
    if hasattr(array, "tocsr"):
        raise DataError(
            f"{name}: a sparse matrix cannot be used", hint="X.toarray() makes it dense; PCA centres anyway"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise DataError(
            f"{name}: a masked array cannot be used", hint="fill the masked values, or drop the rows"
        )
    try:
        table = np.asarray(array)
    except ValueError:  # it may quote values
        raise DataError(
            f"{name}: its rows are of different lengths", hint="every row has as many values"
        ) from None
    if table.ndim == 0 and not isinstance(array, np.ndarray):
        raise DataError(
            f"{name}: this is no table but {type(array).__name__}",
            hint="hand in a frame, an array of rows and columns, or the path of a file",
        )
    if table.ndim != 2:
        one = "; series.to_frame() makes a table of one column" if hasattr(array, "to_frame") else ""
        raise DataError(
            f"{name}: expected 2D array, got {table.ndim}D array instead",
            hint=f"Reshape your data: rows are samples, columns are features{one}",
        )
    return table
