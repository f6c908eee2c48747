"""Which frames of a partner count: one party has one journal, and the lanes that the study gives it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.support.fuzzing import Target

from atoll.errors import MessageError, PartyDoubled, ResumeRefused
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


def test_what_overtakes_is_kept_up_to_256_messages_and_64_megabytes(tmp_path: Path) -> None:
    """Or one party could fill another's disk with messages whose turn never comes."""
    target = Target(tmp_path)
    lane = target.peer.into[target.sender, target.to]

    def wants(seq: int, total: int) -> bool:
        return lane.wants(head(target, seq)._replace(total=total))

    assert wants(1, 1 << 30)  # it is due
    assert wants(256, 1)
    assert not wants(257, 1)
    assert wants(2, 64 << 20)
    assert not wants(2, (64 << 20) + 1)
    half = head(target, 3)._replace(total=40 << 20)
    lane.take(half, bytes(half.length), target.journal)
    assert wants(2, 24 << 20)
    assert not wants(2, (24 << 20) + 1)


def test_nothing_is_acknowledged_that_was_not_sent(tmp_path: Path) -> None:
    """A count beyond what was sent would let messages to come be forgotten before they leave."""
    target = Target(tmp_path)
    peer = target.peer
    lane = next(iter(peer.out.values()))
    lane.sent = 3
    assert peer.acknowledge([1000 if out is lane else 0 for out in peer.out.values()]) == [lane]
    assert lane.acked == 3
    assert peer.acknowledge([2 if out is lane else 0 for out in peer.out.values()]) == []
    assert lane.acked == 3


def test_a_message_is_what_its_digest_says(tmp_path: Path) -> None:
    target = Target(tmp_path)
    lane = target.peer.into[target.sender, target.to]
    with pytest.raises(MessageError, match="a message is not what its digest says"):
        lane.take(head(target, 1, b"data"), b"tada", target.journal)
    long = bytes(2 * wire.CHUNK)
    whole = head(target, 2, long)
    assert lane.take(whole._replace(part=1), b"x" + long[wire.CHUNK + 1 :], target.journal) == []
    with pytest.raises(MessageError, match="a message is not what its digest says"):
        lane.take(whole, long[: wire.CHUNK], target.journal)
    assert lane.digests == []


# ---- journals that know less than a partner does ----


def known(target: Target) -> wire.Status:
    """What the partner says that it knows of this party: all of what there is, and no more."""
    peer = target.peer
    for lane in peer.out.values():
        lane.sent, lane.acked = 5, 4
    for into in peer.into.values():
        into.digests, into.seen = [bytes(32)] * 3, 3
    mine, its = len(peer.into), len(peer.out)
    return wire.Status(
        1, sent=(3,) * mine, seen=(5,) * its, got=(4,) * its, has=(4,) * its, acked=(3,) * mine, peer_number=2
    )


def test_a_journal_that_is_not_behind_is_gone_on_from(tmp_path: Path) -> None:
    target = Target(tmp_path)
    target.peer.check_answer(known(target), 2, b"")
    assert not target.peer.is_old(known(target))


@pytest.mark.parametrize(
    ("field", "count", "words"),
    [
        ("seen", 6, "has messages that this journal never sent"),
        ("acked", 4, "had messages acknowledged that are not here"),
        ("peer_number", 3, "knows of a later start of this party"),
        ("peer_number", 2, "knows of a later start of this party"),
    ],
)
def test_an_own_journal_that_is_behind_is_not_gone_on_from(
    field: str, count: int, words: str, tmp_path: Path
) -> None:
    """It would draw anew what it drew before, and send two different shares of one value."""
    target = Target(tmp_path)
    said = known(target)
    boot = OTHER if field == "peer_number" else b""
    changed = count if field == "peer_number" else (count, *getattr(said, field)[1:])
    told = structs.replace(said, **{field: changed, "peer_boot": boot})
    with pytest.raises(ResumeRefused, match=words):
        target.peer.check_answer(told, 2, b"")
    if field == "peer_number" and count == 2:  # of this very start nobody knows anything worse
        target.peer.check_answer(told, 2, OTHER)
        target.peer.check_answer(told, 3, b"")


@pytest.mark.parametrize(("field", "count"), [("has", 3), ("sent", 2)])
def test_a_partners_journal_that_is_behind_is_noticed(field: str, count: int, tmp_path: Path) -> None:
    """It has less than it acknowledged, or sent less than has arrived here."""
    target = Target(tmp_path)
    said = known(target)
    assert target.peer.is_old(structs.replace(said, **{field: (count, *getattr(said, field)[1:])}))
