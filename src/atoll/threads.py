"""Work on all cores this process may use, for calls that release the GIL."""

from __future__ import annotations

import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _OneBlasThread:
    """Limits BLAS to one thread while anybody inside asks for it, and gives the threads back after."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    import threadpoolctl  # it looks for every library that is loaded, which only runs need

    # SciPy has a BLAS of its own. Loaded by a later step, it would have as many threads as there are cores,
    # and a run that is gone on with where there are other cores would not send the same bytes.
    importlib.import_module("scipy.linalg")
    return threadpoolctl.ThreadpoolController()


one_blas_thread = _OneBlasThread()
"""For steps that already run side by side: threads of BLAS would get in each other's way, and how many
there are would show in the last bit of a product."""


def spans(count: int, largest: int) -> list[slice]:
    """Slices that cover ``range(count)``: none above ``largest``, or above one core's equal part."""
    step = max(1, min(largest, -(-count // cores())))
    return [slice(start, start + step) for start in range(0, count, step)]


def in_threads(work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
    """``[work(task) for task in tasks]``, on all cores, in order."""
    if len(tasks) < 2 or cores() < 2:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(cores(), len(tasks))) as pool:
        return list(pool.map(work, tasks))


def in_order(work: Callable[[T], R], tasks: Iterable[T], count: int) -> Iterator[R]:
    """``map(work, tasks)`` over ``count`` tasks, on all cores; tasks are taken only a few ahead."""
    if count < 2 or cores() < 2:
        yield from map(work, tasks)
        return
    with ThreadPoolExecutor(min(cores(), count)) as pool:
        ahead: deque[Future[R]] = deque()
        for task in tasks:
            ahead.append(pool.submit(work, task))
            if len(ahead) > cores():
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def joined(parts: Iterable[Sequence[R]]) -> list[R]:
    """The parts of one list, in order, as one list."""
    return [item for part in parts for item in part]
