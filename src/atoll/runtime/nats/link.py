"""The link of one party: a thread that moves frames, journals what arrives, acknowledges, resends and greets.

Roles compute for minutes; acknowledgements must not wait for them. So the carrier, the channels and the journal's
syncs have an event loop in a thread of their own. Roles hand their messages over (:meth:`Link.send`) and are told
what arrives through the callback that they set; they wait for anything else by :meth:`Link.when`.

Nothing leaves before the journal's entry of it is on disk, and nothing is acknowledged before it is on disk itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from atoll import randomness
from atoll.errors import AtollError, MessageError, PartyDoubled, PartyLeft, ResumeRefused, RunError
from atoll.runtime import journal as j
from atoll.runtime.journal import Probe
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Arrived, Carrier, CarrierClosed
from atoll.runtime.nats.channel import Incoming, Lane, Payload, Peer
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.state import Happening, RunState, ended
from atoll.runtime.nats.wire import Head, Sealer, Status

CarrierFactory = Callable[[], Carrier]
_NONCE_BYTES: Final = 16
_IN_MEMORY: Final = 1 << 14
"""Messages up to this size are not read back from disk."""


class Timing(NamedTuple):
    """Seconds. The deadline is how long a party may be silent."""

    deadline: float = 600.0
    beat: float = 2.0
    """Between signs of life."""
    ask: float = 0.5
    """After which a question is asked again, and after which silence about a message is questioned."""
    grace: float = 0.3
    """How long another node of this party has to say that it is alive."""
    linger: float = 30.0
    """How long a party that is done waits for the others to be done."""
    group: float = 0.002
    """For how long arrivals are collected before one sync and one acknowledgement for all."""


class Judge(NamedTuple):
    """The one party that decides who has left, and how many contributors may."""

    party: int
    may_leave: int
    contributors: frozenset[int]


class Link:
    """One party's connection to all others of the run."""

    def __init__(
        self,
        state: RunState,
        keys: RunKeys,
        carrier: CarrierFactory,
        *,
        timing: Timing,
        judge: Judge | None,
        probe: Probe | None = None,
    ) -> None:
        self.state, self.journal, self.timing = state, state.journal, timing
        self._keys, self._make_carrier, self._judge = keys, carrier, judge
        self._probe = probe or (lambda _: None)
        self._run = state.start.run_id[:16]
        self._topic = state.start.topic
        self.counts: Counter[str] = Counter()
        """Frames that were refused, doubled, resent."""
        self.failure: Future[None] = Future()
        self.ready: Future[None] = Future()
        """Done when every other party has said what it knows of this one."""
        self.deliver: dict[int, Callable[[Happening], None]] = {}
        """By role; called in the link's thread."""
        self._own = Peer(state.me, state.start.me, state.start.fingerprint(state.start.me), state.mine, state.mine)
        self._own.out, self._own.into = {}, {}
        for peer in (*state.peers.values(), self._own):
            peer.sealer = Sealer(keys.sending(peer.name, self.journal.boot), self._run, self.journal.boot)
        self._queue: deque[tuple[Peer, Lane, int]] = deque()
        self._queued: set[tuple[Lane, int]] = set()
        self._posts: deque[tuple[Peer, int, bytes, str, int]] = deque()
        self._waiters: list[tuple[Callable[[], bool], Future[None]]] = []
        self._to_tell: set[Peer] = set()
        self._position = 0
        self._echo = 0.0
        self.done = False
        self.told = False
        """Whether another party has ended the run."""
        self.waiting = False
        self._pool = ThreadPoolExecutor(2, "atoll-sync")
        self._thread = threading.Thread(target=self._run_loop, name="atoll-link", daemon=True)
        self._begun = threading.Event()

    def __repr__(self) -> str:
        return f"<Link of {self.state.start.me}: {dict(self.counts)}>"

    # ---- from other threads ----

    def start(self) -> None:
        """Connect and greet, in a thread of its own."""
        self._thread.start()
        self._begun.wait()

    def stop(self) -> None:
        """End the thread; nothing more leaves."""
        self._call(self._stopping.set)
        self._thread.join()

    def send(self, lane: Lane, seq: int, payload: Payload) -> None:
        """Take a role's message; it leaves once the journal's entry of it is on disk."""
        self._call(self._take, lane, seq, payload)

    def when(self, holds: Callable[[], bool]) -> Future[None]:
        """Done when ``holds``, which is looked at in the link's thread whenever anything changes."""
        future: Future[None] = Future()
        self._call(self._wait_for, holds, future)
        return future

    def do(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Run one of the coroutines below in the link's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise CarrierClosed("the link was closed") from None

    # ---- the thread ----

    def _run_loop(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  whatever it is, the roles must hear of it
            self._fail(error)
        finally:
            self._begun.set()
            self._pool.shutdown(wait=False)
            for _, future in self._waiters:
                future.cancel()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping, self._to_send, self._to_post, self._to_keep = (asyncio.Event() for _ in range(4))
        self._begun.set()
        self._carrier = self._make_carrier()
        await self._carrier.connect()
        self._carrier.on_reconnect = self._reconnected
        now = time.monotonic()
        for peer in self.state.peers.values():
            peer.last = peer.moved = now
        works = (self._read(), self._send_all(), self._post_all(), self._keep_all(), self._beat(), self._greet())
        tasks = [asyncio.create_task(work) for work in works]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await self._until(stop, set(tasks))
        finally:
            for task in (*tasks, stop):
                task.cancel()
            await asyncio.gather(*tasks, stop, return_exceptions=True)
            await self._carrier.close()

    async def _until(self, stop: asyncio.Task[Any], tasks: set[asyncio.Task[None]]) -> None:
        pending: set[asyncio.Task[Any]] = {stop, *tasks}
        while not stop.done():
            ended_, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended_ - {stop}:
                task.result()

    def _fail(self, error: BaseException) -> None:
        for future in (self.failure, self.ready):
            if not future.done():
                future.set_exception(error)

    def _wait_for(self, holds: Callable[[], bool], future: Future[None]) -> None:
        self._waiters.append((holds, future))
        self._changed()

    def _changed(self) -> None:
        """Let go whoever waits for what now holds."""
        still = []
        for holds, future in self._waiters:
            if future.cancelled():
                continue
            if holds():
                future.set_result(None)
            else:
                still.append((holds, future))
        self._waiters = still

    # ---- sending ----

    def _take(self, lane: Lane, seq: int, payload: Payload) -> None:
        if lane in self.state.local:
            self._take_local(self.state.local[lane], seq, payload)
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

    def _enqueue(self, peer: Peer, lane: Lane, seq: int) -> None:
        if (lane, seq) not in self._queued:
            self._queued.add((lane, seq))
            self._queue.append((peer, lane, seq))
            self._to_send.set()

    async def _send_all(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            while self._queue:
                batch, self._queue = self._queue, deque()
                waiting = [p for peer, lane, seq in batch if (p := peer.out[lane].waiting.get(seq))]
                await self._on_disk(max((payload.lsn for payload in waiting), default=0))
                for peer, lane, seq in batch:
                    self._queued.discard((lane, seq))
                    await self._publish(peer, lane, seq)

    async def _on_disk(self, lsn: int) -> None:
        """One sync for all that waits."""
        if self.journal.synced < lsn:
            await self._loop.run_in_executor(self._pool, self.journal.sync, lsn)

    async def _publish(self, peer: Peer, lane: Lane, seq: int) -> None:
        out = peer.out[lane]
        payload = out.waiting.get(seq)
        if payload is None or peer.gone:
            return
        self.counts["resent" if seq <= out.published else "sent"] += 1
        for frame in peer.sealer.data(*lane, seq, payload.data, payload.digest, payload.depth):
            self._probe("publish")
            await self._carrier.publish(peer.fingerprint, self._topic, frame)
        out.published = max(out.published, seq)
        peer.moved = time.monotonic()

    def _resend(self, peer: Peer, got: wire.Counts) -> None:
        """Send again what had left when the other was asked, and has not arrived."""
        for lane, count in zip(peer.out.values(), got, strict=True):
            upto = peer.asked.get(lane.lane, lane.published)
            for seq in [s for s in lane.waiting if count < s <= upto]:
                self._enqueue(peer, lane.lane, seq)

    def _post(self, peer: Peer, kind: int, nonce: bytes = b"", error: str = "", role: int = 0) -> None:
        self._posts.append((peer, kind, nonce, error, role))
        self._to_post.set()

    async def _post_all(self) -> None:
        while True:
            await self._to_post.wait()
            self._to_post.clear()
            while self._posts:
                peer, kind, nonce, error, role = self._posts.popleft()
                status = peer.status(
                    self.journal.number,
                    nonce=nonce,
                    gone=tuple(sorted(self.state.gone)) if self._judging else (),
                    waiting=self.waiting,
                    heard=peer.done,
                    error=error,
                    role=role,
                )
                frame = peer.sealer.status(kind, peer.my_first, peer.first, status)
                self._probe("post")
                await self._carrier.publish(peer.fingerprint, self._topic, frame)

    # ---- receiving ----

    async def _read(self) -> None:
        async for arrived in self._carrier.frames(self._topic):
            self._position = max(self._position, arrived.position)
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
            self._fail(error)

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

    def _tell(self, peer: Peer) -> None:
        self._to_tell.add(peer)
        self._to_keep.set()

    async def _keep_all(self) -> None:
        """One sync for all that arrived, then acknowledgements; then the hub may forget."""
        lanes = [*self.state.local.values(), *(lane for p in self.state.peers.values() for lane in p.into.values())]
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
            if position and time.monotonic() > forgotten + self.timing.ask:
                forgotten = time.monotonic()
                await self._carrier.forget(self._topic, position)

    # ---- what others say ----

    def _handle_hello(self, peer: Peer, head: Head, status: Status) -> None:
        if head.boot != peer.boot and status.number > peer.number and not peer.is_old(status):
            self._adopt(peer, head, status)
        if head.boot == peer.boot:
            self._hear(peer, status)
        # One that is old is answered too: it will see that it is.
        self._post(peer, wire.STATE, status.nonce)
        if head.boot == peer.boot:
            peer.asked = {lane: out.published for lane, out in peer.out.items()}
            self._resend(peer, status.got)

    def _handle_state(self, peer: Peer, head: Head, status: Status) -> None:
        if not peer.nonce or status.nonce != peer.nonce:
            return  # an old answer, read again
        peer.check_answer(status, self.journal.number, self.journal.boot)
        if head.boot != peer.boot and status.number > peer.number:
            self._adopt(peer, head, status)
        if head.boot != peer.boot:
            return
        if peer.is_old(status):
            self.counts["old journal"] += 1
            return
        peer.nonce, peer.answered = b"", True
        self._hear(peer, status)
        self._resend(peer, status.got)
        self._changed()

    def _adopt(self, peer: Peer, head: Head, status: Status) -> None:
        peer.adopt(status.number, head.boot, status.sent)
        self.journal.append(j.PeerBoot(peer.place, status.number, head.boot))

    def _handle_news(self, peer: Peer, head: Head, status: Status) -> None:
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
        if not peer.answered:
            peer.check_answer(status, self.journal.number, self.journal.boot)
        self._hear(peer, status)
        if not peer.done:
            peer.done = True
            self.journal.append(j.PeerDone(peer.place, status.has))
        if self.done and not status.heard:
            self._post(peer, wire.DONE)
        self._changed()

    def _handle_abort(self, peer: Peer, head: Head, status: Status) -> None:
        if self.done or self.state.finished:
            return
        role = status.role if status.role < len(self.state.addresses) else peer.first
        self.journal.append(j.Aborted(status.error[:64], role))
        self.told = True
        self._fail(ended(status.error, str(self.state.addresses[role])))

    def _handle_own(self, head: Head, status: Status) -> None:
        """Frames to oneself: they show that the hub is there, and find a second node of this party."""
        if head.boot == self.journal.boot:
            self._echo = time.monotonic()
            self._changed()
        elif head.kind == wire.HELLO and self.ready.done():
            self._post(self._own, wire.ALIVE, status.nonce)
        elif head.kind == wire.ALIVE and self._own.nonce and status.nonce == self._own.nonce:
            raise ResumeRefused(
                "another node of this party is at work on this run",
                hint="end one of the two: a party takes part once",
            )

    # ---- starts ----

    async def _greet(self) -> None:
        """Ask everybody what they know of this party, before anything is drawn or sent."""
        everyone = (*self.state.peers.values(), self._own)
        for peer in everyone:
            peer.nonce = randomness.fresh_seed()[:_NONCE_BYTES]
        greeted = self.when(self._is_greeted)
        while not greeted.done() and not self.state.finished:
            for peer in everyone:
                if not (peer.answered or peer.gone or peer.done):
                    self._post(peer, wire.HELLO, peer.nonce)
            await asyncio.wait({asyncio.wrap_future(greeted)}, timeout=self.timing.ask)
        if self.state.resumed and not self.state.finished:
            await asyncio.sleep(self.timing.grace)  # another node of this party would have said so by now
        if not self.ready.done():
            self.ready.set_result(None)

    def _is_greeted(self) -> bool:
        asked = self.state.peers.values()
        return self._echo > 0 and all(peer.answered or peer.gone or peer.done for peer in asked)

    def _reconnected(self) -> None:
        """Frames may have been lost: ask again."""
        for peer in self.state.peers.values():
            if self.ready.done() and not peer.settled:
                self._ask(peer)

    def _ask(self, peer: Peer) -> None:
        peer.nonce = peer.nonce or randomness.fresh_seed()[:_NONCE_BYTES]
        peer.asked = {lane: out.published for lane, out in peer.out.items()}
        peer.moved = time.monotonic()
        self._post(peer, wire.HELLO, peer.nonce)

    # ---- signs of life, and their absence ----

    async def _beat(self) -> None:
        beaten = 0.0
        while True:
            await asyncio.sleep(self.timing.ask / 2)
            now = time.monotonic()
            for peer in self.state.peers.values():
                if self.ready.done() and not peer.settled and now > peer.moved + self.timing.ask:
                    self._ask(peer)
            if now > beaten + self.timing.beat:
                beaten = now
                for peer in (*self.state.peers.values(), self._own):
                    if not peer.gone:
                        self._post(peer, wire.NEWS)
            if now < self._echo + 3 * self.timing.beat:  # else it is this party that nobody hears
                await self._look_for_silence(now)

    async def _look_for_silence(self, now: float) -> None:
        for peer in self.state.peers.values():
            if peer.gone or peer.done or self.done or now < peer.last + self.timing.deadline:
                continue
            if self._judging and self._may_go(peer):
                await self._declare(peer)
            elif self._judge is None or not self._may_go(peer):
                raise PartyLeft(
                    f"nothing was heard from {peer.name} for {self.timing.deadline:.0f} seconds",
                    hint=f"ask {peer.name} whether its node runs; then start a new run",
                )

    @property
    def _judging(self) -> bool:
        return self._judge is not None and self._judge.party == self.state.me

    def _may_go(self, peer: Peer) -> bool:
        judge = self._judge
        return (
            judge is not None
            and peer.place in judge.contributors
            and peer.place != judge.party
            and len(self.state.gone | {peer.place}) <= judge.may_leave
        )

    async def _declare(self, peer: Peer) -> None:
        """This party decides that another has left: on disk first, then told to all."""
        self._leave(peer.place)
        await self._loop.run_in_executor(self._pool, self.journal.sync)
        for other in self.state.peers.values():
            if not other.gone:
                self._post(other, wire.NEWS)

    def _leave(self, party: int) -> None:
        if party in self.state.gone:
            return
        if party == self.state.me:
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

    # ---- the end ----

    async def finish(self) -> None:
        """After the last role: until all that was sent is where it was sent to, and everybody is done."""
        await asyncio.wrap_future(self.when(lambda: all(p.settled for p in self.state.peers.values())))
        self.journal.append(j.Finished())
        await self._loop.run_in_executor(self._pool, self.journal.sync)
        self.done = True
        others = [peer for peer in self.state.peers.values() if not peer.gone]
        until = time.monotonic() + self.timing.linger
        all_done = self.when(lambda: all(peer.done and peer.heard for peer in others))
        while not all_done.done() and time.monotonic() < until:
            for peer in others:
                if not (peer.done and peer.heard):
                    self._post(peer, wire.DONE)
            await asyncio.wait({asyncio.wrap_future(all_done)}, timeout=self.timing.ask)
        for peer in others:
            self._post(peer, wire.DONE)
        await self._flush()

    async def abort(self, error: BaseException, role: int) -> None:
        """End the run for everybody: they are told the error's class and the role, and no text."""
        kind = type(error).__name__ if isinstance(error, AtollError) else "RoleFailed"
        self.journal.append(j.Aborted(kind, role))
        await self._loop.run_in_executor(self._pool, self.journal.sync)
        for peer in self.state.peers.values():
            self._post(peer, wire.ABORT, b"", kind, role)
        await self._flush()

    async def _flush(self) -> None:
        for _ in range(100):
            if not self._posts:
                break
            await asyncio.sleep(self.timing.ask / 50)


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


__all__ = ["CarrierFactory", "Judge", "Link", "PartyDoubled", "Timing"]
