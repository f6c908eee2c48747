"""Captured variance of private PCA by how rows are centred: which choice for which table.

    [ATOLL_DATA=<folder>] python -m benchmarks.dp_centres [--runs 10] [--only NAME ...]

Variance in the private top-k subspace over that in the exact one: the PCA of the true pooled rows, centred,
neither cut nor normalised. Ten islands with rows in random order, one colluder, delta 1e-5. Preparations:

- *rows*: the table of dp_utility.py, rows of length one as they come, row_norm 1.
- *unit*: columns divided by their largest value, then rows of length one, row_norm 1: as tight as can be.
- *box*: columns divided by their largest value, row_norm sqrt(d): what an owner knows who knows the columns'
  ranges. (The data are public; a private study takes ranges from elsewhere.)

"padded" islands declare a capacity of 10% more rows than they have. The last table splits rows by their first
component instead of at random: pairs stand within islands and do not see how islands differ.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

from atoll.bench.figure5 import DATA_VARIABLE
from atoll.privacy.dp_moments import Plan
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import Crowd
from atoll.randomness import derive, fresh_seed
from benchmarks import dp_utility
from benchmarks.dp_utility import captured

EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
DELTA = 1e-5
ISLANDS = 10
SPARE = 1.1
MANY = 2000
"""From so many rows on a table is not small."""
NORMALISE, CLIP, PAIRS, PADDED = "mean, normalise", "mean, clip", "pairs", "pairs, padded"
METHODS: dict[str, dict[str, Any]] = {
    NORMALISE: {"rows": "normalise"},
    CLIP: {"rows": "clip"},
    PAIRS: {"rows": "normalise", "centre": "pairs"},
    PADDED: {"rows": "normalise", "centre": "pairs", "padded": True},
}
EMBEDDED = {
    "digits": datasets.load_digits,
    "breast-cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
}
FILES = (
    *("wine_quality_white", "wine_quality_red", "pima_diabetes", "vehicle", "phishing_websites"),
    *("online_news_partial", "creditcard_partial", "bike_sharing_hour", "nltcs", "adult"),
)
ADULT = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COMPONENTS = {"breast-cancer": 3, "adult": 3, "pima_diabetes": 3}
Scores = dict[str, dict[float, list[float]]]


class Case(NamedTuple):
    """A prepared table."""

    name: str
    rows: np.ndarray
    row_norm: float
    k: int


def table(name: str, folder: Path) -> np.ndarray:
    if name in EMBEDDED:
        return np.asarray(EMBEDDED[name]().data, dtype=np.float64)
    if name == "adult":
        frame = pd.read_csv(folder / "adult.csv.gz")
        return frame[[c for c in frame if c.replace("-", "_").replace(".", "_") in ADULT]].to_numpy(float)
    with np.load(folder / f"{name}.npz") as archive:
        return np.asarray(archive["X"], dtype=np.float64)


def prepared(name: str, rows: np.ndarray) -> Iterator[Case]:
    """As unit rows, and in a box; some as they come, too."""
    k = COMPONENTS.get(name, 5)
    if name in dp_utility.DATA:
        yield Case(f"{name}, rows", rows / np.linalg.norm(rows, axis=1, keepdims=True), 1.0, k)
    box = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)
    lengths = np.linalg.norm(box, axis=1, keepdims=True)
    yield Case(f"{name}, unit", box / np.where(lengths > 0, lengths, 1.0), 1.0, k)
    yield Case(f"{name}, box", box, math.sqrt(rows.shape[1]), k)


def scores(case: Case, islands: list[np.ndarray], runs: int, epsilons: Iterable[float] = EPSILONS) -> Scores:
    centred = case.rows - case.rows.mean(axis=0)
    scatter, seed = centred.T @ centred, fresh_seed()
    crowd, places = Crowd(len(islands), colluders=1), [math.ceil(SPARE * len(part)) for part in islands]

    def once(options: dict[str, Any], epsilon: float, own: bytes) -> float:
        reach = 1.0 if options.get("centre") == "pairs" else case.row_norm
        plan = Plan(case.rows.shape[1], reach, epsilon, DELTA, crowd=crowd, **options)
        run = rehearse(plan, islands, own, at_once=True, capacities=places)
        return captured(run.spectrum.components[: case.k], scatter)

    return {
        method: {
            epsilon: [once(options, epsilon, derive(seed, method, str(epsilon), run)) for run in range(runs)]
            for epsilon in epsilons
        }
        for method, options in METHODS.items()
    }


def at_random(rows: np.ndarray) -> list[np.ndarray]:
    return np.array_split(rows[np.random.default_rng(1).permutation(len(rows))], ISLANDS)


def by_first_component(rows: np.ndarray) -> list[np.ndarray]:
    """Islands that differ as much as islands can."""
    centred = rows - rows.mean(axis=0)
    first = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    return np.array_split(rows[np.argsort(centred @ first)], ISLANDS)


def show(case: Case, found: Scores) -> None:
    centred = case.rows - case.rows.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)
    n, d = case.rows.shape
    chance = case.k / d * values.sum() / values[-case.k :].sum()
    print(f"\n{case.name}: {n} x {d}, k={case.k}, random subspace {chance:.2f}; mean (standard error)")
    for method, cells in found.items():
        print(f"{method:18}" + "".join(f"{_cell(cells[epsilon]):>15}" for epsilon in cells), flush=True)


def _cell(seen: list[float]) -> str:
    return f"{np.mean(seen):.3f} ({_error(seen):.3f})"


def _error(seen: list[float]) -> float:
    return float(np.std(seen, ddof=1) / math.sqrt(len(seen)))


def lead(found: Scores, one: str, other: str, epsilon: float) -> float:
    """By how much one method is ahead of another, and 0 within two standard errors."""
    ahead = float(np.mean(found[one][epsilon]) - np.mean(found[other][epsilon]))
    return ahead if abs(ahead) > 2 * math.hypot(*(_error(found[m][epsilon]) for m in (one, other))) else 0.0


def tally(all_found: list[Scores], one: str, other: str) -> str:
    """Over all tables: cells in which one method is ahead of the other, behind, and by how much at most."""
    lines = []
    for epsilon in EPSILONS:
        leads = [lead(found, one, other, epsilon) for found in all_found]
        ahead, behind = [x for x in leads if x > 0], [-x for x in leads if x < 0]
        average = np.mean([np.mean(f[one][epsilon]) - np.mean(f[other][epsilon]) for f in all_found])
        lines.append(
            f"  epsilon {epsilon:<4g} of {len(leads)}: ahead in {len(ahead):2}, by up to "
            f"{max(ahead, default=0):.3f}; behind in {len(behind):2}, by up to {max(behind, default=0):.3f}; "
            f"on average {average:+.3f}"
        )
    return "\n".join([f"{one!r} beside {other!r}, {len(all_found)} tables", *lines])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="some of the tables")
    options = parser.parse_args()
    folder = os.environ.get(DATA_VARIABLE)
    names = [*EMBEDDED, *(FILES if folder else ())]
    if not folder:
        print(f"only scikit-learn's tables: set {DATA_VARIABLE} to a folder with the others")
    print(f"{'epsilon':18}" + "".join(f"{epsilon:>15g}" for epsilon in EPSILONS))
    few: list[Scores] = []
    many: list[Scores] = []
    for name in options.only or names:
        for case in prepared(name, table(name, Path(folder or "."))):
            found = scores(case, at_random(case.rows), options.runs)
            show(case, found)
            (many if len(case.rows) >= MANY else few).append(found)
    print(f"\n{tally(few + many, PADDED, NORMALISE)}")
    for rows, part in ((f"fewer than {MANY} rows", few), (f"{MANY} rows or more", many)):
        print(f"{rows}: {tally(part, CLIP, NORMALISE)}" if part else f"{rows}: no table")
    for name in ("breast-cancer", "wine"):
        *_, case, _ = prepared(name, table(name, Path()))
        case = case._replace(name=f"{case.name}, islands that differ")
        show(case, scores(case, by_first_component(case.rows), options.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
