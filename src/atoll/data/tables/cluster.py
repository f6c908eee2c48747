"""Dask arrays and data frames, read partition by partition; statistics are computed where they lie.

What is computed there is a function of one partition's rows; only its value travels. So this process holds a
few such values, however large the table is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from atoll.data.tables.arrays import numbered
from atoll.data.tables.base import Piece, Table
from atoll.data.tables.frames import FrameTable
from atoll.errors import DataError, MissingComponent

R = TypeVar("R")

_IN_FLIGHT: Final = 8
"""Partitions that are worked on at a time: as many values are held here at once."""
_PATIENCE = "10s"
_INSTALL: Final = "pip install 'atoll[dask]'"


def is_dask(data: Any) -> bool:
    """Whether it is a collection of Dask."""
    return type(data).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(data, "to_delayed")


class DaskTable(Table):
    """Rows in partitions; ``scheduler``: the address of the cluster that computes, else Dask's own choice."""

    lies_here = False

    def __init__(self, data: Any, scheduler: str | None = None) -> None:
        try:
            import dask
        except ImportError:
            raise MissingComponent("tables of Dask need dask", hint=_INSTALL) from None
        if not is_dask(data):
            raise DataError(
                f"a {type(data).__name__} is no array or data frame of Dask",
                hint="dask.dataframe.read_parquet('part-*.parquet') makes one",
            )
        self._dask: Any = dask
        self._client = None if scheduler is None else _connected(scheduler)
        self._is_frame = hasattr(data, "columns")
        if not self._is_frame and data.ndim != 2:
            raise DataError(f"expected 2D array, got {data.ndim}D array instead")
        self._data = data if self._is_frame else data.rechunk({1: -1})
        self._meta = FrameTable(data._meta) if self._is_frame else None
        width = len(data.columns) if self._is_frame else data.shape[1]
        self.columns = self._meta.columns if self._meta else numbered(width)
        self._lengths = [int(n) for n in self._counted()]

    def _counted(self) -> Sequence[int]:
        if not self._is_frame and not np.isnan(self._data.chunks[0]).any():
            return tuple(self._data.chunks[0])
        return list(self._each(len, [(part,) for part in self._parts(None)]))

    @property
    def n_rows(self) -> int:
        return sum(self._lengths)

    def _parts(self, places: Sequence[int] | None) -> list[Any]:
        """One lazy partition after the other, of these columns."""
        if not self._is_frame:
            parts = [row[0] for row in self._data.to_delayed()]
            return parts if places is None else [part[:, list(places)] for part in parts]
        chosen = self._data if places is None else self._data.iloc[:, list(places)]
        return list(chosen.to_delayed())

    def _each(self, function: Callable[..., R], parts: Sequence[tuple[Any, ...]]) -> Iterator[R]:
        """A function of every partition and what goes with it, in order, where the partition lies."""
        work = self._dask.delayed(function, pure=False)
        for start in range(0, len(parts), _IN_FLIGHT):
            lazy_values = [work(*part) for part in parts[start : start + _IN_FLIGHT]]
            try:
                yield from self._computed(lazy_values)
            except DataError:
                raise
            except Exception as error:  # of a scheduler that went away, or of a worker
                raise DataError(
                    f"the cluster did not compute ({type(error).__name__})",
                    hint="is its scheduler running, do workers have memory, and is Atoll installed there?",
                ) from error

    def _computed(self, values: list[Any]) -> Sequence[Any]:
        if self._client is not None:
            return list(self._client.gather(self._client.compute(values)))
        return list(self._dask.compute(*values))

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        for part in self._parts(places):
            (rows,) = self._computed([part])
            if not self._is_frame:
                yield np.asarray(rows)
            else:
                yield from FrameTable(rows).pieces(range(len(places)))

    def each_part(self, places: Sequence[int], function: Callable[[Piece, int], R]) -> Iterator[R]:
        starts = np.cumsum([0, *self._lengths]).tolist()
        parts = list(zip(self._parts(places), self._lengths, starts, strict=False))
        full = [(part, start) for part, rows, start in parts if rows] or [(parts[0][0], 0)]
        yield from self._each(_OfPiece(function, len(places), self._is_frame), full)

    def holds(self, place: int) -> str:
        from atoll.data.tables.base import held_by

        return held_by(self._data.dtype) if self._meta is None else self._meta.holds(place)

    def kind(self, place: int) -> str:
        return str(self._data.dtype) if self._meta is None else self._meta.kind(place)


class _OfPiece:
    """A function of a piece as a function of a partition; it travels to workers."""

    def __init__(self, function: Callable[[Piece, int], Any], width: int, is_frame: bool) -> None:
        self.function, self.width, self.is_frame = function, width, is_frame

    def __call__(self, part: Any, start: int) -> Any:
        if not self.is_frame:
            return self.function(np.asarray(part), start)
        (piece,) = FrameTable(part).pieces(range(self.width))
        return self.function(piece, start)


def _connected(scheduler: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingComponent("a scheduler of Dask needs distributed", hint=_INSTALL) from None
    try:
        client: Any = distributed.Client
        return client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"there is no scheduler at {scheduler}", hint="dask scheduler prints its address when it starts"
        ) from error
