"""Logistic regression with columns split: sums opened, and the time of large tables.

    python -m benchmarks.learning_columns [rows] [columns]

Prints the sums that breast-cancer takes beside plain gradient descent and restarted Nesterov, then fits a
generated table (100,000 x 99 on 3 islands by default, target known to all) and prints the processor time in
all, by row and column, and how far the gradient fell.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

import atoll

_PUBLISHED = "800,000 x 3,000 in 694 to 1,245 s on 32 cores a party (SecretFlow SS-LR, published)"


def gradient(X: Any, y: Any, w: Any) -> Any:
    """Of C = 1: summed loss and half the squared weights, the intercept (first) free."""
    penalty = np.concatenate([[0.0], w[1:]])
    return X.T @ (expit(X @ w) - y) + penalty


def first_order(X: Any, y: Any, tol: float, nesterov: bool) -> int:
    """Sums until the gradient is at tol: a summed score each."""
    step = 1.0 / (np.linalg.eigvalsh(X.T @ X)[-1] / 4 + 1.0)
    w = z = np.zeros(X.shape[1])
    t, sums = 1.0, 0
    while True:
        g = gradient(X, y, z)
        sums += 1
        if np.abs(g).max() <= tol:
            return sums
        new = z - step * g
        if not nesterov:
            w = z = new
            continue
        if g @ (new - w) > 0:
            t = 1.0
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        z, w, t = new + (t - 1) / following * (new - w), new, following


def cancer() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = atoll.LogisticRegression(partition="vertical", accept_scores=True, share_model=True)
    model.fit(np.array_split(X, 3, axis=1), y)
    Z = np.column_stack([np.ones(len(X)), X])
    w = np.concatenate([model.intercept_, model.coef_[0]])
    reached = max(float(np.abs(gradient(Z, y, w)).max()), 1e-6)
    print(f"breast-cancer, gradient to {reached:.1e}: ours {len(model.loss_curve_)} sums")
    for name, fast in (("restarted Nesterov", True), ("plain gradient descent", False)):
        print(f"  {name}: {first_order(Z, y, reached, fast)} sums")


def generated(rows: int, columns: int) -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, columns))
    X[:, 1::2] += 0.5 * X[:, : columns - columns % 2 : 2][:, : X[:, 1::2].shape[1]]
    y = (X @ draw.normal(size=columns) / np.sqrt(columns) + draw.logistic(size=rows) > 0).astype(int)
    tables = np.array_split(X, 3, axis=1)
    model = atoll.LogisticRegression(partition="vertical", accept_scores=True, share_model=True, tol=1e-13)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(tables, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    Z = np.column_stack([np.ones(rows), X])
    w = np.concatenate([model.intercept_, model.coef_[0]])
    start, end = (np.linalg.norm(gradient(Z, y, v)) for v in (np.zeros(columns + 1), w))
    print(
        f"{rows:,} x {columns} on 3 islands: {cpu:.1f} s of CPU in all, {wall:.1f} s, "
        f"{len(model.loss_curve_)} sums, gradient {end / start:.1e} of its start, "
        f"{1e9 * cpu / rows / columns:.0f} ns a row and column, {model.transcript_.bytes / 1e6:,.0f} MB"
    )
    print(f"  beside it: {_PUBLISHED}")


if __name__ == "__main__":
    asked = [int(value) for value in sys.argv[1:]]
    cancer()
    generated(*(asked or (100_000, 99)))
