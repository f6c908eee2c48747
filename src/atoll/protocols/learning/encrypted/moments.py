"""Rows split: the joint moments as shares that islands have anyway, and the coefficients that follow.

Columns, the target last, are divided by public powers of two 2^e, so that they lie within [-1, 1]; what an
island adds up over its own rows is its summand of the joint sums. With n rows in all, P = sum x x^T / n and
m = sum x / n, the covariance is C = P - m m^T, one product under encryption. No variance exceeds one, so the
d eigenvalues of the columns' part add up to d at the most. A ridge adds alpha / (n 4^e) to its diagonal; e is
raised until that is at most one, which is public. Then A = C / 2^h, with 2^h the next power of two above the
sum of the diagonal, is what :mod:`program` inverts, and w = A^-1 b / 2^h with b the target's covariances.
The intercept is m_y - m_x w.

All bounds rest on n, which only the server has added up. Told a smaller number, islands would bring values
beyond their masks. So their own counts, added up under encryption, are opened first, and nothing else is
computed unless they make n.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Matrix
from atoll.protocols.learning.encrypted.program import FRACTION, smudge, solved
from atoll.secret_matrices.machine import Machine, Shared

Integers = np.ndarray[Any, np.dtype[np.object_]]
COUNT_FRACTION = 20
"""Numbers of rows are opened under noise that is wide over rounding, and far below one row."""


class Scales(NamedTuple):
    """What everybody knows: rows of all islands, and the exponents of all columns, the target's last."""

    n: int
    exponents: tuple[int, ...]
    alpha: float = 0.0
    intercept: bool = True

    @property
    def columns(self) -> int:
        """Without the target."""
        return len(self.exponents) - 1

    def raised(self) -> Scales:
        """With exponents so large that no column's part of the ridge exceeds one."""
        least = ceil(log2(self.alpha / self.n) / 2) if self.alpha > 0 else min(self.exponents)
        return self._replace(exponents=(*(max(e, least) for e in self.exponents[:-1]), self.exponents[-1]))

    @property
    def lift(self) -> Integers:
        """What the ridge adds to the diagonal, as whole numbers over 2^FRACTION."""
        share = _grid(np.ldexp(self.alpha / self.n, -2 * np.array(self.exponents[:-1])))
        return np.diag([*share, 0])

    @property
    def halvings(self) -> int:
        return ceil(log2(self.columns * (2 if self.alpha > 0 else 1)))

    def restored(self, w: Matrix) -> Matrix:
        """Coefficients of the columns as they are."""
        return np.asarray(np.ldexp(w, self.exponents[-1] - np.array(self.exponents[:-1])))


class Moments(NamedTuple):
    """An island's summands of P and m, as whole numbers over 2^FRACTION; of n, and of a one; its factor
    (:func:`program.own_factor`)."""

    products: Integers
    means: Integers
    counts: Integers
    factor: Integers

    def __repr__(self) -> str:
        return f"Moments({len(self.means)} columns)"


def own_moments(rows: Matrix, scales: Scales, first: bool, factor: Integers) -> Moments:
    """Sums over the island's rows; about its own means in doubles, and from there exactly.

    ``first``: the one island that adds the ridge, and a one, for all.
    """
    Z = np.ldexp(rows, -np.array(scales.exponents))
    centre = Z.mean(axis=0)
    D = Z - centre
    c, s, S = (_grid(x) for x in (centre, D.sum(axis=0), D.T @ D))
    across = np.multiply.outer(s, c)
    products = S + ((across + across.T + len(Z) * np.multiply.outer(c, c)) >> FRACTION)
    products = products // scales.n + (scales.lift if first and scales.alpha > 0 else 0)
    counts = np.array([[len(Z) << COUNT_FRACTION], [int(first) << COUNT_FRACTION]], dtype=object)
    return Moments(products, ((s + len(Z) * c) // scales.n)[:, None], counts, factor)


def _grid(values: Matrix) -> Integers:
    """Whole numbers over 2^FRACTION."""
    scaled = np.ldexp(values, FRACTION)
    return np.array([int(v) for v in scaled.ravel()], dtype=object).reshape(values.shape)


async def rows_counted(machine: Machine, n: int, own: Moments | None) -> bool:
    """Whether all islands together have n rows; opens how many they have."""
    bits = ceil(log2(n * machine.n_providers + 1)) + 1  # no island has more than n
    counts = machine.private(None, None if own is None else own.counts, (2, 1), COUNT_FRACTION, bits)
    count, one = (machine.part(counts, slice(i, i + 1), slice(0, 1)) for i in range(2))
    total = await machine.product((one, count), fraction=2 * COUNT_FRACTION, bits=bits, name="rows")
    opened = await machine.opened(total, smudge_bits=COUNT_FRACTION)
    return abs(float(opened[0, 0]) - n) < 0.5


async def coefficients(
    machine: Machine, scales: Scales, own: Moments | None, limit: int
) -> tuple[Shared, Shared | None]:
    """Coefficients and intercept, in the columns' units, to be released."""
    d, wide, h = scales.columns, scales.columns + 1, scales.halvings
    products, means, _, factor = (None, None, None, None) if own is None else own
    P = C = machine.private(None, products, (wide, wide), FRACTION, 2)
    m = machine.private(None, means, (wide, 1), FRACTION, 1)
    if scales.intercept:
        square = await machine.product((m, machine.transpose(m)), fraction=FRACTION, bits=1, name="m m^T")
        C = machine.combine([(1.0, P), (-1.0, square)], bits=2)
    columns, target, first = slice(0, d), slice(d, wide), slice(0, 1)
    A = machine.combine([(2.0**-h, machine.part(C, columns, columns))], bits=1)
    w = await solved(machine, A, machine.part(C, columns, target), limit, factor)
    intercept = None
    if scales.intercept:
        across = machine.transpose(machine.part(m, columns, first))
        # No mean exceeds one.
        bits = w.bits + ceil(log2(d + 1) / 2)
        along = await machine.product((across, w), fraction=FRACTION, bits=bits, name="m w")
        mean = machine.part(m, target, first)
        total = machine.combine([(1.0, mean), (-(2.0**-h), along)], bits=bits)
        intercept = machine.smudged(total, smudge_bits=smudge(limit))
    w = machine.smudged(w, smudge_bits=smudge(limit)).times_power_of_two(-h)
    return w, intercept
