"""The Householder vector of an encrypted row: algorithm 2 of the SF-PCA paper."""

from __future__ import annotations

import numpy as np

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.machine import Approximation, Slots, Vector
from atoll.secret_matrices.slots.products import everywhere, unit

__all__ = ["householder"]


async def householder(m: Slots, v: Vector, length: int, at: int, use: Approximations) -> Vector:
    """v' of unit length such that v - 2 (v . v') v' is zero everywhere but in coordinate ``at``.

    v is zero in the coordinates before ``at``. A number stands in every slot, so that nothing is moved; the
    square root and the sign are side by side. Sixteen levels one after the other at degree 31.

    The floor is ours: where v is nothing but noise, k, which is |u|^2 whatever delta is, is no smaller, and
    the reflection is one all the same.
    """
    root, sign, inverse = use["root"], use["sign"], use["inverse"]
    floor = np.full(m.slots, use.floor)
    first = unit(at, length, m.slots)
    together = 1 + max(root.depth, sign.depth)
    [v] = await m.room([v], together if together <= m.fresh_level - m.lowest else 1)
    norm_2 = everywhere(m, m.times(v, v), length)  # lines 1, 2
    v_0 = everywhere(m, m.weighted(v, first), length)
    known = _constant(sign)
    norm_2, v_0 = await m.room([norm_2, v_0], max(root.depth, sign.depth))
    norm = m.polynomial(m.plus(norm_2, floor), root)  # line 3
    if known is None:
        side = m.polynomial(v_0, sign)  # line 4
        norm, side = await m.room([norm, side], 2)
        delta = m.times(side, norm)  # line 5
    else:
        [norm] = await m.room([norm], 2)
        delta = m.scaled(norm, known)
    u = m.add(v, m.weighted(delta, first))  # lines 6, 7
    u_0 = m.add(v_0, delta)
    outside = m.inner([(u_0, u_0), (m.scaled(v_0, -1), v_0)])  # line 8
    [k] = await m.room([m.add(norm_2, outside)], inverse.depth + 1)  # line 9
    scale = m.polynomial(k, inverse)  # line 10
    return m.times(u, scale)  # line 11


def _constant(sign: Approximation) -> float | None:
    """The sign, where it is agreed to be the same for all values: nothing is evaluated then, since a polynomial
    without terms makes a ciphertext that hides nothing."""
    first, *others = sign.coefficients
    return first if first and not any(others) else None
