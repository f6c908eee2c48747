"""Help fits a narrow screen and shows no word of Python's; steps of a run have plain names."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from tests.support.running import atoll

from atoll.cli.app import app
from atoll.cli.progress import described


def commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", {})
    return [path, *(found for name, one in inner.items() for found in commands(one, (*path, name)))]


ALL = commands(typer.main.get_command(app))


def test_all_commands_are_found() -> None:
    assert {("review",), ("ledger", "set-budget"), ("bench", "sums")} < set(ALL)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_is_narrow_and_plain(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    finished = atoll(*path, "--help")
    assert (finished.code, finished.err) == (0, "")
    assert max(len(line) for line in finished.out.splitlines()) <= 80
    assert not re.search(r"<\w|bool|list\[|Optional", finished.out)


@pytest.mark.parametrize("path", [(), ("ledger",), ("bench",)], ids=" ".join)
def test_a_group_alone_prints_its_help(path: tuple[str, ...]) -> None:
    assert atoll(*path) == atoll(*path, "--help")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("north/provider: gen_share", "north/provider: cut into shares"),
        ("north/provider: sha256", "north/provider: check what is sent"),
        ("a/provider: encode_right", "a/provider: prepare the own matrix"),
        ("office/server: covariance", "office/server: covariance"),
        ("north/provider: some_new_step", "north/provider: some new step"),
        ("waiting", "waiting"),
    ],
)
def test_steps_are_shown_in_plain_words(said: str, shown: str) -> None:
    assert described(said) == shown
