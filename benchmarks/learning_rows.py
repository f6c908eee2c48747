"""Logistic regression with rows split, by Newton's method, beside scikit-learn's on the pooled rows.

    python -m benchmarks.learning_rows [rows] [columns]

A generated table (500,000 x 18 by default: SUSY's size) on 3 islands; both sides are fitted by turns, so that
what else the machine does meets both. Prints medians of the seconds, their ratio, and how far coefficients
are apart.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import atoll

RUNS = 3


def generated(rows: int, columns: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, columns))
    X[:, 1::2] += 0.5 * X[:, ::2][:, : columns // 2]
    y = (X @ draw.normal(size=columns) / np.sqrt(columns) + draw.logistic(size=rows) > 0).astype(int)
    return X, y


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    return fit(), time.perf_counter() - wall, time.process_time() - cpu


def main(rows: int, columns: int) -> None:
    X, y = generated(rows, columns)
    parts = np.array_split(np.arange(rows), 3)
    tables, targets = [X[part] for part in parts], [y[part] for part in parts]
    took: dict[str, list[tuple[float, float]]] = {"atoll": [], "scikit-learn": []}
    for _ in range(RUNS):
        ours, *seconds = timed(lambda: atoll.LogisticRegression().fit(tables, targets))
        took["atoll"].append((seconds[0], seconds[1]))
        theirs, *seconds = timed(lambda: LogisticRegression(solver="newton-cholesky", tol=1e-8).fit(X, y))
        took["scikit-learn"].append((seconds[0], seconds[1]))
    medians = {name: np.median(runs, axis=0) for name, runs in took.items()}
    for name, (wall, cpu) in medians.items():
        print(f"{name:13} {rows:,} x {columns}: {wall:.2f} s, {cpu:.2f} s of CPU (medians of {RUNS})")
    ratio = medians["atoll"] / medians["scikit-learn"]
    apart = float(np.abs(ours.coef_ - theirs.coef_).max())
    print(f"ratio {ratio[0]:.2f} (CPU {ratio[1]:.2f}); coefficients within {apart:.1e}")
    print(f"steps: ours {ours.n_iter_[0]}, scikit-learn {theirs.n_iter_[0]}")


if __name__ == "__main__":
    asked = [int(value) for value in sys.argv[1:]]
    main(*(asked or (500_000, 18)))
