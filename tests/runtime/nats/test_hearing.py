"""What a party does with words of one that left, and with the word that the run ended."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.runtime.nats.test_receipts import STARTS

from atoll.errors import MessageError, PartyLeft
from atoll.protocols.own import Own
from atoll.runtime import entries
from atoll.runtime.journal import Journal
from atoll.runtime.nats import hearing, wire
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState

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
