"""The Householder vector of an encrypted row: algorithm 2 of the SF-PCA paper, for rows of unknown length.

The paper takes a series for |v|, one for the sign, and one for 1 / |u|, with u = v + sign |v| e. What a
series leaves of |v| is in u and not in 1 / |u|, so that a row shorter than its interval makes no reflection.
Here v is divided by what a series says is |v|, and |u|^2 is found from what that makes of it: 2 u u^T / |u|^2
is a reflection whatever the series left. One that is off takes the row not quite to its axis; a row far below
its interval is hardly there, u is along the axis, and nothing is turned.
"""

from __future__ import annotations

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.machine import Slots, Vector
from atoll.secret_matrices.slots.products import dot, entry, unit

__all__ = ["householder", "lengths"]


async def householder(m: Slots, v: Vector, length: int, at: int, use: Approximations) -> Vector:
    """v' of unit length such that v - 2 (v . v') v' is zero everywhere but in coordinate ``at``.

    v is zero in the coordinates before ``at``. A number stands in every slot, so that nothing is moved.
    """
    first = unit(at, length, m.slots)
    v = m.scaled(v, 2 ** use.raised(v, length))
    together = 1 + use.levels_of_length
    [v] = await m.room([v], together if together <= m.fresh_level - m.lowest else 1)
    norm_2 = dot(m, v, v, length)  # lines 1, 2
    v_0 = entry(m, v, at, length)
    inverse, side, scale = await lengths(m, norm_2, v_0, use)
    u = m.add(m.times(v, inverse), m.weighted(side, first))  # lines 6, 7
    u, scale = await m.room([u, scale], 1)
    return m.times(u, scale)  # line 11


async def lengths(
    m: Slots, norm_2: Vector, v_0: Vector, use: Approximations
) -> tuple[Vector, Vector, Vector]:
    """From |v|^2 and v_0: 1 / |v|, what is added to v_0 / |v|, and one over the length of what that makes."""
    w = await use.divided(m, norm_2, v_0)  # lines 3, 4, 5
    outside = m.times(w.side, m.add(m.scaled(w.along, 2), w.side))  # line 8
    return w.inverse, w.side, await use.inverse_root(m, m.add(w.norm_2, outside))  # lines 9, 10
