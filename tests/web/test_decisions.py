"""A decision is about the study whose page its owner read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from atoll.errors import ParameterError
from atoll.runtime.nats.site import Site
from atoll.web import app


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
