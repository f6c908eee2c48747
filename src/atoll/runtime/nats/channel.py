"""What one party knows of another in a run: the lanes between their roles, starts, acknowledgements.

A *lane* goes from one role to another; its messages are counted from 1. The sender of a lane keeps a message
until it is acknowledged; the receiver takes messages in order and once, puts parts together on disk, and
acknowledges what is on disk. Nothing here waits or moves bytes: that is the link's work.

Every start of a node has a random name and a number. A party that starts asks all others what they know of it
before it draws or sends anything (:meth:`Peer.check_answer`): if somebody has more than its own journal knows
of, the journal is old, and it stops. Frames of an earlier start are ignored, unless they could not have come
from it: then two nodes act as one party, and the run ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll.errors import MessageError, PartyDoubled, ResumeRefused
from atoll.runtime.entries import Got, Piece, Refilled
from atoll.runtime.journal import Journal
from atoll.runtime.nats.wire import Counts, Head, Sealer, Status, Ticket

CREDIT: Final = 64 << 20
"""Bytes that may wait for the rest of their messages, for each party."""
AHEAD: Final = 256
"""How many messages may overtake the one that is due."""
_KNOWN_BOOTS: Final = 16

Lane = tuple[int, int]


@dataclass
class Shared:
    """One content that several receivers get, and lies at the hub once."""

    ticket: Ticket | None = None
    """To it, once it has left in this start."""
    refused: bool = False
    """Whether the hub takes none: it goes to each receiver."""
    holders: list[tuple[Outgoing, int]] = field(default_factory=list)
    """Lanes, and its number on each."""

    @property
    def over(self) -> bool:
        """Whether everybody has it."""
        return not any(seq in out.waiting for out, seq in self.holders)


@dataclass
class Payload:
    """A message that was sent and is not yet acknowledged."""

    data: bytes = field(repr=False)
    digest: bytes
    depth: int
    lsn: int
    """The place in the journal that must be on disk before it leaves."""
    shared: Shared | None = None


@dataclass
class Outgoing:
    """The sending side of a lane."""

    lane: Lane
    sent: int = 0
    """As the journal has it; after a start the role catches up with it."""
    acked: int = 0
    published: int = 0
    """The highest that has left in this start."""
    waiting: dict[int, Payload] = field(default_factory=dict)

    def acknowledge(self, count: int) -> int:
        """Forget what the receiver has; returns how many bytes that were."""
        if count <= self.acked:
            return 0
        self.acked = count
        done = [seq for seq in self.waiting if seq <= count]
        return sum(len(self.waiting.pop(seq).data) for seq in done)


@dataclass
class Arrival:
    """A message in a role's inbox. ``data`` is None while it lies on disk only, or nowhere yet."""

    sender: int
    seq: int
    digest: bytes
    depth: int
    pieces: tuple[Piece, ...]
    data: bytes | None = field(default=None, repr=False)
    hollow: bool = False


class Assembly:
    """A message of which some parts have come; they lie on disk."""

    def __init__(self, head: Head) -> None:
        self.digest, self.total, self.depth = head.digest, head.total, head.depth
        self._pieces: list[Piece | None] = [None] * head.parts
        self._missing = head.parts
        self._hash = hashlib.sha256()
        self._hashed = 0
        self.only: bytes | None = None
        """The whole message, where it has one part."""

    def add(self, part: int, data: bytes | memoryview, journal: Journal) -> bool:
        """Keep a part; True when it was the last that was missing."""
        if self._pieces[part] is not None:
            return False
        self._pieces[part] = journal.keep(data)
        self._missing -= 1
        self.only = bytes(data) if len(self._pieces) == 1 else None
        if part == self._hashed:
            self._hash.update(data)
            self._hashed += 1
        return self._missing == 0

    def finish(self, journal: Journal) -> tuple[Piece, ...]:
        """The pieces of the whole message, which must be what its digest says."""
        pieces = tuple(piece for piece in self._pieces if piece is not None)
        for piece in pieces[self._hashed :]:  # parts that came out of order
            self._hash.update(journal.load((piece,)) or b"")
        if self._hash.digest() != self.digest:
            raise MessageError("a message is not what its digest says")
        return pieces


@dataclass
class Incoming:
    """The receiving side of a lane."""

    lane: Lane
    digests: list[bytes] = field(default_factory=list)
    """Of every message in the inbox: its length counts them."""
    durable: int = 0
    """How many of them are on disk, and so acknowledged."""
    seen: int = 0
    hollow: dict[int, Arrival] = field(default_factory=dict)
    """In the inbox, but their bytes were lost with a crash: the sender still has them."""
    ready: dict[int, tuple[Assembly, tuple[Piece, ...]]] = field(default_factory=dict)
    parts: dict[int, Assembly] = field(default_factory=dict)

    @property
    def got(self) -> int:
        """How many are here, bytes and all, without a gap."""
        return min(self.hollow) - 1 if self.hollow else len(self.digests)

    @property
    def pending(self) -> int:
        """Bytes that wait for the rest of their message, or for an earlier one."""
        return sum(one.total for one in self.parts.values()) + sum(
            one.total for one, _ in self.ready.values()
        )

    def known(self, seq: int) -> bytes | None:
        """The digest of a message that has been announced, wholly or in part."""
        if seq <= len(self.digests):
            return self.digests[seq - 1]
        if seq in self.ready:
            return self.ready[seq][0].digest
        return self.parts[seq].digest if seq in self.parts else None

    def wants(self, head: Head) -> bool:
        """Whether a part of this message is of use, and may be kept."""
        seq, due = head.seq, len(self.digests) + 1
        if seq in self.parts or seq in self.hollow or seq == due:
            return seq not in self.ready
        return due < seq < due + AHEAD and seq not in self.ready and self.pending + head.total <= CREDIT

    def take(self, head: Head, data: bytes | memoryview, journal: Journal) -> list[Arrival]:
        """Keep a part; returns the messages that are now in the inbox, and were not there before."""
        one = self.parts.get(head.seq)
        if one is None:
            one = self.parts[head.seq] = Assembly(head)
        if (one.total, one.depth) != (head.total, head.depth):
            raise MessageError("parts of one message do not fit together")
        if not one.add(head.part, data, journal):
            return []
        del self.parts[head.seq]
        pieces = one.finish(journal)
        if head.seq in self.hollow:
            self._refill(head.seq, one, pieces, journal)
            return []
        self.ready[head.seq] = one, pieces
        arrived = []
        while (due := len(self.digests) + 1) in self.ready:
            whole, pieces = self.ready.pop(due)
            arrived.append(self._append(due, whole, pieces, journal))
        return arrived

    def _append(self, seq: int, one: Assembly, pieces: tuple[Piece, ...], journal: Journal) -> Arrival:
        sender, role = self.lane
        journal.append(Got(role, sender, one.digest, one.depth, pieces))
        self.digests.append(one.digest)
        return Arrival(sender, seq, one.digest, one.depth, pieces, one.only)

    def _refill(self, seq: int, one: Assembly, pieces: tuple[Piece, ...], journal: Journal) -> None:
        sender, role = self.lane
        journal.append(Refilled(role, sender, seq, pieces))  # it is acknowledged: the next start must find it
        arrival = self.hollow.pop(seq)
        arrival.pieces, arrival.data, arrival.hollow = pieces, one.only, False


class Peer:
    """Another party of the run."""

    def __init__(
        self, place: int, name: str, fingerprint: str, mine: Sequence[int], its: Sequence[int]
    ) -> None:
        self.place = place
        self.name = name
        self.fingerprint = fingerprint
        self.first, self.my_first = its[0], mine[0]
        self._ends = mine, its
        self.sealer: Sealer | None = None
        self.number = 0
        self.boot = b""
        """The latest start of its node that was heard of."""
        self.old: dict[bytes, Counts | None] = {}
        """Earlier starts, with what the journal of the start after it knew to be sent; None: not known."""
        self.ciphers: dict[bytes, ChaCha20Poly1305] = {}
        self.latest = 0
        """The number of the latest news, so that older ones are not taken for new."""
        self.nonce = b""
        """Of the question that is open."""
        self.asked: dict[Lane, int] = {}
        """What had left when it was asked; nothing before the first question."""
        self.answered = False
        self.done = False
        self.ended = False
        """Whether it ended the run by an error when this party was done already."""
        self.heard = False
        self.gone = False
        self.waits = False
        self.said = 0.0
        """When it last said whether it waits."""
        self.unacked = 0
        self.last = 0.0
        """When it was last heard, by the link's clock."""
        self.moved = 0.0
        """When it last acknowledged anything, or was last sent anything."""

    def __repr__(self) -> str:
        return f"<Peer {self.name}>"

    # Lanes are made when they are first asked for: among many, most pairs never exchange a word.

    @cached_property
    def out(self) -> dict[Lane, Outgoing]:
        """The lanes to it."""
        mine, its = self._ends
        return {(m, t): Outgoing((m, t)) for m in mine for t in its}

    @cached_property
    def into(self) -> dict[Lane, Incoming]:
        """The lanes from it."""
        mine, its = self._ends
        return {(t, m): Incoming((t, m)) for t in its for m in mine}

    @property
    def used(self) -> Iterable[Incoming]:
        """The lanes from it, if any were asked for."""
        return self.into.values() if "into" in vars(self) else ()

    @property
    def settled(self) -> bool:
        """Whether nothing that was sent to it is still on its way."""
        if self.gone or self.done or "out" not in vars(self):
            return True
        return not any(out.waiting for out in self.out.values())

    @property
    def room(self) -> bool:
        """Whether more may be sent to it."""
        return self.gone or self.done or self.unacked < CREDIT // 2

    # ---- what is told ----

    def status(self, number: int, **more: object) -> Status:
        """What this party says of the lanes between them."""
        out, into = self.out.values(), self.into.values()
        said = {
            "sent": tuple(lane.sent for lane in out),
            "acked": tuple(lane.acked for lane in out),
            "seen": tuple(lane.seen for lane in into),
            "got": tuple(lane.got for lane in into),
            "has": tuple(lane.durable for lane in into),
            "peer_number": self.number,
            "peer_boot": self.boot,
        }
        return Status(number, **said, **more)  # type: ignore[arg-type]

    def fits(self, status: Status) -> bool:
        """Whether a status has a count for every lane."""
        out, into = len(self.out), len(self.into)
        due = (into, out, out, out, into)
        return tuple(map(len, (status.sent, status.seen, status.got, status.has, status.acked))) == due

    # ---- what is heard ----

    def check_answer(self, status: Status, number: int, boot: bytes) -> None:
        """Refuse to go on from a journal that knows less than this party does."""
        ahead = [lane for lane, seen in zip(self.out.values(), status.seen, strict=True) if seen > lane.sent]
        lost = [lane for lane, a in zip(self.into.values(), status.acked, strict=True) if a > lane.got]
        later = status.peer_number >= number and status.peer_boot != boot
        if not (ahead or lost or later):
            return
        what = (
            "has messages that this journal never sent"
            if ahead
            else "had messages acknowledged that are not here"
        )
        what = what if ahead or lost else "knows of a later start of this party"
        raise ResumeRefused(
            f"the journal is an old one: {self.name} {what}",
            hint="restore the run's folder as it was last, or end whatever other node of this party runs",
        )

    def is_old(self, status: Status) -> bool:
        """Whether the other's journal is: it has less than it acknowledged, or sent less than has arrived."""
        less = any(h < lane.acked for lane, h in zip(self.out.values(), status.has, strict=True))
        return less or any(s < lane.seen for lane, s in zip(self.into.values(), status.sent, strict=True))

    def adopt(self, number: int, boot: bytes, sent: Counts | None) -> None:
        """From now on this is the start whose frames count."""
        if self.boot:
            self.old[self.boot] = sent
        while len(self.old) > _KNOWN_BOOTS:
            self.old.pop(next(iter(self.old)))
        self.number, self.boot, self.latest, self.waits = number, boot, 0, False

    def check_frame(self, head: Head) -> bool:
        """Whether a data frame counts; an error where it cannot be of one party with one journal."""
        lane = self.into.get((head.sender, head.to))
        if lane is None:
            raise MessageError("a frame is for a lane that does not exist")
        known = lane.known(head.seq)
        if known is not None and known != head.digest:
            raise self._doubled()
        if head.boot == self.boot:
            lane.seen = max(lane.seen, head.seq)
            return True
        sent = self.old.get(head.boot)
        if sent is not None and head.seq > dict(zip(self.into, sent, strict=True))[lane.lane]:
            raise self._doubled()
        return False

    def _doubled(self) -> PartyDoubled:
        return PartyDoubled(
            f"two nodes act as {self.name}, or it went on from an old journal",
            hint=f"{self.name} must find the copy and end it; then start a new run",
        )

    def acknowledge(self, has: Iterable[int]) -> list[Outgoing]:
        """Take acknowledgements; returns the lanes on which they say anything new."""
        moved = []
        for lane, count in zip(self.out.values(), has, strict=True):
            if count > lane.acked:
                self.unacked -= lane.acknowledge(min(count, lane.sent))
                moved.append(lane)
        return moved

    @property
    def pending(self) -> int:
        """Bytes on disk that belong to unfinished messages of this party."""
        return sum(lane.pending for lane in self.into.values())
