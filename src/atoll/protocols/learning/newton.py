"""Newton's method for several convex problems at once, driven by sums that islands add.

A problem is a cost, a gradient and a curvature at a point; all of them are summed over the islands at one
point each, in one secure sum. A step that does not lower the cost enough is halved (Armijo).
"""

from __future__ import annotations

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import RunError
from atoll.protocols.learning import normal

_ENOUGH = 1e-4
_SHORTEST = 2.0**-30


class Problem:
    """One convex problem with a quadratic penalty, as the server sees it: where it is, and where it goes."""

    def __init__(self, start: Matrix, weight: float, penalty: Matrix, tol: float) -> None:
        self.point = start
        """Where the next sum is taken."""
        self.best: Matrix | None = None
        self.cost = np.inf
        self.curvature: Matrix | None = None
        """Of the objective at the best point."""
        self.steps = 0
        self.settled = False
        self.tol = tol
        """A problem has settled when a step would save no more than this part of the cost."""
        self._weight, self._penalty = weight, penalty
        self._slope, self._part = 0.0, 1.0
        self._step = np.zeros_like(start)

    def restart(self, tol: float) -> None:
        """The costs are others now; go on from the best point."""
        self.cost, self.settled, self._part, self.tol = np.inf, False, 1.0, tol
        if self.best is not None:
            self.point = self.best

    def take(self, cost: float, gradient: Matrix, curvature: Matrix) -> None:
        """Accept the sums at ``point``, and say where to go."""
        if self.settled:
            return
        F = self._weight * cost + 0.5 * float(self.point @ self._penalty @ self.point)
        if np.isnan(F) or self.cost + _ENOUGH * self._part * self._slope + 1e-15 * abs(F) < F:
            self._halve()
            return
        g = self._weight * gradient + self._penalty @ self.point
        H = self._weight * curvature + self._penalty
        self.best, self.cost, self.curvature, self._part = self.point, F, H, 1.0
        self.steps += 1
        self._step = -normal.solve(_definite(H), g)
        self._slope = float(g @ self._step)
        if -self._slope <= 2.0 * self.tol * abs(F):
            self.settled = True
        else:
            self.point = self.best + self._step

    def _halve(self) -> None:
        self._part /= 2.0
        if self.best is None or self._part < _SHORTEST:
            self.settled = self.best is not None  # rounding hides what is left
            if self.best is None:
                raise RunError("the cost cannot be computed at the start", hint="rescale the columns")
            self.point = self.best
            return
        self.point = self.best + self._part * self._step


def _definite(H: Matrix) -> Matrix:
    """The curvature, lifted by a rounding's width, and where nothing decides."""
    diagonal = np.diag(H)
    return np.asarray(H + np.diag(np.where(diagonal > 0.0, 1e-15 * diagonal, 1.0)))
