"""How the command fails: what it says, with which code it ends, and that it leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.example import STUDY, everything_in
from tests.support.running import atoll as command

import atoll.runtime.studies
from atoll import errors
from atoll.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"

Change = Callable[[Path], object]


def study(said: str, instead: str) -> Change:
    assert said in STUDY
    return lambda here: (here / "study.toml").write_text(STUDY.replace(said, instead))


def north(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    def rewrite(here: Path) -> None:
        change(pd.read_csv(here / "north.csv")).to_csv(here / "north.csv", index=False)

    return rewrite


def with_value(column: str, value: object) -> Change:
    def put(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[19, column] = value
        return frame

    return north(put)


BAD: dict[str, tuple[Change, int, str]] = {
    "nan in the last row": (with_value("d", np.nan), 3, r"north: column 'd' holds a missing value.*line 21"),
    "infinity": (with_value("b", np.inf), 3, r"north: column 'b' holds an infinite value"),
    "text": (with_value("a", "seven"), 3, r"north: column 'a' holds text at row 19 \(line 21 of north.csv\)"),
    "missing column": (north(lambda f: f.drop(columns="c")), 3, r"'c'.*(north|south)"),
    "extra column": (north(lambda f: f.assign(z=1.0)), 3, r"'z'"),
    "missing label": (north(lambda f: f.drop(columns="kind")), 3, r"north: there is no label column 'kind'"),
    "no such file": (lambda here: (here / "north.csv").unlink(), 3, r"north: there is no file"),
    "strange ending": (study("north.csv", "north.doc"), 3, r"north: north\.doc has an ending"),
    "k > d": (study("n_components = 2", "n_components = 9"), 2, r"n_components=9 must be between 1 and"),
    "unknown role": (
        study('role = "server"', 'role = "sever"'),
        4,
        r"study\.toml:16: .*unknown role 'sever'",
    ),
    "unknown output": (study("scores =", "loadings ="), 4, r"study\.toml:23: .*'loadings'"),
    "not TOML": (study("[release]", "[release"), 4, r"study\.toml:20: "),
    "one island": (
        study('name = "south"\nrole = "provider"', 'name = "south"\nrole = "consumer"'),
        4,
        "at least 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_and_nothing_is_written(folder: Path, name: str) -> None:
    change, code, message = BAD[name]
    change(folder)
    before = everything_in(folder)
    finished = command("run", "study.toml")
    assert finished.code == code, finished.err
    assert finished.out == ""
    error, *hint = finished.err.splitlines()
    assert error.startswith("error: ")
    assert re.search(message, error), error
    assert all(line.startswith("hint: ") for line in hint)
    assert "Traceback" not in finished.err
    assert everything_in(folder) == before


def test_errors_go_without_a_hint_only_where_nothing_can_be_said(folder: Path) -> None:
    BAD["unknown role"][0](folder)
    assert "hint: did you mean 'server'?" in command("review", "study.toml").err


def test_the_output_folder_is_tried_before_the_run(folder: Path) -> None:
    (folder / "taken").write_text("a file")
    finished = command("run", "study.toml", "--output", "taken")
    assert finished.code == 2
    assert "taken is a file" in finished.err
    assert (folder / "taken").read_text() == "a file"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("run",),
        ("run", "--nothing"),
        ("review", "a", "b"),
        ("review", "s.toml", "--columns", "x"),
    ],
)
def test_a_wrong_command_line_ends_with_two_and_points_to_help(arguments: tuple[str, ...]) -> None:
    finished = command(*arguments)
    assert finished.code == 2
    assert finished.err.startswith("error: ")
    assert "--help" in finished.err


# ---- every error has its documented exit code ----


def tree(kind: type[errors.AtollError]) -> list[type[errors.AtollError]]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in tree(child))]


def raised(kind: type[errors.AtollError]) -> errors.AtollError:
    return (
        kind("lab/consumer", "was unwell") if kind is errors.RoleFailed else kind("was unwell", hint="rest")
    )


@pytest.mark.parametrize("kind", tree(errors.AtollError))
def test_every_error_ends_with_its_code(
    monkeypatch: pytest.MonkeyPatch, kind: type[errors.AtollError]
) -> None:
    def fail(path: object) -> None:
        raise raised(kind)

    monkeypatch.setattr(atoll.runtime.studies, "open_study", fail)
    finished = command("review", "any.toml")
    assert finished.code == kind.exit_code
    assert "was unwell" in finished.err


def test_every_exit_code_is_documented_and_no_other() -> None:
    page = PAGE.read_text()
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    sections = {int(code) for code in re.findall(r"^## (\d+):", page, re.MULTILINE)}
    codes = {kind.exit_code for kind in tree(errors.AtollError)}
    assert rows == codes | {0, 130}
    assert sections == codes
    for kind in tree(errors.AtollError):
        assert f"`{kind.__name__}`" in page, kind


def test_an_unexpected_fault_is_short_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(atoll.runtime.studies, "open_study", fail)
    finished = command("review", "any.toml")
    assert finished.code == 1
    assert "ZeroDivisionError: by zero" in finished.err
    assert "atoll --debug" in finished.err
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "review", "any.toml"])


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atoll.runtime.studies, "open_study", fail)
    assert command("review", "any.toml").code == 130
