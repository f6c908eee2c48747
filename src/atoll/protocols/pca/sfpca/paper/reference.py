"""Randomised PCA in the clear, step by step as the paper's figure 1 and algorithm 4: NumPy, and no series.

What the variant should find with the same sketch and parameters. Where it differs from the exact components,
so will the variant: few iterations leave them mixed, and algorithm 4 orders eigenvectors by the place at
which its shifted steps find them, which is by size only where the power iterations have settled.
"""

from __future__ import annotations

import numpy as np

from atoll.data.island import Matrix

__all__ = ["eigenvectors", "rpca"]


def rpca(table: Matrix, sketch: Matrix, *, iterations: int, components: int, steps: int) -> Matrix:
    """The leading components, as rows; p, psi and w are iterations, components and steps."""
    A = table - table.mean(axis=0)
    C = A.T @ A
    P = sketch @ A
    for _ in range(iterations):
        P = _orthonormal_rows(P @ C)
    U = eigenvectors(P @ C @ P.T, steps)[:components]
    return _orthonormal_rows(U @ P @ C)


def eigenvectors(M: Matrix, steps: int) -> Matrix:
    """Rows, by shifted QR steps and deflation (algorithm 4, but for the tridiagonal form)."""
    T, Q = M.copy(), np.eye(len(M))
    for i in reversed(range(1, len(M))):
        for _ in range(steps):
            shift = T[i, i] * np.eye(i + 1)
            turned = _orthonormal_rows(T[: i + 1, : i + 1] - shift)
            T[: i + 1, : i + 1] = turned @ T[: i + 1, : i + 1] @ turned.T
            Q[: i + 1] = turned @ Q[: i + 1]
    return Q


def _orthonormal_rows(V: Matrix) -> Matrix:
    """Q of V = R Q with R lower triangular."""
    return np.linalg.qr(V.T)[0].T
