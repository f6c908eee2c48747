"""Which frames of a partner count: one party has one journal, and the lanes that the study gives it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.fuzzing import Target

from atoll.errors import MessageError, PartyDoubled
from atoll.runtime.nats import wire
from atoll.runtime.nats.wire import Head

EARLIER, OTHER = b"e" * 16, b"o" * 16


def head(target: Target, seq: int, data: bytes = b"data", **changed: Any) -> Head:
    digest = hashlib.sha256(data).digest()
    whole = Head(wire.DATA, target.sender, target.to, seq, 0, len(data), 1, digest, target.boot)
    return whole._replace(**changed)


def test_a_frame_is_for_a_lane_of_the_study(tmp_path: Path) -> None:
    target = Target(tmp_path)
    assert target.peer.check_frame(head(target, 1))
    for changed in ({"sender": target.to}, {"to": target.sender}, {"to": 1000}):
        with pytest.raises(MessageError, match="a lane that does not exist"):
            target.peer.check_frame(head(target, 1, **changed))


def test_an_earlier_start_sent_what_its_journal_says_and_no_more(tmp_path: Path) -> None:
    """More of it comes from a copy of the node, which would answer one question in two ways."""
    target = Target(tmp_path)
    peer = target.peer
    lane = peer.into[target.sender, target.to].lane
    peer.old[EARLIER] = tuple(3 if one == lane else 0 for one in peer.into)
    assert not peer.check_frame(head(target, 3, boot=EARLIER))  # late, and of no use any more
    assert not peer.check_frame(head(target, 400, boot=OTHER))  # of a start that nobody knows
    with pytest.raises(PartyDoubled, match="two nodes act as"):
        peer.check_frame(head(target, 4, boot=EARLIER))


def test_a_message_is_told_in_one_way(tmp_path: Path) -> None:
    target = Target(tmp_path)
    long = bytes(2 * wire.CHUNK)
    whole = head(target, 1, long)
    into = target.peer.into[target.sender, target.to]
    assert into.take(whole, long[: whole.length], target.journal) == []
    assert target.peer.check_frame(whole._replace(part=1))
    with pytest.raises(PartyDoubled):
        target.peer.check_frame(whole._replace(part=1, digest=bytes(32)))
    for changed in ({"total": whole.total - 1}, {"depth": 2}):
        with pytest.raises(MessageError, match="parts of one message do not fit together"):
            into.take(whole._replace(part=1, **changed), long[: whole.length], target.journal)


@pytest.mark.parametrize("field", ["sent", "seen", "got", "has", "acked"])
def test_a_status_has_a_count_for_every_lane_and_no_more(field: str, tmp_path: Path) -> None:
    """One too few would end the link by an error of its own, and with it the run for everybody."""
    target = Target(tmp_path)
    peer = target.peer
    mine, its = len(peer.into), len(peer.out)
    good = {"sent": mine, "seen": its, "got": its, "has": its, "acked": mine}
    said = {name: (0,) * count for name, count in good.items()}
    assert peer.fits(wire.Status(1, **said))
    for counts in ((), said[field][:-1], (*said[field], 0)):
        if counts != said[field]:
            assert not peer.fits(wire.Status(1, **{**said, field: counts}))
