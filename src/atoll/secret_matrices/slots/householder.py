"""The Householder vector of an encrypted row: algorithm 2 of the SF-PCA paper, for rows of any length.

The paper takes a series for |v|, one for the sign, and one for 1 / |u|. One series for a root is good where
its arguments differ by a factor of a thousand or so, and lengths of rows differ by more. So v is divided by
its length first, by two series one after the other, and what is left to do is the same for every row:
|v| is one, delta is the sign, and |u|^2 is between nearly zero and four.
"""

from __future__ import annotations

import numpy as np

from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.machine import Slots, Vector
from atoll.secret_matrices.slots.products import everywhere, repeatedly, unit

__all__ = ["householder", "lengths"]


async def householder(m: Slots, v: Vector, length: int, at: int, use: Approximations) -> Vector:
    """v' of unit length such that v - 2 (v . v') v' is zero everywhere but in coordinate ``at``.

    Only the coordinates of v from there on count. A number stands in every slot, so that nothing is moved;
    the sign and the second series of the length are side by side. The first copy of v in the slots is taken:
    copies differ by the noise, which is multiplied with the row, and what is found of all of them must go
    together.

    Where v is far shorter than was agreed, or nothing but noise, u is the unit vector or near to it, and the
    reflection is one all the same.
    """
    first = unit(at, length, m.slots)
    # Multiplied before anything else is done, so that what this leaves in other slots is not.
    v = m.scaled(v, 2.0 ** use.raised(v, length, at))
    v = m.weighted(v, np.repeat([0.0, 1.0, 0.0], [at, length - at, m.slots - length]))
    together = 1 + use.levels_of_length
    [v] = await m.room([v], together if together <= m.fresh_level - m.lowest else 1)
    v = repeatedly(m, v, length)
    norm_2 = everywhere(m, m.times(v, v), length)  # lines 1, 2
    v_0 = everywhere(m, m.weighted(v, first), length)
    inverse, delta, scale = await lengths(m, norm_2, v_0, use)
    u = m.add(m.scaled(m.times(v, inverse), 2), m.weighted(delta, first))  # lines 6, 7
    return m.times(u, scale)  # line 11


async def lengths(m: Slots, norm_2: Vector, v_0: Vector, use: Approximations) -> tuple[Vector, Vector, Vector]:
    """From |v|^2 and v_0: one over |v|, what is added to 2 v_0 / |v|, and one over the length of what that makes.

    n is the square of the length of v / |v|, which is one but for the error of the series, and less for a v that is
    short. There n^2 - n + 2 is twice the length, and nearly two where n is nothing: u is not short for either.
    """
    inverse, side, v_0 = await use.inverse_and_sign(m, norm_2, v_0)  # lines 3, 4
    along = m.times(v_0, inverse)
    n = m.times(norm_2, m.times(inverse, inverse))
    twice = m.plus(m.subtract(m.times(n, n), n), np.full(m.slots, 2.0))
    delta = m.times(side, twice)  # line 5
    outside = m.inner([(delta, delta), (m.scaled(along, 4), delta)])  # line 8
    k, delta = await m.room([m.add(m.scaled(n, 4), outside), delta], 7)
    return inverse, delta, await use.inverse_root(m, k)  # lines 9, 10
