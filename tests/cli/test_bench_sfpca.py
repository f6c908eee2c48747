"""``atoll bench sfpca`` on a small file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from tests.support.running import atoll


def test_a_case_is_run_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "pima_diabetes.npz", X=load_wine().data[:, :4].astype(np.float32))
    finished = atoll("bench", "sfpca", "--data", str(tmp_path), "--islands", "2", "--json")
    assert finished.code == 0, finished.err
    (row,) = json.loads(finished.out)
    assert (row["name"], row["components"], row["recipe"]) == ("pima", 4, "direct")
    assert min(row["cosines"]) > 0.999999
    assert row["island_bytes"] > 0
    assert 0 < min(row["meta_cosines"]) <= 1 + 1e-9
    assert row["paper_meta_accuracy"] == "0.98; <1e-2"
    monkeypatch.setenv("COLUMNS", "100")
    more = ("--steps", "--components")
    shown = atoll("bench", "sfpca", "pima", "--data", str(tmp_path), "--islands", "2", *more).out
    assert max(len(line) for line in shown.splitlines()) <= 100
    for words in ("SF-PCA, 2 islands", "meta cosine", "read an encrypted matrix", "one after the other"):
        assert words in shown


def test_missing_data_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOLL_DATA", raising=False)
    for arguments, words in (
        ((), "needs its data sets"),
        (("--data", str(tmp_path)), "holds none of the data sets"),
        (("mnist", "--data", str(tmp_path)), "there is no file"),
        (("iris", "--data", str(tmp_path)), "there is no case"),
        (("--data", str(tmp_path / "nowhere")), "there is no folder"),
    ):
        finished = atoll("bench", "sfpca", *arguments)
        assert finished.code == 3
        assert words in finished.err
