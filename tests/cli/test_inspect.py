"""``atoll inspect``: an owner looks at a table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from atoll.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for i in range(2):
        frame = pd.DataFrame(
            {"age": [30 + i, 41], "ward": ["a", None], "flat": [1.5, 1.5], "gone": [None, None]}
        )
        frame.to_csv(f"part-{i}.csv", index=False)
    return "part-*.csv"


def test_all_of_it_is_said(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "inspect", table, "--json"))
    assert (found["rows"], found["as_doubles"], found["scratch"]) == (4, 8 * 4 * 3, 0)
    age, ward, flat, gone = found["columns"]
    assert (age["kind"], age["low"], age["high"], age["missing"]) == ("int64", 30, 41, 0)
    assert (ward["levels"], ward["missing"], ward["low"]) == (1, 2, None)
    assert (flat["low"], flat["high"]) == (1.5, 1.5)
    assert (gone["missing"], gone["low"]) == (4, None)


@pytest.mark.parametrize("width", ["80", "140"])
def test_it_fits_the_screen(
    table: str, width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = run(capsys, "inspect", table).splitlines()
    assert all(len(line.rstrip()) <= int(width) for line in lines)
    assert lines[0] == "part-*.csv: 4 rows, 4 columns"
    assert any("flat" in line and "constant" in line for line in lines)
    assert any("gone" in line and "no value at all" in line for line in lines)
    assert lines[-1] == "For your eyes only: nothing was sent, nothing written."


def test_what_tells_rows_apart_is_called_an_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"who": ["P1", "P2", "P3"], "ward": ["a", "b", "a"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    lines = run(capsys, "inspect", str(tmp_path / "t.csv")).splitlines()
    assert ["no value is there twice" in line for line in lines if line.startswith(("who", "ward"))] == [
        True,
        False,
    ]
