"""Objects of the Go library that a test opens, and whether they are freed."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator

import pytest

from atoll.crypto.hazmat import golib

_PATIENCE = 10.0
"""Seconds for a collection that another thread has begun: while it goes on, gc.collect() does nothing."""


class Opened:
    """Those that were opened since. The library's own count also falls when garbage of an earlier test is
    collected, which may be at any moment, and rises when a thread that it left behind opens one."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.freed: set[int] = set()

    @property
    def alive(self) -> int:
        return len(self.numbers) - len(self.freed)

    def all_freed(self) -> bool:
        """Whether nothing holds any of them, but for cycles of references."""
        end = time.monotonic() + _PATIENCE
        while gc.collect() is not None and self.alive and time.monotonic() < end:
            time.sleep(0.05)
        return self.alive == 0


@contextlib.contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """What is opened inside, and freed there."""
    found = Opened()
    keep, release = golib.Handle._keep, golib._release

    def kept(handle: golib.Handle, number: int) -> None:
        found.numbers.append(number)
        keep(handle, number)

    def released(number: int) -> None:
        release(number)
        if number in found.numbers:  # not one that was opened before
            found.freed.add(number)

    with monkeypatch.context() as patch:
        patch.setattr(golib.Handle, "_keep", kept)
        patch.setattr(golib, "_release", released)
        yield found
