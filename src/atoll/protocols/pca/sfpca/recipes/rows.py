"""The covariance where islands have fewer rows than columns: P C = (P A^T) A, and no Gram matrix (Seq).

A are everybody's rows on a public grid; A_i are those of island i, which it alone multiplies with.

    T_i = P A_i^T             one product for each island, all in one round
    P C = sum of T_i A_i - (T 1 / n) u^T,     u = A^T 1, the column sums

The second line centres the rows: T 1 is a sum over the columns of T, local on shares, and the column sums
of the rounded rows are exact integers. So means cancel exactly, however large, and the rounding of T meets
centred rows only. The paper centres T instead, by one product more.

Bounds. Rows are divided by a power of two, 2^t >= sqrt(n scale), so that a table that is on a binary grid
stays exact; T is multiplied by 4^t / (n scale), which is below 4. An entry of T is at most as large as a row
of P times a row of A, which is sqrt(m) 2^-t: rows of the sketch are no longer than 2 after one product, and
before it an entry is a Gaussian of a standard deviation below a ninth of it. The rounded rows have a trace
below one, because the scale leaves more room than rounding can take (checked).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.errors import ParameterError
from atoll.protocols.pca.sfpca.recipes import covariance as gram
from atoll.protocols.pca.sfpca.recipes.columns import column_totals
from atoll.protocols.pca.sfpca.recipes.covariance import Covariance, Policy, total_variance
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Inputs, check_variance
from atoll.protocols.pca.sfpca.recipes.scaled import scaled_covariance
from atoll.secret_matrices.coefficients import COEFFICIENT_BITS
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import effort, with_one_left

_EXTRA_BITS = 4
"""Entries of rows keep so many bits more than entries of a Gram matrix: they are smaller."""
_ROOM = 2.0**-8
"""What rounding may add to the norm of the rows, which the scale leaves free."""


@dataclass(frozen=True)
class RowCovariance(Covariance):
    """C = A^T A - u u^T / n, of which every island has its own rows."""

    straight: tuple[Shared, ...]
    """A_i: rows x columns."""
    transposed: tuple[Shared, ...]
    """A_i^T."""
    sums: Shared
    """u in two digits, the higher one first."""
    halvings: int
    """t: rows are divided by 2^t."""

    @property
    def row_error(self) -> float:
        n, m = self.inputs.n, self.inputs.columns
        return sqrt(self._factor * n * m) * 2.0 ** -(self.straight[0].fraction + 1)

    @property
    def _factor(self) -> float:
        return 4.0**self.halvings / (self.inputs.n * self.scale)

    async def times(self, machine: Machine, P: Shared) -> Shared:
        """(P A^T) A without the means."""
        F, uses, ahead = self.policy.sketch_fraction, self.policy.iterations + 1, self.policy.ahead
        bits = ceil(log2(P.shape[1]) / 2) - self.halvings + 1
        jobs = [Job(((P, y),), F, bits, "P A^T", right_uses=uses, ahead=ahead) for y in self.transposed]
        made = await machine.products(with_one_left(machine, jobs))
        machine.forget(P)  # its ciphertext is large, and was needed once
        T, minus_means = self._centred(machine, made, bits + 2)
        terms = (*zip(T, self.straight, strict=True), (minus_means, self.sums))
        job = Job(terms, F, 1, "P C", right_uses=uses, ahead=ahead)
        return (await machine.products([job]))[0]

    def _centred(self, machine: Machine, made: Sequence[Shared], bits: int) -> tuple[list[Shared], Shared]:
        """The factors of rows and of both digits of the column sums, which are n T / 2^e and -T 1 / 2^e.

        Neither is rounded: what a factor of rows has of the mean is exactly what the other takes away.
        """
        n, m, f = self.inputs.n, self.inputs.columns, self.straight[0].fraction
        e = ceil(log2(n))
        # Enough digits for n / 2^e; and the simulation rounds all the same, before sums of this length.
        longest = ceil(log2(n) + log2(m) / 2) - self.halvings
        fraction = made[0].fraction + min(max(e, longest) + 1, COEFFICIENT_BITS - 1)
        T = [machine.combine([(self._factor * 2.0**e / n, x)], bits=bits + 1) for x in made]
        factors = [machine.combine([(n / 2.0**e, x)], fraction=fraction, bits=bits) for x in T]
        weights = np.full((1, n), -(2.0**-e))
        across = machine.transpose(machine.hstack(T))
        low = machine.transpose(machine.times_public(weights, across, fraction=fraction, bits=bits + 1))
        high = low.times_power_of_two(_digit_bits(n, f - self.halvings))
        high = machine.combine([(1.0, high)], fraction=fraction, bits=high.bits)
        return factors, machine.hstack([high, low])


async def covariance(machine: Machine, inputs: Inputs, policy: Policy) -> Covariance:
    """The form that suits the numbers of rows; opens the total variance."""
    if inputs.standardize:
        return await scaled_covariance(machine, inputs, policy)
    if not prefers_rows(inputs.sizes, inputs.columns):
        return await gram.covariance(machine, inputs, policy)
    total = await total_variance(machine, inputs, policy.ahead)
    check_variance(total)
    return row_covariance(machine, inputs, policy, total)


def prefers_rows(sizes: Sequence[int], m: int) -> bool:
    """Whether multiplying with rows is less work than with Gram matrices; public, from public sizes."""
    if not sizes or m < 2 * max(sizes):
        return False
    rho, uses = 26, 4  # of two components and the default policy
    with_rows = effort(rho, (m,), tuple(sizes), uses) + effort(rho, tuple(sizes), (m,), uses)
    return with_rows < effort(rho, (m,), (m,), uses)


def row_covariance(machine: Machine, inputs: Inputs, policy: Policy, total: float) -> RowCovariance:
    """Everybody's rows on the grid of the policy, and their column sums."""
    n, m = inputs.n, inputs.columns
    t = ceil(log2(n * total * gram.HEADROOM) / 2)
    f = min(policy.gram_fraction + _EXTRA_BITS, DATA_FRACTION + t)
    own = None
    if inputs.moments is not None:
        assert inputs.moments.rows is not None, "the moments were taken without their rows"
        own = inputs.moments.rows.on(f - t)
    straight, transposed, start = [], [], 0
    for owner, count in zip(inputs.providers, inputs.sizes, strict=True):
        rows: Any = None
        if own is not None and owner in inputs.mine:
            rows = own[start : start + count]
            start += count
        norm = ceil(log2(count * m) / 2) - t
        straight.append(machine.private(owner, rows, (count, m), f, 1 - t, norm))
        across = None if rows is None else rows.T
        transposed.append(machine.private(owner, across, (m, count), f, 1 - t, norm))
    sums = _column_sums(machine, inputs, own, f, t)
    form = RowCovariance(inputs, policy, total, tuple(straight), tuple(transposed), sums, t)
    if form.row_error > _ROOM:
        raise ParameterError(
            "the rows differ too little, compared with their range, to compute their covariance",
            hint="give the columns' bounds as (low, high), close to the values",
        )
    return form


def _column_sums(
    machine: Machine, inputs: Inputs, own: npt.NDArray[np.int64] | None, f: int, t: int
) -> Shared:
    m, digit = inputs.columns, _digit_bits(inputs.n, f - t)
    both = None
    if own is not None:
        sums = np.array(column_totals(own), dtype=object)  # which a word may not hold, but half of their bits
        high = (sums + (1 << (digit - 1))) >> digit
        both = np.stack([high, sums - (high << digit)]).astype(np.int64)
    # Lower digits of many parties add up; the higher ones of all are those of n rows.
    higher = f - t + ceil(log2(inputs.n)) - digit
    bits = max(higher, digit + ceil(log2(machine.n_providers))) + 1 - f
    return machine.private(None, both, (2, m), f, bits)


def _digit_bits(n: int, entry_bits: int) -> int:
    """Half of the bits of a column sum of n entries."""
    return max(1, ceil((entry_bits + log2(n)) / 2))
