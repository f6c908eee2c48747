"""Gradient descent in the paper's three scenarios: what one fit takes, sends and predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._testing import ignore_warnings

import atoll
from reproduce.common import Floats, Line, Look

SCENARIOS: dict[str, dict[str, Any]] = {
    "CT, pooled at a trusted server": {"scenario": "CT"},
    "DT, sums in the clear": {"scenario": "DT"},
    "DU, shares (our default)": {"scenario": "DU"},
    "DU, mixed onions": {"scenario": "DU", "secure_sum": "mix"},
    "DU, mixed ElGamal (the paper's)": {"scenario": "DU", "secure_sum": "mix", "mix": {"form": "elgamal"}},
}
"""What is compared, as options of the estimator."""
CT, DT, SHARES, ONIONS, ELGAMAL = SCENARIOS
LOOKS = {
    CT: Look("#666666", "s"),
    DT: Look("#009e73", "^"),
    SHARES: Look("#0072b2", "o"),
    ONIONS: Look("#d55e00", "o", "--"),
    ELGAMAL: Look("#cc79a7", "D", ":"),
}
_LINKS = {"latency": 0.001, "bandwidth": 125e6}


@dataclass(frozen=True)
class Setting:
    """One point of a figure: a table, how it is split, and the steps that the paper took."""

    panel: str
    x: float
    X: Floats
    y: Floats
    parties: int
    steps: int
    cost: str = "least-squares"
    columns: bool = False
    batch: int | None = None

    def parts(self) -> tuple[list[Any], Any]:
        """Training rows (70%), for each party."""
        n = int(0.7 * len(self.y))
        if self.columns:
            return np.array_split(self.X[:n], self.parties, axis=1), self.y[:n]
        return np.array_split(self.X[:n], self.parties), np.array_split(self.y[:n], self.parties)


def standardised(X: Floats) -> Floats:
    """Columns in units of their deviation, without constant ones."""
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def generated(rows: int, columns: int, seed: int, *, classes: bool = False) -> tuple[Floats, Floats]:
    """A table of a given size: columns that are correlated a little, a target that they explain in part."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, columns))
    X[:, 1:] += 0.3 * X[:, :-1]
    score = standardised(X) @ draw.normal(size=columns) / np.sqrt(columns)
    if classes:
        return X, (score + draw.logistic(size=rows) > 0).astype(float)
    return X, np.asarray(10.0 * score + draw.normal(size=rows))


def rate(setting: Setting) -> float:
    """A fifth of the inverse of the largest curvature: no descent settles before the paper's steps."""
    X = setting.X[:20_000]
    largest = float(np.linalg.eigvalsh(X.T @ X / len(X))[-1])
    return (0.8 if setting.cost == "logistic" else 0.2) / largest


def fitted(setting: Setting, method: str) -> dict[str, float]:
    """Seconds with every party on its own machine, megabytes in all, and the error on rows left out."""
    model = atoll.GradientDescent(
        setting.cost,
        learning_rate=rate(setting),
        max_iter=setting.steps,
        tol=0.0,
        batch=setting.batch,
        engine=atoll.LocalEngine(**_LINKS, one_at_a_time=True),
        **({"partition": "vertical", "share_model": True} if setting.columns else {}),
        **({"accept_scores": True, "accept_two_party": True} if setting.columns else {}),
        **SCENARIOS[method],
    )
    with ignore_warnings(category=ConvergenceWarning):
        model.fit(*setting.parts())
    left = slice(int(0.7 * len(setting.y)), None)
    scores = setting.X[left] @ model.coef_ + model.intercept_
    wrong = (scores > 0) != setting.y[left] if setting.cost == "logistic" else scores - setting.y[left]
    return {
        "seconds": model.transcript_.apart_seconds,
        "megabytes": model.transcript_.bytes / 1e6,
        "error": float(np.sqrt(np.mean(np.square(wrong)))),
        "steps": float(model.n_iter_),
    }


def measured(setting: Setting, methods: tuple[str, ...], runs: int) -> list[Line]:
    """Every method on one setting; refuses scenarios that do not give the same model."""
    lines, errors = [], set[float]()
    for method in methods:
        for run in range(runs):
            found = fitted(setting, method)
            errors.add(found["error"])
            lines += [Line(setting.panel, method, setting.x, what, run, v) for what, v in found.items()]
    if max(errors) - min(errors) > 1e-8 * max(errors):
        whole = setting.batch is None or setting.columns
        assert not whole, f"{setting.panel}: scenarios give different models: {errors}"
    return lines
