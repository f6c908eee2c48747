"""The Householder vector of an encrypted row: algorithm 2 of the SF-PCA paper."""

from __future__ import annotations

import numpy as np

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.machine import Slots, Vector
from atoll.secret_matrices.slots.products import everywhere, unit

__all__ = ["householder", "lengths"]


async def householder(m: Slots, v: Vector, length: int, at: int, use: Approximations) -> Vector:
    """v' of unit length such that v - 2 (v . v') v' is zero everywhere but in coordinate ``at``.

    v is zero in the coordinates before ``at``. A number stands in every slot, so that nothing is moved; the
    square root and the sign are side by side. Sixteen levels one after the other at degree 31.

    The floor is ours: where v is nothing but noise, k, which is |u|^2 whatever delta is, is no smaller, and
    the reflection is one all the same.
    """
    first = unit(at, length, m.slots)
    together = 1 + max(use["root"].depth, use["sign"].depth)
    [v] = await m.room([v], together if together <= m.fresh_level - m.lowest else 1)
    norm_2 = everywhere(m, m.times(v, v), length)  # lines 1, 2
    v_0 = everywhere(m, m.weighted(v, first), length)
    delta, scale = await lengths(m, norm_2, v_0, use)
    return m.times(m.add(v, m.weighted(delta, first)), scale)  # lines 6, 7, 11


async def lengths(m: Slots, norm_2: Vector, v_0: Vector, use: Approximations) -> tuple[Vector, Vector]:
    """From |v|^2 and v_0: what is added to v_0, and one over the length of what that makes of v."""
    root, sign, inverse = use["root"], use["sign"], use["inverse"]
    norm_2, v_0 = await m.room([norm_2, v_0], max(root.depth, sign.depth))
    norm = m.polynomial(m.plus(norm_2, np.full(m.slots, use.floor)), root)  # line 3
    side = m.polynomial(v_0, sign)  # line 4
    norm, side = await m.room([norm, side], 2)
    delta = m.times(side, norm)  # line 5
    u_0 = m.add(v_0, delta)
    outside = m.inner([(u_0, u_0), (m.scaled(v_0, -1), v_0)])  # line 8
    [k] = await m.room([m.add(norm_2, outside)], inverse.depth + 1)  # line 9
    return delta, m.polynomial(k, inverse)  # line 10
