"""Frames: what is refused, and that no nonce is used twice."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll.errors import MessageError
from atoll.runtime.nats import wire
from atoll.runtime.nats.wire import CHUNK, HEADER_BYTES, OVERHEAD, Head, Sealer, Status

RUN, BOOT = b"r" * 16, b"b" * 16
CIPHER = ChaCha20Poly1305(bytes(32))


def frames(payload: bytes, sealer: Sealer | None = None, seq: int = 1) -> list[bytes]:
    sealer = sealer or Sealer(CIPHER, RUN, BOOT)
    return list(sealer.data(2, 5, seq, payload, hashlib.sha256(payload).digest(), 3))


def read(frame: bytes) -> tuple[Head, bytes]:
    head = wire.read_head(frame, RUN)
    return head, wire.unseal(CIPHER, head, frame)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_message_comes_back_from_its_parts(size: int) -> None:
    payload = bytes(i % 251 for i in range(size))
    parts = [read(frame) for frame in frames(payload)]
    assert b"".join(body for _, body in parts) == payload
    assert [head.part for head, _ in parts] == list(range(max(1, -(-size // CHUNK))))
    head = parts[0][0]
    assert (head.sender, head.to, head.seq, head.depth, head.total) == (2, 5, 1, 3, size)
    assert all(len(frame) <= CHUNK + OVERHEAD for frame in frames(payload))


def test_every_bit_of_a_frame_counts() -> None:
    (frame,) = frames(b"payload")
    for place in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(MessageError):
            read(bytes(flipped))


def test_lengths_must_fit() -> None:
    (frame,) = frames(b"payload")
    for other in (b"", frame[:HEADER_BYTES], frame[:-1], frame + b"x", frame + frame):
        with pytest.raises(MessageError):
            wire.read_head(other, RUN)
    with pytest.raises(MessageError):
        wire.read_head(frame, b"s" * 16)


def resealed(**changes: object) -> bytes:
    (frame,) = frames(b"payload")
    head = wire.read_head(frame, RUN)._replace(**changes)  # type: ignore[arg-type]
    return head.pack() + CIPHER.encrypt(head.number.to_bytes(12, "little"), b"payload", head.pack())


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": 2},
        {"part": 1},
        {"parts": 0},
        {"total": 8},
        {"total": 1 << 32},
        {"seq": 0},
        {"version": 2},
        {"kind": 0},
        {"kind": 8},
        {"kind": wire.NEWS},
    ],
)
def test_numbers_that_do_not_fit_are_refused_even_if_sealed(changes: dict[str, object]) -> None:
    assert read(resealed())[1] == b"payload"
    with pytest.raises(MessageError):
        read(resealed(**changes))


def test_no_nonce_is_used_twice() -> None:
    sealer = Sealer(CIPHER, RUN, BOOT)
    numbers = []
    for seq in (1, 1, 2):
        numbers += [read(frame)[0].number for frame in frames(bytes(CHUNK + 1), sealer, seq)]
        numbers.append(read(sealer.status(wire.NEWS, 0, 1, Status(1)))[0].number)
    assert numbers == list(range(1, 10))


def test_a_status_comes_back() -> None:
    said = Status(3, b"n" * 16, (1, 2), (3,), (4,), (5,), (6,), 7, b"p" * 16, (8,), True, True, "RunError", 9)
    head, body = read(Sealer(CIPHER, RUN, BOOT).status(wire.STATE, 0, 1, said))
    assert head.kind == wire.STATE
    assert wire.read_status(body) == said


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode([-1]),
        msgspec.msgpack.encode([1 << 48]),
        msgspec.msgpack.encode([1, "text"]),
        msgspec.msgpack.encode([1, b"", [-1]]),
        msgspec.msgpack.encode({"number": 1}),
        msgspec.msgpack.encode(list(range(30))),
        b"\x91" * 10_000,
    ],
)
def test_a_malformed_status_is_refused(body: bytes) -> None:
    with pytest.raises(MessageError):
        wire.read_status(body)
