"""The network and the record of one role that runs across machines.

What reaches the role is fed to its inbox one event at a time, in the order that the journal has, and only
when the role asks for more than the inbox holds. After a crash the same events are fed in the same way, from
the journal: the role cannot tell, and does the same again.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from atoll import codec
from atoll.codec import Decoder, Message
from atoll.errors import ResumeRefused, RunError
from atoll.network import Network, Record
from atoll.runtime import entries
from atoll.runtime.engine import Progress
from atoll.runtime.inbox import Inbox, Left, Received
from atoll.runtime.nats.channel import Arrival, Payload, Shared
from atoll.runtime.nats.link import Crossing, Link
from atoll.runtime.nats.state import Happening, RunState
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_UNCHECKED: Final = 1 << 22
"""Bytes that a role may hand over before it looks whether there is room."""
_BIG: Final = 1 << 18
_WORTH_SHARING: Final = 1 << 18
"""Bytes of uplink that are worth the round trip in which receivers ask for a shared content."""
_TELL_SECONDS: Final = 0.1
"""Between two reports of progress."""


class Tap:
    """Sees what a party's roles send, receive and open; called again from the beginning after every start."""

    def sent(self, sender: Address, to: Address, kind: str, size: int, digest: bytes) -> None:
        """A message is about to leave a role."""

    def received(self, receiver: Address, sender: Address, kind: str, size: int, digest: bytes) -> None:
        """A message was handed to a role."""

    def opened(self, role: Address, outputs: tuple[str, ...]) -> None:
        """A role has ended, and learned these."""


class JournalRecord(Record):
    """A role's record, in its party's journal. What an earlier start drew comes back; what it sent must."""

    def __init__(self, state: RunState, role: int) -> None:
        self._state = state
        self._role = role
        self._journal = state.journal
        self._drawn = state.drawn[role]
        self._sendings = state.sendings[role]
        self._sent = 0
        self._used: set[str] = set()
        self._lock = threading.Lock()
        self.lsn = 0
        """The place in the journal that must be on disk before what was sent last may leave."""

    def __repr__(self) -> str:
        return f"<JournalRecord: {len(self._drawn)} draws>"

    def __call__(self, tag: str, draw: Callable[[], bytes]) -> bytes:
        with self._lock:
            if tag in self._used:
                raise RunError(f"the draw {tag!r} was asked for twice; a second draw could open a secret")
            self._used.add(tag)
            if tag not in self._drawn:
                self._refuse_after_the_end(f"draws {tag!r}")
                drawn = draw()
                self._journal.append(entries.Draw(self._role, tag, drawn))
                self._drawn[tag] = drawn
            return self._drawn[tag]

    def sent(self, to: Address, digest: bytes) -> None:
        with self._lock:
            if self._sent < len(self._sendings):
                if self._sendings[self._sent] != (to, digest):
                    raise ResumeRefused(
                        f"what would be sent to {to} is not what was sent before the restart",
                        hint="rows, software or machine have changed: bring them back, or start a new run",
                    )
            else:
                self._refuse_after_the_end("sends")
                self.lsn = self._journal.append(entries.Sent(self._role, self._state.places[to], digest))
                self._sendings.append((to, digest))
            self._sent += 1

    def sync(self) -> None:
        self._journal.sync()

    def _refuse_after_the_end(self, what: str) -> None:
        if self._state.finished:
            raise ResumeRefused(
                f"the run is over, but its role now {what}",
                hint="rows, software or machine have changed; the result of the first time stands",
            )


class NatsNetwork(Network):
    """One role's network."""

    def __init__(
        self,
        me: Address,
        state: RunState,
        link: Link,
        decoder: Decoder[Message],
        pool: Executor,
        transcript: Transcript,
        *,
        progress: Progress | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.me = me
        self.record = JournalRecord(state, state.places[me])
        self._state, self._link, self._journal = state, link, state.journal
        self._inbox = Inbox(decoder)
        self._pool = pool
        self._transcript = transcript
        self._progress = progress
        self._tap = tap or Tap()
        self._loop = asyncio.get_running_loop()
        self._events: deque[Arrival | Left] = deque()
        self._changed = asyncio.Event()
        self._arriving = Crossing(self._loop.call_soon_threadsafe, self._push)
        self._seq: Counter[Address] = Counter()
        self._common: tuple[Message, bytes, bytes, Shared | None] | None = None
        self._unchecked = 0
        self._told = 0.0
        self.ended = False
        self.waits_for = ""
        """What the role waits for, in words; empty while it works."""
        for happening in state.happened[state.places[me]]:
            self._push(happening)
        link.deliver[state.places[me]] = self._deliver

    # ---- what arrives ----

    def _deliver(self, happening: Happening) -> None:
        """Called in the link's thread."""
        self._arriving.put(happening)

    def _push(self, happening: Happening) -> None:
        if isinstance(happening, entries.Gone):
            self._events.extend(Left(address) for address in self._state.left_events(happening.party))
        else:
            self._events.append(happening)
        self._changed.set()

    async def next(
        self, kind: type[M], senders: Iterable[Address], *, absent: set[Address] | None = None
    ) -> tuple[Address, M] | None:
        senders = set(senders)
        while (arrived := self._inbox.take(kind, senders, absent)) is None:
            if absent is not None and self._inbox.everyone_left(senders):
                return None
            names = ", ".join(sorted(str(sender) for sender in senders)[:3])
            more = f" and {len(senders) - 3} more" if len(senders) > 3 else ""
            await self._feed(f"{kind.__name__} from {names}{more}")
        return arrived

    async def _feed(self, wanted: str) -> None:
        """The next event into the inbox."""
        while not self._events:
            self.waits_for = wanted
            self._changed.clear()
            await self._changed.wait()
        self.waits_for = ""
        event = self._events.popleft()
        if isinstance(event, Left):
            self._inbox.put(event)
            return
        sender, data = self._state.addresses[event.sender], await self._bytes(event)
        self._transcript.received(self.me, len(data))
        message = self._inbox.put(Received(sender, data), event.depth)
        self._tap.received(self.me, sender, type(message).__name__, len(data), event.digest)

    async def _bytes(self, event: Arrival) -> bytes:
        """A message's bytes, from disk if need be; of a hollow one its sender is waited for."""
        if event.hollow:
            await asyncio.wrap_future(self._link.when(lambda: not event.hollow))
        if event.data is not None:
            return event.data
        if sum(piece.length for piece in event.pieces) < _BIG:
            data = self._journal.load(event.pieces)
        else:
            data = await self._loop.run_in_executor(self._pool, self._journal.load, event.pieces)
        if data is None:
            raise ResumeRefused(
                "the journal's bulk file is damaged", hint="restore the run's folder, or start a new run"
            )
        return data

    # ---- what leaves ----

    async def broadcast(self, to: Iterable[Address], message: Message) -> None:
        to = list(to)
        data = codec.encode(message)  # once: ciphertexts are large
        others = {address.party for address in to} - {self.me.party}
        shared = Shared() if len(data) * (len(others) - 1) >= _WORTH_SHARING else None
        self._common = message, data, hashlib.sha256(data).digest(), shared
        try:
            await super().broadcast(to, message)
        finally:
            self._common = None

    async def send(self, to: Address, message: Message) -> None:
        if self._common is not None and self._common[0] is message:
            _, data, digest, shared = self._common
        else:
            data, shared = codec.encode(message), None
            digest = hashlib.sha256(data).digest()
        self.record.sent(to, digest)
        self._seq[to] += 1
        depth = self._inbox.depth + 1
        kind = type(message).__name__
        self._transcript.rounds = max(self._transcript.rounds, depth)
        self._transcript.sent(self.me, to, kind, len(data))
        self._tap.sent(self.me, to, kind, len(data), digest)
        self._tell(kind)
        lane = self._state.places[self.me], self._state.places[to]
        self._link.send(lane, self._seq[to], Payload(data, digest, depth, self.record.lsn, shared))
        await self._make_room(len(data))

    async def _make_room(self, size: int) -> None:
        """Wait while too much of what was sent is not yet acknowledged."""
        self._unchecked += size
        if self._unchecked > _UNCHECKED:
            self._unchecked = 0
            peers = self._state.peers.values()
            await asyncio.wrap_future(self._link.when(lambda: all(peer.room for peer in peers)))

    async def settled(self, to: Iterable[Address]) -> None:
        due = []
        for address in to:
            lane = self._state.places[self.me], self._state.places[address]
            if lane[1] in self._state.peer_of:
                peer = self._state.peer_of[lane[1]]
                due.append((peer, peer.out[lane], self._seq[address]))
        await asyncio.wrap_future(
            self._link.when(lambda: all(p.gone or p.done or out.acked >= seq for p, out, seq in due))
        )

    async def compute(self, step: Callable[..., T], *args: Any) -> T:
        def timed() -> tuple[T, float]:
            started = time.perf_counter()
            return step(*args), time.perf_counter() - started

        name = getattr(step, "__name__", "step").strip("_")
        self._tell(name)
        result, seconds = await self._loop.run_in_executor(self._pool, timed)
        self._transcript.computed(self.me, name, seconds)
        return result

    def _tell(self, what: str) -> None:
        now = time.monotonic()
        if self._progress is not None and now > self._told + _TELL_SECONDS:
            self._told = now
            self._progress(f"{self.me}: {what}", self._transcript)
