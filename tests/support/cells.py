"""Files of single cells, written by h5py as anndata's description of its format (0.12) says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def write_cells(path: Path, X: Any, names: Sequence[str], form: str = "array") -> Path:
    """``X``: dense, or sparse by rows or columns; ``form``: how the names lie in the file."""
    import h5py

    with h5py.File(path, "w") as file:
        _encoded(file, "anndata", "0.1.0")
        _write_values(file, X)
        for frame, index in (("obs", [f"cell{i}" for i in range(X.shape[0])]), ("var", names)):
            group = _encoded(file.create_group(frame), "dataframe", "0.2.0")
            group.attrs["_index"] = "gene ids" if frame == "var" else "_index"
            group.attrs["column-order"] = np.array([], dtype=h5py.string_dtype())
            _write_names(group, group.attrs["_index"], index, form if frame == "var" else "array")
    return path


def _encoded(element: Any, kind: str, version: str) -> Any:
    element.attrs["encoding-type"], element.attrs["encoding-version"] = kind, version
    return element


def _write_values(file: Any, X: Any) -> None:
    if isinstance(X, np.ndarray):
        _encoded(file.create_dataset("X", data=X), "array", "0.2.0")
        return
    group = _encoded(file.create_group("X"), f"{X.format}_matrix", "0.1.0")
    group.attrs["shape"] = X.shape
    for part in ("data", "indices", "indptr"):
        group.create_dataset(part, data=getattr(X, part))


def _write_names(group: Any, place: str, names: Sequence[str], form: str) -> None:
    import h5py

    kind = h5py.string_dtype()
    if form == "array":
        _encoded(group.create_dataset(place, data=list(names), dtype=kind), "string-array", "0.2.0")
    elif form == "categories":
        part = _encoded(group.create_group(place), "categorical", "0.2.0")
        part.attrs["ordered"] = False
        part.create_dataset("categories", data=sorted(names), dtype=kind)
        codes = [sorted(names).index(name) for name in names]
        part.create_dataset("codes", data=np.array(codes, np.int8))
    else:
        part = _encoded(group.create_group(place), "nullable-string-array", "0.1.0")
        part.create_dataset("values", data=list(names), dtype=kind)
        part.create_dataset("mask", data=np.zeros(len(names), bool))
