"""What a party does with words of one that left, and with the word that the run ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runtime.nats.test_receipts import STARTS
from tests.support.fuzzing import Target

from atoll.errors import DataError, MessageError, PartyLeft
from atoll.protocols.own import Own
from atoll.runtime import entries
from atoll.runtime.journal import Journal
from atoll.runtime.nats import hearing, link, wire
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState
from atoll.runtime.nats.wire import Sealer

NAMES = ("teller", "other", "gone")


def test_nothing_of_a_party_that_left_is_taken() -> None:
    """Its departure stands in all inboxes: a message after it would be in some of them."""
    own, left = object(), SimpleNamespace(gone=True)
    with pytest.raises(MessageError, match="nothing is due from there"):
        hearing.Hearing._handle_message(SimpleNamespace(_own=own), left, None, memoryview(b""))  # type: ignore[arg-type]


def test_the_end_of_a_run_is_passed_on_once_to_all_others_that_are_there() -> None:
    """A party that is done already waits for this one, and may not hear of the one that failed."""
    teller, other, gone = (SimpleNamespace(name=name, gone=name == "gone", first=0) for name in NAMES)
    written, posted, failed = list[Any](), list[Any](), list[Any]()
    here: Any = SimpleNamespace(
        done=False,
        told=False,
        state=SimpleNamespace(finished=False, addresses=["a/provider", "b/server"]),
        journal=SimpleNamespace(append=written.append),
        near=[teller, other, gone],
        _post=lambda *given: posted.append(given),
        _fail=failed.append,
    )
    status: Any = SimpleNamespace(ready=True, role=1, error="DataError")
    for _ in range(2):
        hearing.Hearing._handle_abort(here, teller, None, status)  # type: ignore[arg-type]
    assert posted == [(other, wire.ABORT, b"", "DataError", 1)]
    assert written == [entries.Aborted("DataError", 1)]
    assert len(failed) == 1


def test_a_party_that_has_ended_has_ended_after_a_restart_too(tmp_path: Path) -> None:
    start = STARTS["hospital-0"]
    header = header_of(start, Own())
    first = Journal(tmp_path, start.journal_key, header, durable=False)
    place = next(iter(RunState(start, first).peers))
    first.append(entries.PeerEnded(place))
    first.sync()
    first.close()
    again = Journal(tmp_path, start.journal_key, header, durable=False)
    assert {p for p, peer in RunState(start, again).peers.items() if peer.ended} == {place}
    again.close()


def test_a_frame_is_between_a_role_of_its_sender_and_one_of_this_party() -> None:
    """Else a party speaks for another's roles, under its own key."""
    peer, other, own = object(), object(), object()
    here: Any = SimpleNamespace(_own=own, state=SimpleNamespace(peer_of={3: peer, 4: other}, mine=(0, 1)))

    def check(of: object, sender: int, to: int) -> None:
        hearing.Hearing._check_roles(here, of, SimpleNamespace(sender=sender, to=to))  # type: ignore[arg-type]

    check(peer, 3, 1)
    check(own, 0, 1)
    for of, sender, to in ((peer, 4, 1), (peer, 5, 1), (peer, 0, 1), (own, 3, 1), (peer, 3, 2)):
        with pytest.raises(MessageError, match="between roles of other parties"):
            check(of, sender, to)


def test_who_was_never_there_does_not_leave() -> None:
    here: Any = SimpleNamespace(state=SimpleNamespace(gone={7}, me=0, peers={7: None}))
    hearing.Hearing._leave(here, 7)  # said twice
    with pytest.raises(MessageError, match="somebody left who was never there"):
        hearing.Hearing._leave(here, 8)
    with pytest.raises(PartyLeft, match="the run went on without this party"):
        hearing.Hearing._leave(here, 0)


# ---- what a partner says of itself ----


def told(target: Target, kind: int, *, by: Sealer | None = None, **said: Any) -> bytes:
    """A status from the partner, which has sent and received nothing yet."""
    peer = target.peer
    counts = {"sent": len(peer.into), "seen": len(peer.out), "got": len(peer.out), "has": len(peer.out)}
    nothing = {name: (0,) * count for name, count in (counts | {"acked": len(peer.into)}).items()}
    status = wire.Status(said.pop("number", 1), **(nothing | said))
    return (by or target.sealer).status(kind, target.sender, target.to, status)


def started_again(target: Target) -> Sealer:
    """Frames of a later start of the partner's node."""
    rude, boot = target.study_starts["island-0"], b"c" * 16
    return Sealer(RunKeys(rude).sending("receiver", boot), target.run, target.peer.place, boot)


def test_an_answer_is_to_the_question_that_is_open(tmp_path: Path) -> None:
    """An old one, sent again by the hub, says what was true before: an old journal would be gone on from."""
    target = Target(tmp_path)
    target.link._post = lambda *_: None  # type: ignore[method-assign]
    target.peer.nonce = b"open"
    journal = target.journal
    known = {"peer_number": journal.number, "peer_boot": journal.boot}
    for nonce in (b"", b"another"):
        target.feed(told(target, wire.STATE, nonce=nonce, **known))
        assert not target.peer.answered
    target.feed(told(target, wire.STATE, nonce=b"open", **known))
    assert target.peer.answered
    target.peer.answered = False
    target.feed(told(target, wire.STATE, nonce=b"open", **known))  # the same once more
    target.feed(told(target, wire.STATE, nonce=b"", **known))
    assert not target.peer.answered


def test_an_answer_that_does_not_know_this_start_is_none(tmp_path: Path) -> None:
    """A first start is answered once its name is on the other's disk: two copies are told apart by it."""
    target = Target(tmp_path)
    target.peer.nonce = b"open"
    target.link._is_first = True  # among many
    target.feed(told(target, wire.STATE, nonce=b"open", peer_number=0, peer_boot=b""))
    assert not target.peer.answered
    boot = target.journal.boot
    target.feed(told(target, wire.STATE, nonce=b"open", peer_number=1, peer_boot=boot))
    assert target.peer.answered


def test_older_news_is_no_news(tmp_path: Path) -> None:
    target = Target(tmp_path)
    first, second = told(target, wire.NEWS, waiting=True), told(target, wire.NEWS, waiting=False)
    target.feed(second)
    assert not target.peer.waits
    target.feed(first)
    assert not target.peer.waits
    target.feed(told(target, wire.NEWS, waiting=True))
    assert target.peer.waits


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({"ready": True}, True),
        ({"ready": False}, False),  # nobody has told it yet what they know of it
        ({"ready": True, "sent": 0}, False),  # it sent less than has arrived here: an old journal
        ({"ready": True, "number": 1}, False),  # no later than the one that counts
    ],
)
def test_a_later_start_counts_once_it_may_go_on(said: dict[str, Any], counts: bool, tmp_path: Path) -> None:
    target = Target(tmp_path)
    target.link._post = lambda *_: None  # type: ignore[method-assign]
    for into in target.peer.into.values():
        into.seen = 1
    sent = (said.pop("sent", 1),) * len(target.peer.into)
    frame = told(target, wire.NEWS, by=started_again(target), sent=sent, **({"number": 2} | said))
    target.feed(frame)
    assert (target.peer.boot != target.boot) == counts


# ---- who may leave, and who hears of it when ----


@pytest.mark.parametrize(
    ("place", "gone", "may"),
    [
        (1, set(), True),
        (2, set(), True),
        (1, {2}, False),  # one may leave, and one has
        (2, {2}, True),  # it has left already
        (3, set(), False),  # who judges is one of those that are needed
        (4, set(), False),  # no contributor: nobody else can do its part
    ],
)
def test_no_more_leave_than_the_protocol_can_do_without(place: int, gone: set[int], may: bool) -> None:
    judge = SimpleNamespace(party=3, contributors={1, 2, 3}, may_leave=1)
    here: Any = SimpleNamespace(_judge=judge, state=SimpleNamespace(gone=gone))
    assert link.Link._may_go(here, SimpleNamespace(place=place)) is may  # type: ignore[arg-type]
    here._judge = None
    assert not link.Link._may_go(here, SimpleNamespace(place=place))  # type: ignore[arg-type]


def test_a_departure_is_on_disk_before_anybody_is_told() -> None:
    """Who judges and is killed in between must not judge otherwise when it comes back."""
    course: list[str] = []

    async def beside(work: Any) -> None:
        work()

    here: Any = SimpleNamespace(
        _leave=lambda place: course.append(f"gone {place}"),
        _beside=beside,
        journal=SimpleNamespace(sync=lambda: course.append("on disk")),
        state=SimpleNamespace(gone={7, 2}, peers={1: "one", 2: "two"}),
        _post=lambda peer, _: course.append(f"told {peer}"),
    )
    asyncio.run(link.Link._declare(here, SimpleNamespace(place=7)))  # type: ignore[arg-type]
    assert course == ["gone 7", "on disk", "told one", "told two"]
    assert here._declared == (2, 7)


def test_an_error_is_on_disk_before_anybody_is_told_and_its_text_is_not() -> None:
    course: list[Any] = []

    async def beside(work: Any) -> None:
        work()

    async def flush() -> None:
        course.append("left")

    here: Any = SimpleNamespace(
        _beside=beside,
        journal=SimpleNamespace(append=course.append, sync=lambda: course.append("on disk")),
        state=SimpleNamespace(peers={1: "one"}),
        _post=lambda *said: course.append(said),
        flush=flush,
    )
    for error, kind in ((DataError("row 7 of ann.csv"), "DataError"), (ValueError("42"), "RoleFailed")):
        course.clear()
        asyncio.run(link.Link.abort(here, error, 3))
        told = ("one", wire.ABORT, b"", kind, 3)
        assert course == [entries.Aborted(kind, 3), "on disk", told, "left"]
