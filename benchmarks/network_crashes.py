"""Crashes at every point of a run, for every secure sum and one study of SF-PCA.

    .venv/bin/python -m benchmarks.network_crashes [--every N] [--parties island-0,receiver] [example ...]

Each party in turn is abandoned at every entry, sync, frame and acknowledgement, loses what was not on disk
(or nothing, or some of it), and starts again. Every run must complete, no message may have two payloads, and
no nonce two texts. Prints one line for each party and loss.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.support.crashes import LOSSES, crash_at, points_of, watch_disks
from tests.support.examples import EXAMPLES

NAMES = [*(name for name in EXAMPLES if name.startswith(("summation", "sum-"))), "sfpca-scores"]


def campaign(name: str, every: int, parties: set[str]) -> int:
    """All crashes of one example; returns how many runs did not end well."""
    example, bad = EXAMPLES[name](), 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for party, points in points_of(example, folder / "calm").items():
            if parties and party not in parties:
                continue
            for words, loss in LOSSES.items():
                started, crashes = time.perf_counter(), 0
                for point in range(1, points + 1, every):
                    try:
                        lab = crash_at(example, folder / "run", party, point, loss)
                        crashes += lab.crashes[party]
                    except BaseException as error:
                        bad += 1
                        print(f"  NOT WELL: {name} {party} at {point} ({words}): {error!r}")
                        if isinstance(error, KeyboardInterrupt):
                            raise
                    shutil.rmtree(folder / "run", ignore_errors=True)
                seconds = time.perf_counter() - started
                print(f"{name:32} {party:10} {words:44} {crashes:4} crashes, {seconds:5.0f} s", flush=True)
    return bad


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--every", type=int, default=1)
    reader.add_argument("--parties", default="")
    reader.add_argument("names", nargs="*")
    chosen = reader.parse_args()
    end = watch_disks()
    try:
        parties = {name for name in chosen.parties.split(",") if name}
        bad = sum(campaign(name, chosen.every, parties) for name in chosen.names or NAMES)
    finally:
        end()
    print("every run completed" if not bad else f"{bad} runs did not end well")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
