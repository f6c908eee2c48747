"""Processor time of one call, however short."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

_LEAST_SECONDS = 0.02


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call, the best of three series."""
    series = _LEAST_SECONDS / 3
    work()
    times, took = 1, _series(work, 1)
    while took < series:
        times *= ceil(min(64.0, series / max(took, 1e-9)) + 1)
        took = _series(work, times)
    return min(took, _series(work, times), _series(work, times)) / times


def _series(work: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - started
