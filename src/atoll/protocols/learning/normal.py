"""Symmetric systems that sums make: solved with columns in equal units, and what depends on what is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import DataError
from atoll.lazy import lazy

if TYPE_CHECKING:
    from scipy import linalg
else:
    linalg = lazy("scipy.linalg")

_ALIASED = 1e-11
"""A column of which the others leave less than this part of its squares is a combination of them."""


def from_packed(vector: Matrix, d: int) -> Matrix:
    """A symmetric matrix from its upper triangle, row by row."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = vector
    return matrix + np.triu(matrix, 1).T


def packed(matrix: Matrix) -> Matrix:
    """The upper triangle, row by row."""
    return matrix[np.triu_indices(len(matrix))]


def check_independent(A: Matrix, names: Sequence[str], *, of: str = "the columns") -> None:
    """Refuse a singular system, and name the columns that follow from others."""
    aliased = dependent(A)
    if aliased:
        listed = ", ".join(repr(names[i]) for i in aliased)
        raise DataError(
            f"{of} {listed} follow from the others (constant, doubled or a combination of them)",
            hint="leave them out (columns = [...]); a category needs no column for its first level",
        )


def dependent(A: Matrix) -> list[int]:
    """Columns that follow from earlier ones: what a Cholesky factorisation in order leaves nothing of."""
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    found = [int(i) for i in np.flatnonzero(scale == 0.0)]
    kept = [i for i in range(len(A)) if i not in found]
    S = A[np.ix_(kept, kept)] / np.outer(scale[kept], scale[kept])
    L = np.zeros_like(S)
    independent: list[int] = []
    for j in range(len(S)):
        row = (
            linalg.solve_triangular(L[np.ix_(independent, independent)], S[independent, j], lower=True)
            if independent
            else np.zeros(0)
        )
        left = 1.0 - float(row @ row)
        if left < _ALIASED:
            found.append(kept[j])
            continue
        L[j, independent] = row
        L[j, j] = np.sqrt(left)
        independent.append(j)
    return sorted(found)


def solve(A: Matrix, b: Matrix) -> Matrix:
    """A^-1 b for a positive definite A, with every column in units of its own."""
    scale = 1.0 / np.sqrt(np.diag(A))
    factor = linalg.cho_factor(A * np.outer(scale, scale), lower=True)
    right = b * (scale if b.ndim == 1 else scale[:, None])
    x = linalg.cho_solve(factor, right)
    # One step of refinement: what sums left of the digits is used to the last.
    x += linalg.cho_solve(factor, right - (A * np.outer(scale, scale)) @ x)
    return np.asarray(x * (scale if b.ndim == 1 else scale[:, None]))


def inverse(A: Matrix) -> Matrix:
    """A^-1."""
    found = solve(A, np.eye(len(A)))
    return (found + found.T) / 2.0
