"""Links between roles inside one process: emulated latency and bandwidth, and, under faults, a small
reliable transport (sequence numbers, acknowledgements, resending) such as any real network needs."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from atoll.codec import Encoded
from atoll.runtime.inbox import Event, Left
from atoll.runtime.local.faults import Faults
from atoll.study.address import Address

PerLink = float | Mapping[tuple[str, str], float]


class Frame(NamedTuple):
    """One event on its way; ``depth`` counts the messages that had to come before it."""

    event: Event
    depth: int = 0
    at: float = 0.0
    """When it left, and then when it arrives, by the clocks of a metered run."""

    @property
    def size(self) -> int:
        """Bytes on the link."""
        if isinstance(self.event, Left):
            return 0
        data = self.event.data
        return data.size if isinstance(data, Encoded) else len(data)


Deliver = Callable[[Frame], None]


class Link:
    """One direction between two roles; delivers each frame once and in order."""

    def __init__(self, latency: float, bandwidth: float | None, deliver: Deliver) -> None:
        self._latency = latency
        self._bandwidth = bandwidth
        self._deliver = deliver
        self._free_at = 0.0
        self._on_its_way: deque[Frame] = deque()

    def send(self, frame: Frame) -> None:
        delay = self._travel_time(frame)
        if delay <= 0:
            self._deliver(frame)
        else:
            # Timers that are due together fire in any order: each delivers the oldest frame, not its own.
            self._on_its_way.append(frame)
            asyncio.get_running_loop().call_later(delay, self._deliver_oldest)

    def _deliver_oldest(self) -> None:
        self._deliver(self._on_its_way.popleft())

    def _travel_time(self, frame: Frame) -> float:
        """Frames share the link's bandwidth one after another; latency comes on top."""
        if not self._latency and not self._bandwidth:
            return 0.0
        now = asyncio.get_running_loop().time()
        self._free_at = max(now, self._free_at)
        if self._bandwidth:
            self._free_at += frame.size / self._bandwidth
        return self._free_at - now + self._latency


class ClockLink(Link):
    """A link that delivers at once and says when the frame would have arrived."""

    def send(self, frame: Frame) -> None:
        self._free_at = max(frame.at, self._free_at)
        if self._bandwidth:
            self._free_at += frame.size / self._bandwidth
        self._deliver(frame._replace(at=self._free_at + self._latency))


class FaultyLink(Link):
    """A link that loses, doubles and overtakes frames, under a transport that mends it."""

    def __init__(
        self,
        latency: float,
        bandwidth: float | None,
        deliver: Deliver,
        faults: Faults,
        draw: random.Random,
    ) -> None:
        super().__init__(latency, bandwidth, deliver)
        self._faults = faults
        self._draw = draw
        self._next_to_send = 0
        self._next_to_deliver = 0
        self._early: dict[int, Frame] = {}
        self._resends: dict[int, asyncio.TimerHandle] = {}

    def send(self, frame: Frame) -> None:
        number = self._next_to_send
        self._next_to_send += 1
        self._transmit(number, frame)

    def _transmit(self, number: int, frame: Frame) -> None:
        loop = asyncio.get_running_loop()
        travel = self._travel_time(frame)
        for late in self._faults.copies(self._draw):
            loop.call_later(travel + late, self._arrive, number, frame)
        again = travel + self._latency + self._faults.resend_after
        self._resends[number] = loop.call_later(again, self._transmit, number, frame)

    def _arrive(self, number: int, frame: Frame) -> None:
        # The acknowledgement travels back over the same bad line.
        for late in self._faults.copies(self._draw):
            asyncio.get_running_loop().call_later(self._latency + late, self._acknowledge, number)
        if number < self._next_to_deliver or number in self._early:
            return
        self._early[number] = frame
        while self._next_to_deliver in self._early:
            self._deliver(self._early.pop(self._next_to_deliver))
            self._next_to_deliver += 1

    def _acknowledge(self, number: int) -> None:
        timer = self._resends.pop(number, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for timer in self._resends.values():
            timer.cancel()


def on_link(setting: PerLink | None, sender: Address, receiver: Address) -> float:
    """A setting that is one number for all links, or one per pair of parties."""
    if setting is None:
        return 0.0
    if isinstance(setting, Mapping):
        return setting.get((sender.party, receiver.party), 0.0)
    return setting
