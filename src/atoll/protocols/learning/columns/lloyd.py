"""k-means with columns split: summed distances, and every owner moves its own part of the centres.

A squared distance is a sum over columns, so each owner adds its part of the distance of every row to every
centre. The leader assigns rows to the nearest centre and tells all owners the assignment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atoll import randomness
from atoll.data.island import Matrix
from atoll.errors import MessageError
from atoll.protocols.learning.columns.course import EqualSizes, Leader, Owner, Sizes, Told

_FACTS = 2
"""Beside distances: how far the centres moved, and the columns' variances."""


class Clusters(NamedTuple):
    """What both sides know."""

    rows: int
    columns: int
    clusters: int
    init: tuple[tuple[float, ...], ...] | None
    seed: int
    tol: float
    max_iter: int


def lloyd_sizes(problem: Clusters) -> Sizes:
    """One cluster a row, a distance for every row and cluster."""
    return EqualSizes(width=1, numbers=0, sum_=problem.rows * problem.clusters + _FACTS)


class LloydOwner(Owner):
    """``place``: where its columns stand among all."""

    def __init__(self, problem: Clusters, X: Matrix, centre: Matrix, place: slice) -> None:
        self.problem, self.X, self.centre = problem, X, centre
        self.spread = X.std(axis=0)
        if problem.init is not None:
            self.centres = np.array(problem.init)[:, place] - centre
        else:
            drawn = randomness.public(problem.seed).normal(size=(problem.clusters, problem.columns))
            self.centres = drawn[:, place] * self.spread
        self.moved = 0.0

    def take(self, told: Told) -> None:
        if told.step == 0 or told.last:  # the last distances are those of the centres as they are
            return
        nearest = told.rows[:, 0].astype(np.int64)
        if not ((nearest == told.rows[:, 0]) & (nearest >= 0) & (nearest < self.problem.clusters)).all():
            raise MessageError("the leader put a row into a cluster that is none", hint="nothing was added")
        sums = np.zeros_like(self.centres)
        np.add.at(sums, nearest, self.X)
        counts = np.bincount(nearest, minlength=self.problem.clusters)[:, None]
        # A cluster without rows stays where it is.
        new = np.where(counts > 0, sums / np.maximum(counts, 1.0), self.centres)
        self.moved = float(((new - self.centres) ** 2).sum())
        self.centres = new

    def answer(self) -> Matrix:
        D = np.stack([((self.X - centre) ** 2).sum(axis=1) for centre in self.centres], axis=1)
        return np.concatenate([D.ravel(), [self.moved, float((self.spread**2).sum())]])

    def coefficients(self) -> tuple[Matrix, Matrix]:
        return self.centres + self.centre, np.zeros(self.problem.clusters)


class LloydLeader(Leader):
    """Assigns rows to centres that it does not know."""

    def __init__(self, problem: Clusters) -> None:
        self.problem = problem
        self.nearest = np.full(problem.rows, -1)
        self.curve: list[float] = []
        self._updates = 0

    def first(self) -> Told:
        return Told(0, False, np.zeros(0), np.zeros((self.problem.rows, 1)))

    def advance(self, total: Matrix) -> Told:
        p = self.problem
        D = total[:-_FACTS].reshape(p.rows, p.clusters)
        moved, variance = total[-_FACTS:]
        before, self.nearest = self.nearest, D.argmin(axis=1)
        self.curve.append(float(np.maximum(D.min(axis=1), 0.0).sum()))
        self.steps += 1
        near = self.steps > 1 and moved <= p.tol * variance / p.columns
        done = bool((before == self.nearest).all()) or near or self._updates >= p.max_iter
        self._updates += not done
        return Told(self.steps, done, np.zeros(0), self.nearest[:, None].astype(np.float64))

    def fit(self) -> dict[str, Any]:
        counts = np.bincount(self.nearest, minlength=self.problem.clusters)
        return {
            "inertia": self.curve[-1],
            "iterations": self._updates,
            "counts": counts.astype(np.float64),
            "loss_curve": np.array(self.curve),
        }
