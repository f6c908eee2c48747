"""When everybody is done: the clocks of providers and coordinator, moved by work and by messages.

Providers do the same work at the same time, apart from a few steps of single ones. Once with every role
in one process (the local engine), once with each party on a machine of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Links(NamedTuple):
    """Every two parties are joined by a link of their own."""

    latency: float = 0.02
    bandwidth: float = 125e6

    def travel(self, size: float) -> float:
        """How long a link is busy with so many bytes."""
        return size / self.bandwidth if self.bandwidth else 0.0


class Timeline:
    """One setting: ``together`` in one process, or apart; every machine with so many cores."""

    def __init__(self, n_providers: int, links: Links, cores: int, *, together: bool) -> None:
        self.links, self.cores, self.together = links, cores, together
        self.providers = np.zeros(n_providers)
        self.coordinator = 0.0
        self._processor = 0.0  # of the one machine: when it is free
        self._told = 0.0
        self._up, self._down = np.zeros(n_providers), np.zeros(n_providers)  # links: when they are free

    @property
    def seconds(self) -> float:
        """When the last one is done."""
        return max(self.coordinator, float(self.providers.max()))

    def provider_work(self, seconds: Floats, width: float, *, alone: bool) -> None:
        """Everybody's; a step of ``width`` parts can use as many cores, ``alone`` holds the interpreter."""
        busy = seconds > 0
        if not busy.any():
            return
        if not self.together:
            self.providers += seconds / self._speed(width, alone)
            return
        speed = self._speed(width * int(busy.sum()), alone)
        self.providers[busy] = self._occupied(float(self.providers[busy].min()), float(seconds.sum()) / speed)

    def coordinator_work(self, seconds: float, width: float, *, alone: bool) -> None:
        """The coordinator's."""
        took = seconds / self._speed(width, alone)
        self.coordinator = (
            self._occupied(self.coordinator, took) if self.together else self.coordinator + took
        )

    def _speed(self, width: float, alone: bool) -> float:
        return 1.0 if alone else min(float(self.cores), max(1.0, width))

    def _occupied(self, earliest: float, took: float) -> float:
        self._processor = max(self._processor, earliest) + took
        return self._processor

    def gathered(self, size: float, senders: npt.NDArray[np.bool_]) -> None:
        """A message of each sender to the coordinator."""
        if not senders.any():
            return
        self._up[senders] = np.maximum(self._up, self.providers)[senders] + self.links.travel(size)
        self.coordinator = max(self.coordinator, float(self._up[senders].max()) + self.links.latency)

    def broadcast(self, size: float, receivers: npt.NDArray[np.bool_]) -> None:
        """A message of the coordinator to each receiver."""
        self._down[receivers] = np.maximum(self._down, self.coordinator)[receivers] + self.links.travel(size)
        arrived = self._down + self.links.latency
        self.providers[receivers] = np.maximum(self.providers, arrived)[receivers]

    def told(self, size: float) -> None:
        """A message of every provider to every other one sets out."""
        travels = self.links.latency + self.links.travel(size) * max(1, len(self.providers) - 1)
        self._told = float(self.providers.max()) + travels

    def heard(self) -> None:
        """It arrived: everybody waited for it."""
        self.providers = np.maximum(self.providers, self._told)

    def exchanged(self, size: float) -> None:
        """A message of everybody to everybody."""
        latest = (
            max(self.coordinator, float(self.providers.max())) + self.links.latency + self.links.travel(size)
        )
        self.providers[:] = latest
        self.coordinator = latest


class Effort:
    """Processor seconds of every role, and the timelines that follow from them."""

    def __init__(self, n_providers: int, timelines: Sequence[Timeline] = ()) -> None:
        self.timelines = tuple(timelines)
        self.providers = np.zeros(n_providers)
        self.coordinator_seconds = 0.0

    def provider(
        self, seconds: float, *, width: float = 1, alone: bool = False, who: Sequence[int] | None = None
    ) -> None:
        """Work of every provider, or of some."""
        spent = np.zeros(len(self.providers))
        spent[slice(None) if who is None else list(who)] = seconds
        self.providers += spent
        for line in self.timelines:
            line.provider_work(spent, width, alone=alone)

    def coordinator(self, seconds: float, *, width: float = 1, alone: bool = False) -> None:
        """Work of the coordinator."""
        self.coordinator_seconds += seconds
        for line in self.timelines:
            line.coordinator_work(seconds, width, alone=alone)

    def everybody(self, seconds: float, *, alone: bool = True) -> None:
        """Work of all."""
        self.provider(seconds, alone=alone)
        self.coordinator(seconds, alone=alone)
