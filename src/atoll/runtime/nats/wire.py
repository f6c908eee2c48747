"""Frames: what travels between two parties of a run, sealed, in pieces that a hub takes.

A frame is a cover, which a hub can read, and a sealed rest: a head and a body. The cover says no more than is
needed to find the key: run, sender's party, start, number. Everything that speaks of contents is sealed: the
kind of frame, roles, the number of a message, its parts, its length, its digest. A digest in the clear would
let a hub test guesses of short messages. What is sealed is filled up to whole blocks of :data:`BLOCK` bytes,
so that short messages, acknowledgements and errors look alike.

*Data* frames carry a message of a role in parts. A *shared* frame carries a ticket to one: where at the hub
its sealed content lies, once for all receivers, and the key to it. The others carry a :class:`Status`. What
is not exactly as it must be is a :class:`~atoll.errors.MessageError` here, which the link counts and drops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll import randomness
from atoll.codec import MAX_MESSAGE_BYTES
from atoll.errors import MessageError

VERSION: Final = 2
"""On the cover of every frame. Version 1 showed the whole head, digests too, and is not spoken any more."""
CHUNK: Final = 1 << 19
"""The most of a message that one frame carries."""
BLOCK: Final = 256
"""Lengths of what is sealed are multiples of this."""
MAX_STATUS: Final = 1 << 16

DATA, HELLO, STATE, NEWS, DONE, ABORT, ALIVE, SHARED = range(1, 9)
"""A role's message; a question that begins a start, and its answer; acknowledgements and signs of life; the
end of a party; the end of the run; what a node says to a second node of the same party; a ticket to a message
whose content lies at the hub once for all its receivers."""

_COVER: Final = struct.Struct("<B16sH16sQ")
_HEAD: Final = struct.Struct("<BHHQIQI32s")
_PLACE: Final = struct.Struct("<B16s16sI")
_TAG: Final = 16
_NONE: Final = bytes(32)


class Cover(NamedTuple):
    """All that a hub can read of a frame."""

    version: int
    run: bytes
    party: int
    """The sender's, as a place in the study."""
    boot: bytes
    """The random name of the sender's start."""
    number: int
    """Counts all frames under one key: the nonce."""


class Head(NamedTuple):
    """What a frame is, sealed. Senders and receivers are places among the study's addresses."""

    kind: int
    sender: int
    to: int
    seq: int
    """Counts the messages from one role to another, from 1."""
    part: int
    total: int
    depth: int
    digest: bytes
    boot: bytes = b""
    """From the cover, as is ``number``."""
    number: int = 0

    @property
    def parts(self) -> int:
        """How many frames the message needs."""
        return parts_of(self.total)

    @property
    def length(self) -> int:
        """Bytes in this frame's body."""
        if self.kind == SHARED:
            return TICKET_BYTES
        return part_length(self.total, self.part) if self.kind == DATA else self.total

    def pack(self) -> bytes:
        """As it is sealed."""
        return _HEAD.pack(*self[:8])


COVER_BYTES: Final = _COVER.size
TICKET_BYTES: Final = 48


def parts_of(total: int) -> int:
    """How many frames a message of so many bytes needs."""
    return max(1, -(-total // CHUNK))


def part_length(total: int, part: int) -> int:
    """Bytes in one part of a message."""
    return min(CHUNK, total - CHUNK * part)


def frame_bytes(length: int) -> int:
    """How long a frame is whose body has so many bytes."""
    return COVER_BYTES + _padded(_HEAD.size + length) + _TAG


def read_cover(frame: bytes, run: bytes) -> Cover:
    """A frame's cover, checked as far as it can be without a key."""
    sealed = len(frame) - COVER_BYTES - _TAG
    if not 0 < sealed <= _padded(_HEAD.size + CHUNK) or sealed % BLOCK:
        raise MessageError("a frame has a length that none has")
    cover = Cover._make(_COVER.unpack_from(frame))
    if cover.version != VERSION or cover.run != run:
        raise MessageError("a frame is of another version or run")
    return cover


def unseal(cipher: ChaCha20Poly1305, cover: Cover, frame: bytes) -> tuple[Head, memoryview]:
    """Head and body of a frame whose sender has the key."""
    view = memoryview(frame)
    try:
        plain = cipher.decrypt(_nonce(cover.number), view[COVER_BYTES:], view[:COVER_BYTES])
    except InvalidTag:
        raise MessageError("a frame was changed or forged") from None
    head = Head._make((*_HEAD.unpack_from(plain), cover.boot, cover.number))
    if not _fits(head):
        raise MessageError("a frame's numbers do not fit together")
    return head, _unpadded(plain, _HEAD.size, head.length)


def _fits(head: Head) -> bool:
    if head.kind in (DATA, SHARED):
        parts = head.parts if head.kind == DATA else 1
        return head.seq > 0 and head.total <= MAX_MESSAGE_BYTES and head.part < parts
    plain = head.seq == head.part == head.depth == 0 and head.digest == _NONE
    return HELLO <= head.kind <= ALIVE and head.total <= MAX_STATUS and plain


class Sealer:
    """Seals one party's frames to another in one start. No nonce is used twice: the number only grows."""

    def __init__(self, cipher: ChaCha20Poly1305, run: bytes, party: int, boot: bytes) -> None:
        self._cipher = cipher
        self._run, self._party, self._boot = run, party, boot
        self._number = 0

    def data(
        self, sender: int, to: int, seq: int, payload: bytes, digest: bytes, depth: int
    ) -> Iterator[bytes]:
        """The frames of a message, each sealed when it is asked for."""
        view, total = memoryview(payload), len(payload)
        for part in range(parts_of(total)):
            piece = view[part * CHUNK : (part + 1) * CHUNK]
            yield self._seal(Head(DATA, sender, to, seq, part, total, depth, digest), piece)

    def shared(
        self, sender: int, to: int, seq: int, total: int, digest: bytes, depth: int, at: Ticket
    ) -> bytes:
        """A frame with a ticket to a message."""
        return self._seal(Head(SHARED, sender, to, seq, 0, total, depth, digest), at.name + at.key)

    def status(self, kind: int, sender: int, to: int, status: Status) -> bytes:
        """A frame with a status."""
        body = _encoder.encode(status)
        return self._seal(Head(kind, sender, to, 0, 0, len(body), 0, _NONE), body)

    def _seal(self, head: Head, body: bytes | memoryview) -> bytes:
        self._number += 1
        cover = _COVER.pack(VERSION, self._run, self._party, self._boot, self._number)
        return cover + self._cipher.encrypt(_nonce(self._number), _filled(head.pack(), body), cover)


# ---- contents that lie at the hub once for all who receive them ----


class Ticket(NamedTuple):
    """Where a shared content lies, and what opens it. Whoever has both can read it."""

    name: bytes
    """16 random bytes: a hub gives a content to whoever knows its name."""
    key: bytes

    def __repr__(self) -> str:
        return "<Ticket>"

    @classmethod
    def new(cls) -> Ticket:
        """For one content, and never for another: parts are sealed under their numbers."""
        return cls(randomness.fresh_seed()[:16], randomness.fresh_seed())


def read_ticket(body: memoryview) -> Ticket:
    """The body of a shared frame."""
    return Ticket(bytes(body[:16]), bytes(body[16:]))


def seal_content(at: Ticket, run: bytes, payload: bytes) -> Iterator[bytes]:
    """The parts of a content, each sealed when it is asked for."""
    cipher, view = ChaCha20Poly1305(at.key), memoryview(payload)
    for part in range(parts_of(len(payload))):
        piece = view[part * CHUNK : (part + 1) * CHUNK]
        yield cipher.encrypt(_nonce(part), _filled(b"", piece), _PLACE.pack(VERSION, run, at.name, part))


def open_content(at: Ticket, run: bytes, head: Head, part: int, sealed: bytes) -> memoryview:
    """One part of a content as its ticket's frame says it must be."""
    length = part_length(head.total, part)
    if len(sealed) != _padded(length) + _TAG:
        raise MessageError("a part of a shared message has another length")
    try:
        plain = ChaCha20Poly1305(at.key).decrypt(
            _nonce(part), sealed, _PLACE.pack(VERSION, run, at.name, part)
        )
    except InvalidTag:
        raise MessageError("a part of a shared message was changed or forged") from None
    return _unpadded(plain, 0, length)


# ---- blocks ----


def _padded(length: int) -> int:
    return -(-length // BLOCK) * BLOCK


def _filled(head: bytes, body: bytes | memoryview) -> bytes:
    length = len(head) + len(body)
    return b"".join((head, body, bytes(_padded(length) - length)))


def _unpadded(plain: bytes, start: int, length: int) -> memoryview:
    end = start + length
    if len(plain) != _padded(end) or plain[end:].strip(b"\0"):
        raise MessageError("a frame's length is not what it says")
    return memoryview(plain)[start:end]


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")


Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 48)]
Counts = tuple[Count, ...]


class Status(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party tells another of the lanes between them: counts in the study's order of roles."""

    number: Count
    """The sender's start, counted by its journal."""
    nonce: bytes = b""
    """Of a question; its answer repeats it."""
    sent: Counts = ()
    """How many messages the sender has sent."""
    seen: Counts = ()
    """The highest message of which it has seen anything."""
    got: Counts = ()
    """How many have arrived in order."""
    has: Counts = ()
    """How many are on its disk: the acknowledgement."""
    acked: Counts = ()
    """How many of its own the receiver has acknowledged."""
    peer_number: Count = 0
    peer_boot: bytes = b""
    """The receiver's latest start, as the sender knows it."""
    gone: Counts = ()
    """The parties that count as having left; believed from one party only."""
    waiting: bool = False
    heard: bool = False
    """Whether the sender knows that the receiver is done."""
    error: str = ""
    role: Count = 0
    ready: bool = False
    """Whether everybody has told the sender what they know of it, and it goes on from its journal."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Status)


def read_status(body: bytes | memoryview) -> Status:
    """A status as it must be."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        raise MessageError("a status is malformed") from None
