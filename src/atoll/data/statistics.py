"""Local statistics in one pass over the rows: count, mean and centred scatter, block by block.

Each block is centred on its own mean and blocks are merged by the pairwise update of Chan, Golub and
LeVeque (1983), so that large means never cancel and a table is read once, in pieces that fit the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk

from atoll.data.island import Island, Matrix
from atoll.errors import DataError

BLOCK_BYTES = 1 << 21


class Moments(NamedTuple):
    """n, mean and the upper triangle (in a full matrix) of the scatter about that mean."""

    n: int
    mean: Matrix
    scatter: Matrix


def moments(X: Matrix, island: Island, columns: tuple[str, ...]) -> Moments:
    """The table's moments; a missing or infinite value is refused with its place."""
    n_rows, d = X.shape
    if n_rows == 0:
        raise DataError(f"{island.name}: the table has no rows", hint="leave the island out of the study")
    step = max(BLOCK_BYTES // (8 * d), min(d, n_rows))  # rank-k updates are slow on blocks lower than wide
    centred = np.empty((min(step, n_rows), d))
    n, mean, scatter = 0, np.zeros(d), np.zeros((d, d), order="F")
    for start in range(0, n_rows, step):
        rows = X[start : start + step]
        with np.errstate(invalid="ignore", over="ignore"):
            block_mean = rows.mean(axis=0)
            block = np.subtract(rows, block_mean, out=centred[: len(rows)])
            # The transpose of a C-ordered block is Fortran-ordered: BLAS reads it without a copy.
            scatter = dsyrk(1.0, block.T, beta=1.0, c=scatter, overwrite_c=True)
            shift = block_mean - mean
            scatter += np.outer(shift * (n * len(rows) / (n + len(rows))), shift)
            mean = mean + shift * (len(rows) / (n + len(rows)))
        n += len(rows)
        if not np.isfinite(mean).all():
            raise_for_missing(rows, island, columns, start)
            raise DataError(f"{island.name}: the sum of a column exceeds a double's range")
    return Moments(n, mean, scatter)


def scatter_about(local: Moments, centre: Matrix) -> Matrix:
    """The scatter about another centre than the table's own mean."""
    shift = local.mean - centre
    return local.scatter + np.outer(local.n * shift, shift)


def raise_for_missing(rows: Matrix, island: Island, columns: tuple[str, ...], first_row: int) -> None:
    """Name the first missing or infinite value of a block."""
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, column = wrong[0]
        kind = "a missing value (NaN)" if np.isnan(rows[row, column]) else "an infinite value (inf)"
        raise DataError(
            f"{island.name}: column {columns[column]!r} holds {kind} at {island.place(first_row + int(row))}",
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
