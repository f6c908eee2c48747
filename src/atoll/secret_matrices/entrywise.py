"""Secret numbers one by one: products of the entries of two columns, and v^(-1/2) of each entry.

The entries of a column stand at places of a polynomial that have no three-term progression, so that nothing
else falls on the product of an entry of one column with that of another (go/product/layout.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil, log2, prod
from typing import NamedTuple

import numpy as np

from atoll.secret_matrices.machine import Coefficient, Machine, Shared
from atoll.secret_matrices.polynomials import STEP_BITS, Basis, evaluate, schedule, times_m

ROOT_FRACTION = 120
"""Fractional bits of the iteration: its rounding, 2^39 times larger at the smallest variance, then stays
below what any opening resolves."""
ROOT_BITS = 23
"""No result is larger: 2^22.4 is the product of all polynomials at zero."""
LONG_ROOTS = "fast"
SHORT_ROOTS = ("narrower", "narrow")
"""Schedules for entries that are not so small, the shortest first: 13 and 18 products instead of 28."""
REACH = 20
"""No result of an entry that they bring to one, v >= 2^-39, is above 2^20."""

# 1 + e/2 + 3e^2/8 + 5e^3/16 with e = 1 - M: from 2^-22 to 2^-88.
_LAST = (Fraction(381, 256), Fraction(-299, 512), Fraction(27, 256), Fraction(-5, 512))


class Entries(Basis):
    """T_0 .. T_(h) of X = 2M - 1 for every entry M of a column."""

    def __init__(self, machine: Machine, M: Shared, fraction: int) -> None:
        zero = machine.combine([(0.0, M)], fraction=fraction, bits=0)
        self.one = machine.plus_public(zero, np.ones(M.shape))
        # A column at another scale cannot be summed with the ones.
        super().__init__(machine, machine.combine([(1.0, M)], fraction=fraction, bits=1), fraction)

    def sum(self, terms: Sequence[tuple[Coefficient, Shared]], constant: Coefficient, *, bits: int) -> Shared:
        """sum of coefficient times column, plus a constant in every entry."""
        return self.machine.combine([*terms, (constant, self.one)], bits=bits)

    async def multiply(self, left: Shared, rights: Sequence[Shared], *, bits: int) -> list[Shared]:
        """The entries of left times those of each of rights, in one round."""
        machine = self.machine
        pair = (left, machine.hstack(rights))
        made = await machine.product(
            pair, fraction=self.fraction, bits=bits, name="entries", entrywise=True, ahead=True
        )
        return [machine.part(made, slice(None), slice(i, i + 1)) for i in range(len(rights))]


class Roots(NamedTuple):
    """v^(-1/2) of every entry of a column, and v times its square: one, or less where v is too small."""

    roots: Shared
    squares: Shared


async def inverse_roots(machine: Machine, v: Shared, name: str = LONG_ROOTS) -> Roots:
    """v^(-1/2) of every entry of a column with entries in [0, 1].

    Exact to 2^-88 from v = 2^-39 on ("fast"; "default": 2^-57; "narrow": 2^-20; "narrower": 2^-11); below,
    v times the result squared falls short of one, down to zero. It never exceeds one, whatever v is.
    """
    M, W, grown = v, None, 0
    steps = root_steps(name)
    for step in steps:
        basis = Entries(machine, M, ROOT_FRACTION)
        A, MA = await evaluate(basis, [step, times_m(step)])
        # A < 2^5 while M A and W are at most one.
        out = await basis.multiply(A, [MA] if W is None else [MA, W], bits=STEP_BITS + 1)
        M, W = replace(out[0], bits=1), A if W is None else out[1]
        if step is not steps[-1]:
            grown += STEP_BITS
            W = machine.combine([(1.0, W.times_power_of_two(-STEP_BITS))], fraction=ROOT_FRACTION, bits=0)
    assert W is not None
    return Roots(replace(W.times_power_of_two(grown), bits=root_bits(name)), M)


def root_steps(name: str) -> tuple[tuple[Fraction, ...], ...]:
    """The polynomials, one after the other."""
    return (*schedule(name).steps, _LAST)


@cache
def root_bits(name: str) -> int:
    """log2 of what no result exceeds: the product of all polynomials at zero, where every one is largest."""
    at_zero = [sum(c * (-1) ** j for j, c in enumerate(step)) for step in root_steps(name)]
    return ceil(log2(prod(at_zero)))
