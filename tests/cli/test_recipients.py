"""A run writes a folder for each party that receives something, with that and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.example import STUDY, everything_in
from tests.support.running import atoll

import atoll as package
from atoll.cli.outputs import LIST, file_name, folder_names
from atoll.errors import NotReleased

BASE = "north-south"


def files(folder: str) -> set[str]:
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def test_everybody_gets_what_is_released_to_them_and_no_more(folder: Path) -> None:
    assert atoll("run", "study.toml").code == 0
    lab = {f"lab/{BASE}{end}" for end in (".atoll", "-projections.csv", "-projections.png", "-scree.png")}
    assert files("atoll-run") == lab | {
        f"north/{BASE}.atoll",
        f"south/{BASE}.atoll",
        f"{BASE}{LIST}",
    }
    results = {who: package.load_result(f"atoll-run/{who}/{BASE}.atoll") for who in ("north", "south", "lab")}
    model = {"components", "mean", "scale", "columns"}
    for island in ("north", "south"):
        assert set(results[island].outputs) == model
        assert {name.rpartition("/")[0] for name in results[island].transcript.roles} == {island}
        with pytest.raises(NotReleased, match="lab"):
            results[island]["scores"]
    variances = {"explained_variance", "total_variance", "noise_variance"}
    assert set(results["lab"].outputs) == model | variances | {"scores", "labels", "ids"}


def test_the_list_says_who_got_what(folder: Path) -> None:
    printed = json.loads(atoll("run", "study.toml", "--json").out)["recipients"]
    listed = json.loads((folder / "atoll-run" / f"{BASE}{LIST}").read_text())
    assert listed["digest"] == package.load_study("study.toml").digest
    assert set(listed["recipients"]) == set(printed) == {"north", "south", "lab"}
    for party, one in listed["recipients"].items():
        assert one["released"] == printed[party]["released"]
        assert [f"atoll-run/{path}" for path in one["files"]] == printed[party]["files"]
        assert all((folder / "atoll-run" / path).is_file() for path in one["files"])


def test_files_of_an_earlier_release_do_not_stay_beside_new_ones(folder: Path) -> None:
    atoll("run", "study.toml", "-o", "out")
    (folder / "out" / "lab" / "notes.txt").write_text("mine")
    (folder / "study.toml").write_text(
        STUDY.replace('scores = ["consumer"]\n', "").replace('["provider", "consumer"]', '["consumer"]')
    )
    assert atoll("run", "study.toml", "-o", "out", "-q").code == 0
    left = {f"lab/{BASE}.atoll", f"lab/{BASE}-scree.png", "lab/notes.txt", f"{BASE}{LIST}"}
    assert files("out") == left
    assert not (folder / "out" / "north").exists()  # it gets nothing any more


def test_results_of_another_study_stay(folder: Path) -> None:
    atoll("run", "study.toml", "-o", "out")
    before = files("out")
    (folder / "study.toml").write_text(STUDY.replace("north south/..", "other"))
    assert atoll("run", "study.toml", "-o", "out", "-q").code == 0
    assert before < files("out")


def test_a_list_cannot_point_elsewhere(folder: Path) -> None:
    """Only files that a run of the study could have written are taken away, whatever the list says."""
    atoll("run", "study.toml", "-o", "out")
    mine = [folder / f"{BASE}.txt", folder / "out" / f"{BASE}.txt", folder / "out" / "lab" / "mine.txt"]
    for path in mine:
        path.write_text("mine")
    listed = {
        "recipients": {
            "x": {"files": [f"../{BASE}.txt", f"{BASE}.txt", "lab/mine.txt", f"lab/../{BASE}.txt"]}
        }
    }
    for text in (json.dumps(listed), json.dumps({"recipients": ["x"]}), "{"):
        (folder / "out" / f"{BASE}{LIST}").write_text(text)
        assert atoll("run", "study.toml", "-o", "out", "-q").code == 0
        assert all(path.read_text() == "mine" for path in mine)


def test_a_run_that_fails_takes_nothing_away(folder: Path) -> None:
    atoll("run", "study.toml", "-o", "out")
    before = everything_in(folder)
    (folder / "study.toml").write_text(STUDY.replace("n_components = 2", "n_components = 9"))
    assert atoll("run", "study.toml", "-o", "out").code == 2
    assert everything_in(folder) == before


def test_names_of_parties_are_no_paths_and_never_meet() -> None:
    assert folder_names(dict.fromkeys(("a b", "a-b", "A-B", "..", "."))) == [
        "a-b",
        "a-b-2",
        "A-B-3",
        "party",
        "party-2",
    ]
    assert file_name("../../x") == "x"


def test_a_study_that_releases_nothing_says_so(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.split("[release]")[0] + "[local]" + STUDY.split("[local]")[1])
    assert "the study releases nothing" in atoll("run", "study.toml").out
