"""Crashes at every point of a run, for every secure sum and one study of SF-PCA.

    .venv/bin/python -m benchmarks.network_crashes [--every N] [--all] [--parties island-0] [NAME ...]

Each party in turn is abandoned at every entry, sync, frame and acknowledgement, loses what was not on disk
(or nothing, or some of it), and starts again; every other time its disk is slow, and it crashes a second
time. Every run must complete, no message may have two payloads, and no nonce two texts. A point is tried with
one kind of loss, each in its turn; ``--all`` tries it with each of them. Prints one line for each party.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.support.crashes import FAST, LOSSES, SLOW_DISK, crash_at, points_of, watch_disks
from tests.support.examples import EXAMPLES, SUMS, Example, mediated, summation


def _sums() -> dict[str, Example]:
    """Every secure sum, of few contributors: what matters is which points there are, not how often."""
    found = {
        f"summation-{n}{''.join(f'-{k}' for k in o)}": summation(n, o, 4 if "dropouts" in o else 3)
        for n, o in SUMS
    }
    return found | {"sum-mediated": mediated(summation("mix", n=3))}


def campaign(name: str, example: Example, every: int, parties: set[str], *, all_losses: bool) -> int:
    """All crashes of one example; returns how many runs did not end well."""
    bad, losses, draw = 0, list(LOSSES.items()), random.Random(name)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for party, points in points_of(example, folder / "calm").items():
            if parties and party not in parties:
                continue
            started, crashes = time.perf_counter(), 0
            for point in range(1, points + 1, every):
                turn = point // every
                for words, loss in losses if all_losses else [losses[turn % len(losses)]]:
                    timing = SLOW_DISK if turn // len(losses) % 2 else FAST
                    again = (draw.randint(1, points),) if timing is SLOW_DISK else ()
                    try:
                        lab = crash_at(
                            example, folder / "run", party, point, loss, again=again, timing=timing
                        )
                        crashes += lab.crashes[party]
                    except BaseException as error:
                        bad += 1
                        where = f"{name} {party} at {point}, {again} ({words}, {timing.group})"
                        print(f"  NOT WELL: {where}: {error!r}", flush=True)
                        if isinstance(error, KeyboardInterrupt):
                            raise
                    shutil.rmtree(folder / "run", ignore_errors=True)
            seconds = time.perf_counter() - started
            print(
                f"{name:32} {party:10} {points:4} points, {crashes:4} crashes, {seconds:5.0f} s", flush=True
            )
    return bad


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--every", type=int, default=1)
    reader.add_argument("--all", action="store_true", dest="all_losses")
    reader.add_argument("--parties", default="")
    reader.add_argument("names", nargs="*")
    chosen = reader.parse_args()
    end = watch_disks()
    examples = {**_sums(), "sfpca-scores": EXAMPLES["sfpca-scores"]()}
    try:
        parties = {name for name in chosen.parties.split(",") if name}
        bad = sum(
            campaign(
                name,
                examples.get(name) or EXAMPLES[name](),
                chosen.every,
                parties,
                all_losses=chosen.all_losses,
            )
            for name in chosen.names or examples
        )
    finally:
        end()
    print("every run completed" if not bad else f"{bad} runs did not end well")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
