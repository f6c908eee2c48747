"""Secret numbers one by one: products of the entries of two columns, and v^(-1/2) of each entry.

Coefficient encoding multiplies matrices, so the entries of x and y are multiplied as the diagonal of
x y^T. The products beside the diagonal are refreshed too, and stay in everybody's shares; bounds of a
product therefore hold for every pair of entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np

from atoll.secret_matrices.machine import Coefficient, Job, Machine, Shared
from atoll.secret_matrices.polynomials import STEP_BITS, Basis, evaluate, schedule, times_m

_GROUP = 64
"""Entries of one polynomial: with more, what lies beside the diagonal outweighs what is needed."""
ROOT_FRACTION = 120
"""Fractional bits of the iteration: its rounding, 2^39 times larger at the smallest variance, then stays
below what any opening resolves."""
ROOT_BITS = 23
"""No result is larger: 2^22.4 is the product of all polynomials at zero."""

_STEPS = (
    *schedule("fast").steps,  # to 2^-22 for v in [2^-39, 1]
    # 1 + e/2 + 3e^2/8 + 5e^3/16 with e = 1 - M: from 2^-22 to 2^-88.
    (Fraction(381, 256), Fraction(-299, 512), Fraction(27, 256), Fraction(-5, 512)),
)


def groups(size: int, largest: int) -> list[slice]:
    """Equal runs of at most ``largest`` indices."""
    step = ceil(size / ceil(size / largest))
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


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
        machine, cuts = self.machine, groups(left.shape[0], _GROUP)
        everything = slice(None)
        jobs = [
            Job(
                (
                    (
                        machine.part(left, cut, everything),
                        machine.transpose(machine.vstack([machine.part(y, cut, everything) for y in rights])),
                    ),
                ),
                fraction=self.fraction,
                bits=bits,
                name="entries",
            )
            for cut in cuts
        ]
        made = await machine.products(jobs)
        return [machine.vstack([_diagonal(machine, x, i) for x in made]) for i in range(len(rights))]


def _diagonal(machine: Machine, x: Shared, index: int) -> Shared:
    """The diagonal of one of the square blocks side by side in x."""
    size = x.shape[0]
    return machine.diagonal(machine.part(x, slice(None), slice(index * size, (index + 1) * size)))


async def inverse_roots(machine: Machine, v: Shared) -> Shared:
    """v^(-1/2) of every entry of a column with entries in [0, 1].

    Exact to 2^-88 from v = 2^-39 on; below, v times the result squared falls short of one, down to zero.
    It never exceeds one, whatever v is.
    """
    M, W, grown = v, None, 0
    for step in _STEPS[:-1]:
        basis = Entries(machine, M, ROOT_FRACTION)
        A, MA = await evaluate(basis, [step, times_m(step)])
        # A < 2^5 while M A and W are at most one, for whichever entries.
        out = await basis.multiply(A, [MA] if W is None else [MA, W], bits=STEP_BITS + 1)
        M, W = replace(out[0], bits=1), A if W is None else out[1]
        grown += STEP_BITS
        W = machine.combine([(1.0, W.times_power_of_two(-STEP_BITS))], fraction=ROOT_FRACTION, bits=0)
    assert W is not None
    basis = Entries(machine, M, ROOT_FRACTION)
    (A,) = await evaluate(basis, [_STEPS[-1]])
    (root,) = await basis.multiply(A, [W], bits=2)
    return replace(root.times_power_of_two(grown), bits=ROOT_BITS)
