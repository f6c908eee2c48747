"""Crashes at chosen points of a run: a party is abandoned there, loses what was not on disk, starts again."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.examples import Example
from tests.support.networks import QUICK, pinned, starts_of
from tests.support.opening import Opener

from atoll.protocols import protocol_of
from atoll.protocols.base import resolve
from atoll.protocols.own import Own
from atoll.runtime.journal import Journal
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import MemoryHub
from atoll.runtime.nats.link import Link
from atoll.runtime.nats.party import PartyOutcome, run_party
from atoll.runtime.nats.sending import Timing
from atoll.runtime.nats.starts import RunStart

POINTS = ("append", "sync", "synced", "keep", "sync bulk", "publish", "post", "ack")

FAST = QUICK._replace(deadline=20.0, beat=0.3, ask=0.06, grace=0.03, linger=5.0)

SLOW_DISK = FAST._replace(group=0.15)
"""What arrives is long in the inbox before its bytes are on disk: a power failure leaves hollow messages."""

Loss = Callable[[int, int], int]
"""From what is on disk and what was written to what is left after the crash."""
LOSSES: dict[str, Loss] = {
    "the process was killed": lambda _, written: written,
    "the power failed": lambda synced, _: synced,
    "the power failed while the disk was at work": random.Random(0).randint,
}


class Crash(BaseException):
    """The process is no more."""


class Doom:
    """Counts the points that a party passes, and raises at one of them and at all later ones.

    ``of``: the kind that is counted. Signs of life are points too, and their number grows with the time
    that everything takes: whoever needs a party to have come so far, and no further, counts what it sends.
    """

    def __init__(self, at: int | None = None, of: str | None = None) -> None:
        self.at, self.of = at, of
        self.passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, point: str) -> None:
        with self._lock:
            self.passed[point] += 1
            count = self.passed.total() if self.of is None else self.passed[self.of]
            if self.at is not None and count >= self.at:
                raise Crash


@dataclass
class Wiretap:
    """Sees every frame on its way through the hub, and can open it."""

    opener: Opener
    digests: dict[tuple[int, int, int], set[bytes]] = field(default_factory=dict)
    nonces: dict[tuple[bytes, int, int], set[bytes]] = field(default_factory=dict)
    data: Counter[bytes] = field(default_factory=Counter)
    """Data frames by the start of their sender."""
    by_role: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, sender: str, to: str, topic: str, frame: bytes) -> bytes:
        opened = self.opener(to, frame)
        if opened is None:
            return frame
        head, _ = opened
        with self._lock:
            if head.kind == wire.DATA:
                self.digests.setdefault((head.sender, head.to, head.seq), set()).add(head.digest)
                self.data[head.boot] += 1
                self.by_role[head.sender] += 1
            # Roles of one party share a key, so the receiver's party is what tells keys apart.
            self.nonces.setdefault((head.boot, int(to[:12], 16), head.number), set()).add(frame)
        return frame

    def check(self) -> None:
        """No message has two payloads, and no nonce two texts."""
        assert self.digests
        assert [key for key, found in self.digests.items() if len(found) > 1] == []
        assert [key for key, found in self.nonces.items() if len(found) > 1] == []


class Lab:
    """One study whose parties run in threads, some of which crash."""

    def __init__(
        self, example: Example, folder: Path, hub: MemoryHub | None = None, timing: Timing = FAST
    ) -> None:
        self.protocol = protocol_of(example.study.protocol)
        self.own: Mapping[str, Own] = example.own
        self.starts = starts_of(pinned(resolve(self.protocol, example.study)))
        self.folder = folder
        self.hub = hub or MemoryHub()
        self.timing = timing
        self.deadline = timing.deadline
        self.wiretap = Wiretap(Opener(self.starts))
        self.hub.alter = self.wiretap
        self.dooms = {party: Doom() for party in self.starts}
        self.later: dict[str, list[Doom]] = {}
        """For starts after the first."""
        self.outcomes: dict[str, PartyOutcome] = {}
        self.crashes: Counter[str] = Counter()

    def party(
        self, name: str, doom: Doom, folder: Path | None = None, own: Own | None = None
    ) -> PartyOutcome:
        """One start of one party."""
        start: RunStart = self.starts[name]
        self.revive(name)
        try:
            return asyncio.run(
                run_party(
                    start,
                    own or self.own.get(name, Own()),
                    folder or self.folder / name,
                    lambda: self.hub.carrier(start.fingerprint(name)),
                    deadline=self.deadline,
                    timing=self.timing,
                    protocol=self.protocol,
                    durable=False,
                    probe=doom,
                )
            )
        finally:
            self.bury(name)

    def bury(self, name: str) -> None:
        """Nothing more will be heard of it."""
        _DEAD.add((self.starts[name].run_id, name))

    def revive(self, name: str) -> None:
        """It runs, or is about to."""
        _DEAD.discard((self.starts[name].run_id, name))

    def run(self, loss: Loss = LOSSES["the power failed"]) -> dict[str, PartyOutcome]:
        """All parties, each again after a crash."""

        def one(name: str) -> None:
            doom = self.dooms[name]
            while name not in self.outcomes:
                try:
                    self.outcomes[name] = self.party(name, doom)
                except Crash:
                    self.crashes[name] += 1
                    cut(self.folder / name, loss)
                    later = self.later.get(name)
                    doom = later.pop(0) if later else Doom()

        with ThreadPoolExecutor(len(self.starts)) as threads:
            list(threads.map(one, self.starts))
        return self.outcomes


_DEAD: set[tuple[bytes, str]] = set()
"""Parties that do not run, by their run: they ended, they crashed, or they never began."""


def only_the_dead_are_silent() -> Callable[[], None]:
    """From now on nobody who runs counts as silent, however long a busy machine keeps it from saying a word;
    returns how to end that. Deadlines may be short then."""
    look = Link._look_for_silence

    async def looking(self: Link, now: float) -> None:
        for peer in self.near:
            if (self.state.start.run_id, peer.name) not in _DEAD:
                peer.last = max(peer.last, now)
        await look(self, now)

    Link._look_for_silence = looking  # type: ignore[method-assign]

    def end() -> None:
        Link._look_for_silence = look  # type: ignore[method-assign]
        _DEAD.clear()

    return end


_ON_DISK: dict[Path, tuple[int, int]] = {}
_close = Journal.close


def _closed(self: Journal) -> None:
    if self._small >= 0:
        _ON_DISK[self.folder] = self._synced, getattr(self, "_bulk_synced", 0)
    _close(self)


def cut(folder: Path, loss: Loss) -> None:
    """Take away what a crash takes away."""
    synced, bulk_synced = _ON_DISK.get(folder, (0, 0))
    for name, on_disk in (("small", synced), ("bulk", bulk_synced)):
        path = folder / name
        if path.is_file():
            size = path.stat().st_size
            os.truncate(path, loss(min(on_disk, size), size))


def watch_disks() -> Callable[[], None]:
    """From now on every journal says, when it is closed, what of it was on disk; returns how to end that."""
    Journal.close = _closed  # type: ignore[method-assign]

    def end() -> None:
        Journal.close = _close  # type: ignore[method-assign]

    return end


def points_of(example: Example, folder: Path) -> dict[str, int]:
    """How many points each party passes in a run without a crash."""
    lab = Lab(example, folder)
    lab.run()
    return {name: doom.passed.total() for name, doom in lab.dooms.items()}


def crash_at(
    example: Example,
    folder: Path,
    party: str,
    point: int,
    loss: Loss,
    *,
    again: Sequence[int] = (),
    timing: Timing = FAST,
) -> Lab:
    """A run in which one party crashes at one point, and goes on; ``again``: points of its later starts."""
    lab = Lab(example, folder, timing=timing)
    lab.dooms[party] = Doom(point)
    lab.later[party] = [Doom(at) for at in again]
    lab.run(loss)
    lab.wiretap.check()
    return lab
