"""The sending half of a link: what may leave, once it is on disk, and what others are told.

All of it runs in the link's thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

from atoll import randomness
from atoll.runtime.journal import Probe
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Carrier
from atoll.runtime.nats.channel import Lane, Peer
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.state import RunState
from atoll.runtime.nats.wire import Sealer

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
        self, state: RunState, keys: RunKeys, timing: Timing, judge: Judge | None, probe: Probe | None
    ) -> None:
        self.state, self.journal, self.timing = state, state.journal, timing
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
        for peer in (*state.peers.values(), self._own):
            peer.sealer = Sealer(keys.sending(peer.name, self.journal.boot), self._run, self.journal.boot)
        self._queue: deque[tuple[Peer, Lane, int]] = deque()
        self._queued: set[tuple[Lane, int]] = set()
        self._posts: dict[tuple[int, int], tuple[Peer, bytes, str, int]] = {}
        """By party and kind: a newer word replaces an older one, so that nobody can make them pile up."""
        self._waiters: list[tuple[Callable[[], bool], Future[None]]] = []
        self._to_send, self._to_post, self._to_keep = (asyncio.Event() for _ in range(3))
        self._pool = ThreadPoolExecutor(2, "atoll-sync")
        self._declared = tuple(sorted(state.gone)) if self._judging else ()
        """Who has left, as this party alone decides, and has on disk."""
        self.is_ready = False
        """Whether this start goes on from its journal: until then nobody takes it for the party."""
        self.waiting = False
        """Whether every role of this party waits."""

    @property
    def _judging(self) -> bool:
        return self._judge is not None and self._judge.party == self.state.me

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

    # ---- words between parties ----

    def _post(self, peer: Peer, kind: int, nonce: bytes = b"", error: str = "", role: int = 0) -> None:
        self._posts[peer.place, kind] = peer, nonce, error, role
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
                    ready=self.is_ready,
                )
                frame = peer.sealer.status(kind, peer.my_first, peer.first, status)
                self._probe("post")
                await self._carrier.publish(peer.fingerprint, self._topic, frame)

    def _ask(self, peer: Peer) -> None:
        """Ask what has arrived, to send again what has not."""
        peer.nonce = peer.nonce or randomness.fresh_seed()[:NONCE_BYTES]
        peer.asked = {lane: out.published for lane, out in peer.out.items()}
        peer.moved = time.monotonic()
        self._post(peer, wire.HELLO, peer.nonce)
