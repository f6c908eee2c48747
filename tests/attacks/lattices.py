"""Lattice attacks on released outputs, with an independent lattice reduction (FLINT's)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import flint
import numpy as np

_DOUBLE = 2.0**-48
"""What doubles leave of relations between released numbers."""


class Prior(NamedTuple):
    """What the attacker supposes about sums and second moments around the middle of the range."""

    mean: float
    """How far a column's mean may be from the middle."""
    sums: float
    squares: float
    mixed: float
    square: float = 0.0
    """The expected mean square."""


def ignorant(n: int, R: float) -> Prior:
    """Columns are somewhere in their range."""
    return Prior(R / 2, n * R / sqrt(12), n * R**2 / 8, n * R**2 / 8, R**2 / 8)


def knows_population(n: int, values: np.ndarray) -> Prior:
    """Columns are independent, and of this distribution: only what chance did to the sample is unknown."""
    y = values - (values.min() + values.max()) / 2
    var = float(np.mean(y**2))
    square = sqrt(max(n * (float(np.mean(y**4)) - var**2), 0.05))
    return Prior(3 * sqrt(var / n), sqrt(n * var), square, sqrt(n) * var, var)


def closest(A: Any, target: Any) -> np.ndarray:
    """Whole numbers x with A x near the target: LLL, then Babai's nearest plane."""
    scale, size = 2**16, A.shape[1]
    basis = [[round(v * scale) for v in column] for column in A.T.tolist()]
    reduced, steps = flint.fmpz_mat(basis).lll(transform=True)
    rows = [[int(reduced[i, j]) for j in range(len(basis[0]))] for i in range(size)]
    moves = [[int(steps[i, j]) for j in range(size)] for i in range(size)]
    q, r = np.linalg.qr(np.array(rows, dtype=float).T)
    left, found = [round(v * scale) for v in target.tolist()], [0] * size
    for i in reversed(range(size)):
        c = round(float(q[:, i] @ np.array(left, dtype=float)) / r[i, i])
        left = [a - c * b for a, b in zip(left, rows[i], strict=True)]
        found = [a + c * b for a, b in zip(found, moves[i], strict=True)]
    return np.array(found, dtype=float)


def retried(A: Any, target: Any, tries: int) -> np.ndarray:
    """The best of several reductions, each of the unknowns in another order: a fit shows that it is one."""
    best, nearest = np.zeros(A.shape[1]), np.inf
    for turn in range(tries):
        order = np.random.default_rng(turn).permutation(A.shape[1]) if turn else np.arange(A.shape[1])
        x = np.empty(A.shape[1])
        x[order] = closest(A[:, order], target)
        off = misfit(A, target, x)
        if off < nearest:
            best, nearest = x, off
        if nearest < 1.5:
            break
    return best


def misfit(A: Any, target: Any, x: np.ndarray) -> float:
    """How far relations are from their targets, in units of their widths: about one for the truth."""
    return float(np.sqrt(np.mean(np.square((A @ x - target).astype(float)))))


class Relations:
    """Linear relations between second moments G and sums u of n rows, in units of their widths."""

    def __init__(self, n: int, m: int, middle: float) -> None:
        self.n, self.m, self.middle = n, m, middle
        self.pairs = [(i, j) for i in range(m) for j in range(i, m)]
        self.rows: list[Any] = []
        self.targets: list[Any] = []

    def add(self, G: np.ndarray, u: np.ndarray, value: float, width: float) -> None:
        """<G, moments> + u . sums = value, up to the width; all around the middle of the range."""
        S, row = (G + G.T) / 2, np.zeros(len(self.pairs) + self.m, dtype=np.longdouble)
        row[: len(self.pairs)] = [S[i, j] * (1 if i == j else 2) for i, j in self.pairs]
        row[len(self.pairs) :] = u - 2 * self.middle * S.sum(axis=1)
        constant = self.n * self.middle**2 * S.sum() - self.n * self.middle * u.sum()
        self.rows.append(row / width)
        self.targets.append((value - constant) / width)

    def solved(self, tries: int) -> tuple[np.ndarray, np.ndarray]:
        x = retried(np.array(self.rows), np.array(self.targets, dtype=np.longdouble), tries)
        G = np.zeros((self.m, self.m))
        for value, (i, j) in zip(x[: len(self.pairs)], self.pairs, strict=True):
            G[i, j] = G[j, i] = value
        return G, x[len(self.pairs) :]


def second_moments(
    outputs: Any, n: int, R: float, bits: int, prior: Prior, tries: int = 1, others: Sequence[Any] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """X^T X and column sums of n rows of whole numbers in [0, R], from released outputs alone.

    ``outputs``: components, offset, explained variances (divisor n) and the total; ``others``: the same of
    studies on the first columns only.
    """
    m = outputs[0].shape[1]
    found, zero = Relations(n, m, R / 2), np.zeros(m)
    for j in range(m):
        found.add(np.zeros((m, m)), np.eye(m)[j], 0.0, prior.sums)
        for i in range(j, m):
            G = np.outer(np.eye(m)[j], np.eye(m)[i])
            found.add(G, zero, n * prior.square * (i == j), prior.squares if i == j else prior.mixed)
    for one in (outputs, *others):
        _add_outputs(found, one, R, bits, prior)
    return found.solved(tries)


def _add_outputs(found: Relations, outputs: Any, R: float, bits: int, prior: Prior) -> None:
    W, offset, values, total = outputs
    (k, m), n = W.shape, found.n
    U, _, Vt = np.linalg.svd(W)
    B = np.vstack([U @ Vt[:k], Vt[k:]])  # the nearest orthonormal rows, and a basis of the rest
    B = np.hstack([B, np.zeros((m, found.m - m))])
    noise, none = max(2.0**-bits / sqrt(12), 2.0**-52), np.zeros((found.m, found.m))
    around = offset - W.sum(axis=1) * R / 2
    rest = (total - values.sum()) / max(1, m - k)
    for a in range(k):
        found.add(none, B[a], n * around[a], 1.5 * n * R * noise)
        for d in range(a, m):
            gap = 0.0 if a == d else abs(values[a] - (values[d] if d < k else rest))
            # C = G/n - mean mean^T, and the offset is what is known of the mean along a component.
            width = n * (gap * noise + 2 * R * noise * prior.mean + _DOUBLE)
            found.add(np.outer(B[a], B[d]), -around[a] * B[d], n * values[a] * (a == d), width)
