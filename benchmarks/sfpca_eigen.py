"""SF-PCA with ``eigen="encrypted"`` on public tables: accuracy, rounds and bytes, beside what was forecast.

    python -m benchmarks.sfpca_eigen [pima wine digits chr20] [--data FOLDER] [--latency 0.02] [--check]

Six islands in one process. Pima and Wine have one pair of bounds for each column, the extremes of the table;
pixels of digits lie between 0 and 16, genotypes between 0 and 2. ``--check`` fails where a cosine is below
0.9999, or rounds differ from the forecast, or bytes by over one per cent.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from atoll.bench import figure5
from atoll.estimators.pca.estimator import PCA
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.runtime.local.engine import LocalEngine

RIGHT, BYTES = 0.9999, 0.01
COMPONENTS = {"pima": 1, "wine": 5, "digits": 5, "chr20": 2}
BANDWIDTH = 125e6
ISLANDS = 6


class Row(NamedTuple):
    """What came out, and what was said before."""

    name: str
    columns: int
    cosine: float
    seconds: float
    rounds: int
    planned_rounds: int
    sent: int
    planned_sent: int
    course: str

    @property
    def holds(self) -> bool:
        near = abs(self.sent - self.planned_sent) <= BYTES * self.planned_sent
        return self.cosine >= RIGHT and self.rounds == self.planned_rounds and near


def table(name: str, folder: Path | None) -> tuple[np.ndarray[Any, Any], Any]:
    """Rows, and bounds that a study could state."""
    if name == "digits":
        from sklearn.datasets import load_digits

        return np.asarray(load_digits().data), (0.0, 16.0)
    case = figure5.CASES[name]
    X = figure5.load(figure5.data_folder(folder), case)
    pairs = [*zip(X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True)]
    return X, case.bounds or pairs


def run(name: str, folder: Path | None, latency: float) -> Row:
    """One fit; every other role learns what the review says."""
    X, bounds = table(name, folder)
    k, blocks = COMPONENTS[name], np.array_split(X, ISLANDS)
    engine = LocalEngine(latency, BANDWIDTH) if latency else LocalEngine()
    pca = PCA(
        k, protocol="sfpca", eigen="encrypted", bounds=bounds, accept_determined=True, engine=engine
    ).fit(blocks)
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:k]
    given = Circumstances(X.shape[1], tuple(map(len, blocks)), latency, BANDWIDTH)
    expected, _ = forecast(pca.result_.study, given)
    seen = pca.transcript_
    return Row(
        name,
        X.shape[1],
        float(np.abs((pca.components_ * exact).sum(axis=1)).min()),
        seen.wall_seconds,
        seen.rounds,
        expected.rounds,
        max(seen.roles[role].bytes_sent for role in seen.roles if role.endswith("/provider")),
        expected.bytes_per_provider,
        pca.certificate_["recipe"],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", default=list(COMPONENTS), choices=list(COMPONENTS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds; 0: none is emulated")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in options.names:
        rows.append(row := run(name, options.data, options.latency))
        print(
            f"{row.name:8} {row.columns:5} columns, k={COMPONENTS[name]}: cosine {row.cosine:.8f},"
            f" {row.seconds:6.1f} s, rounds {row.rounds} ({row.planned_rounds} forecast),"
            f" MB {row.sent / 1e6:.1f} ({row.planned_sent / 1e6:.1f} forecast), {row.course}",
            flush=True,
        )
    return 1 if options.check and not all(row.holds for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
