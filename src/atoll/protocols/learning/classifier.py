"""Linear classifiers by Newton's method, one secure sum a step: logistic regression and support vectors.

Objectives are scikit-learn's: C times the summed loss plus |w|^2 / 2. The intercept of logistic regression is
free; that of support vectors counts as one more weight, as in liblinear. Several classes: one softmax
(logistic), or each class against the rest (support vectors). Symbols: m -> margin y (x w), theta -> weights.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import DataError, ParameterError, RunError
from atoll.protocols.learning import losses, normal
from atoll.protocols.learning.design import Rows, Survey
from atoll.protocols.learning.newton import Problem
from atoll.protocols.learning.rows import Kind, RowsParameters, plain, protocol, refuse_offset
from atoll.protocols.learning.task import Found, Setting, Task
from atoll.study.model import Study

_SMOOTHING = 0.1
"""The hinge's corner is rounded, and the rounding shrinks by this factor from stage to stage ..."""
_FINEST = 5e-7
"""... until the objective is proved to be this near to its optimum, as a part of it."""
_CERTAIN = 1e-6
"""A mean loss below this, without a penalty: there is no optimum, all rows become certain."""
_FACTS = 3
"""Numbers in a sum beside gradient and curvature: the loss, the hinge itself, and its slopes."""


class ClassifierParameters(RowsParameters, frozen=True):
    """``loss``; ``C``: the weight of the losses beside the penalty, None for no penalty; ``tol``: the part of
    the objective that a further step may still save when a fit has settled."""

    loss: Literal["logistic", "squared_hinge", "hinge"] = "logistic"
    C: float | None = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    tol: float = 1e-16
    max_iter: int = 200


class Classifier(Task):
    """A point is all problems' weights, and how far the hinge's corner is rounded."""

    def __init__(self, setting: Setting, survey: Survey | None = None) -> None:
        super().__init__(setting, survey)
        p: ClassifierParameters = setting.parameters
        self.softmax = p.loss == "logistic" and len(setting.classes) > 2
        self.problems = 1 if self.softmax or len(setting.classes) <= 2 else len(setting.classes)
        self.width = setting.width * (len(setting.classes) if self.softmax else 1)
        half = setting.width * (setting.width + 1) // 2
        blocks = len(setting.classes) * (len(setting.classes) + 1) // 2 if self.softmax else 1
        self._each = _FACTS + self.width + blocks * half
        self.longest = self.problems * self._each
        self.point_length = self.problems * self.width + 1
        if survey is not None:
            self._prepare(p)

    # ---- islands ----

    def check_rows(self, rows: Rows, island: str) -> None:
        del rows, island
        if len(self.setting.classes) < 2:
            raise DataError(
                f"the target {self.setting.parameters.target!r} has one class only on all islands together",
                hint="a classifier needs two; one island may have a single class, not all of them",
            )

    @property
    def coefficients(self) -> int:
        return self.problems * self.width

    def is_point(self, point: Matrix) -> bool:
        rounding = point[-1]
        return bool(rounding > 0.0 if self.setting.parameters.loss == "hinge" else rounding == 0.0)

    def local(self, rows: Rows, point: Matrix) -> Matrix:
        rounding, thetas = point[-1], point[:-1].reshape(self.problems, self.width)
        if self.softmax:
            return self._softmax(rows, thetas[0])
        parts = [self._binary(rows, theta, k, rounding) for k, theta in enumerate(thetas)]
        return np.concatenate(parts)

    def _binary(self, rows: Rows, theta: Matrix, k: int, rounding: float) -> Matrix:
        positive = rows.y == (k if self.problems > 1 else 1)
        sign = np.where(positive, 1.0, -1.0)
        m = sign * (rows.X @ theta)
        value, slope, bend = losses.of_margins(self.setting.parameters.loss, m, rounding)
        WX = rows.X * (rows.weight * bend)[:, None]
        all_of = (value, np.maximum(1.0 - m, 0.0), -slope)
        facts = [float((rows.weight * each).sum()) for each in all_of]
        return np.concatenate([facts, rows.X.T @ (rows.weight * slope * sign), normal.packed(rows.X.T @ WX)])

    def _softmax(self, rows: Rows, theta: Matrix) -> Matrix:
        K = len(self.setting.classes)
        scores = rows.X @ theta.reshape(K, -1).T
        chosen = rows.y.astype(np.int64)
        at = np.arange(len(chosen))
        loss, P = losses.softmax(scores, chosen)
        error = P.copy()
        error[at, chosen] -= 1.0
        gradient = (error * rows.weight[:, None]).T @ rows.X
        blocks = [
            normal.packed(rows.X.T @ (rows.X * (rows.weight * P[:, k] * ((k == j) - P[:, j]))[:, None]))
            for k in range(K)
            for j in range(k, K)
        ]
        facts = [float((rows.weight * loss).sum()), 0.0, 0.0]
        return np.concatenate([facts, gradient.ravel(), *blocks])

    # ---- the server ----

    def _prepare(self, p: ClassifierParameters) -> None:
        penalty, C = self._penalty(p), 1.0 if p.C is None else p.C
        self._rounding = 1.0 if p.loss == "hinge" else 0.0
        self._gaps = [np.inf] * self.problems
        self._proved: list[Matrix | None] = [None] * self.problems
        """Where the hinge's objective is proved to be so near to its optimum."""
        start = np.zeros(self.width)
        self._curve: list[float] = []
        """The objective after every sum; a hinge's, with its corner as it was rounded then."""
        self._all = [Problem(start, C, penalty, p.tol) for _ in range(self.problems)]

    def _penalty(self, p: ClassifierParameters) -> Matrix:
        """|w|^2 of the columns' own weights, in terms of those in common units."""
        T, width = self.setting.restoring(), self.setting.width
        counts = np.ones(width) * (0.0 if p.C is None else 1.0)
        if self.setting.intercept:
            counts[0] = 0.0 if p.loss == "logistic" else 1.0 / p.intercept_scaling**2
        one = T.T @ np.diag(counts) @ T
        if not self.softmax:
            return np.asarray(one)
        K = len(self.setting.classes)
        whole = np.kron(np.eye(K), one)
        if self.setting.intercept:
            # Adding the same to every class changes nothing: the intercepts' sum is kept at zero.
            free = np.kron(np.ones(K), np.eye(width)[0])
            whole += np.outer(free, free)
        return np.asarray(whole)

    def start(self) -> Matrix:
        return self._points()

    def _points(self) -> Matrix:
        return np.concatenate([*(problem.point for problem in self._all), [self._rounding]])

    def advance(self, total: Matrix) -> Matrix | None:
        for k, (problem, part) in enumerate(zip(self._all, total.reshape(self.problems, -1), strict=True)):
            gradient, curvature = part[_FACTS:][: self.width], self._curvature(part[_FACTS + self.width :])
            if self.setting.parameters.C is None and not self._curve:  # no penalty that would decide
                w = self.setting.width
                normal.check_independent(curvature[:w, :w], self.setting.names)
            if self._rounding:
                gap = self._gap(problem.point, part[1], part[2], gradient)
                if gap < self._gaps[k]:
                    self._gaps[k], self._proved[k] = gap, problem.point
            self._take(problem, float(part[0]), gradient, curvature)
        self._curve.append(float(sum(problem.cost for problem in self._all)))
        steps = max(problem.steps for problem in self._all)
        if steps > self.setting.parameters.max_iter:
            raise self._not_settled()
        if all(problem.settled for problem in self._all) and not self._sharpen():
            return None
        return self._points()

    def _take(self, problem: Problem, loss: float, gradient: Matrix, curvature: Matrix) -> None:
        assert self.survey is not None
        free = self.setting.parameters.C is None
        if free and loss < _CERTAIN * self.survey.n:
            raise self._separated()
        try:
            problem.take(loss, gradient, curvature)
        except (np.linalg.LinAlgError, ValueError):  # the curvature of rows that are certain is nothing
            raise self._separated() if free else self._not_settled() from None

    def _curvature(self, blocks: Matrix) -> Matrix:
        p = self.setting.width
        if not self.softmax:
            return normal.from_packed(blocks, p)
        K, half = len(self.setting.classes), p * (p + 1) // 2
        H = np.zeros((K * p, K * p))
        at = 0
        for k in range(K):
            for j in range(k, K):
                block = normal.from_packed(blocks[at : at + half], p)
                H[k * p : (k + 1) * p, j * p : (j + 1) * p] = block
                H[j * p : (j + 1) * p, k * p : (k + 1) * p] = block
                at += half
        return H

    def _sharpen(self) -> bool:
        """A sharper corner, where the loss has one and it still matters."""
        assert self.survey is not None
        p: ClassifierParameters = self.setting.parameters
        if p.loss != "hinge":
            return False
        if max(self._gaps) <= _FINEST:
            return False
        self._rounding *= _SMOOTHING
        for problem in self._all:
            problem.restart(self.setting.parameters.tol)
        return True

    def _gap(self, theta: Matrix, hinge: float, dual: float, gradient: Matrix) -> float:
        """The part of the objective left to be saved; slopes of the rounded hinge are a dual point."""
        p: ClassifierParameters = self.setting.parameters
        C, P = p.C or 1.0, self._penalty(p)
        objective = C * hinge + 0.5 * float(theta @ P @ theta)
        bound = C * dual - 0.5 * C**2 * float(gradient @ normal.solve(P, gradient))
        return (objective - bound) / objective

    def _separated(self) -> RunError:
        return RunError(
            "the classes are told apart for certain, in all rows or some (separation): the weights grow "
            "without end",
            hint="give C, which keeps the weights small, or leave the column out that tells the class",
        )

    def _not_settled(self) -> RunError:
        p: ClassifierParameters = self.setting.parameters
        if p.C is None and max(problem.cost for problem in self._all) < 1e-3 * (
            self.survey.n if self.survey else 1
        ):
            return self._separated()
        return RunError(
            f"the fit did not settle within max_iter = {p.max_iter} steps", hint="a larger max_iter or tol"
        )

    def found(self) -> Found:
        T, classes = self.setting.restoring(), self.setting.classes
        best = (
            proved if self._rounding else p.best for proved, p in zip(self._proved, self._all, strict=True)
        )
        thetas = [(T @ point.reshape(-1, self.setting.width).T).T for point in best if point is not None]
        model = {
            "names": self.setting.names,
            "classes": classes,
            "coefficients": np.concatenate(thetas),
            "loss": self.setting.parameters.loss,
        }
        fit = {
            "objective": float(sum(problem.cost for problem in self._all)),
            "iterations": max(problem.steps for problem in self._all),
            "loss_curve": np.array(self._curve),
        }
        if self._has_errors:
            model |= {"family": "binomial", "link": "logit"}
            fit |= self._errors(self._all[0], T)
        return Found(plain(model), plain(fit))

    @property
    def _has_errors(self) -> bool:
        """Whether this is the binomial model of a regression: the table of one goes with it."""
        p: ClassifierParameters = self.setting.parameters
        return p.loss == "logistic" and p.C is None and len(self.setting.classes) == 2 and p.weights is None

    def _errors(self, problem: Problem, T: Matrix) -> dict[str, object]:
        assert self.survey is not None
        assert problem.curvature is not None
        n, p, ones = self.survey.n, self.setting.width, float(self.survey.total[-1])
        # Places of classes are 0 and 1: their sum says how often each is there.
        share = ones / n
        null = -2.0 * (ones * np.log(share) + (n - ones) * np.log(1.0 - share))
        return {
            "covariance": T @ normal.inverse(problem.curvature) @ T.T,
            "deviance": 2.0 * problem.cost,
            "null_deviance": null,
            "dispersion": 1.0,
            "loglikelihood": -problem.cost,
            "aic": 2.0 * problem.cost + 2.0 * p,
            "bic": 2.0 * problem.cost + np.log(n) * p,
            "df_residual": n - p,
            "df_null": n - 1,
        }


def _check(study: Study) -> None:
    p = study.read_parameters(ClassifierParameters)
    refuse_offset(p.offset, "GLM with the family binomial has one")
    if not (p.intercept_scaling > 0.0 and np.isfinite(p.intercept_scaling)):
        raise ParameterError(
            f"intercept_scaling={p.intercept_scaling!r} must be above 0", option="intercept_scaling"
        )
    if p.C is not None and not (p.C > 0 and np.isfinite(p.C)):
        raise ParameterError(f"C={p.C!r} must be above 0", option="C")
    if p.C is None and p.loss != "logistic":
        raise ParameterError("support vectors need C", option="C")


PROTOCOL = protocol(
    Kind(
        name="classifier",
        title="Linear classifier by secure sums",
        analysis="classification",
        parameters=ClassifierParameters,
        task=Classifier,
        opened="the number of rows used and left out, sums and squares of every column and of the classes' "
        "places, and in every step the loss, its gradient and its curvature, class by class where there are "
        "more than two",
        points=lambda p: 30 if p.loss == "hinge" else 10,
        classifies=True,
        check=_check,
    )
)
