"""``atoll ledger history`` and ``allow``: studies that differ by a few, and the owner's word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.running import PARTIES, atoll

STUDY = """\
[study]
name = "exact"
protocol = "pppca"
[parameters]
n_components = 1
"""
STUDY += PARTIES
STUDY += """\
[release]
components = ["consumer"]
[local]
ledger = "ledger.db"
identities = { north = "north 2024", south = "south 2024" }
data = { north = "north.csv", south = "south.csv" }
"""


def test_a_study_that_differs_by_a_row_is_refused_until_its_owners_allow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    for name in ("north", "south"):
        pd.DataFrame(draw.normal(size=(40, 5)), columns=list("abcde")).to_csv(f"{name}.csv", index=False)
    Path("study.toml").write_text(STUDY)
    assert atoll("ledger", "init", "--ledger", "ledger.db").code == 0
    first = atoll("run", "study.toml", "--output", "one")
    assert first.code == 0, first.err
    pd.read_csv("north.csv")[1:].to_csv("north.csv", index=False)
    refused = atoll("run", "study.toml", "--output", "two")
    assert refused.code != 0
    assert "differs by 1 row(s) from one that was run on the data set 'north 2024'" in " ".join(
        refused.err.split()
    )
    assert not Path("two").exists()
    known = json.loads(atoll("ledger", "history", "north 2024", "--ledger", "ledger.db", "--json").out)
    assert [(one["rows"], one["columns"], one["components"]) for one in known] == [(40, 5, 1)]
    assert "64 digits" in atoll("ledger", "allow", "north 2024", "abc", "--ledger", "ledger.db").err
    assert atoll("ledger", "allow", "north 2024", known[0]["study"], "--ledger", "ledger.db").code == 0
    allowed = atoll("run", "study.toml", "--output", "two")
    assert allowed.code == 0, allowed.err
    assert "39" in atoll("ledger", "history", "north 2024", "--ledger", "ledger.db").out
