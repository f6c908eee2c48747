"""A folder to run commands in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.example import STUDY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study and its data, to work in."""
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(draw.normal(size=(30, 4)), columns=["a", "b", "c", "d"])
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    frame[:20].to_csv(tmp_path / "north.csv", index=False)
    frame[20:].to_parquet(tmp_path / "south.parquet")
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path
