"""The receiving half of a link: frames from anybody, what they may be, and what follows from them.

All of it runs in the link's thread. A frame that is not exactly as it must be is counted and dropped; an
error that one party's frames prove ends the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from atoll.errors import AtollError, MessageError, PartyLeft, ResumeRefused, RunError
from atoll.runtime import journal as j
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Arrived
from atoll.runtime.nats.channel import Incoming, Lane, Payload, Peer
from atoll.runtime.nats.sending import Sending
from atoll.runtime.nats.state import Happening, ended
from atoll.runtime.nats.wire import Head, Status

_IN_MEMORY: Final = 1 << 14
"""Messages up to this size are not read back from disk."""
_KNOWN_CIPHERS: Final = 16


class Hearing(Sending):
    """What arrives, is kept and acknowledged; what others say of themselves and of this party."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.failure: Future[None] = Future()
        self.ready: Future[None] = Future()
        """Done when every other party has said what it knows of this one."""
        self.deliver: dict[int, Callable[[Happening], None]] = {}
        """By role; called in the link's thread."""
        self.done = False
        self.told = False
        """Whether the others know how the run ended here."""
        self.concerns_all = False
        """Whether the failure is the run's, and not only this node's."""
        self._to_tell: set[Peer] = set()
        self._position = 0
        self._echo = 0.0

    def _fail(self, error: BaseException, *, concerns_all: bool = False) -> None:
        if not self.failure.done():
            self.concerns_all = concerns_all
        for future in (self.failure, self.ready):
            if not future.done():
                future.set_exception(error)

    @property
    def cause(self) -> BaseException | None:
        """Why the link failed, if it did."""
        failed = self.failure.done() and not self.failure.cancelled()
        return self.failure.exception() if failed else None

    # ---- frames ----

    async def _read(self) -> None:
        async with contextlib.aclosing(self._carrier.frames(self._topic)) as frames:
            async for arrived in frames:
                self._position = arrived.position
                self.arrived(arrived)

    def arrived(self, arrived: Arrived) -> None:
        """One frame, from anybody: what is not as it must be is counted and dropped."""
        try:
            head = wire.read_head(arrived.frame, self._run)
            peer = self._sender(head)
            body = wire.unseal(self._cipher(peer, head.boot), head, arrived.frame)
            peer.ciphers.setdefault(head.boot, self._cipher(peer, head.boot))
            while len(peer.ciphers) > 16:
                peer.ciphers.pop(next(iter(peer.ciphers)))
            self._handle(peer, head, body)
        except MessageError:
            self.counts["refused"] += 1
        except AtollError as error:
            self._fail(error, concerns_all=True)

    def _sender(self, head: Head) -> Peer:
        if head.to not in self.state.mine:
            raise MessageError("a frame is for another party")
        if head.sender in self.state.mine:
            return self._own
        if head.sender not in self.state.peer_of:
            raise MessageError("a frame is from nobody in the study")
        return self.state.peer_of[head.sender]

    def _cipher(self, peer: Peer, boot: bytes) -> Any:
        return peer.ciphers.get(boot) or self._keys.receiving(peer.name, boot)

    def _handle(self, peer: Peer, head: Head, body: bytes) -> None:
        if head.kind == wire.DATA:
            self._handle_data(peer, head, body)
            return
        status = wire.read_status(body)
        if peer is self._own:
            self._handle_own(head, status)
            return
        if not peer.fits(status):
            raise MessageError("a status is not about the lanes between us")
        handle = {
            wire.HELLO: self._handle_hello,
            wire.STATE: self._handle_state,
            wire.NEWS: self._handle_news,
            wire.DONE: self._handle_done,
            wire.ABORT: self._handle_abort,
        }.get(head.kind)
        if handle is None:
            raise MessageError("only a node of this party could say this")
        handle(peer, head, status)

    def _handle_data(self, peer: Peer, head: Head, body: bytes) -> None:
        if peer is self._own or peer.gone:
            raise MessageError("nothing is due from there")
        if not peer.check_frame(head):
            self.counts["old"] += 1
            return
        peer.last = time.monotonic()
        lane = peer.into[head.sender, head.to]
        if not lane.wants(head):
            self.counts["doubled"] += 1
            self._tell(peer)  # an acknowledgement may have been lost
            return
        self._arrive(lane, head, body)
        self._tell(peer)

    def _arrive(self, lane: Incoming, head: Head, data: bytes, *, whole: bool = False) -> None:
        if whole and head.parts > 1:
            arrivals = []
            for part in range(head.parts):
                piece = data[part * wire.CHUNK : (part + 1) * wire.CHUNK]
                arrivals += lane.take(head._replace(part=part), piece, self.journal)
        else:
            arrivals = lane.take(head, data, self.journal)
        for arrival in arrivals:
            if arrival.data is not None and len(arrival.data) > _IN_MEMORY:
                arrival.data = None
            self.deliver[lane.lane[1]](arrival)
        self._to_keep.set()

    # ---- messages of this party's own roles ----

    def _take(self, lane: Lane, seq: int, payload: Payload) -> None:
        if lane in self.state.local:
            try:
                self._take_local(self.state.local[lane], seq, payload)
            except BaseException as error:  # the disk is full, say: the roles must hear of it
                self._fail(error)
            return
        peer = self.state.peer_of[lane[1]]
        out = peer.out[lane]
        out.sent = max(out.sent, seq)
        if seq <= out.acked or peer.gone or peer.done:
            return
        out.waiting[seq] = payload
        peer.unacked += len(payload.data)
        peer.moved = time.monotonic()
        self._enqueue(peer, lane, seq)

    def _take_local(self, lane: Incoming, seq: int, payload: Payload) -> None:
        """A message between two roles of this party goes the same way, without the wire."""
        known = lane.known(seq)
        if known is not None and known != payload.digest:
            self._fail(RunError("a role's message to another role here is not what it was"))
        elif seq in lane.hollow or known is None:
            self._arrive(lane, _local_head(lane.lane, seq, payload), payload.data, whole=True)

    # ---- acknowledgements ----

    def _tell(self, peer: Peer) -> None:
        self._to_tell.add(peer)
        self._to_keep.set()

    async def _keep_all(self) -> None:
        """One sync for all that arrived, then acknowledgements; then the hub may forget."""
        lanes = [
            *self.state.local.values(),
            *(lane for p in self.state.peers.values() for lane in p.into.values()),
        ]
        forgotten = 0.0
        while True:
            await self._to_keep.wait()
            await asyncio.sleep(self.timing.group)
            self._to_keep.clear()
            position, told, got = self._position, list(self._to_tell), [lane.got for lane in lanes]
            self._to_tell.clear()
            await self._loop.run_in_executor(self._pool, self.journal.sync_bulk)
            for lane, count in zip(lanes, got, strict=True):
                lane.durable = max(lane.durable, count)
            for peer in told:
                self._post(peer, wire.NEWS)
            self._probe("ack")
            if position and self.is_ready and time.monotonic() > forgotten + self.timing.ask:
                forgotten = time.monotonic()
                await self._carrier.forget(self._topic, position)

    # ---- what others say ----

    def _handle_hello(self, peer: Peer, head: Head, status: Status) -> None:
        self._consider(peer, head, status)
        # A start that is not the one that counts is answered too: it may have to see that it is an old one.
        self._post(peer, wire.STATE, status.nonce)
        if head.boot == peer.boot:
            self._hear(peer, status)
            peer.asked = {lane: out.published for lane, out in peer.out.items()}
            self._resend(peer, status.got)

    def _handle_state(self, peer: Peer, head: Head, status: Status) -> None:
        if not peer.nonce or status.nonce != peer.nonce:
            return  # an old answer, read again
        peer.check_answer(status, self.journal.number, self.journal.boot)
        self._consider(peer, head, status)
        if peer.is_old(status):
            self.counts["old journal"] += 1
        elif head.boot == peer.boot:
            peer.nonce, peer.answered = b"", True
            self._hear(peer, status)
            self._resend(peer, status.got)
        elif status.number > peer.number:
            # It is starting too: what its journal says is an answer, but it may yet be refused.
            peer.answered = True
        self._changed()

    def _consider(self, peer: Peer, head: Head, status: Status) -> None:
        """Take a later start for the party, once it goes on from its journal and that is not an old one."""
        later = head.boot != peer.boot and status.number > peer.number
        if later:
            peer.last = time.monotonic()  # it is there, whatever comes of its start
        if later and status.ready and not peer.is_old(status):
            peer.adopt(status.number, head.boot, status.sent)
            self.journal.append(j.PeerBoot(peer.place, status.number, head.boot))
            peer.asked = {lane: out.published for lane, out in peer.out.items()}
            self._resend(peer, status.got)

    def _handle_news(self, peer: Peer, head: Head, status: Status) -> None:
        self._consider(peer, head, status)
        if head.boot == peer.boot and head.number > peer.latest:
            peer.latest = head.number
            self._hear(peer, status)

    def _hear(self, peer: Peer, status: Status) -> None:
        """Acknowledgements, departures and a sign of life."""
        now = time.monotonic()
        peer.last, peer.waits, peer.heard = now, status.waiting, peer.heard or status.heard
        for lane in peer.acknowledge(status.has):
            peer.moved = now
            self.journal.append(j.Acked(*lane.lane, lane.acked))
        if self._judge is not None and peer.place == self._judge.party:
            for party in status.gone:
                self._leave(party)
        self._changed()

    def _handle_done(self, peer: Peer, head: Head, status: Status) -> None:
        self._consider(peer, head, status)
        if not peer.answered:
            peer.check_answer(status, self.journal.number, self.journal.boot)
        self._hear(peer, status)
        if not peer.done:
            peer.done = True
            self.journal.append(j.PeerDone(peer.place, status.has))
        if self.done and not status.heard:
            self._post(peer, wire.DONE)
        self._changed()

    def _handle_abort(self, peer: Peer, _: Head, status: Status) -> None:
        if self.done or self.state.finished or not status.ready:
            return
        role = status.role if status.role < len(self.state.addresses) else peer.first
        self.journal.append(j.Aborted(status.error[:64], role))
        self.told = True
        self._fail(ended(status.error, str(self.state.addresses[role])))

    def _handle_own(self, head: Head, status: Status) -> None:
        """Frames to oneself: they show that the hub is there, and find a second node of this party."""
        if head.boot == self.journal.boot:
            now = time.monotonic()
            if now > self._echo + 3 * self.timing.beat:  # while this party was cut off, nobody was silent
                for peer in self.state.peers.values():
                    peer.last = max(peer.last, now)
            self._echo = now
            self._changed()
        elif head.kind == wire.HELLO and self.is_ready:
            self._post(self._own, wire.ALIVE, status.nonce)
        elif head.kind == wire.ALIVE and self._own.nonce and status.nonce == self._own.nonce:
            raise ResumeRefused(
                "another node of this party is at work on this run",
                hint="end one of the two: a party takes part once",
            )

    def _leave(self, party: int) -> None:
        if party in self.state.gone:
            return
        if party == self.state.me:
            self.told = True
            raise PartyLeft(
                "the run went on without this party: it was silent for too long",
                hint="its part is not in the result; a later run can include it again",
            )
        if party not in self.state.peers:
            raise MessageError("somebody left who was never there")
        self.journal.append(j.Gone(party))
        self.state.gone.add(party)
        peer = self.state.peers[party]
        peer.gone = True
        for lane in peer.out.values():
            lane.waiting.clear()
        for role in self.state.mine:
            self.deliver[role](j.Gone(party))
        self._changed()


def _local_head(lane: Lane, seq: int, payload: Payload) -> Head:
    total = len(payload.data)
    return Head(
        wire.VERSION,
        wire.DATA,
        b"",
        *lane,
        b"",
        0,
        seq,
        0,
        wire.parts_of(total),
        total,
        payload.digest,
        payload.depth,
    )
