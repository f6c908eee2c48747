"""The sending half of a link: what may leave, once it is on disk, and what others are told.

All of it runs in the link's thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

from atoll import randomness
from atoll.runtime.journal import Probe
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Carrier
from atoll.runtime.nats.channel import Lane, Payload, Peer, Shared
from atoll.runtime.nats.circle import beat_of, circle_of
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.state import RunState
from atoll.runtime.nats.wire import Sealer, Ticket

NONCE_BYTES: Final = 16


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
    stay: bool = False
    """Whether it waits for as long as any of them is heard now and then."""
    group: float = 0.002
    """For how long arrivals are collected before one sync and one acknowledgement for all."""


class Judge(NamedTuple):
    """The one party that decides who has left, and how many contributors may."""

    party: int
    may_leave: int
    contributors: frozenset[int]


class Sending:
    """Queues of messages and of words between parties, and whoever waits for something to hold."""

    _loop: asyncio.AbstractEventLoop
    _carrier: Carrier

    def __init__(
        self,
        state: RunState,
        keys: RunKeys,
        timing: Timing,
        judge: Judge | None,
        probe: Probe | None,
        chair: int = 0,
    ) -> None:
        self.state, self.journal = state, state.journal
        self.timing = timing._replace(beat=beat_of(timing.beat, timing.deadline, len(state.parties)))
        self.circle = circle_of(state.me, len(state.parties), chair if judge is None else judge.party)
        self.near = [state.peers[place] for place in self.circle.near]
        self._keys, self._judge = keys, judge
        self._probe = probe or (lambda _: None)
        self._run = state.start.run_id[:16]
        self._topic = state.start.topic
        self.counts: Counter[str] = Counter()
        """Frames that were sent, resent, doubled, refused."""
        self._own = Peer(
            state.me, state.start.me, state.start.fingerprint(state.start.me), state.mine, state.mine
        )
        self._own.out, self._own.into = {}, {}
        self._queue: deque[tuple[Peer, Lane, int]] = deque()
        self._queued: set[tuple[Lane, int]] = set()
        self._contents: dict[str, Shared] = {}
        """What lies at the hub for several receivers, by name."""
        self._posts: dict[tuple[int, int], tuple[Peer, bytes, str, int]] = {}
        """By party and kind: a newer word replaces an older one, so that nobody can make them pile up."""
        self._waiters: list[tuple[Callable[[], bool], Future[None]]] = []
        self._to_send, self._to_post, self._to_keep, self._posted = (asyncio.Event() for _ in range(4))
        self._posted.set()
        self._pool = ThreadPoolExecutor(2, "atoll-sync")
        self._declared = tuple(sorted(state.gone)) if self._judging else ()
        """Who has left, as this party alone decides, and has on disk."""
        self.is_ready = False
        """Whether this start goes on from its journal: until then nobody takes it for the party."""
        self._is_first = not (state.resumed or self.circle.whole)
        """Whether this is a first start among many: its circle takes it for the party, or knows another."""
        self.waiting = False
        """Whether every role of this party waits."""

    @property
    def _judging(self) -> bool:
        return self._judge is not None and self._judge.party == self.state.me

    def _sealer(self, peer: Peer) -> Sealer:
        """What seals frames to another party. Among many most pairs never need one."""
        if peer.sealer is None:
            cipher = self._keys.sending(peer.name, self.journal.boot)
            peer.sealer = Sealer(cipher, self._run, self.state.me, self.journal.boot)
        return peer.sealer

    # ---- whoever waits ----

    def _wait_for(self, holds: Callable[[], bool], future: Future[None]) -> None:
        self._waiters.append((holds, future))
        self._changed()

    def _changed(self) -> None:
        """Let go whoever waits for what now holds."""
        still = []
        for holds, future in self._waiters:
            if not holds():
                still.append((holds, future))
            elif future.set_running_or_notify_cancel():
                future.set_result(None)
        self._waiters = still

    # ---- messages ----

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
            await self._beside(self.journal.sync, lsn)

    async def _beside(self, sync: Callable[..., None], *upto: int) -> None:
        """Sync the journal beside the link's thread; where nothing waits for a disk, at once."""
        if self.journal.durable:
            await self._loop.run_in_executor(self._pool, sync, *upto)
        else:
            sync(*upto)

    async def _publish(self, peer: Peer, lane: Lane, seq: int) -> None:
        out = peer.out[lane]
        payload = out.waiting.get(seq)
        if payload is None or peer.gone:
            return
        again = seq <= out.published
        self.counts["resent" if again else "sent"] += 1
        sealer = self._sealer(peer)
        frames: Iterable[bytes] = sealer.data(*lane, seq, payload.data, payload.digest, payload.depth)
        # Whoever did not get it by its ticket gets the message itself.
        if not again and (ticket := await self._shared(payload)) is not None:
            size, digest, depth = len(payload.data), payload.digest, payload.depth
            frames = [sealer.shared(*lane, seq, size, digest, depth, ticket)]
        for frame in frames:
            self._probe("publish")
            self.counts["bytes"] += len(frame)
            await self._carrier.publish(peer.fingerprint, self._topic, frame)
        out.published = max(out.published, seq)
        peer.moved = time.monotonic()

    async def _shared(self, payload: Payload) -> Ticket | None:
        """A ticket to a message for several receivers, whose content leaves with the first of them."""
        shared = payload.shared
        if shared is None or shared.ticket is not None or shared.refused:
            return None if shared is None else shared.ticket
        ticket = Ticket.new()
        self._contents[ticket.name.hex()] = shared
        for part, frame in enumerate(wire.seal_content(ticket, self._run, payload.data)):
            self._probe("publish")
            self.counts["bytes"] += len(frame)
            if not await self._carrier.share(self._topic, ticket.name.hex(), part, frame):
                shared.refused = True
                return None
        self.counts["shared"] += 1
        shared.ticket = ticket
        return ticket

    async def _clear_contents(self) -> None:
        """Remove from the hub what all its receivers have."""
        over = [name for name, shared in self._contents.items() if shared.over]
        for name in over:
            del self._contents[name]
        if over:
            await self._carrier.unshare(self._topic, over)

    def _resend(self, peer: Peer, got: wire.Counts) -> None:
        """Send again what had left when the other was asked, and has not arrived."""
        for lane, count in zip(peer.out.values(), got, strict=True):
            upto = peer.asked.get(lane.lane, 0)
            for seq in [s for s in lane.waiting if count < s <= upto]:
                self._enqueue(peer, lane.lane, seq)

    # ---- words between parties ----

    def _post(self, peer: Peer, kind: int, nonce: bytes = b"", error: str = "", role: int = 0) -> None:
        self._posts[peer.place, kind] = peer, nonce, error, role
        self._posted.clear()
        self._to_post.set()

    async def _post_all(self) -> None:
        while True:
            await self._to_post.wait()
            self._to_post.clear()
            while self._posts:
                (place, kind) = next(iter(self._posts))
                peer, nonce, error, role = self._posts.pop((place, kind))
                status = peer.status(
                    self.journal.number,
                    nonce=nonce,
                    gone=self._declared,
                    waiting=self.waiting,
                    heard=peer.done,
                    error=error,
                    role=role,
                    ready=self.is_ready or self._is_first,
                )
                frame = self._sealer(peer).status(kind, peer.my_first, peer.first, status)
                self._probe("post")
                await self._carrier.publish(peer.fingerprint, self._topic, frame)
            self._posted.set()

    def _ask(self, peer: Peer) -> None:
        """Ask what has arrived, to send again what has not."""
        if not peer.nonce:  # else an answer may be to an earlier question, before more left
            peer.nonce = randomness.fresh_seed()[:NONCE_BYTES]
            peer.asked = {lane: out.published for lane, out in peer.out.items()}
        peer.moved = time.monotonic()
        self._post(peer, wire.HELLO, peer.nonce)
