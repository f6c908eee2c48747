"""Every model on every table, split and number of islands, beside scikit-learn's optimum on the joint table.

    python -m benchmarks.learning_grid [TABLE ...] [rows] [columns] [--encrypted]

Tables: diabetes, breast-cancer, digits (0 against 1), standardised, without constant and dependent columns,
which leave an optimum undecided. A line for each table, split and number of islands; a column for each model:
how far its coefficients are from scikit-learn's (at tight tolerance), for the hinge how far the objective
lies above it as a part of it, for k-means how far the inertia is from that of equal seeds; and for gradient
descent how far the three scenarios (sums hidden, sums in the clear, pooled tables) are apart. An asterisk
marks what is beyond its bound. ``--encrypted``: the course of least squares that opens coefficients only.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from sklearn import cluster, linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import atoll

TABLES = ("diabetes", "breast-cancer", "digits")
SPLITS = {"rows": range(2, 9), "columns": range(3, 9)}
"""How many islands there are."""
BOUNDS = {
    "least squares": 1e-5,
    "ridge": 1e-5,
    "lasso": 1e-5,
    "logistic": 1e-5,
    "squared hinge": 1e-5,
    "hinge": 1e-6,
    "k-means": 1e-9,
    "descent": 1e-8,
}
ENCRYPTED = ("least squares", "ridge")
CLUSTERS = 3
_SCORES = {"partition": "vertical", "accept_scores": True, "share_model": True}


class Joint(NamedTuple):
    """A table with a number and a class to be explained."""

    X: Any
    number: Any
    label: Any


@cache
def joint(table: str) -> Joint:
    """Standardised, of full rank; a number has two classes by its median, classes are numbers as well."""
    load: Any = {"diabetes": load_diabetes, "breast-cancer": load_breast_cancer}.get(table)
    X, y = load(return_X_y=True) if load else load_digits(n_class=2, return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    _, r, order = qr(X, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(r))
    X = X[:, np.sort(order[lengths > 1e-6 * lengths[0]])]
    label = (y > np.median(y)).astype(int) if table == "diabetes" else y
    return Joint(X, y.astype(float), label)


def ours(model: str, split: str, solver: str = "scores") -> Any:
    """The estimator, as a user would write it."""
    columns = split == "columns"
    said: dict[str, Any] = dict(_SCORES) if columns else {}
    if model in ENCRYPTED and solver == "encrypted":
        said = {"partition": "vertical", "share_model": True} if columns else {}
    linear = said | ({"solver": solver} if columns or solver == "encrypted" else {})
    made: dict[str, Any] = {
        "least squares": lambda: atoll.LinearRegression(**linear),
        "ridge": lambda: atoll.Ridge(3.0, **linear),
        "lasso": lambda: atoll.Lasso(0.05, **said),
        "logistic": lambda: atoll.LogisticRegression(**said),
        "squared hinge": lambda: atoll.LinearSVC(**said),
        "hinge": lambda: atoll.LinearSVC(loss="hinge", **said),
        "k-means": lambda: atoll.KMeans(CLUSTERS, **said),
    }
    return made[model]()


@cache
def theirs(model: str, table: str) -> Any:
    """scikit-learn's, as near to its optimum as it goes."""
    X, number, label = joint(table)
    made: dict[str, Any] = {
        "least squares": linear_model.LinearRegression(),
        "ridge": linear_model.Ridge(3.0, solver="cholesky"),
        "lasso": linear_model.Lasso(0.05, tol=1e-14, max_iter=10**6),
        "logistic": linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=1000),
        "squared hinge": svm.LinearSVC(dual=False, tol=1e-12, max_iter=10**6),
        "hinge": svm.LinearSVC(loss="hinge", tol=1e-9, max_iter=10**6),
        "k-means": cluster.KMeans(CLUSTERS, init=X[:CLUSTERS], n_init=1, tol=0),
    }
    return made[model].fit(X, number if model in ("least squares", "ridge", "lasso") else label)


def cut(values: Any, islands: int, split: str) -> list[Any]:
    """Rows in an order of their own, on islands that grow from one to the next; columns as they stand."""
    if split == "columns":
        return np.array_split(values, islands, axis=1)
    sizes = np.arange(2, islands + 2)
    ends = np.cumsum(sizes)[:-1] * len(values) // sizes.sum()
    return [values[part] for part in np.split(np.random.default_rng(0).permutation(len(values)), ends)]


def hinge(model: Any, X: Any, label: Any) -> float:
    """The objective of support vectors with C = 1, the intercept among the weights."""
    w, b = model.coef_[0], float(np.asarray(model.intercept_).ravel()[0])
    margins = np.where(label == 1, 1.0, -1.0) * (X @ w + b)
    return float(0.5 * (w @ w + b * b) + np.maximum(1.0 - margins, 0.0).sum())


def measured(model: str, table: str, split: str, islands: int, solver: str = "scores") -> float:
    """How far a fit is from what it should be; see the head of this file."""
    if model == "descent":
        return scenarios(table, split, islands)
    X, number, label = joint(table)
    estimator, pooled = ours(model, split, solver), theirs(model, table)
    if model == "k-means":
        estimator.set_params(init=X[:CLUSTERS])
        found = estimator.fit(cut(X, islands, split)).inertia_
        return float(abs(found / pooled.inertia_ - 1.0))
    y = number if model in ("least squares", "ridge", "lasso") else label
    estimator.fit(cut(X, islands, split), cut(y, islands, split) if split == "rows" else y)
    if model == "hinge":
        return hinge(estimator, X, label) / hinge(pooled, X, label) - 1.0
    both = [np.append(np.ravel(m.coef_), m.intercept_) for m in (estimator, pooled)]
    return float(np.abs(both[0] - both[1]).max())


def scenarios(table: str, split: str, islands: int) -> float:
    """The largest difference between models of DU, DT and CT, over two costs."""
    X, number, label = joint(table)
    apart = 0.0
    for cost, y in (("least-squares", number / np.abs(number).max()), ("logistic", label)):
        models = []
        for scenario in ("DU", "DT", "CT"):
            said: dict[str, Any] = {"scenario": scenario, "learning_rate": 0.05, "max_iter": 25, "tol": 0.0}
            said |= _SCORES if split == "columns" else {}
            fits = atoll.GradientDescent(cost, **said)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it stops at 25 steps, which is what is compared
                fits.fit(cut(X, islands, split), cut(y, islands, split) if split == "rows" else y)
            models.append(fits.theta_)
        apart = max(apart, *(float(np.abs(models[0] - other).max()) for other in models[1:]))
    return apart


def main(tables: list[str], splits: list[str], solver: str) -> int:
    models = ENCRYPTED if solver == "encrypted" else tuple(BOUNDS)
    print(f"{'':28}" + "".join(f"{name:>15}" for name in models) + f"{'s':>8}", flush=True)
    beyond = 0
    for table in tables:
        for split in splits:
            for islands in SPLITS[split]:
                start, cells = time.perf_counter(), ""
                for model in models:
                    found = measured(model, table, split, islands, solver)
                    missed = not found <= BOUNDS[model]
                    beyond += missed
                    cells += f"{found:>14.1e}{'*' if missed else ' '}"
                took = time.perf_counter() - start
                print(f"{table:14}{split:8}{islands:>4}  {cells}{took:>8.1f}", flush=True)
    print(f"{beyond} beyond their bounds" if beyond else "all within their bounds")
    return beyond


if __name__ == "__main__":
    words = sys.argv[1:]
    asked_tables = [word for word in words if word in TABLES] or list(TABLES)
    asked_splits = [word for word in words if word in SPLITS] or list(SPLITS)
    sys.exit(main(asked_tables, asked_splits, "encrypted" if "--encrypted" in words else "scores") > 0)
