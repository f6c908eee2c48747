"""Local statistics in one pass over the rows: count, mean and centred scatter, block by block.

Blocks are merged by the pairwise update of Chan, Golub and LeVeque (1983), so a table is read once, in
pieces that fit the cache, on all cores. A block is centred before it is squared only where that matters:
where a column's mean is so large beside its deviation that the difference of squares would lose digits.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from atoll.data.island import Island, Matrix
from atoll.errors import DataError
from atoll.threads import cores, in_threads

BLOCK_BYTES = 1 << 21

# Squared mean over variance of a column up to which squares are formed before centring: a difference of
# squares then loses 4 of a double's nearly 16 digits.
_HARMLESS_MEAN = 1e4

# Below so many rows a second thread costs more than it brings.
_ROWS_PER_THREAD = 4096


class Moments(NamedTuple):
    """n, mean and scatter about that mean."""

    n: int
    mean: Matrix
    scatter: Matrix


def moments(X: Matrix, island: Island, columns: tuple[str, ...]) -> Moments:
    """The table's moments; a missing or infinite value is refused with its place."""
    if len(X) == 0:
        raise DataError(f"{island.name}: the table has no rows", hint="leave the island out of the study")
    threads = max(1, min(cores(), len(X) // _ROWS_PER_THREAD))
    bounds = np.linspace(0, len(X), threads + 1).astype(int)
    spans = [slice(start, stop) for start, stop in pairwise(bounds)]
    total = reduce(merge, in_threads(lambda span: _moments_of(X[span]), spans))
    if not np.isfinite(total.mean).all():
        raise_for_missing(X, island, columns)
        raise DataError(f"{island.name}: the sum of a column exceeds a double's range")
    return total


def _moments_of(rows: Matrix) -> Moments:
    n_rows, d = rows.shape
    step = max(BLOCK_BYTES // (8 * d), min(d, n_rows))  # products of blocks lower than wide are slow
    return reduce(merge, (_block(rows[start : start + step]) for start in range(0, n_rows, step)))


def _block(rows: Matrix) -> Moments:
    n = len(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.ones(n) @ rows / n
        squares = rows.T @ rows
        of_mean = n * mean * mean
        if (of_mean > _HARMLESS_MEAN * (np.diag(squares) - of_mean)).any():
            mean = rows.mean(axis=0)
            centred = rows - mean
            return Moments(n, mean, centred.T @ centred)
        return Moments(n, mean, squares - np.outer(n * mean, mean))


def merge(a: Moments, b: Moments) -> Moments:
    """The moments of two tables together."""
    n = a.n + b.n
    with np.errstate(invalid="ignore", over="ignore"):
        shift = b.mean - a.mean
        scatter = a.scatter + b.scatter
        scatter += np.outer(shift * (a.n * b.n / n), shift)
        return Moments(n, a.mean + shift * (b.n / n), scatter)


def scatter_about(local: Moments, centre: Matrix) -> Matrix:
    """The scatter about another centre than the table's own mean."""
    shift = local.mean - centre
    return local.scatter + np.outer(local.n * shift, shift)


def raise_for_missing(X: Matrix, island: Island, columns: tuple[str, ...]) -> None:
    """Name the first missing or infinite value."""
    step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), step):
        wrong = np.argwhere(~np.isfinite(X[start : start + step]))
        if len(wrong):
            row, column = start + int(wrong[0][0]), int(wrong[0][1])
            kind = "a missing value (NaN)" if np.isnan(X[row, column]) else "an infinite value (inf)"
            raise DataError(
                f"{island.name}: column {columns[column]!r} holds {kind} at {island.place(row)}",
                hint="drop the row, or fill it in before the study starts",
            )


def triangle(matrix: Matrix) -> Matrix:
    """The upper triangle as a vector."""
    return matrix[np.triu_indices(len(matrix))]


def from_triangle(vector: Matrix, d: int) -> Matrix:
    """A symmetric matrix from its upper triangle."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = vector
    return matrix + np.triu(matrix, 1).T
