"""How SF-PCA grows with one dimension at a time: islands, columns, rows, components, links, a large island.

python -m benchmarks.sfpca_scaling FOLDER                     everything, within 25 minutes
python -m benchmarks.sfpca_scaling FOLDER --only parties      one dimension
python -m benchmarks.sfpca_scaling FOLDER --plan              predicted times only
python -m benchmarks.sfpca_scaling FOLDER --again             points that FOLDER already has, once more

Writes FOLDER/sfpca-DIMENSION.csv after every point (a second call goes on where the first ended) and a
picture of each dimension. A point that is predicted not to fit the memory or the time is left out, and
said. Exponents are least squares of log(time) on log(size); "last" is that of the two largest sizes.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, NullFormatter

from atoll.data.island import as_islands
from atoll.estimators.base import parties
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.study.model import Study
from benchmarks.measure import show
from benchmarks.sfpca_runs import Measured, Point, in_own_process

BASE = Point(parties=4, rows=4096, columns=64, components=2)
SIZES: dict[str, Sequence[int]] = {
    "parties": (2, 4, 8, 16, 32, 50),
    "columns": (8, 32, 128, 512, 1024, 2048, 4096, 8192),
    "rows": (1_000, 10_000, 100_000, 1_000_000),
    "components": (1, 2, 5, 10, 20),
}
VARIANTS: dict[str, dict[str, Point]] = {
    "links": {
        "20 ms, 1 Gbit/s": BASE,
        "20 ms, 0.5 Gbit/s": replace(BASE, bandwidth=BASE.bandwidth / 2),
        "40 ms, 1 Gbit/s": replace(BASE, latency=2 * BASE.latency),
        "40 ms, 0.5 Gbit/s": replace(BASE, latency=2 * BASE.latency, bandwidth=BASE.bandwidth / 2),
    },
    "split": {
        "even": replace(BASE, rows=200_000),
        "one island with half": replace(BASE, rows=200_000, largest=0.5),
        "one island with 90%": replace(BASE, rows=200_000, largest=0.9),
    },
}
FITTED = ("seconds", "apart_seconds", "provider_cpu", "coordinator_cpu", "provider_bytes")
WORDS = {
    "seconds": "wall s",
    "apart_seconds": "apart s",
    "provider_cpu": "island CPU",
    "coordinator_cpu": "coord. CPU",
    "provider_bytes": "MB/island",
    "rounds": "rounds",
    "megabytes": "peak MB",
}


def points(dimension: str) -> dict[str, Point]:
    """Label -> what is run."""
    if dimension in VARIANTS:
        return VARIANTS[dimension]
    base = replace(BASE, columns=128) if dimension == "components" else BASE
    return {str(size): replace(base, **{dimension: size}) for size in SIZES[dimension]}


# ---- what fits ----


def foreseen(point: Point) -> tuple[float, float]:
    """Seconds of both runs and bytes of memory, as ``atoll review`` predicts them."""
    islands = as_islands([np.zeros((1, 1))] * point.parties)
    study = Study(
        name="scaling",
        protocol="sfpca",
        parties=parties(islands, "provider", "coordinator", "consumer"),
        parameters={
            "n_components": point.components,
            "recipe": point.recipe,
            "bounds": 4.0,
            "accept_determined": True,
        },
        release={"components": ("consumer",)},
    )
    rows = (point.rows // point.parties,) * point.parties
    _, said = forecast(study, Circumstances(point.columns, rows, point.latency, point.bandwidth))
    work = said.processor_provider * point.parties + said.processor_server
    return said.seconds_together + work, said.memory_together


def obstacle(point: Point, seconds_left: float) -> str:
    """Why a point is not run; empty if it is."""
    seconds, memory = foreseen(point)
    if memory > 0.7 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"):
        return f"needs some {memory / 1e9:.1f} GB of memory"
    if seconds > seconds_left:
        return f"would take some {seconds:.0f} s, {max(0.0, seconds_left):.0f} s are left"
    return ""


def plan(dimensions: Sequence[str]) -> None:
    """What all points are predicted to take."""
    rows = [
        [dimension, label, *foreseen(point)]
        for dimension in dimensions
        for label, point in points(dimension).items()
    ]
    total = sum(seconds for _, _, seconds, _ in rows) / 60
    show(
        f"Predicted: {total:.0f} minutes",
        ["", "", "s, both runs", "GB"],
        [[*r[:3], r[3] / 1e9] for r in rows],
    )


# ---- runs, kept in files ----

COLUMNS = ["label", *(f.name for f in fields(Measured) if f.name != "predicted"), "predicted_seconds"]


def read(path: Path) -> dict[str, dict[str, float]]:
    """The points that a file has."""
    if not path.is_file():
        return {}
    with path.open(newline="") as lines:
        return {row.pop("label"): {k: float(v) for k, v in row.items()} for row in csv.DictReader(lines)}


def append(path: Path, label: str, run: Measured) -> None:
    """Keep one point."""
    new = not path.exists()
    values = asdict(run)
    values["predicted_seconds"] = values.pop("predicted")["seconds"]
    with path.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow({"label": label, **values})


def run(dimension: str, folder: Path, deadline: float, again: bool) -> dict[str, dict[str, float]]:
    """The points of one dimension that are missing."""
    path = folder / f"sfpca-{dimension}.csv"
    if again:
        path.unlink(missing_ok=True)
    have = read(path)
    for label, point in points(dimension).items():
        if label in have:
            continue
        why = obstacle(point, deadline - time.monotonic())
        if why:
            print(f"{dimension} {label}: left out, it {why}", flush=True)
            continue
        try:
            append(path, label, in_own_process(point))
        except RuntimeError as problem:
            print(f"{dimension} {label}: {problem}", flush=True)
            continue
        have = read(path)
        print(f"{dimension} {label}: {have[label]['seconds']:.1f} s", flush=True)
    return {label: have[label] for label in points(dimension) if label in have}


# ---- what it shows ----


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of log(time) over log(size)."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def report(dimension: str, rows: dict[str, dict[str, float]], folder: Path) -> None:
    """The table, exponents below it, and a picture."""
    if not rows:
        return
    for row in rows.values():
        row["provider_bytes"] /= 1e6
    table: list[list[object]] = [[label, *(row[f] for f in WORDS)] for label, row in rows.items()]
    if dimension in SIZES:
        sizes = [float(label) for label in rows]
        for name, part in (("exponent", slice(None)), ("last", slice(-2, None))):
            fits = [exponent(sizes[part], [row[f] for row in rows.values()][part]) for f in FITTED]
            table.append([name, *(f"{fit:+.2f}" for fit in fits), "", ""])
        _draw(dimension, sizes, rows, folder)
    show(f"SF-PCA against {dimension}", [dimension, *WORDS.values()], table)


def _draw(dimension: str, sizes: list[float], rows: dict[str, dict[str, float]], folder: Path) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name in ("seconds", "apart_seconds", "provider_cpu"):
        axes.loglog(sizes, [row[name] for row in rows.values()], marker="o", label=WORDS[name])
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(dimension)
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    figure.savefig(folder / f"sfpca-{dimension}.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=[*SIZES, *VARIANTS], action="append")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--plan", action="store_true", help="say what is predicted, and run nothing")
    asked = parser.parse_args()
    dimensions = asked.only or [*SIZES, *VARIANTS]
    if asked.plan:
        plan(dimensions)
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * asked.minutes
    for dimension in dimensions:
        report(dimension, run(dimension, asked.folder, deadline, asked.again), asked.folder)


if __name__ == "__main__":
    main()
