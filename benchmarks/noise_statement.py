"""How often the stated angle of private components holds, and how tight it is.

    [ATOLL_DATA=<folder>] python -m benchmarks.noise_statement [--runs 8] [--only NAME ...] [--check]

Every run is the whole mechanism with its own samplers (``privacy.lab.rehearsal``): private centre, radius,
noisy second moments. The reference is computed from the same rows around the centre that the run released,
cut as the run cut them, without noise in the second moments; the angle is the largest principal one between
the leading k components, for k = 1, 2, 3, 5. "Holds": it is no more than what
:mod:`atoll.privacy.noise_statement` states.

A *cell* is a data set at an epsilon: runs with normalised rows, with cut rows and with pairs, and all k.
``--check``: holds in 95% of all, in 90% of every cell. Beside the median of what is stated stands that of
an oracle, which knows the spectrum without noise and states the 95th percentile of what noise does to it:
no honest bound is tighter for long.

The centre: how far the components lie from those around the exact mean, and whether "mostly noise" was said
then. ``--whole``: so many fits of ``atoll.PCA`` in some cells, with islands, shares and all.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

import atoll
from atoll.bench.figure5 import DATA_VARIABLE
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid, pairs
from atoll.privacy.lab.rehearsal import Rehearsal, rehearse
from atoll.privacy.mechanisms import Crowd
from atoll.privacy.noise_statement import NoiseStatement, state
from atoll.randomness import derive, fresh_seed
from benchmarks.dp_centres import table

EPSILONS = (0.1, 0.3, 1.0, 2.0, 5.0)
DELTA = 1e-5
ISLANDS = 4
MOST_ROWS = 6000
LEADING = (1, 2, 3, 5)
EMBEDDED = ("digits", "breast-cancer", "wine", "diabetes", "iris")
FILES = (
    *("wine_quality_white", "wine_quality_red", "pima_diabetes", "vehicle", "phishing_websites", "nltcs"),
    *("bike_sharing_hour", "creditcard_partial", "facebook_comments_testset", "online_news_partial"),
)
METHODS: dict[str, dict[str, Any]] = {
    "normalise": {},
    "clip": {"rows": "clip"},
    "pairs": {"centre": "pairs"},
}
ORACLE_RUNS = 100


class Seen(NamedTuple):
    """One run, one k: the angle, what was stated, and what an oracle states."""

    name: str
    epsilon: float
    method: str
    k: int
    angle: float
    stated: float
    oracle: float

    @property
    def holds(self) -> bool:
        return self.angle <= self.stated + 1e-6


class Whole(NamedTuple):
    """One run: the angle of all components to those around the exact mean, and what was said."""

    angle: float
    mostly_noise: bool


def _spiked(n: int, d: int, spikes: Iterable[float]) -> np.ndarray:
    rng = np.random.default_rng(d)
    variances = np.ones(d)
    variances[: len(list(spikes))] = list(spikes)
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(rng.standard_normal((n, d)) * np.sqrt(variances) @ turned.T)


GENERATED: dict[str, Callable[[], np.ndarray]] = {
    "generated: 3 spikes": partial(_spiked, 3000, 40, (30, 12, 5)),
    "generated: falling": partial(_spiked, 2000, 25, [25 / j for j in range(1, 26)]),
    "generated: flat": partial(_spiked, 1500, 20, ()),
    "generated: close": partial(_spiked, 5000, 12, (6, 5, 4.5, 1.5, 1.3)),
}


def loaded(name: str, folder: Path) -> np.ndarray:
    """Some rows, columns divided by their largest value: what follows from known ranges."""
    if name in GENERATED:
        rows = GENERATED[name]()
    else:
        rows = datasets.load_iris().data if name == "iris" else table(name, folder)
    rows = rows[np.random.default_rng(1).permutation(len(rows))[:MOST_ROWS]]
    return np.asarray(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300), dtype=np.float64)


def falling(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def largest_angle(one: np.ndarray, other: np.ndarray) -> float:
    """Between the spans of two sets of orthonormal columns, in degrees."""
    smallest = np.linalg.svd(one.T @ other, compute_uv=False)[-1]
    return float(np.degrees(np.arccos(min(1.0, smallest))))


def moments_around(plan: dp.Plan, islands: list[np.ndarray], centre: dp.Centre) -> np.ndarray:
    """The second moments that a run around this centre has without noise."""
    total = sum(dp.moments_contribution(plan, rows, centre) for rows in islands)
    return np.asarray(grid.unpack_triangle(total, plan.features) * dp.moment_unit(plan, centre))


def references(
    plan: dp.Plan, islands: list[np.ndarray], run: Rehearsal, seed: bytes
) -> tuple[np.ndarray, np.ndarray]:
    """Second moments without noise: around the released centre, and around the exact mean."""
    if run.centre is None:
        parts = [
            pairs.pair_contribution(plan, rows, len(rows), derive(seed, "pairs", owner))[:-1]
            for owner, rows in enumerate(islands)
        ]
        same = grid.unpack_triangle(sum(parts), plan.features) / grid.MOMENT_UNITS
        return same, same
    mean = np.vstack([grid.shorten(rows, plan.row_norm) for rows in islands]).mean(axis=0)
    exact = dp.Centre(mean, run.centre.count, run.centre.radius)
    return moments_around(plan, islands, run.centre), moments_around(plan, islands, exact)


def one_run(
    plan: dp.Plan, islands: list[np.ndarray], method: str, seed: bytes
) -> tuple[NoiseStatement, list[float], np.ndarray, float]:
    """What is stated, angles, the spectrum without noise, and the angle to the exact mean's components."""
    run = rehearse(plan, islands, seed, at_once=True)
    same, exact = references(plan, islands, run, seed)
    released, found = falling(run.moments.matrix)
    leading = [k for k in LEADING if k < plan.features]
    said = state(released, run.moments.sigma, leading[-1], method, run.centre, found[:, : leading[-1]].T)
    values, truth = falling(same)
    angles = [largest_angle(truth[:, :k], found[:, :k]) for k in leading]
    _, around_mean = falling(exact)
    off = largest_angle(around_mean[:, : leading[-1]], found[:, : leading[-1]])
    return said, angles, values / run.moments.sigma, off


def oracle(values: np.ndarray, leading: Iterable[int], rng: np.random.Generator) -> list[float]:
    """The 95th percentile of the angles that noise of sigma 1 makes of this spectrum."""
    d = len(values)
    half = rng.standard_normal((ORACLE_RUNS, d, d)) / 2.0
    vectors = np.linalg.eigh(half + half.transpose(0, 2, 1) + np.diag(values))[1][:, :, ::-1]
    axes = np.eye(d)
    return [
        float(np.quantile([largest_angle(axes[:, :k], made[:, :k]) for made in vectors], 0.95))
        for k in leading
    ]


def cell(name: str, rows: np.ndarray, epsilon: float, runs: int) -> Iterator[tuple[list[Seen], Whole]]:
    """All runs of a data set at an epsilon."""
    islands, seed, rng = np.array_split(rows, ISLANDS), fresh_seed(), np.random.default_rng(2)
    d = rows.shape[1]
    for method, options in METHODS.items():
        reach = 1.0 if method == "pairs" else math.sqrt(d)
        plan = dp.Plan(d, reach, epsilon, DELTA, crowd=Crowd(ISLANDS, colluders=1), **options)
        best: list[float] = []
        for number in range(runs):
            said, angles, values, off = one_run(plan, islands, method, derive(seed, method, number))
            leading = [k for k in LEADING if k < d]
            best = best or oracle(values, leading, rng)
            stated = dict(zip(said.leading, said.angles, strict=True))
            seen = [
                Seen(name, epsilon, method, k, angle, float(stated[k]), known)
                for k, angle, known in zip(leading, angles, best, strict=True)
            ]
            yield seen, Whole(off, said.mostly_noise)


def share(seen: list[Seen]) -> float:
    return float(np.mean([one.holds for one in seen]))


def middle(seen: list[Seen]) -> tuple[float, float, float]:
    """Medians: of the angle, of what was stated, of what the oracle states."""
    return (
        float(np.median([one.angle for one in seen])),
        float(np.median([one.stated for one in seen])),
        float(np.median([one.oracle for one in seen])),
    )


def show(name: str, shape: tuple[int, ...], seen: list[Seen]) -> None:
    line = f"{name:28} {shape[0]:>5} x {shape[1]:<3}"
    for epsilon in EPSILONS:
        mine = [one for one in seen if one.epsilon == epsilon]
        if mine:
            angle, stated, known = middle(mine)
            line += f"  {share(mine):4.0%} {angle:4.1f} {stated:4.1f} {known:4.1f}"
    print(line, flush=True)


def tightness(seen: list[Seen]) -> list[str]:
    """Where the median angle is below 30 degrees: what is stated beside it, and what the oracle would."""
    cells: dict[tuple[str, float], list[Seen]] = defaultdict(list)
    for one in seen:
        cells[one.name, one.epsilon].append(one)
    found = [middle(mine) for mine in cells.values()]
    small = [(stated / angle, known / angle) for angle, stated, known in found if 0 < angle < 30]
    if not small:
        return ["no cell has a median angle below 30 degrees"]
    ours, best = (np.array(column) for column in zip(*small, strict=True))
    said = [f"{len(small)} cells have a median angle below 30 degrees; medians there"]
    for words, ratios in (("stated", ours), ("the oracle", best)):
        within, most = int((ratios <= 2).sum()), ratios.max()
        said.append(f"{words} over angle: {np.median(ratios):.2f}, up to 2 in {within}, at most {most:.2f}")
    return said


def centre_words(whole: list[Whole]) -> list[str]:
    said = []
    for words, low, high in (("no more than 30", -1.0, 30.0), ("60 or more", 60.0, 91.0)):
        mine = [one.mostly_noise for one in whole if low < one.angle <= high or one.angle == low]
        if mine:
            said.append(f"{words} degrees from the components around the exact mean: {len(mine)} runs, ")
            said[-1] += f'"mostly noise" said of {np.mean(mine):.0%}'
    return said


def fits(name: str, rows: np.ndarray, epsilon: float, number: int) -> tuple[int, int]:
    """Whole fits through atoll.PCA: how often the stated angle holds, of how many."""
    islands, d = np.array_split(rows, ISLANDS), rows.shape[1]
    plan = dp.Plan(d, math.sqrt(d), epsilon, DELTA, crowd=Crowd(ISLANDS, colluders=1))
    held, k = 0, min(3, d - 1)
    for protocol in ("pppca", "dpdpca"):
        for _ in range(number):
            pca = atoll.PCA(k, protocol=protocol, epsilon=epsilon, delta=DELTA, row_norm=math.sqrt(d))
            pca.fit(islands)
            truth = falling(moments_around(plan, islands, dp.Centre(pca.mean_, 1.0, 1.0)))[1]
            held += largest_angle(truth[:, :k], pca.components_.T) <= pca.noise_.angle + 1e-6
    print(f"atoll.PCA, {name}, epsilon {epsilon:g}, k={k}: holds in {held} of {2 * number} fits")
    return held, 2 * number


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=8, help="for each data set, epsilon and way of rows")
    parser.add_argument("--only", nargs="*", help="some of the tables")
    parser.add_argument("--whole", type=int, default=3, help="fits through atoll.PCA in some cells")
    parser.add_argument("--check", action="store_true", help="end with 1 if it holds too rarely")
    options = parser.parse_args()
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        print(f"only scikit-learn's tables: set {DATA_VARIABLE} to a folder with the others")
    everything: list[Seen] = []
    whole: list[Whole] = []
    print(f"{'holds, medians: angle, stated, oracle':41}" + "".join(f"  eps {e:<15g}" for e in EPSILONS))
    for name in options.only or [*EMBEDDED, *(FILES if folder else ()), *GENERATED]:
        rows = loaded(name, Path(folder or "."))
        mine: list[Seen] = []
        for epsilon in EPSILONS:
            for seen, one in cell(name, rows, epsilon, options.runs):
                mine += seen
                whole.append(one)
        show(name, rows.shape, mine)
        everything += mine
    cells = {(one.name, one.epsilon) for one in everything}
    shares = [share([o for o in everything if (o.name, o.epsilon) == key]) for key in cells]
    held = f"holds in {share(everything):.1%} of {len(everything)}"
    print(f"\n{held}; in the worst of {len(cells)} cells {min(shares):.0%}")
    print("\n".join([*tightness(everything), *centre_words(whole)]))
    for name, epsilon in (
        (("digits", 1.0), ("breast-cancer", 2.0), ("diabetes", 0.3)) if options.whole else ()
    ):
        fits(name, loaded(name, Path()), epsilon, options.whole)
    good = share(everything) >= 0.95 and min(shares) >= 0.9
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
