"""NumPy archives with ``X`` and, optionally, ``feature_names`` and ``y`` (as column ``y``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from atoll.data.readers.base import Reader


class NPZ(Reader):
    """Nothing that is pickled is read."""

    def read(self, path: Path) -> pd.DataFrame:
        with np.load(path, allow_pickle=False) as archive:
            if "X" not in archive.files:
                raise ValueError(f"no array called X among {', '.join(archive.files)}")
            table = archive["X"]
            named = "feature_names" in archive.files
            columns = (
                [str(c) for c in archive["feature_names"]]
                if named
                else [f"x{i}" for i in range(table.shape[1])]
            )
            labels = archive["y"] if "y" in archive.files else None
        frame = pd.DataFrame(table, columns=columns)
        if labels is not None and labels.shape == (len(frame),):
            frame["y"] = labels
        return frame
