"""``atoll init``: answers become a study that every other command reads; nothing is written otherwise."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.cli.example import everything_in

import atoll as package
from atoll.cli.init import written
from atoll.protocols import PROTOCOLS


def ask(folder: Path, *answers: str, file: str = "new.toml") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "atoll", "init", file],
        cwd=folder,
        input="".join(f"{answer}\n" for answer in answers),
        capture_output=True,
        text=True,
        check=False,
    )


ASSESSED = ("why", "", "Ministry", "office, lab", "", "a year", "me")


def test_answers_make_a_study(tmp_path: Path) -> None:
    done = ask(
        tmp_path,
        *('icu "é" \\', "pppca", "a, b,ä b", "registry", "university", "3", ""),
        *("a.csv", "", "ä.csv"),
        *("", "consumer, a", "", "consumer", ""),
        *ASSESSED,
    )
    assert done.returncode == 0, done.stderr
    assert "wrote new.toml" in done.stdout
    assert "review new.toml" in done.stdout
    document = tomllib.loads((tmp_path / "new.toml").read_text(encoding="utf-8"))
    assert document["study"] == {"name": 'icu "é" \\', "analysis": "pca", "protocol": "pppca"}
    assert document["parameters"] == {"n_components": 3}
    assert [party["name"] for party in document["party"]] == ["a", "b", "ä b", "registry", "university"]
    assert document["release"] == {
        "components": ["provider"],
        "explained_variance": ["consumer", "a"],
        "scores": ["consumer"],
    }
    assert document["assessment"] == {
        "purpose": "why",
        "controller": "Ministry",
        "processors": ["office", "lab"],
        "retention": "a year",
        "contact": "me",
    }
    assert document["local"] == {"data": {"a": "a.csv", "ä b": "ä.csv"}}
    assert package.load_study(tmp_path / "new.toml").assessment.purpose == "why"
    assert everything_in(tmp_path) == {"new.toml"}


def test_what_cannot_be_is_said_and_asked_again(tmp_path: Path) -> None:
    done = ask(
        tmp_path,
        *("s", "nothing", "1", "one", "one, two", "office", "", "x", "0", "", "", ""),
        *("", "", "", ""),  # releases of the first try
        *ASSESSED,
        *("2", "", "", "", "", ""),  # once more: components, epsilon, releases
    )
    assert done.returncode == 0, done.stderr
    for said in ("a number from 1 to", "at least 2 names", "a whole number", "there can be no such study"):
        assert said in done.stderr
    assert package.load_study(tmp_path / "new.toml").parameters["n_components"] == 2


def test_a_private_study_is_asked_for_what_it_needs(tmp_path: Path) -> None:
    done = ask(
        tmp_path,
        *("s", "dpdpca", "a, b, c", "relay", "lab", "", "1", "", "2", "", "", "", "ia", "ib", "ic"),
        *("owner", "", ""),
        *ASSESSED,
    )
    assert done.returncode == 0, done.stderr
    study = package.load_study(tmp_path / "new.toml")
    assert (study.parameters["epsilon"], study.parameters["delta"], study.parameters["row_norm"]) == (
        1.0,
        1e-5,
        2.0,
    )
    document = tomllib.loads((tmp_path / "new.toml").read_text())
    assert document["local"]["identities"] == {"a": "ia", "b": "ib", "c": "ic"}


def test_answers_that_end_too_early_write_nothing(tmp_path: Path) -> None:
    done = ask(tmp_path, "s", "1", "a, b")
    assert done.returncode == 130
    assert everything_in(tmp_path) == set()


def test_no_file_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text("mine")
    done = ask(tmp_path)
    assert done.returncode == 2
    assert "new.toml is there already" in done.stderr
    assert (tmp_path / "new.toml").read_text() == "mine"
    assert ask(tmp_path, file="no/where.toml").returncode == 2


@pytest.mark.parametrize("value", ['"', "\\", "\n", "\t", "\x7f", "\x00", "ß", "😀", "'", "a.b", ""])
def test_any_text_comes_back(value: str) -> None:
    tables = {"study": {"name": value}, "local": {"data": {value: value}}, "party": [{"name": value}]}
    assert tomllib.loads(written(tables)) == tables


def test_every_way_to_a_pca_is_offered_and_no_other_analysis(tmp_path: Path) -> None:
    """Of others it could not ask what they need: the columns of synthetic data, a regression's target."""
    offered = ask(tmp_path, "s").stderr
    for name in PROTOCOLS:
        protocol = PROTOCOLS[name]
        assert (protocol.title in offered) == (not protocol.follows and protocol.analysis == "pca")
