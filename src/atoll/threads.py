"""Work on all cores this process may use, for calls that release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spans(count: int, largest: int) -> list[slice]:
    """Slices that cover ``range(count)``: none above ``largest``, and at least one for every core."""
    step = max(1, min(largest, -(-count // cores())))
    return [slice(start, start + step) for start in range(0, count, step)]


def in_threads(work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
    """``[work(task) for task in tasks]``, on all cores, in order."""
    if len(tasks) < 2 or cores() < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(cores(), len(tasks))) as pool:
        return list(pool.map(work, tasks))


def joined(parts: Iterable[Sequence[R]]) -> list[R]:
    """The parts of one list, in order, as one list."""
    return [item for part in parts for item in part]
