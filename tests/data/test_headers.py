"""Names of columns are sent to all parties: what cannot be a name is refused before anything leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import atoll
from atoll.data.columns import column_names
from atoll.data.island import Island
from atoll.errors import DataError, DataWarning


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "ward.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("header", ["81,172.5,1", "age,172.5,stay", "age,-3e5,stay", "a,nan,b", "81,0,1"])
def test_a_row_in_the_place_of_names_is_refused_and_not_quoted(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, header + "\n44,180.25,0\n39,175,1\n")
    with pytest.raises(DataError, match=r"the name of column [12] of ward\.csv is a number") as raised:
        Island.from_csv(path)
    for value in ("81", "172", "3e5"):
        assert value not in str(raised.value)


def test_a_person_does_not_travel_as_a_name(tmp_path: Path) -> None:
    paths = {}
    for name in ("north", "south"):
        paths[name] = tmp_path / f"{name}.csv"
        np.savetxt(paths[name], np.random.default_rng(1).normal(size=(20, 3)), delimiter=",")
    with pytest.raises(DataError, match="is a number"):
        atoll.PCA(1).fit(paths)


def test_names_that_only_count_are_names(tmp_path: Path) -> None:
    assert Island.from_csv(written(tmp_path, "0,1,2\n1,2,3\n")).columns == ("0", "1", "2")


@pytest.mark.parametrize("header", ["age,dose,age", "age,age,dose"])
def test_a_name_that_two_columns_have_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(DataError, match=r"columns 1 and [23] of ward\.csv have the same name"):
        Island.from_csv(written(tmp_path, header + "\n1,2,3\n"))


def test_a_column_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"column 2 of ward\.csv has no name"):
        Island.from_csv(written(tmp_path, "age,,dose\n1,2,3\n"))


def test_an_index_without_a_name_is_left_out_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "ward.csv"
    frame = pd.DataFrame({"age": [4.0, 5.0], "dose": [1.0, 2.0]}, index=[70001, 70002])
    frame.to_csv(path)
    with pytest.warns(DataWarning, match="taken for an index and left out"):
        island = Island.from_csv(path)
    assert island.columns == ("age", "dose")
    assert np.array_equal(island.features(island.columns), frame.to_numpy())
    assert column_names(path) == ("age", "dose")


def test_a_frame_may_count_its_columns() -> None:
    assert Island.from_frame(pd.DataFrame(np.eye(3))).columns == ("0", "1", "2")


def test_a_row_that_pandas_took_for_names_is_refused_too(tmp_path: Path) -> None:
    path = written(tmp_path, "81,172.5,1\n44,180.25,0\n39,175,1\n")
    with pytest.raises(DataError, match=r"north: the name of column 1 of the frame is a number") as raised:
        atoll.PCA(1).fit({"north": pd.read_csv(path), "south": pd.read_csv(path)})
    assert "81" not in str(raised.value)
    with pytest.raises(DataError, match="the name of column 2 of the array is a number"):
        Island.from_array(np.eye(2), columns=["age", "172.5"])


def test_an_index_that_pandas_read_as_a_column_is_left_out_with_a_word(tmp_path: Path) -> None:
    """Patient numbers, taken for a column, would be most of the first component."""
    path = tmp_path / "ward.csv"
    frame = pd.DataFrame({"age": [4.0, 5.0], "dose": [1.0, 2.0]}, index=[70001, 70002])
    frame.to_csv(path)
    with pytest.warns(DataWarning, match="the first column of the frame has no name"):
        island = Island.from_frame(pd.read_csv(path))
    assert np.array_equal(island.features(island.columns), frame.to_numpy())


def test_a_frame_with_two_columns_of_one_name_is_refused() -> None:
    frame = pd.DataFrame(np.eye(3), columns=["age", "dose", "age"])
    with pytest.raises(DataError, match="columns 1 and 3 of the frame have the same name"):
        Island.from_frame(frame)


def test_the_command_line_says_it_as_a_warning(tmp_path: Path) -> None:
    for name in ("north", "south"):
        pd.DataFrame(np.random.default_rng(3).normal(size=(40, 3)), columns=list("abc")).to_csv(
            tmp_path / f"{name}.csv"
        )
    study = tmp_path / "study.toml"
    study.write_text(
        '[study]\nname = "s"\nprotocol = "pppca"\n[parameters]\nn_components = 1\naccept_determined = true\n'
        '[[party]]\nname = "north"\nrole = "provider"\n[[party]]\nname = "south"\nrole = "provider"\n'
        '[[party]]\nname = "office"\nroles = ["server", "consumer"]\n[release]\ncomponents = ["consumer"]\n'
        '[local]\ndata = { north = "north.csv", south = "south.csv" }\n'
    )
    command = [sys.executable, "-m", "atoll", "run", str(study), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "warning: north: the first column of north.csv has no name" in " ".join(done.stderr.split())
    assert "site-packages" not in done.stderr
    assert "headers.py" not in done.stderr
