"""Eigenvectors of a small encrypted matrix: algorithm 4 of the SF-PCA paper.

Rows stay in place, as in :mod:`orthogonal`: P is the identity in the coordinates before a reflection's own,
and a deflated matrix keeps its period. The printed line 20 is transposed: Q' multiplies from the left, as the
tridiagonalisation's P does, since the rows of Q are the eigenvectors.
"""

from __future__ import annotations

import numpy as np

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.householder import householder
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector
from atoll.secret_matrices.slots.orthogonal import qr
from atoll.secret_matrices.slots.packed import (
    PRODUCT_LEVELS,
    packed,
    public_square,
    square_product,
    unpacked,
)
from atoll.secret_matrices.slots.products import everywhere, repeated, unit

__all__ = ["eigen"]


async def eigen(m: Slots, M: Matrix, w: int, use: Approximations) -> tuple[Matrix, Vector]:
    """Rows of eigenvectors, the largest eigenvalue first, and the eigenvalues as one row.

    M is symmetric; it is the coordinator's, or everybody's.
    """
    size = len(M)
    T, Q = await _tridiagonal(m, M, use.inside("tridiagonal"))
    values: list[Vector] = []
    for i in reversed(range(1, size)):  # line 13
        for j in range(w):  # line 14
            T, Q = await _shifted_step(m, T, Q, size, use.inside(f"deflation {i}").inside(f"step {j}"))
        T = await m.room(T, 2)
        values.append(m.weighted(T[i], unit(i, size, m.slots)))  # line 22
        left = repeated(np.array([1.0] * i + [0.0] * (size - i)), m.slots)
        T = [m.weighted(row, left) for row in T[:i]]  # line 23
    values.append(m.weighted(T[0], unit(0, size, m.slots)))  # line 25
    assert Q is not None
    [Q] = await m.room([Q], 1)
    return unpacked(m, Q, size), m.add(*values)


async def _tridiagonal(m: Slots, M: Matrix, use: Approximations) -> tuple[Matrix, Vector | None]:
    """T = Q M Q^T, nearly zero but for the diagonal and its neighbours, and Q (None for the identity)."""
    size = len(M)
    Q: Vector | None = None  # line 1
    if size > 2:
        x = packed(m, await m.room(M, 1), size)
    for i in range(size - 2):  # line 2
        [x] = await m.room([x], 2)
        [row] = unpacked(m, x, size, rows=[i])
        v = await householder(m, row, size, i + 1, use.inside(f"{i}"))  # line 3
        P = await _reflection(m, v, i + 1, size)  # lines 4, 5
        if Q is None:
            Q = P  # line 6
        else:
            [Q] = await m.room([Q], PRODUCT_LEVELS)
            Q = square_product(m, P, Q, size)
        [x] = await m.room([x], PRODUCT_LEVELS)
        x = square_product(m, P, x, size)  # line 7
        [x, P] = await m.room([x, P], PRODUCT_LEVELS)
        x = square_product(m, x, P, size)  # line 8; P is symmetric
    if size > 2:
        [x] = await m.room([x], m.fresh_level - m.lowest)
        M = unpacked(m, x, size)  # lines 9 to 12: what should be zero is kept, T stays similar to M
    return M, Q


async def _reflection(m: Slots, v: Vector, start: int, size: int) -> Vector:
    """The packed matrix I - 2 v v^T, for a v that is zero before a coordinate: three levels."""
    [v] = await m.room([v], 3 + PRODUCT_LEVELS)
    twice = m.scaled(v, -2)
    rows = [
        m.times(twice, everywhere(m, m.weighted(v, unit(r, size, m.slots)), size)) for r in range(start, size)
    ]
    return m.plus(packed(m, rows, size, start), public_square(np.eye(size), m.slots))


async def _shifted_step(
    m: Slots, T: Matrix, Q: Vector | None, size: int, use: Approximations
) -> tuple[Matrix, Vector]:
    """One QR step on what is left of T (lines 15 to 20)."""
    last = len(T) - 1
    here = np.diag([1.0] * len(T) + [0.0] * (size - len(T)))
    T = await m.room(T, 2)
    shift = everywhere(m, m.weighted(T[last], unit(last, size, m.slots)), size)
    S = [m.weighted(shift, unit(i, size, m.slots)) for i in range(len(T))]  # line 15
    T = [m.subtract(row, part) for row, part in zip(T, S, strict=True)]  # line 16
    rows, R = await qr(m, T, size, use, active=len(T))  # line 17
    rotation, right = await m.room([packed(m, rows, size), packed(m, R, size)], PRODUCT_LEVELS)
    x = square_product(m, rotation, right, size)  # line 18
    x = m.add(x, m.weighted(shift, public_square(here, m.slots)))  # line 19
    [x] = await m.room([x], m.fresh_level - m.lowest)  # one ciphertext here, or a row each later
    T = unpacked(m, x, size, rows=range(len(T)))
    if len(T) < size:
        rotation = m.plus(rotation, public_square(np.eye(size) - here, m.slots))
    if Q is None:
        return T, rotation
    [Q] = await m.room([Q], PRODUCT_LEVELS)
    return T, square_product(m, rotation, Q, size)  # line 20
