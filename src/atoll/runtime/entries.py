"""What stands in a journal: one kind of entry for everything that a role's next bytes depend on."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True, gc=False):
    """One line of the small file. Roles, addresses and parties stand for their places in the study."""

    def __repr__(self) -> str:
        # Draws are keys and seeds: show the kind, never the content.
        return f"<{type(self).__name__}>"


class Header(Entry, frozen=True, tag=0):
    """What the journal belongs to, and what must not change under it."""

    format: int
    run: bytes
    study: str
    party: str
    data: str
    """A fingerprint of the party's table."""
    versions: dict[str, str]


class Draw(Entry, frozen=True, tag=1):
    """A role drew."""

    role: int
    tag: str
    data: bytes


class Sent(Entry, frozen=True, tag=2):
    """A role's next message, before it leaves."""

    role: int
    to: int
    digest: bytes


class Piece(NamedTuple):
    """Where a piece of a payload lies in the bulk file: the start's number, its place, its length
    unsealed."""

    boot: int
    offset: int
    length: int


class Got(Entry, frozen=True, tag=3):
    """A message reached a role's inbox."""

    role: int
    sender: int
    digest: bytes
    depth: int
    pieces: tuple[Piece, ...]


class Refilled(Entry, frozen=True, tag=11):
    """The bytes of a message whose place in the inbox was kept came again."""

    role: int
    sender: int
    seq: int
    pieces: tuple[Piece, ...]


class Gone(Entry, frozen=True, tag=4):
    """A party counts as having left: an event of every role's inbox."""

    party: int


class Acked(Entry, frozen=True, tag=5):
    """So many messages of ``sender`` are on the disk of ``to``."""

    sender: int
    to: int
    count: int


class PeerBoot(Entry, frozen=True, tag=6):
    """A party started, for the ``number``-th time, under this name."""

    party: int
    number: int
    boot: bytes


class Kept(Entry, frozen=True, tag=7):
    """The bulk file is on disk up to here."""

    end: int


class Finished(Entry, frozen=True, tag=8):
    """Every role of this party has ended, and all that they sent is where it was sent to."""


class PeerDone(Entry, frozen=True, tag=9):
    """Another party has finished, having received so many messages on each lane."""

    party: int
    has: tuple[int, ...]


class Aborted(Entry, frozen=True, tag=10):
    """The run ended with an error: its class, and the role that had it."""

    kind: str
    role: int


class PeerEnded(Entry, frozen=True, tag=12):
    """Another party ended the run by an error when this one was done: it asks nothing any more."""

    party: int


Entries = (
    Header
    | Draw
    | Sent
    | Got
    | Refilled
    | Gone
    | Acked
    | PeerBoot
    | Kept
    | Finished
    | PeerDone
    | PeerEnded
    | Aborted
)
