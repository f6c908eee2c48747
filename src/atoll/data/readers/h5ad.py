"""Single cells (.h5ad of anndata): cells are rows, genes columns; sparse rows become dense in pieces.

A file is a tree of HDF5. Read are ``X``, the values (an array, or ``data``, ``indices`` and ``indptr`` of a
sparse matrix by rows or by columns), and the names of ``var``, its columns. Elements say by attributes what
they are; the forms before anndata 0.7 are known too.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from atoll.data.readers.base import PieceReader, State, check_unchanged
from atoll.data.tables.base import NUMBERS, Piece, Table
from atoll.errors import DataError, MissingComponent
from atoll.lazy import lazy

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazy("scipy.sparse")

_PIECE_BYTES: Final = 32 << 20
_HINT: Final = "write it again with anndata, and look at X and var_names before"


class H5adTable(Table):
    """X of the file."""

    def __init__(self, path: Path) -> None:
        try:
            import h5py
        except ImportError:
            raise MissingComponent(".h5ad files need h5py", hint="pip install 'atoll[singlecell]'") from None
        self._path, self._state = path, State.of(path)
        file = h5py.File(path, "r")
        weakref.finalize(self, file.close)
        self.columns = tuple(_names(file))
        found = file.get("X")
        self._values = _Sparse(found) if isinstance(found, h5py.Group) else _dense(found)
        shape = tuple(self._values.shape)
        if len(shape) != 2 or shape[1] != len(self.columns):
            raise DataError(f"its X is {shape}, and var has {len(self.columns)} names", hint=_HINT)

    @property
    def n_rows(self) -> int:
        return int(self._values.shape[0])

    def pieces(self, places: Sequence[int]) -> Iterator[Piece]:
        check_unchanged(self._path, self._state)
        step = max(1, _PIECE_BYTES // (8 * max(1, len(self.columns))))
        wanted = None if list(places) == list(range(len(self.columns))) else np.asarray(places)
        for start in range(0, self.n_rows, step):
            rows = self._values[start : min(start + step, self.n_rows)]
            rows = rows if wanted is None else rows[:, wanted]
            yield rows.toarray() if hasattr(rows, "toarray") else rows
        check_unchanged(self._path, self._state)

    def holds(self, place: int) -> str:
        del place
        return NUMBERS

    def kind(self, place: int) -> str:
        del place
        return str(self._values.dtype)


class _Sparse:
    """A sparse matrix in a file. By rows, those asked for are read; by columns, all entries at once."""

    def __init__(self, group: Any) -> None:
        form = _text(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
        self._by_rows = form.startswith("csr")
        if not self._by_rows and not form.startswith("csc"):
            raise DataError(f"its X is of the form {form!r}", hint="write X as an array, or sparse")
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        if shape is None or len(shape) != 2:
            raise DataError("its sparse X says no shape", hint=_HINT)
        self.shape = (int(shape[0]), int(shape[1]))
        self._data, self._indices = group["data"], group["indices"]
        self.dtype = _numbers(self._data.dtype)
        self._starts = np.asarray(group["indptr"][()], np.int64)
        high = self.shape[0 if self._by_rows else 1]
        if len(self._starts) != high + 1 or self._starts[0] != 0 or (np.diff(self._starts) < 0).any():
            raise self._damaged()
        if not len(self._data) == len(self._indices) == self._starts[-1]:
            raise self._damaged()
        self._whole = None if self._by_rows else sparse.csr_matrix(self._part(0, high))

    def __getitem__(self, rows: slice) -> Any:
        return self._whole[rows] if self._whole is not None else self._part(rows.start, rows.stop)

    def _damaged(self) -> DataError:
        name = Path(self._data.file.filename).name
        return DataError(f"the sparse X of {name} is damaged", hint=_HINT)

    def _part(self, first: int, last: int) -> Any:
        """Some of its rows, or columns; indices are checked, because nobody looks at them afterwards."""
        start, stop = self._starts[[first, last]]
        indices = self._indices[start:stop]
        wide = self.shape[1 if self._by_rows else 0]
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < wide:
            raise self._damaged()
        made = (self._data[start:stop], indices, self._starts[first : last + 1] - start)
        if self._by_rows:
            return sparse.csr_matrix(made, shape=(last - first, wide))
        return sparse.csc_matrix(made, shape=(wide, last - first))


def _dense(found: Any) -> Any:
    if found is None or found.shape is None:
        raise DataError("it has no X", hint="write the values that count as X")
    _numbers(found.dtype)
    return found


def _numbers(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in "fiub":
        raise DataError(f"its X is of the type {dtype}", hint="X holds numbers")
    return dtype


def _names(file: Any) -> list[str]:
    """Of the columns: an array of texts, perhaps with a mask, or categories and a code for each."""
    frame = file.get("var")
    if frame is None:
        raise DataError("it has no var, which names the columns", hint=_HINT)
    if not hasattr(frame, "keys"):  # a table of one type, as before anndata 0.7
        field = next((name for name in ("index", "_index") if name in (frame.dtype.names or ())), None)
        if field is None:
            raise DataError("its var has no names", hint=_HINT)
        return [_text(name) for name in frame[field]]
    found = frame.get(_text(frame.attrs.get("_index", "_index")))
    if found is None:
        raise DataError("its var has no names", hint=_HINT)
    if not hasattr(found, "keys"):
        return [_text(name) for name in found[()]]
    if "categories" in found:
        known, codes = [_text(name) for name in found["categories"][()]], found["codes"][()]
        return [known[code] if 0 <= code < len(known) else "" for code in codes]
    hidden: npt.NDArray[Any] = found["mask"][()]
    return ["" if mask else _text(name) for name, mask in zip(found["values"][()], hidden, strict=True)]


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


class H5ad(PieceReader):
    """Names come from beside the values."""

    table = H5adTable

    def trouble(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, OSError):
            return "it is not a whole file of HDF5", "copy it again: a part is missing, or it is another kind"
        if isinstance(error, (KeyError, ValueError, IndexError)):
            return "its X or var is not as anndata writes them", _HINT
        return super().trouble(error)
