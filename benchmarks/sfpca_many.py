"""SF-PCA with many providers in one process, each with 40 rows of 6 columns: accuracy, time and bytes.

    python -m benchmarks.sfpca_many [64 100 200] [--recipe direct] [--columns 6] [--check]

``--check`` fails where a cosine with an exact component is below 0.9999, or rounds or messages are not those
that the planner counts.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from atoll.estimators.pca.estimator import PCA
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast

ROWS, K, RIGHT = 40, 2, 0.9999


def run(providers: int, columns: int, recipe: str) -> bool:
    """One fit, printed; whether it is what was to be expected."""
    scale = np.concatenate([[3.0, 2.0, 1.5], np.full(columns - 3, 0.3)])
    X = np.random.default_rng(1).normal(size=(providers * ROWS, columns)) * scale
    bounds = float(np.abs(X).max())
    begun, worked = time.perf_counter(), time.process_time()
    pca = PCA(K, protocol="sfpca", bounds=bounds, recipe=recipe, accept_determined=True)
    pca.fit(np.array_split(X, providers))
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:K]
    cosine = float(np.abs((pca.components_ * exact).sum(axis=1)).min())
    seen = pca.transcript_
    planned, _ = forecast(pca.result_.study, Circumstances(columns, (ROWS,) * providers))
    sent = max(cost.bytes_sent for role, cost in seen.roles.items() if role.endswith("/provider"))
    told = seen.of("coordinator/coordinator").bytes_sent
    print(
        f"{providers:4} providers, {columns} columns, {recipe}: cosine {cosine:.8f}, {seconds:.0f} s,"
        f" {processor:.0f} processor seconds, {seen.rounds} rounds ({planned.rounds} planned),"
        f" {seen.messages} messages ({planned.messages}), MB a provider {sent / 1e6:.1f}"
        f" ({planned.bytes_per_provider / 1e6:.1f}), the coordinator {told / 1e6:.0f}, peak"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB",
        flush=True,
    )
    return cosine >= RIGHT and (seen.rounds, seen.messages) == (planned.rounds, planned.messages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("providers", nargs="*", type=int, default=[64, 100, 200])
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--recipe", default="direct")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    right = [run(n, options.columns, options.recipe) for n in options.providers]
    return 1 if options.check and not all(right) else 0


if __name__ == "__main__":
    sys.exit(main())
