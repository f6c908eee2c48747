"""``atoll check``: a study rehearsed on the tables' own columns and types, before any row is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.running import PARTIES, atoll

STUDY = """\
[study]
name = "wards"
protocol = "pppca"
[parameters]
n_components = 1
label = "outcome"
[table]
exclude = ["admitted"]
categorical = ["ward"]
missing = "mean"
[guards]
min_rows = 70
min_islands = 2
"""
STUDY += PARTIES
STUDY += """\
[release]
components = ["consumer"]
table = ["consumer"]
[local.data]
north = "north.csv"
south = "south.parquet"
"""


def wards(rows: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": np.arange(rows) + 0.5,
            "pulse": np.arange(rows) % 7,
            "ward": ["a", "b"] * (rows // 2),
            "admitted": pd.date_range("2024-01-01", periods=rows),
            "outcome": ["home", "stay"] * (rows // 2),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    wards(4).to_csv("north.csv", index=False)  # fewer rows than the study asks for: rows do not matter here
    wards(6).to_parquet("south.parquet")
    Path("study.toml").write_text(STUDY)
    return tmp_path


def test_columns_and_types_are_the_tables_own(folder: Path) -> None:
    said = json.loads(atoll("check", "study.toml", "--json").out)
    assert said["columns"] == ["age", "pulse", "ward[level 1]", "ward[level 2]"]
    assert said["islands"]["south"]["admitted"] == "dates or times"
    assert said["islands"]["north"]["ward"] == "text"
    assert said["messages"] > 10


def test_the_screen_says_what_was_found(folder: Path) -> None:
    said = " ".join(atoll("check", "study.toml").out.split())
    assert "All agreed on 4 columns: age, pulse, ward[level 1], ward[level 2]." in said
    assert "It works on made-up rows" in said
    assert "no row was used" in said


def test_a_table_that_is_not_here_is_taken_to_be_like_another(folder: Path) -> None:
    Path("south.parquet").unlink()
    assert "as north's" in atoll("check", "study.toml").out


def test_text_where_numbers_are_needed_is_found_before_a_row_is_used(folder: Path) -> None:
    Path("study.toml").write_text(STUDY.replace('categorical = ["ward"]\n', ""))
    done = atoll("check", "study.toml")
    assert done.code != 0
    assert "column 'ward' holds text" in done.err


def test_a_column_that_a_partner_lacks_is_found(folder: Path) -> None:
    wards(6).rename(columns={"pulse": "Pulse"}).to_parquet("south.parquet")
    done = atoll("check", "study.toml")
    assert done.code != 0
    assert "south lacks 'pulse'" in done.err


def test_a_damaged_table_is_an_error_with_a_hint(folder: Path) -> None:
    Path("south.parquet").write_bytes(Path("south.parquet").read_bytes()[:-20])
    done = atoll("check", "study.toml")
    assert done.code != 0
    assert "hint:" in done.err


def test_every_column_is_a_number_or_another(folder: Path) -> None:
    rows = [line.split() for line in atoll("check", "study.toml").out.splitlines()]
    (north,) = (row for row in rows if row[:2] == ["north", "north.csv"])
    (south,) = (row for row in rows if row[:2] == ["south", "south.parquet"])
    assert north[2:4] == south[2:4] == ["5", "2"]
    for row in (north, south):
        assert {"ward", "admitted"} <= {word.strip("(),") for word in row[4:]}
