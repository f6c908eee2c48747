"""Could anybody state a smaller angle? Atoll's statement beside those of oracles who know the data.

    [ATOLL_DATA=<folder>] python -m benchmarks.noise_oracles [--releases 8] [--only NAME ...]

The cells are those of :mod:`benchmarks.noise_statement` in which the median angle is below 30 degrees. For
each way of rows one rehearsal gives the spectrum without noise, and releases are simulated from it. Of each
release an angle is stated by

- Atoll: from the released spectrum;
- one who *knows* the spectrum without noise: the 95th percentile of what noise does to it;
- one who knows it and looks at the released *gap* behind the last component, too;
- the same, content with 90 of 100 (*loose*), to see what the last five cost.

All round as Atoll does. Of those that hold in 95 of 100 runs whatever gap is released, the third is the
smallest there is. *Least* is the smallest median of all that hold in 95 of 100 runs for each k: it may be
wrong more often at some gaps if it says nothing (90 degrees) at others, in half of all runs. (It chooses on
the runs that it is judged by, so it is said smaller than it is, never larger.)
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from atoll.bench.figure5 import DATA_VARIABLE
from atoll.privacy import dp_moments as dp
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import Crowd
from atoll.privacy.noise_statement import CONFIDENCE, NOTHING, rounded_up, state
from atoll.randomness import derive, fresh_seed
from benchmarks import noise_statement as cells

RUNS, EASY = 600, 32
"""Simulated by those who know the spectrum, up to so many columns; beyond, fewer."""
ALIKE = 0.6
"""Two gaps are alike if they differ by no more than about this, in sigma."""
SMALL = 30.0
"""Degrees below which an angle is worth stating."""
WHO = ("Atoll", "knows", "gap", "loose")


class Releases(NamedTuple):
    """Simulated ones, row by row: spectra, gaps behind the first k components, their largest angles."""

    spectra: np.ndarray
    gaps: np.ndarray
    angles: np.ndarray


class Cell(NamedTuple):
    """A data set at an epsilon: the median angle, medians of what each states, and how often it held."""

    name: str
    epsilon: float
    angle: float
    stated: dict[str, float]
    least: float
    held: dict[str, list[bool]]

    def within(self, who: str) -> bool:
        """Whether its median is no more than twice the median angle."""
        return (self.least if who == "least" else self.stated[who]) <= 2 * self.angle


def releases(spectrum: np.ndarray, leading: list[int], count: int, rng: np.random.Generator) -> Releases:
    """Of noise with deviation 1 on the diagonal, in the basis of what is released."""
    half = rng.standard_normal((count, len(spectrum), len(spectrum))) / 2.0
    values, vectors = np.linalg.eigh(half + half.transpose(0, 2, 1) + np.diag(spectrum))
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    cosines = [np.linalg.svd(vectors[:, :k, :k], compute_uv=False)[:, -1] for k in leading]
    gaps = np.stack([values[:, k - 1] - values[:, k] for k in leading], axis=1)
    return Releases(values, gaps, np.degrees(np.arccos(np.minimum(np.stack(cosines, axis=1), 1.0))))


def percentile(angles: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(angles)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(angles[order[min(int(np.searchsorted(reached, share)), len(angles) - 1)]])


def alike(gaps: np.ndarray, gap: np.ndarray | float) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((gaps - gap) / ALIKE) ** 2) + 1e-6)


def statements(known: Releases, seen: Releases, number: int, leading: list[int]) -> dict[str, list[float]]:
    """What each of them states of one release, k by k."""
    said = state(seen.spectra[number], 1.0, leading[-1], "clip")
    ours = dict(zip(said.leading, said.angles, strict=True))
    found: dict[str, list[float]] = {"Atoll": [float(ours[k]) for k in leading]}
    for who, share in (("knows", CONFIDENCE), ("gap", CONFIDENCE), ("loose", 0.9)):
        found[who] = []
        for j in range(len(leading)):
            weights = alike(known.gaps[:, j], seen.gaps[number, j])
            if who == "knows":
                weights = np.ones_like(weights)
            found[who].append(rounded_up(percentile(known.angles[:, j], weights, share)))
    return found


def spoken(angles: np.ndarray, gaps: np.ndarray, most: float) -> float:
    """In what share of runs ``most`` can be stated and, counted over all runs, be wrong in 5 of 100."""
    weights = alike(gaps[:, None], gaps[None, :])
    wrong = np.sort((weights @ (angles > most)) / weights.sum(axis=1))
    return float(np.mean(np.cumsum(wrong) <= (1 - CONFIDENCE) * len(wrong)))


def least(known: list[Releases]) -> float:
    """The smallest median of a statement that holds in 95 of 100 runs, for each way of rows and each k."""
    low, high = 0.0, NOTHING
    for _ in range(12):
        middle = (low + high) / 2
        shares = [
            spoken(angles, gaps, middle)
            for one in known
            for angles, gaps in zip(one.angles.T, one.gaps.T, strict=True)
        ]
        low, high = (low, middle) if np.mean(shares) >= 0.5 else (middle, high)
    return low


def spectra(rows: np.ndarray, epsilon: float) -> Iterator[np.ndarray]:
    """Without noise, in units of the noise, for each way of rows."""
    islands, d, seed = np.array_split(rows, cells.ISLANDS), rows.shape[1], fresh_seed()
    for method, options in cells.METHODS.items():
        reach = 1.0 if method == "pairs" else math.sqrt(d)
        crowd = Crowd(cells.ISLANDS, colluders=1)
        plan = dp.Plan(d, reach, epsilon, cells.DELTA, crowd=crowd, **options)
        own = derive(seed, method)
        run = rehearse(plan, islands, own, at_once=True)
        same, _ = cells.references(plan, islands, run, own)
        yield cells.falling(same)[0] / run.moments.sigma


def cell(name: str, rows: np.ndarray, epsilon: float, count: int) -> Cell | None:
    """None where the median angle is not small."""
    d, rng = rows.shape[1], np.random.default_rng(3)
    leading = [k for k in cells.LEADING if k < d]
    runs = max(120, round(RUNS * min(1.0, (EASY / d) ** 2)))
    known, seen = [], []
    for spectrum in spectra(rows, epsilon):
        known.append(releases(spectrum, leading, runs, rng))
        seen.append(releases(spectrum, leading, count, rng))
    angle = float(np.median([one.angles for one in known]))
    if not 0 < angle < SMALL:
        return None
    stated: dict[str, list[float]] = {who: [] for who in WHO}
    held: dict[str, list[bool]] = {who: [] for who in WHO}
    for one, other in zip(known, seen, strict=True):
        for number in range(count):
            for who, angles in statements(one, other, number, leading).items():
                stated[who] += angles
                pairs = zip(other.angles[number], angles, strict=True)
                held[who] += [true <= said + 1e-6 for true, said in pairs if said < NOTHING]
    medians = {who: float(np.median(angles)) for who, angles in stated.items()}
    return Cell(name, epsilon, angle, medians, least(known), held)


def summary(found: list[Cell]) -> list[str]:
    """How often each held, and in how many cells it was within twice the median angle."""
    said = [
        f"{len(found)} cells; of the statements below 90 degrees hold, and medians up to twice the angle:"
    ]
    for who in WHO:
        held = [one for cell in found for one in cell.held[who]]
        within = sum(cell.within(who) for cell in found)
        said.append(f"  {who:6} {np.mean(held) if held else math.nan:6.1%}  {within} of {len(found)}")
    beyond = [cell for cell in found if not cell.within("Atoll")]
    said.append(f"  least          {sum(cell.within('least') for cell in found)} of {len(found)}")
    for who in ("knows", "gap", "least"):
        also = sum(not cell.within(who) for cell in beyond)
        said.append(f"where Atoll is beyond twice ({len(beyond)} cells), {who} is too in {also}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--releases", type=int, default=8, help="for each data set, epsilon and way of rows")
    parser.add_argument("--only", nargs="*", help="some of the tables")
    options = parser.parse_args()
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        print(f"only scikit-learn's tables: set {DATA_VARIABLE} to a folder with the others")
    print(
        f"{'median angle; over it: medians of':38}{'angle':>6}" + "".join(f"{w:>7}" for w in (*WHO, "least"))
    )
    found: list[Cell] = []
    for name in options.only or [*cells.EMBEDDED, *(cells.FILES if folder else ()), *cells.GENERATED]:
        rows = cells.loaded(name, Path(folder or "."))
        for epsilon in cells.EPSILONS:
            one = cell(name, rows, epsilon, options.releases)
            if one is not None:
                found.append(one)
                ratios = [*(one.stated[who] for who in WHO), one.least]
                line = "".join(f"{value / one.angle:7.2f}" for value in ratios)
                print(f"{name:28} eps {epsilon:<5g}{one.angle:6.1f}{line}", flush=True)
    print("\n" + "\n".join(summary(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
