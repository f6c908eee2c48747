"""Frames: what is refused, what a hub can read, and that no nonce is used twice."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll.errors import MessageError
from atoll.runtime.nats import wire
from atoll.runtime.nats.wire import BLOCK, CHUNK, COVER_BYTES, Head, Sealer, Status, Ticket

RUN, BOOT = b"r" * 16, b"b" * 16
CIPHER = ChaCha20Poly1305(bytes(32))


def sealer() -> Sealer:
    return Sealer(CIPHER, RUN, 4, BOOT)


def frames(payload: bytes, by: Sealer | None = None, seq: int = 1) -> list[bytes]:
    return list((by or sealer()).data(2, 5, seq, payload, hashlib.sha256(payload).digest(), 3))


def read(frame: bytes) -> tuple[Head, bytes]:
    head, body = wire.unseal(CIPHER, wire.read_cover(frame, RUN), frame)
    return head, bytes(body)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_message_comes_back_from_its_parts(size: int) -> None:
    payload = bytes(i % 251 for i in range(size))
    parts = [read(frame) for frame in frames(payload)]
    assert b"".join(body for _, body in parts) == payload
    assert [head.part for head, _ in parts] == list(range(max(1, -(-size // CHUNK))))
    head = parts[0][0]
    assert (head.sender, head.to, head.seq, head.depth, head.total) == (2, 5, 1, 3, size)
    assert all(len(frame) <= wire.frame_bytes(CHUNK) for frame in frames(payload))


def test_every_bit_of_a_frame_counts() -> None:
    (frame,) = frames(b"payload")
    for place in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(MessageError):
            read(bytes(flipped))


def test_lengths_must_fit() -> None:
    (frame,) = frames(b"payload")
    for other in (
        b"",
        frame[:COVER_BYTES],
        frame[:-1],
        frame + b"x",
        frame + frame,
        frame + bytes(CHUNK + BLOCK),
    ):
        with pytest.raises(MessageError):
            wire.read_cover(other, RUN)
    with pytest.raises(MessageError):
        wire.read_cover(frame, b"s" * 16)
    for longer in (frame + bytes(BLOCK), frame[:-BLOCK] + bytes(2 * BLOCK)):
        with pytest.raises(MessageError):
            read(longer)


def test_only_the_cover_is_in_the_clear() -> None:
    """Two frames that differ in kind, roles, number, digest and content show the same but for the seal."""
    one, other = sealer(), sealer()
    (message,) = frames(b"yes", one)
    word = other.status(wire.ABORT, 7, 9, Status(1, error="RunError", role=3))
    assert len(message) == len(word)
    assert message[:COVER_BYTES] == word[:COVER_BYTES]
    assert hashlib.sha256(b"yes").digest() not in message


@pytest.mark.parametrize("error", ["", "RunError", "PartyDoubled" * 4])
def test_a_status_tells_nothing_by_its_length(error: str) -> None:
    status = Status(3, b"n" * 16, (1 << 40,) * 4, (3,) * 4, (4,) * 4, (5,) * 4, (6,) * 4, error=error)
    assert len(sealer().status(wire.NEWS, 0, 1, status)) == wire.frame_bytes(0)


def sealed(head: Head, plain: bytes | None = None, version: int = wire.VERSION) -> bytes:
    cover = wire._COVER.pack(version, RUN, 4, BOOT, 1)
    plain = wire._filled(head.pack(), b"payload") if plain is None else plain
    return cover + CIPHER.encrypt((1).to_bytes(12, "little"), plain, cover)


def good(**changes: object) -> Head:
    return Head(wire.DATA, 2, 5, 1, 0, 7, 3, bytes(32))._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"part": 1},
        {"total": 1 << 10},
        {"total": CHUNK + 7},
        {"total": CHUNK + 7, "part": 2},
        {"total": 1 << 32},
        {"seq": 0},
        {"kind": 0},
        {"kind": 9},
        {"kind": wire.NEWS},
        {"kind": wire.SHARED, "part": 1},
        {"kind": wire.NEWS, "seq": 0, "depth": 0, "digest": b"x" * 32},
        {"kind": wire.NEWS, "seq": 0, "depth": 0, "total": wire.MAX_STATUS + 1},
    ],
)
def test_numbers_that_do_not_fit_are_refused_even_if_sealed(changes: dict[str, object]) -> None:
    assert read(sealed(good()))[1] == b"payload"
    with pytest.raises(MessageError):
        read(sealed(good(**changes)))


@pytest.mark.parametrize("kind", [wire.HELLO, wire.NEWS, wire.ABORT, wire.ALIVE])
def test_a_status_has_a_limit(kind: int) -> None:
    """What is read whole, before anybody knows what it is, does not fill the memory."""
    for total, fits in ((1 << 16, True), ((1 << 16) + 1, False)):
        head = good(kind=kind, seq=0, depth=0, digest=bytes(32), total=total)
        frame = sealed(head, wire._filled(head.pack(), bytes(total)))
        if fits:
            assert len(read(frame)[1]) == total
        else:
            with pytest.raises(MessageError, match="do not fit together"):
                read(frame)


def test_what_fills_a_block_must_be_nothing() -> None:
    plain = wire._filled(good().pack(), b"payload")
    for other in (plain[:-1] + b"x", plain + bytes(BLOCK)):
        with pytest.raises(MessageError):
            read(sealed(good(), other))
    with pytest.raises(MessageError):
        read(sealed(good(total=6)))  # a message that is longer than it says
    with pytest.raises(MessageError):
        read(sealed(good(), version=1))


def test_no_nonce_is_used_twice() -> None:
    by = sealer()
    numbers = []
    for seq in (1, 1, 2):
        numbers += [read(frame)[0].number for frame in frames(bytes(CHUNK + 1), by, seq)]
        numbers.append(read(by.status(wire.NEWS, 0, 1, Status(1)))[0].number)
        numbers.append(read(by.shared(0, 1, seq, 9, bytes(32), 1, Ticket.new()))[0].number)
    assert numbers == list(range(1, 13))


def test_a_status_comes_back() -> None:
    said = Status(3, b"n" * 16, (1, 2), (3,), (4,), (5,), (6,), 7, b"p" * 16, (8,), True, True, "RunError", 9)
    head, body = read(sealer().status(wire.STATE, 0, 1, said))
    assert head.kind == wire.STATE
    assert wire.read_status(body) == said


# ---- shared contents ----


@pytest.mark.parametrize("size", [0, 1, CHUNK, 2 * CHUNK + 5])
def test_a_shared_content_comes_back_through_its_ticket(size: int) -> None:
    payload, at = bytes(i % 251 for i in range(size)), Ticket.new()
    head, body = read(sealer().shared(2, 5, 1, size, hashlib.sha256(payload).digest(), 3, at))
    ticket = wire.read_ticket(memoryview(body))
    assert ticket == at
    parts = list(wire.seal_content(at, RUN, payload))
    opened = [wire.open_content(ticket, RUN, head, part, one) for part, one in enumerate(parts)]
    assert b"".join(opened) == payload


def test_every_bit_and_place_of_a_shared_content_counts() -> None:
    at, other = Ticket.new(), Ticket.new()
    head = good(kind=wire.SHARED, total=CHUNK + 7)
    first, last = wire.seal_content(at, RUN, bytes(CHUNK + 7))
    assert bytes(wire.open_content(at, RUN, head, 1, last)) == bytes(7)
    wrong = [
        (at, RUN, 0, last),
        (at, b"s" * 16, 1, last),
        (other, RUN, 1, last),
        (Ticket(other.name, at.key), RUN, 1, last),
        (at, RUN, 1, last[:-1]),
        (at, RUN, 1, last + bytes(BLOCK)),
        (at, RUN, 1, first),
    ]
    wrong += [
        (at, RUN, 1, last[:i] + bytes([last[i] ^ 1 << i % 8]) + last[i + 1 :]) for i in range(len(last))
    ]
    for ticket, run, part, frame in wrong:
        with pytest.raises(MessageError):
            wire.open_content(ticket, run, head, part, frame)
    (same,) = wire.seal_content(other, RUN, bytes(7))
    assert same != last  # the same bytes again cannot be told by what lies at the hub
    assert "key" not in repr(at)


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


def test_a_hub_that_knows_a_contents_name_knows_nothing_of_its_key() -> None:
    """The name is how a hub is asked for it: a key that followed from it would open the content."""
    tickets = [wire.Ticket.new() for _ in range(20)]
    halves = [half for at in tickets for half in (at.name, at.key[:16], at.key[16:])]
    assert len(set(halves)) == 3 * len(tickets)
    assert {len(half) for half in halves} == {16}


def test_every_number_of_a_frame_is_a_nonce_of_its_own() -> None:
    numbers = [0, 1, 255, 256, 1 << 16, (1 << 16) + 1, 1 << 32, 1 << 48, (1 << 64) - 1]
    assert len({wire._nonce(number) for number in numbers}) == len(numbers)
    assert {len(wire._nonce(number)) for number in numbers} == {12}
