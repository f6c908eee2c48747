"""A decision is about the study whose page its owner read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from atoll.errors import ParameterError
from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import Release, Stated
from atoll.privacy.ledger import Ledger
from atoll.runtime.nats.site import Site
from atoll.web import app, views


class Posted:
    """A form as it is sent."""

    def __init__(self, text: str) -> None:
        self.path_params = {"name": "run"}
        self._text = text

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._text.encode()


def test_a_form_of_another_study_decides_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    folder = SimpleNamespace(name="run", state=lambda: SimpleNamespace(digest="a" * 64))
    monkeypatch.setattr(app, "find_run", lambda *_: (folder,))
    monkeypatch.setattr(app, "asked", lambda _, wish: asked.append(wish))
    board = app.Board(Site.make(tmp_path / "site"), "/token")
    for other in ("does=approve&digest=" + "b" * 64, "does=approve"):
        with pytest.raises(ParameterError, match="the form is of another study"):
            asyncio.run(board.decide(Posted(other)))
    assert asked == []
    asyncio.run(board.decide(Posted("does=approve&digest=" + "a" * 64)))
    assert [(wish.does, wish.run) for wish in asked] == [("approve", "run")]


def test_a_decision_is_what_the_form_says(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    digest = "a" * 64
    folder = SimpleNamespace(name="run", state=lambda: SimpleNamespace(digest=digest))
    monkeypatch.setattr(app, "find_run", lambda *_: (folder,))
    monkeypatch.setattr(app, "asked", lambda _, wish: asked.append(wish))
    board = app.Board(Site.make(tmp_path / "site"), "/token")
    for form in (
        "does=approve&data_set=icu",
        "does=approve&data_set=",
        "does=decline&because=no+" + "x" * 600,
    ):
        answer = asyncio.run(board.decide(Posted(f"{form}&digest={digest}")))
        assert (answer.status_code, answer.headers["location"]) == (303, "/token/")
    assert [(wish.does, wish.data_set, len(wish.words)) for wish in asked] == [
        ("approve", "icu", 0),
        ("approve", None, 0),
        ("decline", None, 500),
    ]
    assert {wish.run for wish in asked} == {"run"}
    for form, words in (
        ("does=perhaps", "a decision is approve or decline"),
        ("", "a decision is approve or decline"),
        ("does=approve&because=" + "x" * 64_000, "the form is too long"),
    ):
        with pytest.raises(ParameterError, match=words):
            asyncio.run(board.decide(Posted(f"{form}&digest={digest}")))
    assert len(asked) == 3


def test_what_was_spent_is_shown_at_the_budgets_delta() -> None:
    with Ledger() as book:
        book.set_budget("icu", 4.0, 1e-6)
        stated = Stated(0.5, 1e-3)
        book.settle(Release("icu", "one", {"a": Spent(0.25)}, stated=stated), "a")
        book.set_budget("ward", 2.0)
        icu, ward = map(views._spending, book.show())
    assert icu.bar.of == 4.0
    assert icu.bar.at == pytest.approx(1.061, abs=1e-3)
    assert icu.bar.words == "epsilon 1.061 of 4 spent, at delta 1e-06"
    assert (icu.releases, icu.exact) == (1, 0)
    assert ward.bar == (0.0, 2.0, "epsilon 0 of 2 spent, at delta 0")
    assert ward.words == ["nothing was spent on it"]
