"""A million frames at random against one party's link, half of them sealed with a partner's key.

    .venv/bin/python -m benchmarks.network_fuzz [frames]

Nothing may raise, and memory may not grow. Prints both.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fuzzing import Target, fuzz


def main(count: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Target(Path(folder), seed=1)
        fuzz(target, 20_000)
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        ended = fuzz(target, count)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        seconds = time.perf_counter() - started
        print(f"{count:,} frames in {seconds:.0f} s: {dict(target.link.counts)}")
        print(f"a lie that ended the run: {ended} times; memory grew by {grown} KB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
