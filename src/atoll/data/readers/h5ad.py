"""Single cells (.h5ad of anndata): cells are rows, genes columns; sparse rows become dense in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from atoll import errors
from atoll.data.readers.base import PieceReader, State, check_unchanged
from atoll.data.tables.base import NUMBERS, Piece, Table

_PIECE_BYTES: Final = 32 << 20


class H5adTable(Table):
    """X of the file."""

    def __init__(self, path: Path) -> None:
        try:
            import anndata
        except ImportError:
            raise errors.MissingComponent(
                ".h5ad files need anndata", hint="pip install 'atoll[singlecell]'"
            ) from None
        self._path, self._state = path, State.of(path)
        self._data: Any = anndata.read_h5ad(path, backed="r")
        self._values: Any = self._data.X
        self.columns = tuple(str(name) for name in self._data.var_names)

    @property
    def n_rows(self) -> int:
        return int(self._data.n_obs)

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        check_unchanged(self._path, self._state)
        step = max(1, _PIECE_BYTES // (8 * max(1, len(self.columns))))
        wanted = None if list(places) == list(range(len(self.columns))) else np.asarray(places)
        for start in range(0, self.n_rows, step):
            rows = self._values[start : min(start + step, self.n_rows)]
            rows = rows if wanted is None else rows[:, wanted]
            yield rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        check_unchanged(self._path, self._state)

    def holds(self, place: int) -> str:
        del place
        return NUMBERS

    def kind(self, place: int) -> str:
        del place
        return str(self._values.dtype)


class H5ad(PieceReader):
    """Names come from beside the values."""

    table = H5adTable
