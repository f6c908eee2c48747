"""Latent classes fitted to released moments: a row is of one class, and its columns are independent there.

p(x) = sum_z pi_z prod_a theta_za(x_a), so the moments of two columns are sum_z pi_z u_za u_zb^T with u the
class's shares in orthonormal coordinates: the same low rank as probabilistic PCA, with factors that are
shares. pi and theta minimise the misfit to the released moments, weighted by their noise, from classes that
hardly differ; steps end as soon as the misfit is no more than noise alone leaves (discrepancy principle), so
noise is not fitted. The model is the mean of several such fits from different starts, which again is one of
latent classes: what only one start sees is mostly noise. For tables of any number of cells; conditions on
some columns are met exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll import randomness
from atoll.errors import DataError
from atoll.lazy import lazy
from atoll.protocols.synthesis.moments import Codes, Floats, Moments, joint_basis

optimize: Any = lazy("scipy.optimize")

CLASSES = 32
FITS = 6
_STEPS = 800
_SPREAD = 0.1
_BELOW = 2.0
"""Steps end so many standard deviations below the mean of what noise alone leaves: fitted numbers take a part
of the noise away, and at the mean itself weaker dependence would still be left out."""
_BELOW_ONE = 1.0 - 1e-12


class _Fit:
    """Misfit and its gradient, as a function of free numbers: logarithms of pi and theta."""

    def __init__(self, moments: Moments, classes: int) -> None:
        self.moments, self.classes = moments, classes
        self.basis = joint_basis(moments.sizes)
        self.starts = np.concatenate([[0], np.cumsum(moments.sizes)[:-1]])
        self.lengths = np.array(moments.sizes)
        owner = moments.owner
        with np.errstate(divide="ignore"):
            weight = 1.0 / moments.second_noise**2
        weight[~np.isfinite(weight)] = 0.0  # a column beside itself
        self.pair_weight = weight[np.ix_(owner, owner)]
        self.mean_weight = 1.0 / moments.mean_noise[owner] ** 2
        free = self.lengths - 1
        self.freedom = float(free.sum() + (free.sum() ** 2 - (free**2).sum()) / 2)
        self.misfit = np.inf

    @property
    def enough(self) -> float:
        """The misfit, over its mean under noise alone, at which steps end."""
        return max(0.5, 1.0 - _BELOW * math.sqrt(2.0 / max(self.freedom, 1.0)))

    def start(self, seed: int) -> Floats:
        rng = randomness.public(seed)
        margins = np.log(np.concatenate(self.moments.margins))
        theta = margins + _SPREAD * rng.standard_normal((self.classes, len(margins)))
        return np.concatenate([np.zeros(self.classes), theta.ravel()])

    def shares(self, free: Floats) -> tuple[Floats, Floats]:
        """pi, and theta of all columns side by side."""
        pi = np.exp(free[: self.classes] - free[: self.classes].max())
        raw = free[self.classes :].reshape(self.classes, -1)
        top = np.maximum.reduceat(raw, self.starts, axis=1)
        theta = np.exp(raw - np.repeat(top, self.lengths, axis=1))
        total = np.add.reduceat(theta, self.starts, axis=1)
        return pi / pi.sum(), theta / np.repeat(total, self.lengths, axis=1)

    def __call__(self, free: Floats) -> tuple[float, Floats]:
        pi, theta = self.shares(free)
        u = theta @ self.basis
        weighted = u * pi[:, None]
        beyond = u.T @ weighted - self.moments.second
        off = weighted.sum(axis=0) - self.moments.mean
        pull, mean_pull = self.pair_weight * beyond, self.mean_weight * off
        self.misfit = 0.5 * float((pull * beyond).sum()) + float(mean_pull @ off)
        back = u @ pull
        to_u = pi[:, None] * (back + mean_pull)
        to_pi = 0.5 * (back * u).sum(axis=1) + u @ mean_pull
        to_theta = theta * (to_u @ self.basis.T)
        level = np.add.reduceat(to_theta, self.starts, axis=1)
        to_theta -= theta * np.repeat(level, self.lengths, axis=1)
        gradient = np.concatenate([pi * (to_pi - pi @ to_pi), to_theta.ravel()])
        return 0.5 * self.misfit / self.freedom, gradient / self.freedom


def fit(moments: Moments, classes: int = CLASSES, fits: int = FITS) -> dict[str, Any]:
    """The model of a release: the classes of all fits side by side."""
    found = [_fitted(moments, classes, seed) for seed in range(fits)]
    return {
        "pi": np.concatenate([pi for pi, _ in found]) / fits,
        "theta": np.vstack([theta for _, theta in found]),
    }


def _fitted(moments: Moments, classes: int, seed: int) -> tuple[Floats, Floats]:
    objective = _Fit(moments, classes)
    latest = objective.start(seed)

    def follow(intermediate_result: Any) -> None:
        nonlocal latest
        latest = intermediate_result.x.copy()
        if 2.0 * intermediate_result.fun <= objective.enough:
            raise StopIteration

    options = {"maxiter": _STEPS, "maxcor": 8}
    optimize.minimize(objective, latest, jac=True, method="L-BFGS-B", callback=follow, options=options)
    return objective.shares(latest)


def sample(
    values: dict[str, Any], sizes: Sequence[int], weights: Sequence[Floats], n: int, rng: randomness.Public
) -> Codes:
    """Rows of cells, under the conditions."""
    parts = np.split(values["theta"], np.cumsum(sizes)[:-1], axis=1)
    under = [theta * weight for theta, weight in zip(parts, weights, strict=True)]
    chance = values["pi"] * np.prod([theta.sum(axis=1) for theta in under], axis=0)
    if not chance.sum() > 0.0:
        raise DataError("no row of the model fits the conditions", hint="a wider condition")
    classes = drawn(chance[None], np.zeros(n, dtype=np.int64), rng)
    return np.column_stack([drawn(theta, classes, rng) for theta in under])


def drawn(shares: Floats, which: Codes, rng: randomness.Public) -> Codes:
    """One cell for every row, by the shares of the line that it names: lines stand one after the other, so
    one search finds all cells. The rows of a line are dealt out evenly, in an order drawn at random: each of
    its cells is taken as often as its share says, to within one row."""
    reached = np.cumsum(shares, axis=1)
    total = reached[:, -1:]
    ladder = (reached / np.where(total > 0.0, total, 1.0) + np.arange(len(shares))[:, None]).ravel()
    place = np.searchsorted(ladder, which + evenly(which, len(shares), rng), side="right")
    return np.asarray(np.clip(place - which * shares.shape[1], 0, shares.shape[1] - 1).astype(np.int64))


def evenly(which: Codes, lines: int, rng: randomness.Public) -> Floats:
    """A number from 0 to 1 for every row; of the k rows of a line one lies in each k-th part, whichever."""
    order = np.argsort(which + rng.random(len(which)))
    counts = np.bincount(which, minlength=lines)
    first = np.cumsum(counts) - counts
    rank = np.empty(len(which))
    rank[order] = np.arange(len(which)) - first[which[order]]
    return np.minimum((rank + rng.random(len(which))) / counts[which], _BELOW_ONE)
