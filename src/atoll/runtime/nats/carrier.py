"""Carriers: what moves sealed frames between parties, and promises nothing else.

A carrier may lose frames, repeat them, delay them and deliver them in another order. Whoever uses it
numbers, acknowledges and resends. A *party* is known to it by its fingerprint, and every party has one
*inbox*, whose frames are kept by the hub until the party forgets them. A *topic* is a part of an inbox:
:data:`CONTROL`, or the token of one run.

All methods belong to the event loop in which :meth:`Carrier.connect` was awaited.

:class:`MemoryHub` is a hub in this process, which loses, repeats, delays and reorders as it is told to.
"""

from __future__ import annotations

import asyncio
import bisect
import functools
import random
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from atoll.errors import MessageError, ParameterError, RunError

CONTROL: Final = "ctl"
"""The topic of proposals, approvals and whatever else is not of one run."""

MAX_FRAME: Final = 1 << 20
"""The largest frame that a hub of Atoll's takes: 1 MiB, as every NATS server does unless told otherwise."""

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_TOPIC = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class CarrierClosed(RunError):
    """The carrier was closed while, or before, it was used."""


class Arrived(NamedTuple):
    """One frame as it came from the hub."""

    sender: str
    """The fingerprint under which the hub let it in. Not proven: the frame's own seal is what counts."""
    frame: bytes
    position: int
    """Where it stands in this party's inbox: for ``forget``, and for nothing else."""


class Carrier(ABC):
    """One party's way to the hub."""

    max_frame: int = MAX_FRAME
    """The largest frame that may be published, in bytes."""

    on_reconnect: Callable[[], None] | None = None
    """Called in the carrier's loop after a connection was lost and made again: frames may have been lost."""

    @property
    @abstractmethod
    def me(self) -> str:
        """The fingerprint of the party whose carrier this is."""

    @abstractmethod
    async def connect(self) -> None:
        """Connect for the first time; what cannot be mended by waiting is raised."""

    @abstractmethod
    async def close(self) -> None:
        """Leave. What waits in :meth:`frames` or :meth:`publish` ends with :class:`CarrierClosed`."""

    @abstractmethod
    async def publish(self, to: str, topic: str, frame: bytes) -> None:
        """Hand a frame over. Waits while the hub is away or behind; says nothing about its arrival."""

    @abstractmethod
    def frames(self, topic: str) -> AsyncGenerator[Arrived, None]:
        """Everything of a topic that was not forgotten, from its oldest frame, and whatever comes later.

        One iteration per topic at a time. It goes on over lost connections and restarts of the hub, and may
        then begin again at the oldest frame.
        """

    @abstractmethod
    async def forget(self, topic: str, position: int) -> None:
        """Remove this party's own frames of a topic up to and with ``position``. It may come to nothing."""

    # ---- contents for several receivers ----

    @abstractmethod
    async def share(self, topic: str, name: str, part: int, frame: bytes) -> bool:
        """Hand over a part of a content that several parties will ask for, under a name nobody can guess.

        False where the hub takes no such thing.
        """

    @abstractmethod
    async def shared(self, sender: str, topic: str, name: str, part: int) -> bytes | None:
        """A part that another party shared; None where the hub does not have it."""

    @abstractmethod
    async def unshare(self, topic: str, names: Iterable[str] = ()) -> None:
        """Remove this party's own contents, or all of a topic. It may come to nothing."""


def check_fingerprint(fingerprint: str) -> str:
    """A fingerprint as it stands in subjects: 64 lower-case hexadecimal digits."""
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise ParameterError(
            "a fingerprint has 64 hexadecimal digits", hint="`atoll identity show` prints it"
        )
    return fingerprint


def check_topic(topic: str) -> str:
    """A topic as it stands in subjects."""
    if not _TOPIC.fullmatch(topic):
        raise ParameterError(
            "a topic has 1 to 64 of the characters a-z, 0-9, - and _, and starts with none of -_"
        )
    return topic


def check_frame(frame: bytes, largest: int) -> bytes:
    """A frame that the hub will take."""
    if len(frame) > largest:
        raise MessageError(f"a frame of {len(frame)} bytes is larger than the hub's {largest}")
    return frame


# ---- a hub in this process ----


@dataclass
class _Kept:
    position: int
    topic: str
    sender: str
    frame: bytes


@dataclass
class _Inbox:
    kept: dict[str, list[_Kept]] = field(default_factory=dict)
    next_position: int = 1
    waiting: list[Callable[[], None]] = field(default_factory=list)


class MemoryHub:
    """A hub in this process, for carriers in any of its threads.

    ``loss``, ``duplication`` and ``reorder`` are chances per frame; a reordered frame is kept behind the next
    one of its inbox. ``delay`` is the most seconds that a frame takes. ``seed`` decides which frames; without
    a delay and with one thread the same seed gives the same course.
    """

    def __init__(
        self,
        *,
        loss: float = 0.0,
        duplication: float = 0.0,
        reorder: float = 0.0,
        delay: float = 0.0,
        seed: int = 0,
        max_frame: int = MAX_FRAME,
    ) -> None:
        self.loss, self.duplication, self.reorder, self.delay = loss, duplication, reorder, delay
        self.max_frame = max_frame
        self.alter: Callable[[str, str, str, bytes], bytes | None] | None = None
        """A hostile hub: (sender, to, topic, frame) -> the frame to deliver instead, or None for none."""
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._inboxes: dict[str, _Inbox] = {}
        self._behind: dict[str, _Kept] = {}
        self._contents: dict[tuple[str, str, str], dict[int, bytes]] = {}
        self._cut: set[str] = set()
        self._carriers: list[MemoryCarrier] = []

    def carrier(self, fingerprint: str) -> MemoryCarrier:
        """A party's carrier. Two of one party share its inbox, as two doubled nodes would."""
        made = MemoryCarrier(self, check_fingerprint(fingerprint))
        with self._lock:
            self._carriers.append(made)
        return made

    def cut(self, fingerprint: str) -> None:
        """Nothing reaches this party, and nothing it publishes leaves, until :meth:`mend`."""
        with self._lock:
            self._cut.add(fingerprint)

    def mend(self, fingerprint: str) -> None:
        """End a cut. The party's carriers are told that they are connected again."""
        with self._lock:
            self._cut.discard(fingerprint)
        self._reconnected({fingerprint})

    def wipe(self) -> None:
        """Lose every frame that is kept, as a hub does whose disk was lost."""
        with self._lock:
            for inbox in self._inboxes.values():
                inbox.kept.clear()
            self._behind.clear()
            self._contents.clear()
        self._reconnected(set(self._inboxes))

    def kept(self, fingerprint: str) -> int:
        """How many frames wait in a party's inbox."""
        with self._lock:
            inbox = self._inboxes.get(fingerprint)
            return sum(map(len, inbox.kept.values())) if inbox else 0

    def put(self, sender: str, to: str, topic: str, frame: bytes) -> None:
        """Keep a frame, as the knobs will have it. Tests use it to replay and to forge."""
        altered = frame if self.alter is None else self.alter(sender, to, topic, frame)
        if altered is None:
            return
        with self._lock:
            if self._chance.random() < self.loss:
                return
            times = 2 if self._chance.random() < self.duplication else 1
            late = self._chance.random() < self.reorder
        for _ in range(times):
            self._keep(to, _Kept(0, topic, sender, altered), late)

    def _keep(self, to: str, kept: _Kept, late: bool) -> None:
        with self._lock:
            inbox = self._inboxes.setdefault(to, _Inbox())
            arriving = [kept]
            if late and to not in self._behind:
                self._behind[to] = kept
                # A frame behind which none comes must not wait for ever.
                threading.Timer(0.05, self._release, (to, kept)).start()
                return
            if to in self._behind:
                arriving.append(self._behind.pop(to))
            self._store(inbox, arriving)

    def _release(self, to: str, kept: _Kept) -> None:
        with self._lock:
            if self._behind.get(to) is kept:
                del self._behind[to]
                self._store(self._inboxes[to], [kept])

    @staticmethod
    def _store(inbox: _Inbox, arriving: list[_Kept]) -> None:
        for one in arriving:
            placed = _Kept(inbox.next_position, one.topic, one.sender, one.frame)
            inbox.kept.setdefault(one.topic, []).append(placed)
            inbox.next_position += 1
        for wake in inbox.waiting:
            wake()

    def after(self, fingerprint: str, topic: str, position: int) -> list[Arrived] | None:
        """What stands behind a position; None while the party is cut off."""
        with self._lock:
            if fingerprint in self._cut:
                return None
            kept = self._inboxes.setdefault(fingerprint, _Inbox()).kept.get(topic, [])
            return [Arrived(k.sender, k.frame, k.position) for k in kept[_count(kept, position) :]]

    def forget(self, fingerprint: str, topic: str, position: int) -> None:
        """Remove a party's frames of a topic up to and with a position."""
        with self._lock:
            inbox = self._inboxes.get(fingerprint)
            if inbox and fingerprint not in self._cut:
                kept = inbox.kept.get(topic, [])
                del kept[: _count(kept, position)]

    def share(self, sender: str, topic: str, name: str, part: int, frame: bytes) -> None:
        """Keep a part of a content, unless it is lost or the hub is hostile."""
        altered = frame if self.alter is None else self.alter(sender, "", topic, frame)
        with self._lock:
            if altered is not None and sender not in self._cut and self._chance.random() >= self.loss:
                self._contents.setdefault((sender, topic, name), {})[part] = altered

    def shared(self, sender: str, topic: str, name: str, part: int) -> bytes | None:
        """A part of a content."""
        with self._lock:
            return self._contents.get((sender, topic, name), {}).get(part)

    def unshare(self, sender: str, topic: str, names: Iterable[str]) -> None:
        """Remove a party's contents with these names, or all of a topic."""
        named = set(names)
        with self._lock:
            mine = [key for key in self._contents if key[:2] == (sender, topic)]
            for key in [key for key in mine if not named or key[2] in named]:
                del self._contents[key]

    def contents(self) -> int:
        """How many contents are kept."""
        with self._lock:
            return len(self._contents)

    def is_cut(self, fingerprint: str) -> bool:
        """Whether a party is cut off."""
        with self._lock:
            return fingerprint in self._cut

    def takes(self) -> float:
        """How many seconds the next frame takes."""
        with self._lock:
            return self._chance.uniform(0, self.delay)

    def watch(self, fingerprint: str, wake: Callable[[], None], *, stop: bool = False) -> None:
        """Call ``wake`` whenever something reaches a party, or stop to."""
        with self._lock:
            waiting = self._inboxes.setdefault(fingerprint, _Inbox()).waiting
            if stop:
                waiting.remove(wake)
            else:
                waiting.append(wake)

    def _reconnected(self, fingerprints: set[str]) -> None:
        with self._lock:
            told = [one for one in self._carriers if one.me in fingerprints]
            for fingerprint in fingerprints:
                for wake in self._inboxes.setdefault(fingerprint, _Inbox()).waiting:
                    wake()
        for one in told:
            one.reconnected()


def _count(kept: list[_Kept], position: int) -> int:
    """How many stand at or before a position."""
    return bisect.bisect_right(kept, position, key=lambda one: one.position)


class MemoryCarrier(Carrier):
    """A party's way to a :class:`MemoryHub`."""

    def __init__(self, hub: MemoryHub, fingerprint: str) -> None:
        self._hub = hub
        self._me = fingerprint
        self.max_frame = hub.max_frame
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

    @property
    def me(self) -> str:
        return self._me

    async def connect(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self._closed.set()

    async def publish(self, to: str, topic: str, frame: bytes) -> None:
        check_fingerprint(to)
        check_topic(topic)
        check_frame(frame, self.max_frame)
        self._check_open()
        await asyncio.sleep(0)
        self._check_open()
        arrive = functools.partial(self._arrive, to, topic, bytes(frame))
        if self._hub.delay > 0:
            asyncio.get_running_loop().call_later(self._hub.takes(), arrive)
        else:
            arrive()

    def _arrive(self, to: str, topic: str, frame: bytes) -> None:
        if not self._hub.is_cut(self._me):
            self._hub.put(self._me, to, topic, frame)

    async def frames(self, topic: str) -> AsyncGenerator[Arrived, None]:
        check_topic(topic)
        self._check_open()
        loop, changed, position = asyncio.get_running_loop(), asyncio.Event(), 0

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        self._hub.watch(self._me, wake)
        try:
            while True:
                changed.clear()
                for arrived in self._hub.after(self._me, topic, position) or ():
                    position = arrived.position
                    yield arrived
                    self._check_open()
                await self._until(changed)
        finally:
            self._hub.watch(self._me, wake, stop=True)

    async def _until(self, changed: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(one.wait()) for one in (changed, self._closed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._check_open()

    async def forget(self, topic: str, position: int) -> None:
        self._check_open()
        self._hub.forget(self._me, check_topic(topic), position)

    async def share(self, topic: str, name: str, part: int, frame: bytes) -> bool:
        self._check_open()
        check_frame(frame, self.max_frame)
        await asyncio.sleep(0)
        self._hub.share(self._me, check_topic(topic), check_topic(name), part, bytes(frame))
        return True

    async def shared(self, sender: str, topic: str, name: str, part: int) -> bytes | None:
        self._check_open()
        await asyncio.sleep(self._hub.takes())
        return None if self._hub.is_cut(self._me) else self._hub.shared(sender, topic, name, part)

    async def unshare(self, topic: str, names: Iterable[str] = ()) -> None:
        self._check_open()
        self._hub.unshare(self._me, check_topic(topic), names)

    def reconnected(self) -> None:
        """Tell whoever wants to know, in the carrier's own loop."""
        if self._loop is not None and not self._loop.is_closed() and not self._closed.is_set():
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if self.on_reconnect is not None:
            self.on_reconnect()

    def _check_open(self) -> None:
        if self._loop is None:
            raise CarrierClosed("the carrier is not connected")
        if self._closed.is_set():
            raise CarrierClosed("the carrier was closed")
