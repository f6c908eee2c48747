"""The Householder vector of an encrypted row: algorithm 2 of the SF-PCA paper."""

from __future__ import annotations

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.machine import Slots, Vector
from atoll.secret_matrices.slots.products import dot, entry, unit

__all__ = ["householder", "lengths"]


async def householder(m: Slots, v: Vector, length: int, at: int, use: Approximations) -> Vector:
    """v' of unit length such that v - 2 (v . v') v' is zero everywhere but in coordinate ``at``.

    v is zero in the coordinates before ``at``. A number stands in every slot, so that nothing is moved; the
    square root and the sign are side by side. Sixteen levels one after the other at degree 31.

    The floor is ours: where v is nothing but noise, k, which is |u|^2 whatever delta is, is no smaller, and
    the reflection is one all the same.
    """
    first = unit(at, length, m.slots)
    together = 1 + use.levels_of_root
    [v] = await m.room([v], together if together <= m.fresh_level - m.lowest else 1)
    norm_2 = dot(m, v, v, length)  # lines 1, 2
    v_0 = entry(m, v, at, length)
    delta, scale = await lengths(m, norm_2, v_0, use)
    return m.times(m.add(v, m.weighted(delta, first)), scale)  # lines 6, 7, 11


async def lengths(m: Slots, norm_2: Vector, v_0: Vector, use: Approximations) -> tuple[Vector, Vector]:
    """From |v|^2 and v_0: what is added to v_0, and one over the length of what that makes of v."""
    norm, side, v_0 = await use.root_and_sign(m, norm_2, v_0)  # lines 3, 4
    norm, side = await m.room([norm, side], 2)
    delta = m.times(side, norm)  # line 5
    u_0 = m.add(v_0, delta)
    outside = m.inner([(u_0, u_0), (m.scaled(v_0, -1), v_0)])  # line 8
    return delta, await use.inverse_root(m, m.add(norm_2, outside))  # lines 9, 10
