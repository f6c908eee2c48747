"""Two checkouts on the same work, in turn: processor seconds (medians), bytes and memory, as ratios.

    python -m benchmarks.before_after OLD NEW [--runs 5] [--cases wine paillier ...]

OLD and NEW are checkouts whose Go library is built (``make demo`` in each, or ``python hatch_build.py``).
Every run is a process of its own. Set ATOLL_VECTOR for both, or for neither. MNIST and Wine need the
data sets (ATOLL_DATA); without them these cases are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import show

# Runs in either checkout, so it uses only what both have.
WORK = """
import inspect, json, os, resource, sys
import numpy as np
import atoll
from atoll.bench import sums
try:
    from atoll.bench import figure5
except ImportError:  # its name in older checkouts
    from atoll.bench import sfpca as figure5

case = sys.argv[1]


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def pca(name):
    folder = figure5.data_folder(None)
    data = figure5.CASES[name]
    blocks = np.array_split(figure5.load(folder, data), 6)
    known = inspect.signature(atoll.PCA).parameters
    options = {"accept_determined": True} if "accept_determined" in known else {}
    start = used()
    fitted = atoll.PCA(data.n_components, protocol="sfpca", bounds=data.bounds, **options).fit(blocks)
    return used() - start, fitted.transcript_


def joint(rows):
    X = np.random.default_rng(5).normal(size=(rows, 90))
    known = inspect.signature(atoll.PCA).parameters
    options = {"accept_determined": True} if "accept_determined" in known else {}
    blocks = np.array_split(X, 4)
    atoll.PCA(5, **options).fit([block[:1000] for block in blocks])
    start = used()
    fitted = atoll.PCA(5, **options).fit(blocks)
    return used() - start, fitted.transcript_


def added(method, n, **options):
    form = ((method, options),)
    sums.bench_sums(n, 3, form)  # loads and warms what the first run pays for
    repeat = 10 if method == "lattice" and n <= 10_000 else 1
    start = used()
    for _ in range(repeat):
        row = sums.bench_sums(n, 3, form)[0]
    return (used() - start) / repeat, row


if case in ("mnist", "wine", "pppca"):
    seconds, transcript = joint(1_000_000) if case == "pppca" else pca(case)
    sent = max(cost.bytes_sent for role, cost in transcript.roles.items() if role.endswith("/provider"))
    figures = seconds, sent, transcript.bytes, transcript.rounds
else:
    method, n, *key = case.split("-")
    seconds, row = added(method, int(n), **({"key": key[0]} if key else {}))
    figures = seconds, row.island_bytes, row.total_bytes, 0
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([*figures, peak]))
"""
CASES = (
    "wine",
    "mnist",
    "pppca",
    "paillier-10000",
    "lattice-10000-collective",
    "lattice-10000-server",
    "lattice-190653-collective",
    "lattice-190653-server",
    "lattice-78-collective",
    "lattice-78-server",
)


def once(tree: Path, case: str) -> list[float]:
    """Processor seconds, bytes of the busiest island, bytes in all, rounds, peak memory."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, "-c", WORK, case], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{case} failed in {tree}:\n{done.stderr}")
    figures: list[float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compared(old: Path, new: Path, case: str, runs: int) -> list[Any]:
    """One line of the table; the trees take turns, so that a busy minute hits both."""
    before, after = [], []
    for _ in range(runs):
        before.append(once(old, case))
        after.append(once(new, case))
    was, now = ([median(column) for column in zip(*figures, strict=True)] for figures in (before, after))
    ratios = [now[i] / was[i] for i in (0, 1, 2, 4)]
    return [case, was[0], now[0], *ratios, f"{was[3]:.0f} / {now[3]:.0f}" if was[3] else ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cases", nargs="*", default=CASES)
    given = parser.parse_args()
    cases = [c for c in given.cases if c not in ("wine", "mnist") or "ATOLL_DATA" in os.environ]
    rows = []
    for case in cases:
        rows.append(compared(given.old.resolve(), given.new.resolve(), case, given.runs))
        print(*rows[-1], flush=True)
    titles = ("case", "CPU s before", "after", "CPU ratio", "island bytes", "all bytes", "memory", "rounds")
    show("after / before, medians", titles, rows)


if __name__ == "__main__":
    main()
