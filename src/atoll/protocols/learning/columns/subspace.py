"""A convex problem on the span of directions whose scores are known.

Whoever knows the scores X d of some directions d, row by row, and the products of the directions under the
penalty, can find the best point of their span without asking anybody: scores are linear. So each sum adds
one direction, and steps, line searches and second derivatives cost no sum. After as many independent
directions as there are coefficients the span is everything, and its best point the optimum.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from atoll.data.island import Matrix
from atoll.protocols.learning import losses

_ENOUGH = 1e-4
_SHORTEST = 2.0**-40
_NEWTON_STEPS = 200
_ROUNDING = 1e-18
"""A step that would save less than this part of the cost is none."""
_FAINT = 1e-10
"""A direction whose scores are all below this part of the largest is rounding, and a step of usual length
along it would blow that up: its products with others, squares of it, come on the grid of a sum."""
_DEPENDENT = 1e-14
"""Directions of which the others leave less than this are no directions of their own."""


class At(NamedTuple):
    """A loss at some scores: its sum, its slope for every score, and what its curvature is made of."""

    value: float
    slopes: Matrix
    bends: Matrix


class Loss(Protocol):
    """The summed loss of scores (rows x classes)."""

    classes: int

    def at(self, scores: Matrix, rounding: float) -> At: ...

    def curvature(self, Z: Matrix, bends: Matrix) -> Matrix:
        """Second derivatives along directions whose scores are Z (rows x classes x directions)."""
        ...


class Margins:
    """A loss of two classes: ``sign`` is +1 or -1 for every row."""

    classes = 1

    def __init__(self, name: str, sign: Matrix) -> None:
        self.name, self.sign = name, sign

    def at(self, scores: Matrix, rounding: float) -> At:
        value, slope, bend = losses.of_margins(self.name, self.sign * scores[:, 0], rounding)
        return At(float(value.sum()), (slope * self.sign)[:, None], bend)

    def curvature(self, Z: Matrix, bends: Matrix) -> Matrix:
        return np.asarray(Z[:, 0].T @ (Z[:, 0] * bends[:, None]))


class Softmax:
    """The loss of several classes at once."""

    def __init__(self, chosen: Matrix, classes: int) -> None:
        self.chosen, self.classes = chosen.astype(np.int64), classes

    def at(self, scores: Matrix, rounding: float) -> At:
        del rounding
        loss, P = losses.softmax(scores, self.chosen)
        slopes = P.copy()
        slopes[np.arange(len(P)), self.chosen] -= 1.0
        return At(float(loss.sum()), slopes, P)

    def curvature(self, Z: Matrix, bends: Matrix) -> Matrix:
        mean = np.einsum("rk,rkt->rt", bends, Z)
        H = -mean.T @ mean
        for k in range(self.classes):
            H += Z[:, k].T @ (Z[:, k] * bends[:, k, None])
        return np.asarray(H)


class Squares:
    """Half the squared residuals."""

    classes = 1

    def __init__(self, y: Matrix) -> None:
        self.y = y

    def at(self, scores: Matrix, rounding: float) -> At:
        del rounding
        residual = scores[:, 0] - self.y
        return At(0.5 * float(residual @ residual), residual[:, None], np.ones(0))

    def curvature(self, Z: Matrix, bends: Matrix) -> Matrix:
        del bends
        return np.asarray(Z[:, 0].T @ Z[:, 0])


class Subspace:
    """``weight`` times a loss plus a quadratic penalty, on the span of the directions so far."""

    def __init__(self, loss: Loss, weight: float, rows: int) -> None:
        self.loss, self.weight = loss, weight
        self.Z = np.zeros((rows, loss.classes, 0))
        self.M = np.zeros((0, 0))
        """Products of the directions under the penalty."""
        self.a = np.zeros(0)
        """The best point, as a combination of the directions."""
        self.cost = np.inf
        self.now: At
        self._largest = 0.0
        """The largest score of any direction."""

    def extend(self, scores: Matrix, products: Matrix) -> None:
        """One direction more: its scores, and its products with all directions, itself the last."""
        T, largest = self.Z.shape[2], float(np.abs(scores).max(initial=0.0))
        self._largest = max(self._largest, largest)
        if largest <= _FAINT * self._largest:
            scores, products = np.zeros_like(scores), np.zeros_like(products)  # it is never gone along
        M = np.zeros((T + 1, T + 1))
        M[:T, :T] = self.M
        M[T, :] = M[:, T] = products
        self.M = M
        self.Z = np.concatenate([self.Z, scores[:, :, None]], axis=2)
        self.a = np.append(self.a, 0.0)

    def shorten(self, keep: int) -> None:
        """The point itself and the latest directions become the directions."""
        B = shortening(self.a, keep)
        self.Z, self.M = self.Z @ B, B.T @ self.M @ B
        self.a = np.eye(B.shape[1])[0]

    def minimise(self, rounding: float) -> None:
        """The best point of the span, by Newton's method with steps that are halved where they go too far."""
        self._look(self.a, rounding)
        for _ in range(_NEWTON_STEPS if self.Z.shape[2] else 0):
            g = self.weight * np.einsum("rkt,rk->t", self.Z, self.now.slopes) + self.M @ self.a
            H = self.weight * self.loss.curvature(self.Z, self.now.bends) + self.M
            step = -pseudo_solve(H, g)
            slope, part = float(g @ step), 1.0
            if -slope <= _ROUNDING * abs(self.cost):
                return
            cost, before, a = self.cost, self.now, self.a
            while not self._lower(a + part * step, rounding, cost + _ENOUGH * part * slope):
                part /= 2.0
                if part < _SHORTEST:
                    self.cost, self.now, self.a = cost, before, a
                    return

    def _lower(self, a: Matrix, rounding: float, most: float) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            self._look(a, rounding)
        return bool(self.cost <= most + 1e-16 * abs(most))

    def _look(self, a: Matrix, rounding: float) -> None:
        self.now = self.loss.at(self.Z @ a, rounding)
        self.a, self.cost = a, self.weight * self.now.value + 0.5 * float(a @ self.M @ a)


def shortening(a: Matrix, keep: int) -> Matrix:
    """What makes of all directions the point and the latest ``keep``."""
    return np.column_stack([a, np.eye(len(a))[:, len(a) - keep :]])


def pseudo_solve(H: Matrix, g: Matrix) -> Matrix:
    """H^-1 g on the directions that H knows, each in units of its own."""
    diagonal = np.diag(H)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(H * np.outer(scale, scale))
    kept = values > values[-1] * _DEPENDENT
    along = vectors[:, kept]
    return np.asarray(scale * (along @ ((along.T @ (scale * g)) / values[kept])))
