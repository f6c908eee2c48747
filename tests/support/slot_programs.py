"""A program that uses every verb of the machine on vectors in slots, with data for three providers."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.slot_runs import provider

from atoll.secret_matrices.slots.machine import Approximation, Slots

LENGTH = 20
PRIME = 2**255 - 19
SQUARE = Approximation("x^2", -2.0, 2.0, (2.0, 0.0, 2.0))
"""On [-2, 2], x^2 = 2 + 2 T_2(x / 2)."""
BOTH = frozenset({"office/consumer", provider(1)})
OTHERS = frozenset({"hub/coordinator", provider(2)})


def tables(providers: int = 3) -> list[Any]:
    """The coordinator's, which has none, then the providers'."""
    rng = np.random.default_rng(1)
    return [None, *(rng.uniform(-0.3, 0.3, (2, LENGTH)) for _ in range(providers))]


async def everything(m: Slots, own: Any) -> dict[str, Any]:
    """Every verb once at least; what this role found."""
    weights = np.linspace(-1, 1, LENGTH)
    x, y = await m.broadcast(await m.encrypted_total(None if own is None else list(own), 2))
    z = m.add(m.rotate(x, 3), m.subtract(y, x), m.scaled(y, 3), m.rotate(y, -5))
    z = m.plus(m.weighted(m.scaled(z, 0.5), weights), weights)  # two levels
    z = m.inner([(z, x), (y, weights), (m.times(x, y), y)])
    mine = [None, None] if own is None else list(own)
    o = m.own_inner([(z, mine[0]), (y, mine[1])])
    (t,) = await m.total([o])
    (f,) = await m.refresh([t])
    p = m.polynomial(m.add(f, m.at_coordinator(x)), SQUARE)
    (g,) = await m.broadcast([p])
    (again,) = await m.refresh([m.scaled(g, 2)])
    (g2,) = await m.broadcast([m.times(again, again)])
    shares = await m.to_shares([g2, m.at_coordinator(g)], [LENGTH, 5])
    doubled = None if shares is None else [2 * x % PRIME for x in shares]
    back = await m.from_shares(doubled, [LENGTH, 5], PRIME)
    return {
        "refreshed": await m.opened([f, again], [LENGTH, 7], BOTH),
        "of everybody": await m.opened([m.times(x, y)], [LENGTH], OTHERS),
        "own": await m.opened_own([o], [LENGTH]),
        "from shares": await m.opened(back, [LENGTH, 5], OTHERS),
        "levels": [x.level, z.level, o.level, t.level, f.level, p.level, g.level, again.level],
    }
