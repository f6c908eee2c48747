"""Crashes at every point of a run, for every secure sum and one study of SF-PCA.

    .venv/bin/python -m benchmarks.network_crashes [--jobs 4] [--every N] [--record FILE] [NAME ...]

Each party in turn is abandoned at every entry, sync, frame and acknowledgement, loses what was not on disk
(or nothing, or some of it), and starts again; every other time its disk is slow, and it crashes a second
time. Every run must complete, no message may have two payloads, and no nonce two texts. A point is tried with
one kind of loss, each in its turn. With ``--record`` what was tried is written down, and the next call with
the same file (``--minutes`` ends one) goes on with what was not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.crashes import (
    FAST,
    LOSSES,
    SLOW_DISK,
    crash_at,
    only_the_dead_are_silent,
    points_of,
    watch_disks,
)
from tests.support.examples import EXAMPLES, SUMS, Example, mediated, summation

LINGER = 120.0
"""Seconds for which whoever is done waits for one that starts again, which may take a while."""
AT_A_TIME = 5


class Place(NamedTuple):
    """A party of an example."""

    name: str
    party: str


@cache
def examples() -> dict[str, Example]:
    """Every secure sum, of few contributors: what matters is which points there are, not how often."""
    found = {
        f"summation-{n}{''.join(f'-{k}' for k in o)}": summation(n, o, 4 if "dropouts" in o else 3)
        for n, o in SUMS
    }
    return found | {
        "sum-mediated": mediated(summation("mix", n=3)),
        "sfpca-scores": EXAMPLES["sfpca-scores"](),
    }


def points(name: str) -> dict[str, int]:
    """How many each party has in a run without a crash."""
    with tempfile.TemporaryDirectory() as folder:
        return points_of(examples()[name], Path(folder))


def crashes(place: Place, chosen: tuple[int, ...], of: int) -> dict[str, Any]:
    """One run for each of these points; what came of them."""
    made, bad = 0, []
    for point in chosen:
        words, loss = list(LOSSES.items())[point % len(LOSSES)]
        timing = (SLOW_DISK if point // len(LOSSES) % 2 else FAST)._replace(linger=LINGER)
        again = (random.Random(f"{place} {point}").randint(1, of),) if timing.group == SLOW_DISK.group else ()
        folder = Path(tempfile.mkdtemp(prefix="atoll-crashes-"))
        try:
            lab = crash_at(
                examples()[place.name], folder, place.party, point, loss, again=again, timing=timing
            )
            made += lab.crashes[place.party]
        except Exception as error:
            bad.append(f"{place.name} {place.party} at {point}, {again} ({words}, {timing.group}): {error!r}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return {"name": place.name, "party": place.party, "points": chosen, "crashes": made, "bad": bad}


class Record:
    """What was tried, and what came of it; in a file, if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.of: dict[Place, int] = {}
        self.tried: dict[Place, set[int]] = {}
        self.crashes, self.bad = Counter[str](), list[str]()
        for line in path.read_text().splitlines() if path is not None and path.exists() else ():
            self._take(json.loads(line))

    def _take(self, one: dict[str, Any]) -> None:
        place = Place(one["name"], one["party"])
        if "of" in one:
            self.of[place] = one["of"]
            return
        self.tried.setdefault(place, set()).update(one["points"])
        self.crashes[place.name] += one["crashes"]
        self.bad += one["bad"]

    def note(self, one: dict[str, Any]) -> None:
        self._take(one)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(one) + "\n")
        for words in one.get("bad", ()):
            print(f"  NOT WELL: {words}", flush=True)

    def left(self, name: str, every: int) -> Iterator[tuple[Place, tuple[int, ...]]]:
        """What is still to be tried, some points at a time."""
        for place, of in self.of.items():
            if place.name == name:
                tried = self.tried.get(place, set())
                new = [point for point in range(1, of + 1, every) if point not in tried]
                for first in range(0, len(new), AT_A_TIME):
                    yield place, tuple(new[first : first + AT_A_TIME])

    def told(self) -> None:
        for name in dict.fromkeys(place.name for place in self.of):
            of = sum(n for place, n in self.of.items() if place.name == name)
            tried = sum(len(found) for place, found in self.tried.items() if place.name == name)
            print(f"{name:32} {tried:5} of {of:5} points, {self.crashes[name]:5} crashes")
        tried = sum(map(len, self.tried.values()))
        print(f"{tried} of {sum(self.of.values())} points, {self.crashes.total()} crashes: ", end="")
        print("every run completed" if not self.bad else f"{len(self.bad)} runs did not end well")


def _prepare() -> None:
    watch_disks()
    only_the_dead_are_silent()


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--every", type=int, default=1)
    reader.add_argument("--jobs", type=int, default=2, help="processes; they mostly wait")
    reader.add_argument("--minutes", type=float, default=1e6, help="begin nothing after so many")
    reader.add_argument("--record", type=Path)
    reader.add_argument("names", nargs="*")
    chosen = reader.parse_args()
    until = time.monotonic() + 60 * chosen.minutes
    record, names = Record(chosen.record), chosen.names or list(examples())
    _prepare()
    for name in names:
        if not any(place.name == name for place in record.of):
            for party, of in points(name).items():
                record.note({"name": name, "party": party, "of": of})
    with ProcessPoolExecutor(chosen.jobs, get_context("forkserver"), _prepare) as pool:
        work = [one for name in names for one in record.left(name, chosen.every)]
        while work and time.monotonic() < until:
            now, work = work[: 4 * chosen.jobs], work[4 * chosen.jobs :]
            for done in as_completed(
                [pool.submit(crashes, place, some, record.of[place]) for place, some in now]
            ):
                record.note(done.result())
    record.told()
    sys.exit(bool(record.bad))


if __name__ == "__main__":
    main()
