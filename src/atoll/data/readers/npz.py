"""NumPy archives with ``X`` and, optionally, ``feature_names`` and ``y`` (as column ``y``)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from atoll.data.readers.base import Reader
from atoll.errors import DataError

_HINT = "np.savez(path, X=rows, feature_names=names, y=labels) writes one"


class NPZ(Reader):
    """Nothing that is pickled is read."""

    def read(self, path: Path) -> pd.DataFrame:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError("it is one array and no archive", hint=_HINT)
            if "X" not in archive.files:
                raise DataError(f"no array called X among {', '.join(archive.files)}", hint=_HINT)
            table = archive["X"]
            names = archive["feature_names"] if "feature_names" in archive.files else None
            labels = archive["y"] if "y" in archive.files else None
        if table.ndim != 2:
            raise DataError(f"its X has {table.ndim} dimensions and no rows and columns", hint=_HINT)
        if names is not None and names.shape != table.shape[1:]:
            raise DataError(
                f"its X has {table.shape[1]} columns, and feature_names is {names.shape}", hint=_HINT
            )
        if labels is not None and labels.shape != table.shape[:1]:
            raise DataError(f"its X has {len(table)} rows, and y is {labels.shape}", hint=_HINT)
        columns = [f"x{i}" for i in range(table.shape[1])] if names is None else [str(c) for c in names]
        frame = pd.DataFrame(table, columns=columns)
        if labels is not None:
            frame["y"] = labels
        return frame

    def trouble(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, zipfile.BadZipFile | EOFError) or "pickled data" in str(error):
            hint = "is it a whole file of the kind that its name says? Copy it again"
            return "it is damaged or cut, or no NumPy archive", hint
        if "Object arrays" in str(error):
            return "it holds objects, which could be any program", "store numbers and text as such"
        return super().trouble(error)
