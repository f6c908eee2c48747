"""QR factorisation of encrypted rows: algorithm 3 of the SF-PCA paper, V = R Q with R lower triangular.

The paper rotates each row by one after a reflection, to work on the minor (lines 9 to 13). Here rows stay
where they are, and a reflection's vector is zero in the coordinates before its own: the same numbers, without
the rotations and the masks that they would need.
"""

from __future__ import annotations

import numpy as np

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.householder import householder
from atoll.secret_matrices.slots.machine import Matrix, Slots, Values, Vector
from atoll.secret_matrices.slots.products import everywhere, repeated, unit

__all__ = ["qr"]


async def qr(
    m: Slots, V: Matrix, length: int, use: Approximations, *, active: int | None = None
) -> tuple[Matrix, Matrix]:
    """Q with orthonormal rows, and R = V Q^T; V is the coordinator's, or everybody's.

    With ``active``, rows are zero from that coordinate on. R has the rows' period; its row i holds
    small numbers beyond coordinate i, what the approximations leave.
    """
    active = length if active is None else active
    V = list(V)
    H: Matrix = []
    for i in range(min(len(V), active - 1)):  # line 2: a row of one number needs no reflection
        [row] = await m.room(V[i : i + 1], 1)
        v = await householder(m, m.weighted(row, _tail(i, length, m.slots)), length, i, use.inside(f"{i}"))
        [v] = await m.room([v], 3)
        H.append(v)  # line 4
        V[i:] = await _reflected(m, V[i:], v, length)  # lines 5 to 8
    return await _accumulated(m, H, len(V), length), V


async def _reflected(m: Slots, rows: Matrix, v: Vector, length: int) -> Matrix:
    """Rows minus twice their part along v: two levels, and one is left to mask or pack the rows."""
    rows = await m.room(rows, 3)
    twice = m.scaled(v, -2)
    return [m.add(x, m.times(twice, everywhere(m, m.times(x, v), length))) for x in rows]


async def _accumulated(m: Slots, H: Matrix, count: int, length: int) -> Matrix:
    """The first rows of the product of all reflections (lines 15 to 22).

    Row i of the identity is reflected first by H_i: those after it are zero in coordinate i.
    """
    Q: Matrix = []
    for i in reversed(range(len(H))):
        [v] = await m.room(H[i : i + 1], 3)
        Q = await _reflected(m, Q, v, length)
        # A row that had no reflection of its own comes in with the last one.
        own = range(i, count if i == len(H) - 1 else i + 1)
        Q = [_reflected_unit(m, j, v, length) for j in own] + Q
    return Q


def _reflected_unit(m: Slots, at: int, v: Vector, length: int) -> Vector:
    """A row of the identity, reflected."""
    first = unit(at, length, m.slots)
    return m.plus(m.times(m.scaled(v, -2), everywhere(m, m.weighted(v, first), length)), first)


def _tail(start: int, length: int, slots: int) -> Values:
    """One from a coordinate on."""
    row: Values = np.ones(length)
    row[:start] = 0.0
    return repeated(row, slots)
