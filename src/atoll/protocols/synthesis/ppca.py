"""Probabilistic PCA of released moments: W and sigma^2 by maximum likelihood, and rows drawn from them.

Tipping and Bishop: x = W s + mean + noise, s ~ N(0, I_k), noise ~ N(0, sigma^2 I); with eigenvalues l and
eigenvectors U of the covariance, sigma^2 is the mean of the eigenvalues left out and W = U_k (L_k -
sigma^2)^(1/2). Eigenvalues below what noise alone would show are left out whatever the contribution asks.

Rows are numbers, cells are wanted: the cell of a column with the largest coordinate is taken, after a shift
per cell that makes cells as frequent as the margins say. That fits margins and broad dependence only; the
models of ``maximum_entropy`` and ``latent_classes`` are fitted to the same moments and come closer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll import randomness
from atoll.errors import DataError, StudyError
from atoll.protocols.synthesis.moments import Codes, Floats, Moments, helmert, joint_basis

_ROUNDS = 60
_DRAWN = 20_000
_SEED = 4
_MOST_TRIES = 400


class Components(NamedTuple):
    """W, sigma^2, and how much of the variance each kept component explains."""

    loadings: Floats
    noise_variance: float
    explained: Floats
    total: float


def covariance(moments: Moments) -> Floats:
    """Between columns as released; within a column as its margin says, without any noise of its own."""
    mean = np.concatenate([helmert(len(p)).T @ p for p in moments.margins])
    matrix = moments.second - np.outer(mean, mean)
    start = 0
    for p in moments.margins:
        own = slice(start, start + len(p) - 1)
        matrix[own, own] = helmert(len(p)).T @ (np.diag(p) - np.outer(p, p)) @ helmert(len(p))
        start += len(p) - 1
    return np.asarray((matrix + matrix.T) / 2.0)


def smallest_k(eigenvalues: Floats, contribution: float, floor: float = 0.0) -> int:
    """As few as reach the contribution, of those above ``floor``; one at least."""
    positive = np.maximum(eigenvalues, 0.0)
    reached = np.cumsum(positive) / max(float(positive.sum()), 1e-300)
    k = int(np.searchsorted(reached, contribution - 1e-12)) + 1
    return max(1, min(k, int((eigenvalues > floor).sum()), len(eigenvalues)))


def decompose(matrix: Floats, k: int) -> Components:
    """W and sigma^2 of the first k components; negative eigenvalues, made by noise, count as none."""
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rest = float(values[k:].mean()) if k < len(values) else 0.0
    loadings = vectors[:, :k] * np.sqrt(np.maximum(values[:k] - rest, 0.0))
    return Components(np.asarray(loadings), rest, values[:k].copy(), float(values.sum()))


def fit(moments: Moments, contribution: float, n_components: int | None) -> Components:
    """The components of a release."""
    matrix = covariance(moments)
    values = np.linalg.eigvalsh(matrix)[::-1].astype(np.float64)
    floor = 2.0 * float(moments.second_noise.max(initial=0.0)) * math.sqrt(len(matrix))
    k = smallest_k(values, contribution, floor) if n_components is None else min(n_components, len(matrix))
    return decompose(matrix, k)


def check_options(contribution: float, n_components: int | None, most: int) -> None:
    """What a study's types cannot say of its components."""
    if not 0.0 < contribution <= 1.0:
        raise StudyError(
            f"contribution={contribution!r} must be above 0 and at most 1",
            path=("parameters", "contribution"),
        )
    if n_components is not None and not 1 <= n_components <= max(most, 1):
        raise StudyError(
            f"n_components={n_components} must be 1 to {most}, the coordinates of these columns",
            path=("parameters", "n_components"),
        )


# ---- rows ----


def model(moments: Moments, components: Components) -> dict[str, Any]:
    """What rows are drawn from: the mean, W, sigma^2, and the shift of every cell."""
    mean = np.concatenate([helmert(len(p)).T @ p for p in moments.margins])
    plain = {"mean": mean, "loadings": components.loadings, "noise_variance": components.noise_variance}
    scores = _scores(plain, joint_basis(moments.sizes), _DRAWN, randomness.public(_SEED))
    shifts, start = [], 0
    for p in moments.margins:
        shifts.append(_calibrated(scores[:, start : start + len(p)], p))
        start += len(p)
    return {**plain, "shifts": np.concatenate(shifts)}


def _calibrated(scores: Floats, margin: Floats) -> Floats:
    shift, step = np.zeros(len(margin)), 0.3
    for _ in range(_ROUNDS):
        taken = np.bincount((scores + shift).argmax(axis=1), minlength=len(margin)) / len(scores)
        shift += step * (margin - taken)
        step *= 0.97
    return shift


def _scores(values: dict[str, Any], basis: Floats, n: int, rng: randomness.Public) -> Floats:
    loadings, deviation = values["loadings"], math.sqrt(values["noise_variance"])
    x = values["mean"] + rng.standard_normal((n, loadings.shape[1])) @ loadings.T
    x += deviation * rng.standard_normal(x.shape)
    return np.asarray(x @ basis.T)


def sample(
    values: dict[str, Any], sizes: Sequence[int], weights: Sequence[Floats], n: int, rng: randomness.Public
) -> Codes:
    """Rows of cells; rows that the conditions exclude are drawn again."""
    basis, ends = joint_basis(sizes), np.cumsum(sizes)[:-1]
    found, tries = np.empty((0, len(sizes)), dtype=np.int64), 0
    while len(found) < n:
        scores = _scores(values, basis, max(n, 1000), rng) + values["shifts"]
        codes = np.column_stack([part.argmax(axis=1) for part in np.split(scores, ends, axis=1)])
        chance = np.prod([w[codes[:, a]] for a, w in enumerate(weights)], axis=0)
        found = np.concatenate([found, codes[rng.random(len(codes)) < chance]])
        tries += 1
        if tries == _MOST_TRIES and len(found) < n:
            raise DataError(
                f"only {len(found)} of {n} rows fit the conditions after {tries * max(n, 1000):,} draws",
                hint="a wider condition, or decoder='auto', which draws such rows directly",
            )
    return found[:n]
