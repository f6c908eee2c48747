"""Utility against the number of owners: distributed noise beside noise that every owner adds in full.

    python benchmarks/dp_owners.py [--runs 5]

Digits, unit rows, k=5, epsilon 0.5, delta 1e-5, one colluder. The first ratio must be n/(n-1).
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import CURATOR, Crowd
from atoll.privacy.paper_forms import centred_scatter
from atoll.randomness import derive, fresh_seed

EPSILON, DELTA, K = 0.5, 1e-5, 5


def captured(components: np.ndarray, scatter: np.ndarray) -> float:
    best = np.linalg.eigvalsh(scatter)[-len(components) :].sum()
    return float(np.trace(components @ scatter @ components.T) / best)


def local_noise(rows: np.ndarray, owners: int, seed: bytes) -> tuple[float, float]:
    """Every owner protects its own moments fully; the sum carries n times the curator's variance."""
    plan = dp.Plan(rows.shape[1], 1.0, EPSILON, DELTA)
    centre = rehearse(plan, [rows], seed).centre
    shares = [plan.moments.draw_share(derive(seed, owner)) for owner in range(owners)]
    total = dp.moments_contribution(plan, rows, centre) + sum(shares)
    components = dp.spectrum(dp.finish_moments(plan, centre, total)).components[:K]
    return captured(components, centred_scatter(rows)), variance(sum(shares), rows.shape[1])


def distributed_noise(rows: np.ndarray, owners: int, seed: bytes) -> tuple[float, float]:
    plan = dp.Plan(rows.shape[1], 1.0, EPSILON, DELTA, crowd=Crowd(owners, 1) if owners > 1 else CURATOR)
    run = rehearse(plan, np.array_split(rows, owners), seed)
    shares = [plan.moments.draw_share(derive(seed, owner)) for owner in range(owners)]
    return captured(run.spectrum.components[:K], centred_scatter(rows)), variance(sum(shares), rows.shape[1])


def variance(noise: np.ndarray, features: int) -> float:
    return float((noise[features:] / grid.MOMENT_UNITS).var())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    rows = load_digits().data
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    seed = fresh_seed()

    def mean(method, owners: int) -> np.ndarray:  # type: ignore[no-untyped-def]
        found = [method(rows, owners, derive(seed, owners, run)) for run in range(options.runs)]
        return np.mean(found, axis=0)

    curator = mean(distributed_noise, 1)
    print(f"curator: captured variance {curator[0]:.3f}")
    print(f"{'owners':>8}{'distributed':>13}{'variance':>10}{'n/(n-1)':>9}{'local':>9}{'variance':>10}")
    for owners in (3, 10, 30, 100):
        ours, local = mean(distributed_noise, owners), mean(local_noise, owners)
        print(
            f"{owners:>8}{ours[0]:>13.3f}{ours[1] / curator[1]:>10.3f}{owners / (owners - 1):>9.3f}"
            f"{local[0]:>9.3f}{local[1] / curator[1]:>10.1f}"
        )


if __name__ == "__main__":
    main()
