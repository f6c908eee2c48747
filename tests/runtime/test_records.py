"""Records: every draw is made once, kept, and played back."""

from __future__ import annotations

import pytest

from atoll.errors import RunError
from atoll.runtime.records import MemoryRecord


def test_a_tag_is_drawn_under_once() -> None:
    """A second draw under one tag is a second mask over one value."""
    record = MemoryRecord()
    assert record("mask", lambda: b"first") == b"first"
    with pytest.raises(RunError, match="'mask' was asked for twice"):
        record("mask", lambda: b"second")
    assert record.drawn == {"mask": b"first"}


def test_what_was_drawn_is_played_back_and_not_drawn_again() -> None:
    drawn: list[str] = []

    def draw() -> bytes:
        drawn.append("again")
        return b"other"

    record = MemoryRecord({"mask": b"first"})
    assert record("mask", draw) == b"first"
    assert drawn == []
    with pytest.raises(RunError, match="asked for twice"):
        record("mask", draw)


def test_a_replay_makes_nothing_up() -> None:
    record = MemoryRecord({"mask": b"first"}, may_draw=False)
    with pytest.raises(RunError, match="holds no draw 'noise'"):
        record("noise", lambda: b"made up")


def test_a_record_shows_how_many_draws_it_holds_and_none_of_them() -> None:
    record = MemoryRecord({"key": b"very secret"})
    assert repr(record) == "<MemoryRecord: 1 draws>"
