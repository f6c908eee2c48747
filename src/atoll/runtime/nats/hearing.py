"""The receiving half of a link: frames from anybody, what they may be, and what follows from them.

All of it runs in the link's thread. A frame that is not exactly as it must be is counted and dropped; an
error that one party's frames prove ends the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

from atoll.errors import AtollError, MessageError, PartyLeft, ResumeRefused, RunError
from atoll.runtime import entries
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Arrived
from atoll.runtime.nats.channel import Incoming, Lane, Payload, Peer
from atoll.runtime.nats.sending import Sending
from atoll.runtime.nats.state import Happening, ended
from atoll.runtime.nats.wire import Head, Status, Ticket

_IN_MEMORY: Final = 1 << 14
"""Messages up to this size are not read back from disk."""
_KNOWN_CIPHERS: Final = 16
_AT_ONCE: Final = 16
"""How many parts of a shared message are asked for at once."""


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
        self._says_done = False
        """Whether it tells others that it is done: among many the chair does when all are."""
        self._to_tell: set[Peer] = set()
        self._touched: list[Incoming] = []
        """Lanes on which something arrived that is not yet known to be on disk."""
        self._known_at: dict[int, int] = {}
        """By party: the place in the journal where its latest start is written down."""
        self._tickets: dict[tuple[int, int, int], tuple[Peer, Head, Ticket]] = {}
        """To contents that are to be fetched, by lane and number."""
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
                while self._tickets:
                    _, fetched = self._tickets.popitem()
                    await self._fetch(*fetched)

    def arrived(self, arrived: Arrived) -> None:
        """One frame, from anybody: what is not as it must be is counted and dropped."""
        with self._judged():
            cover = wire.read_cover(arrived.frame, self._run)
            peer = self._own if cover.party == self.state.me else self.state.peers.get(cover.party)
            if peer is None:
                raise MessageError("a frame is from nobody in the study")
            cipher = peer.ciphers.get(cover.boot) or self._keys.receiving(peer.name, cover.boot)
            head, body = wire.unseal(cipher, cover, arrived.frame)
            peer.ciphers.setdefault(cover.boot, cipher)
            while len(peer.ciphers) > _KNOWN_CIPHERS:
                peer.ciphers.pop(next(iter(peer.ciphers)))
            self._check_roles(peer, head)
            self._handle(peer, head, body)

    @contextlib.contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except MessageError:
            self.counts["refused"] += 1
        except AtollError as error:
            self._fail(error, concerns_all=True)

    def _check_roles(self, peer: Peer, head: Head) -> None:
        its = self.state.peer_of.get(head.sender, self._own if head.sender in self.state.mine else None)
        if its is not peer or head.to not in self.state.mine:
            raise MessageError("a frame is between roles of other parties")

    def _handle(self, peer: Peer, head: Head, body: memoryview) -> None:
        if head.kind in (wire.DATA, wire.SHARED):
            self._handle_message(peer, head, body)
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

    def _handle_message(self, peer: Peer, head: Head, body: memoryview) -> None:
        if peer is self._own or peer.gone:
            raise MessageError("nothing is due from there")
        if not peer.boot and not self.circle.whole:
            # A first start: one that starts again would have asked, and this party would know it.
            self._adopt(peer, 1, head.boot, None)
        if not peer.check_frame(head):
            self.counts["old"] += 1
            return
        peer.last = time.monotonic()
        lane = peer.into[head.sender, head.to]
        if not lane.wants(head):
            self.counts["doubled"] += 1
            self._tell(peer)  # an acknowledgement may have been lost
            return
        if head.kind == wire.SHARED:
            self._tickets[head.sender, head.to, head.seq] = peer, head, wire.read_ticket(body)
            return
        self._arrive(lane, head, body)
        self._tell(peer)

    async def _fetch(self, peer: Peer, head: Head, ticket: Ticket) -> None:
        """A content that lies at the hub, some parts at a time. If it is not there, its sender is asked."""
        lane, name = peer.into[head.sender, head.to], ticket.name.hex()
        for first in range(0, head.parts, _AT_ONCE):
            parts = range(first, min(head.parts, first + _AT_ONCE))
            asked = (self._carrier.shared(peer.fingerprint, self._topic, name, part) for part in parts)
            for part, sealed in zip(parts, await asyncio.gather(*asked), strict=True):
                with self._judged():
                    if sealed is None:
                        raise MessageError("a shared message is not at the hub")
                    if peer.gone or not peer.check_frame(head) or not lane.wants(head):
                        return
                    content = wire.open_content(ticket, self._run, head, part, sealed)
                    self._arrive(lane, head._replace(kind=wire.DATA, part=part), content)
                    continue
                return
        self._tell(peer)

    def _arrive(self, lane: Incoming, head: Head, data: bytes | memoryview, *, whole: bool = False) -> None:
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
        self._touched.append(lane)
        if not arrivals:
            self._changed()  # a role may wait for the bytes of a message that is in its inbox already
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
        if payload.shared is not None:
            payload.shared.holders.append((out, seq))
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
        forgotten = 0.0
        while True:
            await self._to_keep.wait()
            await asyncio.sleep(self.timing.group)
            self._to_keep.clear()
            position, told = self._position, list(self._to_tell)
            got = [(lane, lane.got) for lane in self._touched]
            self._to_tell.clear()
            self._touched.clear()
            await self._beside(self.journal.sync_bulk)
            for lane, count in got:
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
        self._answer(peer, status.nonce)
        if head.boot == peer.boot:
            # What it did not have when it asked may be on its way: if not, this party's own question tells.
            self._hear(peer, status)

    def _answer(self, peer: Peer, nonce: bytes) -> None:
        """What is known of a party: once it is on disk, for its next start may depend on it."""
        known_at = self._known_at.get(peer.place, 0)
        if not self.journal.durable:
            self.journal.sync(known_at)
        if self.circle.whole or self.journal.synced >= known_at:
            self._post(peer, wire.STATE, nonce)
            return

        def answer(synced: asyncio.Future[None]) -> None:
            if not synced.cancelled() and synced.exception() is None:
                self._post(peer, wire.STATE, nonce)

        self._loop.run_in_executor(self._pool, self.journal.sync, known_at).add_done_callback(answer)

    def _handle_state(self, peer: Peer, head: Head, status: Status) -> None:
        if not peer.nonce or status.nonce != peer.nonce:
            return  # an old answer, read again
        peer.check_answer(status, self.journal.number, self.journal.boot)
        self._consider(peer, head, status)
        if self._is_first and status.peer_boot != self.journal.boot:
            return  # it has not written down the name of this start
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
            again = bool(peer.boot)
            self._adopt(peer, status.number, head.boot, status.sent)
            if again:  # what the start before it had may be lost; to a first one it is on its way
                peer.asked = {lane: out.published for lane, out in peer.out.items()}
                self._resend(peer, status.got)

    def _adopt(self, peer: Peer, number: int, boot: bytes, sent: wire.Counts | None) -> None:
        peer.adopt(number, boot, sent)
        self._known_at[peer.place] = self.journal.append(entries.PeerBoot(peer.place, number, boot))

    def _handle_news(self, peer: Peer, head: Head, status: Status) -> None:
        self._consider(peer, head, status)
        if head.boot == peer.boot and head.number > peer.latest:
            peer.latest = head.number
            self._hear(peer, status)

    def _hear(self, peer: Peer, status: Status) -> None:
        """Acknowledgements, departures and a sign of life."""
        now = time.monotonic()
        peer.last = peer.said = now
        peer.waits, peer.heard = status.waiting, peer.heard or status.heard
        for lane in peer.acknowledge(status.has):
            peer.moved = now
            self.journal.append(entries.Acked(*lane.lane, lane.acked))
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
            self.journal.append(entries.PeerDone(peer.place, status.has))
        if self._says_done and not status.heard:
            self._post(peer, wire.DONE)
        elif not self.circle.whole:
            self._post(peer, wire.NEWS)
        self._changed()

    def _handle_abort(self, peer: Peer, _: Head, status: Status) -> None:
        if not status.ready:
            return
        if self.done or self.state.finished:
            self._let_go(peer)
            return
        if self.told:
            return
        role = status.role if status.role < len(self.state.addresses) else peer.first
        kind = status.error[:64]
        self.journal.append(entries.Aborted(kind, role))
        self.told = True
        # Whoever is done already waits for this party too, and must hear that it has ended.
        for other in self.near:
            if other is not peer and not other.gone:
                self._post(other, wire.ABORT, b"", kind, role)
        self._fail(ended(kind, str(self.state.addresses[role])))

    def _let_go(self, peer: Peer) -> None:
        """What this party did stands, and it need not wait any longer for one that ended by an error."""
        if not (peer.ended or peer.done):
            peer.ended = True
            self.journal.append(entries.PeerEnded(peer.place))
            self._changed()

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
        self.journal.append(entries.Gone(party))
        self.state.gone.add(party)
        self._quiet_since = 0.0  # roles have news: they no longer wait for nothing
        peer = self.state.peers[party]
        peer.gone = True
        for lane in peer.out.values():
            lane.waiting.clear()
        for role in self.state.mine:
            self.deliver[role](entries.Gone(party))
        self._changed()


def _local_head(lane: Lane, seq: int, payload: Payload) -> Head:
    return Head(wire.DATA, *lane, seq, 0, len(payload.data), payload.depth, payload.digest)
