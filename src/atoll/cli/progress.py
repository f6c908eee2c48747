"""A progress bar over the messages that a run is expected to send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from atoll.cli import console

if TYPE_CHECKING:
    from atoll.runtime.transcript import Transcript

_WIDEST = 40

_EVERY = 0.1
"""Seconds between two looks at the transcript: counting it is work when there are many roles."""


@contextmanager
def bar(expected: int | None, shown: bool) -> Iterator[Callable[[str, Transcript], None] | None]:
    """What a run calls as it goes; nothing is drawn where nobody watches."""
    screen = console.err()
    if not shown or not screen.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    drawn = Progress(
        SpinnerColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f} messages"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.description}"),
        console=screen,
        transient=True,
    )
    task: Any = drawn.add_task("", total=expected)
    last = 0.0

    def tell(what: str, transcript: Transcript) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            drawn.update(task, completed=transcript.messages, description=described(what))

    with drawn:
        yield tell


def described(what: str) -> str:
    """Who does what, in plain words: "north/provider: gen_share" is "north/provider: cut into shares"."""
    from atoll.report.steps import plain

    who, _, step = what.partition(": ")
    return f"{who}: {plain(step)}"[:_WIDEST] if step else what[:_WIDEST]
