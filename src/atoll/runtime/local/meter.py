"""Whose work the processor does, in a run that does one thing at a time.

Steps use threads of several libraries at once, so the processor time of a role can only be told while
nothing else runs. Every role also has a clock of its own, moved by its work and by the messages it waits
for: what the run would have taken with every party on a machine like this one.
"""

from __future__ import annotations

import time
import types
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from atoll.runtime.transcript import Transcript
from atoll.study.address import Address

T = TypeVar("T")


class Meter:
    """Books processor time for whoever works now, and moves the clocks."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._owner: Address | None = None
        self._cpu = self._elapsed = 0.0
        self._clocks: dict[Address, float] = {}

    @contextmanager
    def of(self, owner: Address) -> Iterator[None]:
        """What happens inside is this role's work."""
        before = self._switch(owner)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, owner: Address | None) -> Address | None:
        cpu, elapsed = time.process_time(), time.perf_counter()
        before = self._owner
        if before is not None:
            self._transcript.of(before).cpu_seconds += cpu - self._cpu
            self._clocks[before] = self._clocks.get(before, 0.0) + elapsed - self._elapsed
            self._transcript.apart_seconds = max(self._transcript.apart_seconds, self._clocks[before])
        self._owner, self._cpu, self._elapsed = owner, cpu, elapsed
        return before

    def now(self, address: Address) -> float:
        """What this role's clock shows."""
        self._switch(self._owner)
        return self._clocks.get(address, 0.0)

    def wait(self, address: Address, until: float) -> None:
        """A role goes on when what it waited for has arrived."""
        self._clocks[address] = max(self.now(address), until)


@types.coroutine
def metered(meter: Meter, owner: Address, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Run a coroutine; whatever it does between two waits is its owner's."""
    send, value = work.send, None
    while True:
        try:
            with meter.of(owner):
                waits_for = send(value)
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            send, value = work.send, (yield waits_for)
        except BaseException as problem:
            send, value = work.throw, problem
