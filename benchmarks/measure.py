"""What the benchmarks share: time, peak memory, and a table that prints ratios of one run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")


def seconds(work: Callable[[], T], repeat: int = 1) -> tuple[float, T]:
    """The best of ``repeat`` runs, and what the last one gave."""
    best, result = float("inf"), None
    for _ in range(repeat):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return best, result  # type: ignore[return-value]


def peak_megabytes() -> float:
    """The largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says of a child includes its parent
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """What was needed before, to load tables say, counts no longer (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on the terminal."""
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console().print(table)
