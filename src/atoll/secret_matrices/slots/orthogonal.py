"""QR factorisation of encrypted rows: algorithm 3 of the SF-PCA paper, V = R Q with R lower triangular.

QR^T at the coordinator, and DQR^T on rows of which every provider has its own columns.

The paper rotates each row by one after a reflection, to work on the minor (lines 9 to 13). Here rows stay
where they are, and a reflection's vector is zero in the coordinates before its own: the same numbers, without
the rotations and the masks that they would need.
"""

from __future__ import annotations

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.householder import householder, lengths
from atoll.secret_matrices.slots.machine import Matrix, Slots, Values, Vector
from atoll.secret_matrices.slots.products import dot, entry, everywhere, period, repeated, unit

__all__ = ["dqr", "qr"]


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
        [V[i]] = await m.room(V[i : i + 1], 1)
        v = await householder(m, m.weighted(V[i], _tail(i, length, m.slots)), length, i, use.inside(f"{i}"))
        [v] = await m.room([v], 3)
        H.append(v)  # line 4
        V[i:] = await _reflected(m, V[i:], v, length)  # lines 5 to 8
    return await _accumulated(m, H, len(V), length), V


async def _reflected(m: Slots, rows: Matrix, v: Vector, length: int) -> Matrix:
    """Rows minus twice their part along v: two levels, and one is left to mask or pack the rows."""
    rows = await m.room(rows, 3)
    twice = m.scaled(v, -2)
    return [m.add(x, m.times(twice, dot(m, x, v, length))) for x in rows]


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
    return m.plus(m.times(m.scaled(v, -2), entry(m, v, at, length)), first)


NEARLY_ONE = 1 - 2.0**-20
"""A mask of ones leaves a ciphertext as it is, and no ciphertext is refreshed twice: a row and its copy would
be one. A reflection does not depend on how long the row is."""


def _tail(start: int, length: int, slots: int) -> Values:
    """One, or nearly, from a coordinate on."""
    row = np.full(length, NEARLY_ONE)
    row[:start] = 0.0
    return repeated(row, slots)


# ---- among providers ----


class _Columns:
    """A provider's place among the columns: the first coordinates are the first provider's.

    If it has fewer columns, the others are zero: a reflection does not mind.

    Rows are repeated all over the slots, so each provider can give a block of its own to one ciphertext,
    which is refreshed for all of them: what is their own has no other way to new levels. As many
    ciphertexts are refreshed for a row as it takes to have a block for everybody.
    """

    def __init__(self, m: Slots, length: int, place: int | None) -> None:
        self.m = m
        self.length = length
        self.place = place
        if period(length) > m.slots:
            raise ParameterError(
                f"DQR^T on {length} columns of one provider: one ciphertext has {m.slots} slots",
                hint="QR^T has no such limit",
            )

    def mine(self, values: Values) -> Values | None:
        """Numbers at the first provider's columns, as every provider has them."""
        if self.place is None:
            return None
        return repeated(values, self.m.slots) if self.place == 0 else np.zeros(self.m.slots)

    def unit(self, at: int) -> Values | None:
        """One in a coordinate."""
        return self.mine(np.eye(1, self.length, at)[0])

    def tail(self, start: int) -> Values | None:
        """One from a coordinate on."""
        head = self.mine(np.repeat([1.0, 0.0], [start, self.length - start]))
        return None if head is None else 1 - head

    async def refreshed(self, rows: Matrix) -> Matrix:
        """Every provider's own rows, one level below the fresh ones; they lose one before."""
        m, size = self.m, period(self.length)
        at_once = m.slots // size
        count = -(-m.n_providers // at_once)
        blocks: list[Values | None] = [None] * count
        if self.place is not None:
            mine: Values = np.zeros((count * at_once, size))
            mine[self.place] = 1.0
            blocks = list(mine.reshape(count, m.slots))
        together = await m.total([m.own_inner([(x, block)]) for x in rows for block in blocks])
        fresh = [m.at_providers(x) for x in await m.broadcast(await m.refresh(together))]
        out = []
        for i in range(len(rows)):
            of_row = fresh[i * count : (i + 1) * count]
            row, step = m.own_inner(list(zip(of_row, blocks, strict=True))), m.slots // 2
            while step >= size:
                row = m.add(row, m.rotate(row, step))
                step //= 2
            out.append(row)
        return out

    async def totals(self, entries: Matrix) -> Matrix:
        """Sums over providers of numbers that stand in every slot: one ciphertext there and back."""
        m, count = self.m, len(entries)
        joined = m.inner([(x, unit(j, count, m.slots)) for j, x in enumerate(entries)])
        [x] = await m.broadcast(await m.refresh(await m.total([joined])))
        sums = m.at_providers(x)
        return [everywhere(m, m.weighted(sums, unit(j, count, m.slots)), count) for j in range(count)]


async def dqr(m: Slots, V: Matrix, length: int, place: int | None, use: Approximations) -> Matrix:
    """Q, as V is given: every provider's own columns; ``length`` is len(V) at least.

    Rows are as for ``length`` columns everywhere, zero where a provider has fewer. ``place`` is a provider's
    number, and None at the coordinator.
    """
    columns = _Columns(m, length, place)
    V = list(V)
    H: Matrix = []
    for i in range(len(V)):  # line 2
        here = use.inside(f"{i}")
        v = m.own_inner([(V[i], columns.tail(i))])
        v = m.scaled(v, 2 ** here.raised(v, length))
        norm_2 = everywhere(m, m.times(v, v), length)
        v_0 = everywhere(m, m.own_inner([(v, columns.unit(i))]), length)
        norm_2, v_0 = await m.total([norm_2, v_0])  # line 2 of algorithm 2
        inverse, side, scale = await lengths(m, norm_2, v_0, here)
        both = [m.times(inverse, scale), m.times(side, scale)]
        factor, first = await m.broadcast(await m.room(both, 3))
        u = m.add(m.times(v, factor), m.own_inner([(first, columns.unit(i))]))  # line 3
        [v] = await columns.refreshed([u])
        H.append(v)  # line 4
        if i + 1 < len(V):  # lines 5 to 8; R is not wanted, nor its row i
            V[i + 1 :] = await _reflected_apart(m, columns, V[i + 1 :], v)
    Q: Matrix = []
    for i in reversed(range(len(H))):  # lines 16 to 22
        own = m.own_inner([(H[i], columns.unit(i))])
        Q = await _reflected_apart(m, columns, Q, H[i], (own, columns.unit(i)))
    return Q


async def _reflected_apart(
    m: Slots, columns: _Columns, rows: Matrix, v: Vector, first: tuple[Vector, Values | None] | None = None
) -> Matrix:
    """Rows, and before them one of the identity, minus twice their part along v."""
    products = [m.times(x, v) for x in rows]
    if first is not None:
        products.insert(0, first[0])
    along = await columns.totals([everywhere(m, x, columns.length) for x in products])
    twice = m.scaled(v, -2)
    taken = [m.times(twice, x) for x in along]
    if first is None:
        return [m.add(x, part) for x, part in zip(rows, taken, strict=True)]
    here = np.zeros(m.slots) if first[1] is None else first[1]
    return [m.plus(taken[0], here), *(m.add(x, part) for x, part in zip(rows, taken[1:], strict=True))]
