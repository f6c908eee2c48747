"""Frames: what travels between two parties of a run, sealed, in pieces that a hub takes.

A frame is a header of fixed length, which is authenticated, and a sealed body. *Data* frames carry a message
of a role in parts; the others carry a :class:`Status`. Whatever is not exactly as it must be is a
:class:`~atoll.errors.MessageError` here, which the link counts and drops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll.codec import MAX_MESSAGE_BYTES
from atoll.errors import MessageError

VERSION: Final = 1
CHUNK: Final = 1 << 19
"""The most of a message that one frame carries."""
MAX_STATUS: Final = 1 << 16

DATA, HELLO, STATE, NEWS, DONE, ABORT, ALIVE = range(1, 8)
"""A role's message; a question that begins a start, and its answer; acknowledgements and signs of life; the
end of a party; the end of the run; what a node says to a second node of the same party."""

_HEADER: Final = struct.Struct("<BB16sHH16sQQIIQ32sI")
_TAG: Final = 16
_NONE: Final = bytes(32)


class Head(NamedTuple):
    """The header. Senders and receivers are places among the study's addresses."""

    version: int
    kind: int
    run: bytes
    sender: int
    to: int
    boot: bytes
    number: int
    """Counts all frames under one key: the nonce."""
    seq: int
    """Counts the messages from one role to another, from 1."""
    part: int
    parts: int
    total: int
    digest: bytes
    depth: int

    @property
    def length(self) -> int:
        """Bytes in this part."""
        return min(CHUNK, self.total - CHUNK * self.part)

    def pack(self) -> bytes:
        """As it travels."""
        return _HEADER.pack(*self)


HEADER_BYTES: Final = _HEADER.size
OVERHEAD: Final = HEADER_BYTES + _TAG


def parts_of(total: int) -> int:
    """How many frames a message of so many bytes needs."""
    return max(1, -(-total // CHUNK))


def read_head(frame: bytes, run: bytes) -> Head:
    """A frame's header, checked as far as it can be without a key."""
    if len(frame) < OVERHEAD:
        raise MessageError("a frame is too short")
    head = Head._make(_HEADER.unpack_from(frame))
    if head.version != VERSION or head.run != run or not DATA <= head.kind <= ALIVE:
        raise MessageError("a frame is of another version, run or kind")
    if head.kind == DATA:
        fits = head.seq > 0 and head.total <= MAX_MESSAGE_BYTES and head.parts == parts_of(head.total)
    else:
        fits = (
            head.parts == 1
            and head.total <= MAX_STATUS
            and head.seq == head.depth == 0
            and head.digest == _NONE
        )
    if not fits or head.part >= head.parts or len(frame) != OVERHEAD + head.length:
        raise MessageError("a frame's numbers do not fit together")
    return head


def unseal(cipher: ChaCha20Poly1305, head: Head, frame: bytes) -> bytes:
    """The body of a frame whose sender has the key."""
    view = memoryview(frame)
    try:
        return cipher.decrypt(_nonce(head.number), view[HEADER_BYTES:], view[:HEADER_BYTES])
    except InvalidTag:
        raise MessageError("a frame was changed or forged") from None


class Sealer:
    """Seals one party's frames to another in one start. No nonce is used twice: the number only grows."""

    def __init__(self, cipher: ChaCha20Poly1305, run: bytes, boot: bytes) -> None:
        self._cipher = cipher
        self._run = run
        self._boot = boot
        self._number = 0

    def data(
        self, sender: int, to: int, seq: int, payload: bytes, digest: bytes, depth: int
    ) -> Iterator[bytes]:
        """The frames of a message, each sealed when it is asked for."""
        view, parts = memoryview(payload), parts_of(len(payload))
        for part in range(parts):
            piece = view[part * CHUNK : (part + 1) * CHUNK]
            yield self._seal(DATA, sender, to, seq, part, parts, len(payload), digest, depth, piece)

    def status(self, kind: int, sender: int, to: int, status: Status) -> bytes:
        """A frame with a status."""
        body = _encoder.encode(status)
        return self._seal(kind, sender, to, 0, 0, 1, len(body), _NONE, 0, body)

    def _seal(
        self,
        kind: int,
        sender: int,
        to: int,
        seq: int,
        part: int,
        parts: int,
        total: int,
        digest: bytes,
        depth: int,
        body: bytes | memoryview,
    ) -> bytes:
        self._number += 1
        head = Head(
            VERSION,
            kind,
            self._run,
            sender,
            to,
            self._boot,
            self._number,
            seq,
            part,
            parts,
            total,
            digest,
            depth,
        ).pack()
        return head + self._cipher.encrypt(_nonce(self._number), body, head)


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


def read_status(body: bytes) -> Status:
    """A status as it must be."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        raise MessageError("a status is malformed") from None
