"""Frames that no honest party sends: changed, cut, and correctly sealed around nonsense."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import msgspec
from tests.support.examples import summation
from tests.support.networks import QUICK, pinned, starts_of

from atoll.protocols import protocol_of
from atoll.protocols.base import resolve
from atoll.runtime.journal import Journal
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Arrived
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.link import Link
from atoll.runtime.nats.party import header_of
from atoll.runtime.nats.state import RunState
from atoll.runtime.nats.wire import Cover, Head, Sealer, Status


class Target:
    """A party's link that is fed frames, and a partner who has the keys and no manners."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        example = summation()
        study = pinned(resolve(protocol_of("sum"), example.study))
        starts = starts_of(study)
        self.study_starts = starts
        me, rude = starts["receiver"], starts["island-0"]
        journal = Journal(folder, me.journal_key, header_of(me, example.own["island-0"]), durable=False)
        self.journal = journal
        self.state = RunState(me, journal)
        self.link = Link(self.state, RunKeys(me), lambda: None, timing=QUICK, judge=None)  # type: ignore[arg-type,return-value]
        self.link.deliver = dict.fromkeys(self.state.mine, lambda _: None)
        self.draw = random.Random(seed)
        self.boot = b"b" * 16
        self.cipher = RunKeys(rude).sending("receiver", self.boot)
        self.run = me.run_id[:16]
        self.sender, self.to = self.state.places[study.who("contributor")[0]], self.state.mine[0]
        self.peer = self.state.peer_of[self.sender]
        self.sealer = Sealer(self.cipher, me.run_id[:16], self.peer.place, self.boot)
        self.peer.adopt(1, self.boot, None)
        self._good = [self._data(os.urandom(self.draw.randrange(300))) for _ in range(50)]
        self._number = 1 << 20

    def _data(self, payload: bytes) -> bytes:
        digest = hashlib.sha256(payload).digest()
        return next(self.sealer.data(self.sender, self.to, self.draw.randrange(1, 400), payload, digest, 1))

    def feed(self, frame: bytes) -> None:
        self.link.arrived(Arrived("", frame, 1))
        self.link._posts.clear()

    def changed(self) -> bytes:
        """A good frame with flipped bits, cut, lengthened, or with a piece of nonsense in it."""
        frame, draw = bytearray(self.draw.choice(self._good)), self.draw
        match draw.randrange(4):
            case 0:
                frame[draw.randrange(len(frame))] ^= 1 << draw.randrange(8)
            case 1:
                del frame[draw.randrange(len(frame)) :]
            case 2:
                frame += bytes(draw.randrange(1, 200))
            case _:
                at = draw.randrange(len(frame))
                frame[at : at + draw.randrange(20)] = os.urandom(8)
        return bytes(frame)

    def sealed_nonsense(self) -> bytes:
        """A frame under the right key, with numbers and content at random."""
        draw = self.draw
        self._number += 1
        kind = draw.randrange(11)
        body = self._body(kind)
        small = draw.random() < 0.7
        message = kind in (wire.DATA, wire.SHARED)
        head = Head(
            kind,
            self.sender if small else draw.randrange(1 << 16),
            self.to if small else draw.randrange(1 << 16),
            draw.randrange(600) if message else draw.choice((0, 0, 0, 7)),
            0 if small else draw.randrange(1 << 32),
            len(body) if draw.random() < 0.9 else draw.randrange(1 << 40),
            1 if message else 0,
            os.urandom(32) if message and draw.random() < 0.5 else self._digest(kind, body),
        )
        cover = Cover(
            wire.VERSION if draw.random() < 0.95 else draw.randrange(256),
            self.run,
            self.peer.place if small else draw.randrange(1 << 16),
            self.boot,
            self._number,
        )
        raw = wire._COVER.pack(*cover)
        return raw + self.cipher.encrypt(self._number.to_bytes(12, "little"), self._filled(head, body), raw)

    def _filled(self, head: Head, body: bytes) -> bytes:
        plain = wire._filled(head.pack(), body)
        match self.draw.randrange(40):
            case 0:
                return plain + bytes(wire.BLOCK)
            case 1:
                return plain[: -wire.BLOCK]
            case 2:
                return plain[:-1] + b"x"
            case _:
                return plain

    def _digest(self, kind: int, body: bytes) -> bytes:
        return hashlib.sha256(body).digest() if kind == wire.DATA else bytes(32)

    def _body(self, kind: int) -> bytes:
        draw = self.draw
        if kind == wire.SHARED and draw.random() < 0.8:
            return os.urandom(wire.TICKET_BYTES)
        if kind == wire.DATA or draw.random() < 0.3:
            return os.urandom(draw.randrange(400))
        counts = tuple(draw.randrange(1 << draw.randrange(1, 60)) for _ in range(draw.randrange(4)))
        one = (draw.randrange(1 << draw.randrange(1, 50)),)
        fields = [draw.randrange(5), os.urandom(draw.choice((0, 16))), counts, one, one, one, one, 0, b"", ()]
        if draw.random() < 0.2:
            fields[draw.randrange(len(fields))] = draw.choice((None, -1, "text", [[]], {"a": 1}, 1 << 63))
        return msgspec.msgpack.encode(fields)

    def reset(self) -> None:
        """After a failure that the nonsense proved, which ends a run: the next frames meet a new one."""
        from concurrent.futures import Future

        self.link.failure, self.link.ready = Future(), Future()


def fuzz(target: Target, count: int) -> int:
    """So many frames, half of them sealed; returns how often they ended the run, as a lying partner may."""
    ended = 0
    for number in range(count):
        target.feed(target.changed() if number % 2 else target.sealed_nonsense())
        if target.link.failure.done():
            assert target.link.cause is not None
            ended += 1
            target.reset()
    return ended


__all__ = ["Status", "Target", "fuzz"]
