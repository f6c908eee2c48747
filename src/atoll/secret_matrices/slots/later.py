"""Local steps that are done later: a program's verbs only note them, and what is wanted is computed together.

A verb does not wait, so it cannot give way to other roles, and alone it would use one core. Steps that do not
need each other are done side by side; of those that could be next, the one that the program noted for the
earliest result, so that few results are alive at a time. A result that nobody asks for is never computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heapify, heappop, heappush
from typing import Any

from atoll.threads import cores

__all__ = ["Later", "computed"]


class Later:
    """What a step will make of its inputs, or has made: then the inputs are let go."""

    __slots__ = ("_value", "_work", "inputs")

    def __init__(self, work: Callable[..., Any] | None, *inputs: Later, value: Any = None) -> None:
        self._work = work
        self.inputs = inputs
        self._value = value

    def __repr__(self) -> str:
        return f"<Later: {'known' if self.known else 'not yet computed'}>"

    @property
    def known(self) -> bool:
        """Whether it has been computed."""
        return self._work is None

    @property
    def value(self) -> Any:
        """What was computed."""
        assert self.known, "computed() comes first"
        return self._value

    def settle(self) -> None:
        """Do the step; its inputs are known."""
        if self._work is not None:
            self._value = self._work(*(x.value for x in self.inputs))
            self._work, self.inputs = None, ()


def computed(wanted: Sequence[Later]) -> list[Any]:
    """The values of these, on all cores."""
    steps = _in_order(wanted)
    if steps:
        run = _Run(steps)
        with ThreadPoolExecutor(min(cores(), len(steps))) as pool:
            for worker in [pool.submit(run.work) for _ in range(min(cores(), len(steps)))]:
                worker.result()
    return [x.value for x in wanted]


def _in_order(wanted: Sequence[Later]) -> list[Later | None]:
    """Whatever has to be computed, each after its inputs, and all that one result needs before the next."""
    order: list[Later | None] = []
    seen: set[int] = set()
    stack = [(x, False) for x in reversed(wanted)]
    while stack:
        step, complete = stack.pop()
        if complete:
            order.append(step)
        elif not step.known and id(step) not in seen:
            seen.add(id(step))
            stack.append((step, True))
            stack.extend((x, False) for x in reversed(step.inputs))
    return order


class _Run:
    """Steps under way."""

    def __init__(self, steps: list[Later | None]) -> None:
        # A step is forgotten here as soon as it is done: its value lives as long as somebody needs it.
        self._steps = steps
        self._left = len(steps)
        self._change = threading.Condition()
        self._failed = False
        places = {id(step): place for place, step in enumerate(steps)}
        self._waits: list[int] = []
        self._users: list[list[int]] = [[] for _ in steps]
        for place, step in enumerate(steps):
            assert step is not None
            needed = {places[id(x)] for x in step.inputs if not x.known}
            self._waits.append(len(needed))
            for other in needed:
                self._users[other].append(place)
        self._ready = [place for place, count in enumerate(self._waits) if not count]
        heapify(self._ready)

    def work(self) -> None:
        """Do steps until none is left."""
        while (place := self._next()) is not None:
            step, self._steps[place] = self._steps[place], None
            assert step is not None
            try:
                step.settle()
            except BaseException:
                with self._change:
                    self._failed = True
                    self._change.notify_all()
                raise
            del step
            self._finished(place)

    def _next(self) -> int | None:
        with self._change:
            while not self._ready and self._left and not self._failed:
                self._change.wait()
            return heappop(self._ready) if self._ready and not self._failed else None

    def _finished(self, place: int) -> None:
        with self._change:
            self._left -= 1
            for user in self._users[place]:
                self._waits[user] -= 1
                if not self._waits[user]:
                    heappush(self._ready, user)
            self._change.notify_all()
