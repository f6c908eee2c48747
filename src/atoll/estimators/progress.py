"""A line that says what a long fit is doing: in a terminal or a notebook, from two seconds on.

Nothing is written where nobody watches: neither to files and pipes nor where ``ATOLL_PROGRESS=0`` or
``atoll.show_progress(False)`` says so.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from atoll.report.steps import plain
from atoll.report.units import duration, size
from atoll.runtime.engine import Progress
from atoll.runtime.transcript import Transcript

AFTER = 2.0
"""Seconds of a fit that nobody needs to be told about."""
_EVERY = 0.25
_shown = True

Write = Callable[[str], None]


def show_progress(shown: bool = True) -> None:
    """Whether long fits say what they are doing, in this process."""
    global _shown
    _shown = bool(shown)


@contextmanager
def progress_line(title: str) -> Iterator[Progress | None]:
    """What a run calls as it goes; None where nobody watches."""
    screen = _screen()
    if screen is None:
        yield None
        return
    line = _Line(title, *screen)
    line.start()
    try:
        yield line.tell
    finally:
        line.stop()


def _screen() -> tuple[Write, Write] | None:
    """How a line is written over the last one, and how the last one is left."""
    if not _shown or os.environ.get("ATOLL_PROGRESS", "") in ("0", "off", "no"):
        return None
    return _notebook() or _terminal()


def _terminal() -> tuple[Write, Write] | None:
    stream = sys.stderr
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def over(text: str) -> None:
        width = shutil.get_terminal_size().columns
        shown = text.encode(stream.encoding or "ascii", "replace").decode(stream.encoding or "ascii")
        stream.write(f"\r{shown[: width - 1]}\x1b[K")
        stream.flush()

    return over, lambda _: over("")


def _notebook() -> tuple[Write, Write] | None:
    """In a kernel of Jupyter, which IPython knows; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if ipython is None or shell is None or not hasattr(shell, "kernel"):
        return None
    handle: Any = None

    def over(text: str) -> None:
        nonlocal handle
        data = {"text/plain": text}
        if handle is None:
            handle = ipython.display.display(data, raw=True, display_id=True)
        else:
            handle.update(data, raw=True)

    return over, over


class _Line(threading.Thread):
    """Writes from a thread of its own: a run says when a step begins, and a step may take long."""

    def __init__(self, title: str, over: Write, last: Write) -> None:
        super().__init__(name="atoll-progress", daemon=True)
        self._title, self._over, self._last = title, over, last
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._step, self._cost = "", Transcript()
        self._written = False

    def tell(self, what: str, transcript: Transcript) -> None:
        """Called by the run."""
        self._step, self._cost = what, transcript

    def run(self) -> None:
        wait = AFTER
        while not self._ended.wait(wait):
            self._over(self._text(self._step))
            self._written, wait = True, _EVERY

    def stop(self) -> None:
        """Leave the terminal as it was; in a notebook, what it took."""
        self._ended.set()
        self.join()
        if self._written:
            self._last(self._text(""))

    def _text(self, what: str) -> str:
        who, _, step = what.partition(": ")
        cost = list(self._cost.roles.values())  # the run goes on adding to it
        messages, sent = sum(c.messages_sent for c in cost), sum(c.bytes_sent for c in cost)
        # A message on its way is named by its kind, which says nothing to a user.
        now = f"; {who}: {'send a message' if step[0].isupper() else plain(step)}" if step else ""
        took = duration(time.monotonic() - self._began)
        return f"{self._title}: {took}, {messages:,} messages, {size(sent)}{now}"
