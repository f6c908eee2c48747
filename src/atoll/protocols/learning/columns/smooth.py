"""Least squares, ridge and classifiers with columns split: one summed direction a step.

In every step each owner i has the slopes r of the loss (one number a row), its gradient g_i = C X_i^T r +
penalty and its own curvature H_i = C X_i^T diag(bends) X_i + penalty. Its direction is d_i = -H_i^-1 g_i:
Newton's, as if the others' columns stood still. The summed scores X d of the joint direction, and the
products of the directions under the penalty, are all that the leader needs to find the best point on the span
of all directions (:mod:`subspace`); owners' coefficients are the same combination of their own directions.

Objectives are scikit-learn's, as in :mod:`~atoll.protocols.learning.classifier`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import RunError
from atoll.protocols.learning import losses, normal
from atoll.protocols.learning.columns.course import Leader, Owner, Sizes, Told
from atoll.protocols.learning.columns.subspace import Loss, Margins, Softmax, Squares, Subspace, shortening

_FACTS = 3
"""Beside scores and products: what a step would save, the gradient's square, and a hinge's dual part."""
_MOST_NUMBERS = 1 << 26
"""Scores that a leader keeps (half a gigabyte)."""
_MOST_DIRECTIONS = 256
_SMOOTHING = 0.1
_SHARPEST = 1e-9
_STAGE = 1e-9
"""A stage of the hinge has settled when a step would save no more than this part of the cost."""
GAP = 5e-7
"""A hinge has settled when its objective is proved to be this near to its optimum, as a part of it."""
_STALLED = 3
"""So many steps in a row without a gain: rounding hides what is left."""


class Problem(NamedTuple):
    """What both sides know of the objective."""

    loss: str
    """"squares", "logistic", "softmax", "squared_hinge" or "hinge"."""
    rows: int
    problems: int
    classes: int
    """Scores of a row in one problem."""
    weight: float
    penalty: float
    """Of each squared coefficient, halved; the intercept's is said apart."""
    intercept: bool
    intercept_penalty: float
    tol: float
    max_iter: int

    @property
    def free(self) -> bool:
        """Whether nothing keeps the coefficients small."""
        return self.penalty == 0.0


class SmoothSizes(Sizes):
    """By the number of directions, which everybody counts."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        each = problem.rows * problem.problems * problem.classes
        self.most = max(8, min(_MOST_DIRECTIONS, _MOST_NUMBERS // max(1, each)))
        self.width = problem.problems * problem.classes

    def directions(self, step: int) -> int:
        """Directions before this step."""
        if step <= self.most:
            return step
        return 2 + self.most // 2 + (step - self.most - 1) % (self.most - self.most // 2 - 1)

    def after(self, step: int) -> int:
        """The same, once those that are too many have been joined."""
        T = self.directions(step)
        return 1 + self.most // 2 if self.most == T else T

    def numbers(self, step: int) -> int:
        return self.problem.problems * self.directions(step) + 1

    def sum(self, step: int) -> int:
        p = self.problem
        return p.problems * (p.rows * p.classes + self.after(step) + 1 + _FACTS)


class SmoothOwner(Owner):
    """``leads``: the intercept, where there is one, is this owner's first column."""

    def __init__(self, problem: Problem, X: Matrix, centre: Matrix, *, leads: bool) -> None:
        self.problem, self.sizes = problem, SmoothSizes(problem)
        self.own_intercept = leads and problem.intercept
        self.X = np.column_stack([np.ones(len(X)), X]) if self.own_intercept else X
        self.centre = centre
        self.penalty = np.full(self.X.shape[1], problem.penalty)
        if self.own_intercept:
            self.penalty[0] = problem.intercept_penalty
        shape = (problem.problems, 0, problem.classes, self.X.shape[1])
        self.V = np.zeros(shape)
        self.theta = np.zeros((problem.problems, problem.classes, self.X.shape[1]))

    def take(self, told: Told) -> None:
        p = self.problem
        a = told.numbers[:-1].reshape(p.problems, -1)
        self.rounding = float(told.numbers[-1])
        self.theta = np.einsum("pt,ptcj->pcj", a, self.V)
        if self.V.shape[1] == self.sizes.most:
            keep = self.sizes.most // 2
            joined = [np.einsum("ts,tcj->scj", shortening(a[k], keep), self.V[k]) for k in range(p.problems)]
            self.V = np.stack(joined)
        self.slopes = told.rows.reshape(p.rows, p.problems, p.classes)

    def answer(self) -> Matrix:
        found = [self._direction(k) for k in range(self.problem.problems)]
        self.V = np.concatenate([self.V, np.stack([d for d, _ in found])[:, None]], axis=1)
        return np.concatenate([vector for _, vector in found])

    def _direction(self, k: int) -> tuple[Matrix, Matrix]:
        p, slopes = self.problem, self.slopes[:, k]
        loss_gradient = p.weight * (slopes.T @ self.X)
        gradient = loss_gradient + self.penalty * self.theta[k]
        bends = losses.bends(p.loss, slopes, self.rounding)
        d = np.stack([-self._solved(bends[:, c], gradient[c]) for c in range(p.classes)])
        scores = self.X @ d.T
        weighted = self.penalty * d
        products = [*(float((weighted * v).sum()) for v in self.V[k]), float((weighted * d).sum())]
        dual = float((loss_gradient**2 / self.penalty).sum()) if p.loss == "hinge" else 0.0
        facts = [float((gradient * d).sum()), float((gradient**2).sum()), dual]
        return d, np.concatenate([scores.ravel(), products, facts])

    def _solved(self, bends: Matrix, gradient: Matrix) -> Matrix:
        H = self.problem.weight * (self.X.T @ (self.X * bends[:, None])) + np.diag(self.penalty)
        diagonal = np.diag(H)
        # A curvature that is nothing to a double is lifted: any direction downhill will do.
        H[np.diag_indices(len(H))] += 1e-13 * diagonal + np.where(diagonal > 0.0, 0.0, 1.0)
        try:
            return normal.solve(H, gradient)
        except np.linalg.LinAlgError:
            return np.asarray(gradient / np.diag(H))

    def coefficients(self) -> tuple[Matrix, Matrix]:
        theta = self.theta.reshape(-1, self.X.shape[1])
        if self.problem.loss == "softmax":
            # Adding the same to every class changes nothing: the sums over the classes are kept at zero.
            theta = theta - theta.mean(axis=0)
        start = int(self.own_intercept)
        w = theta[:, start:]
        offset = -w @ self.centre
        return w, offset + theta[:, 0] if start else offset


class SmoothLeader(Leader):
    """``y``: numbers, or the places of the classes."""

    def __init__(self, problem: Problem, y: Matrix) -> None:
        self.problem, self.sizes = problem, SmoothSizes(problem)
        self.y = y
        self.all = [Subspace(self._loss(k), problem.weight, problem.rows) for k in range(problem.problems)]
        self.rounding = 1.0 if problem.loss == "hinge" else 0.0
        self.curve: list[float] = []
        self.gap = np.inf
        self._stalled = 0
        self.gradient_norms: list[float] = []

    def _loss(self, k: int) -> Loss:
        p = self.problem
        if p.loss == "squares":
            return Squares(self.y)
        if p.loss == "softmax":
            return Softmax(self.y, p.classes)
        return Margins(p.loss, np.where(self.y == (k if p.problems > 1 else 1), 1.0, -1.0))

    def first(self) -> Told:
        for one in self.all:
            one.minimise(self.rounding)
        return self._told(last=False)

    def _told(self, *, last: bool) -> Told:
        numbers = np.concatenate([*(one.a for one in self.all), [self.rounding]])
        slopes = np.stack([one.now.slopes for one in self.all], axis=1)
        told = Told(self.steps, last, numbers, slopes.reshape(self.problem.rows, -1))
        if self.sizes.directions(self.steps) == self.sizes.most:
            for one in self.all:
                one.shorten(self.sizes.most // 2)
        return told

    def advance(self, total: Matrix) -> Told:
        parts = total.reshape(self.problem.problems, -1)
        saves = -parts[:, -3]
        self.gradient_norms.append(float(np.sqrt(np.maximum(parts[:, -2], 0.0).sum())))
        costs = np.array([one.cost for one in self.all])
        self.steps += 1
        self._extend(parts)
        if self.problem.loss == "hinge":
            done = self._sharpen(parts, saves, costs)
        else:
            done = bool((saves <= 2.0 * self.problem.tol * np.abs(costs)).all())
        if not (done and self.problem.loss == "hinge"):  # whose proof is of the point where it is
            for one in self.all:
                one.minimise(self.rounding)
        cost = float(sum(one.cost for one in self.all))
        self._check(cost)
        stalled = costs.sum() - cost <= 1e-15 * abs(cost)
        self._stalled = self._stalled + 1 if stalled else 0
        self.curve.append(cost)
        if self.problem.loss != "hinge":
            done = done or self._stalled >= _STALLED
        if not done and self.steps >= self.problem.max_iter:
            raise RunError(
                f"the fit did not settle within max_iter = {self.problem.max_iter} sums",
                hint="a larger max_iter or tol",
            )
        return self._told(last=done)

    def _extend(self, parts: Matrix) -> None:
        p = self.problem
        scores = p.rows * p.classes
        for one, part in zip(self.all, parts, strict=True):
            one.extend(part[:scores].reshape(p.rows, p.classes), part[scores:-_FACTS])

    def _sharpen(self, parts: Matrix, saves: Matrix, costs: Matrix) -> bool:
        """Whether the hinge is near enough; a sharper corner, where this one has settled."""
        p, gaps = self.problem, []
        for one, part in zip(self.all, parts, strict=True):
            assert isinstance(one.loss, Margins)
            margins = one.loss.sign * (one.Z[:, :, :-1] @ one.a[:-1])[:, 0]
            bent = 0.5 * float(one.a @ one.M @ one.a)
            objective = p.weight * float(np.maximum(1.0 - margins, 0.0).sum()) + bent
            slopes = -(one.now.slopes[:, 0] * one.loss.sign).sum()
            gaps.append((objective - p.weight * slopes + 0.5 * float(part[-1])) / objective)
        self.gap = max(gaps, key=abs)
        if abs(self.gap) <= GAP:  # below zero by more than that it proves nothing but rounding
            return True
        if (saves <= _STAGE * np.abs(costs)).all() and self.rounding > _SHARPEST:
            self.rounding *= _SMOOTHING
        return False

    def _check(self, cost: float) -> None:
        p = self.problem
        if not np.isfinite(cost):
            raise RunError("the cost exceeds a double's range", hint="rescale the columns")
        if p.free and p.loss in ("logistic", "softmax") and cost < 1e-6 * p.rows * p.problems:
            raise RunError(
                "the classes are told apart for certain (separation): the weights grow without end",
                hint="give C, which keeps the weights small, or leave the column out that tells the class",
            )

    def fit(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "objective": self.curve[-1] * (2.0 if self.problem.loss == "squares" else 1.0),
            "iterations": self.steps,
            "loss_curve": np.array(self.curve),
        }
        return found | ({"gap": float(self.gap)} if self.problem.loss == "hinge" else {})
