"""Records: every draw is made once, kept, and played back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.runtime.nats.test_receipts import STARTS

from atoll.codec import Array
from atoll.errors import ResumeRefused, RunError
from atoll.network import KEPT_BYTES
from atoll.protocols.own import Own
from atoll.runtime.journal import Journal
from atoll.runtime.nats.network import JournalRecord
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState
from atoll.runtime.records import MemoryRecord
from atoll.study.address import Address


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


A, B = Address("a", "provider"), Address("b", "provider")


def test_a_role_that_runs_again_sends_what_it_sent() -> None:
    record = MemoryRecord()
    record.sent(A, b"one")
    record.sent(B, b"two")
    assert record.sendings == [(A, b"one"), (B, b"two")]
    again = MemoryRecord(record.drawn, record.sendings)
    again.sent(A, b"one")
    again.sent(B, b"two")
    again.sent(A, b"three")  # beyond what was sent, it goes on
    assert again.sendings == [(A, b"one"), (B, b"two"), (A, b"three")]


@pytest.mark.parametrize(("to", "digest"), [(A, b"other"), (B, b"one")])
def test_other_bytes_or_another_receiver_are_refused(to: Address, digest: bytes) -> None:
    again = MemoryRecord({}, [(A, b"one"), (B, b"two")])
    with pytest.raises(RunError, match=f"what would be sent to {to} is not what the recorded run sent"):
        again.sent(to, digest)
    again.sent(A, b"one")  # what was refused did not count as sent


def test_a_part_of_a_record_has_tags_of_its_own_and_one_order_of_sendings() -> None:
    record = MemoryRecord()
    first, second = record.under("session 0"), record.under("session 1")
    first("key", lambda: b"1")
    second("key", lambda: b"2")
    assert record.drawn == {"session 0 key": b"1", "session 1 key": b"2"}
    second.sent(A, b"x")
    first.under("deep").sent(B, b"y")
    assert record.sendings == [(A, b"x"), (B, b"y")]


def test_what_a_part_of_a_record_promises_is_on_the_whole_records_disk() -> None:
    """Charged in a ledger by a drawn name and forgotten, a release would be drawn and charged again."""
    calls: list[str] = []

    class Kept(MemoryRecord):
        def sync(self) -> None:
            calls.append("sync")

    record = Kept()
    for part in (record, record.under("session 0"), record.under("a").under("b")):
        part.sync()
    assert calls == ["sync"] * 3


def test_between_machines_a_tag_is_drawn_under_once_and_nothing_after_the_end(tmp_path: Path) -> None:
    start = STARTS["hospital-0"]
    journal = Journal(tmp_path, start.journal_key, header_of(start, Own()), durable=False)
    state = RunState(start, journal)
    role = state.mine[0]
    record = JournalRecord(state, role)
    assert record("mask", lambda: b"first") == b"first"
    with pytest.raises(RunError, match="'mask' was asked for twice"):
        record("mask", lambda: b"second")
    again = JournalRecord(state, role)  # after a restart
    assert again("mask", lambda: b"third") == b"first"
    state.finished = True
    with pytest.raises(ResumeRefused, match="the run is over, but its role now draws 'other'"):
        again("other", lambda: b"fourth")


def test_what_was_found_once_is_what_a_role_that_runs_again_goes_on_with() -> None:
    first = MemoryRecord()
    assert np.array_equal(first.kept("point", np.array([1.0, 2.0])), [1.0, 2.0])
    again = MemoryRecord(first.drawn, may_draw=False)
    assert np.array_equal(again.kept("point", np.array([1.0, 2.0 + 2.0**-51])), [1.0, 2.0])
    with pytest.raises(RunError, match="asked for twice"):
        again.kept("point", np.array([1.0]))


def test_the_end_of_an_iteration_is_kept_too() -> None:
    first = MemoryRecord()
    assert first.kept("point", None, Array | None) is None
    assert MemoryRecord(first.drawn).kept("point", np.ones(2), Array | None) is None


def test_what_is_too_large_for_a_record_is_found_anew() -> None:
    large = np.zeros(KEPT_BYTES // 8)
    record = MemoryRecord()
    assert record.kept("all", large) is large
    assert record.drawn == {"kept all": b""}
    other = large + 1.0
    assert MemoryRecord(record.drawn).kept("all", other) is other
