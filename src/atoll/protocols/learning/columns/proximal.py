"""The lasso with columns split: proximal steps with momentum, one summed score a step.

|y - X w|^2 / 2m + alpha |w|_1, as scikit-learn's. X^T X is nowhere larger than N times its diagonal blocks,
for N owners; in that metric each owner takes its own proximal step, which is a small lasso of its own
columns. Momentum is Nesterov's, dropped whenever it points uphill (O'Donoghue and Candes 2015).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import RunError
from atoll.protocols.learning.columns.course import EqualSizes, Leader, Owner, Sizes, Told

_FACTS = 3
"""Beside scores: the absolute coefficients' sum, the step's square, and whether momentum points uphill."""
_SETTLED = 3


class Lasso(NamedTuple):
    """What both sides know of the objective."""

    rows: int
    owners: int
    alpha: float
    intercept: bool
    tol: float
    max_iter: int


def lasso_sizes(problem: Lasso) -> Sizes:
    """One residual a row, one score a row."""
    return EqualSizes(width=1, numbers=1, sum_=problem.rows + _FACTS)


class LassoOwner(Owner):
    """``theta``: its coefficients; ``z``: the same with momentum, where the gradient is taken."""

    def __init__(self, problem: Lasso, X: Matrix, centre: Matrix, mean: float | None) -> None:
        self.problem, self.X, self.centre, self.mean = problem, X, centre, mean
        self.H = problem.owners * (X.T @ X) / problem.rows
        self._lasso = OwnLasso(self.H, problem.alpha)
        self.theta = self.before = self.z = np.zeros(X.shape[1])

    def take(self, told: Told) -> None:
        self.z = self.theta + float(told.numbers[0]) * (self.theta - self.before)
        self.residual = told.rows[:, 0]

    def answer(self) -> Matrix:
        b = self.H @ self.z - self.X.T @ self.residual / self.problem.rows
        new = self._lasso.at(b)
        step, back = new - self.theta, self.z - new
        self.before, self.theta = self.theta, new
        facts = [np.abs(new).sum(), back @ self.H @ back, back @ self.H @ step]
        return np.concatenate([self.X @ new, facts])

    def coefficients(self) -> tuple[Matrix, Matrix]:
        offset = -float(self.theta @ self.centre) + (self.mean or 0.0)
        return self.theta[None, :], np.array([offset])


class OwnLasso:
    """argmin w H w / 2 - b w + alpha |w|_1 for one H and many b.

    Where it is known which coefficients are positive, negative and zero, the others follow from a linear
    system. From one step to the next that hardly changes, so the last pattern is tried first; a search finds
    another one. A search alone stops as soon as a small gap is proved, which is not near enough.
    """

    def __init__(self, H: Matrix, alpha: float) -> None:
        from sklearn.linear_model import Lasso  # takes long to import, and only the lasso needs it

        self._H, self._alpha = H, alpha
        self._signs = np.zeros(len(H))
        values, vectors = np.linalg.eigh(H)
        kept = values > max(values[-1], 0.0) * 1e-14
        # Any R, r with R^T R = H and R^T r = b have the same objective.
        self._back = vectors[:, kept] / np.sqrt(values[kept])
        self._R = np.asfortranarray((vectors[:, kept] * np.sqrt(values[kept])).T)
        weight = alpha / max(1, len(self._R))
        self._search = Lasso(weight, fit_intercept=False, tol=1e-12, max_iter=10**5)

    def at(self, b: Matrix) -> Matrix:
        """The minimum."""
        if not len(self._R):
            return np.zeros(len(b))
        found = self._with(self._signs, b)
        if found is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a tolerance that rounding does not allow
                near = np.array(self._search.fit(self._R, self._back.T @ b).coef_)
            exact = self._with(np.sign(near), b)
            found = near if exact is None else exact
        self._signs = np.sign(found)
        return found

    def _with(self, signs: Matrix, b: Matrix) -> Matrix | None:
        """The minimum, if its coefficients have these signs."""
        used, w = signs != 0.0, np.zeros(len(b))
        try:
            w[used] = np.linalg.solve(self._H[np.ix_(used, used)], b[used] - self._alpha * signs[used])
        except np.linalg.LinAlgError:
            return None
        slopes = np.abs(b - self._H @ w)[~used]
        fits = (np.sign(w) == signs).all() and (slopes <= self._alpha + 1e-12 * np.abs(b).max()).all()
        return w if fits else None


class LassoLeader(Leader):
    """``y``: from its mean, where there is an intercept."""

    def __init__(self, problem: Lasso, y: Matrix) -> None:
        self.problem = problem
        self.y = y - y.mean() if problem.intercept else y
        self.scores = np.zeros(problem.rows)
        self.curve: list[float] = []
        self._t = 1.0
        self._quiet = 0

    def first(self) -> Told:
        return Told(0, False, np.zeros(1), -self.y[:, None])

    def advance(self, total: Matrix) -> Told:
        p = self.problem
        before, self.scores = self.scores, total[: p.rows]
        absolute, step, uphill = total[p.rows :]
        residual = self.scores - self.y
        cost = float(residual @ residual) / (2 * p.rows) + p.alpha * float(absolute)
        if not np.isfinite(cost):
            raise RunError("the cost exceeds a double's range", hint="rescale the columns")
        self.curve.append(cost)
        self.steps += 1
        self._quiet = self._quiet + 1 if step <= p.tol * cost else 0
        done = self._quiet >= _SETTLED
        if not done and self.steps >= p.max_iter:
            raise RunError(
                f"the fit did not settle within max_iter = {p.max_iter} sums", hint="a larger max_iter or tol"
            )
        if uphill > 0.0:
            self._t = 1.0
        t = (1.0 + np.sqrt(1.0 + 4.0 * self._t**2)) / 2.0
        momentum, self._t = (0.0 if uphill > 0.0 else (self._t - 1.0) / t), t
        ahead = self.scores + momentum * (self.scores - before)
        return Told(self.steps, done, np.array([momentum]), (ahead - self.y)[:, None])

    def fit(self) -> dict[str, Any]:
        return {"objective": self.curve[-1], "iterations": self.steps, "loss_curve": np.array(self.curve)}
