"""The covariance that the strict recipe multiplies its sketch with, in the forms in which parties hold it.

A form knows how to multiply an encrypted matrix by C, scaled to a trace just below one, and what the
mean is; nothing else of the recipe depends on how the data are held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import ceil, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from atoll.errors import ParameterError
from atoll.protocols.pca.sfpca.recipes.correlation import Standardised
from atoll.protocols.pca.sfpca.recipes.direct import (
    DATA_FRACTION,
    Inputs,
    check_variance,
)
from atoll.protocols.pca.sfpca.recipes.moments import check_moments
from atoll.secret_matrices.machine import Cut, Job, Machine, Shared
from atoll.secret_matrices.widths import cut_for

_TRACE_FRACTION = 96
MEAN_DIGIT = (DATA_FRACTION + 10) // 2
"""Bits of a digit of the mean: two of them are more than a double has."""
_WORD_BITS = 62
_DOUBLE_BITS = 51
"""Precision that sums of products in doubles have, with two to spare."""
HEADROOM = 1 + 2.0**-6
"""The trace is taken for a little more, so that rounded summands still add up to less than one."""


class Policy(NamedTuple):
    """The precision and the number of iterations of a strict run; public and fixed in advance."""

    iterations: int
    sketch_fraction: int
    gram_fraction: int
    schedule: str
    opens_sketch: bool = False
    """Whether the sketch is orthonormalised by the spectrum of its Gram matrix, which is opened for it."""
    ahead: bool = False
    """Whether second halves of every product may travel ahead (see :class:`Job`), not of polynomials only."""


OPENED_SKETCH = "opened-sketch"
"""The policy that opens more than Ritz values; never taken unless a study names it."""
POLICIES = {
    "fast": Policy(2, 40, 24, "fast"),
    "default": Policy(3, 40, 24, "default"),
    "accurate": Policy(4, 50, 28, "accurate"),
    OPENED_SKETCH: Policy(3, 40, 24, OPENED_SKETCH, opens_sketch=True, ahead=True),
}


@dataclass(frozen=True)
class Covariance(ABC):
    """C over ``scale``; ``total`` is its trace (divisor n, in units of the data's range)."""

    inputs: Inputs
    policy: Policy
    total: float
    standardised: Standardised | None = field(default=None, kw_only=True)

    @property
    def scale(self) -> float:
        """What C is divided by."""
        return self.total * HEADROOM

    @property
    def digits(self) -> int:
        """Where Gram matrices are rounded: how many bits after the point are right."""
        return self.policy.gram_fraction

    @property
    def row_error(self) -> float:
        """Where rows are rounded rather than Gram matrices: the norm of what that may have changed."""
        return 0.0

    @abstractmethod
    async def times(self, machine: Machine, P: Shared) -> Shared:
        """P C / scale, at the policy's scale, every entry below two."""

    def mean(self, machine: Machine) -> Shared:
        """The mean of every column in two digits, the higher one first: a column of each."""
        own, m, n = self.inputs.moments, self.inputs.columns, self.inputs.n
        values: Any = None
        if own is not None:
            whole = np.array([(int(v) << 10) // n for v in own.u], dtype=object)
            high = (whole + (1 << (MEAN_DIGIT - 1))) >> MEAN_DIGIT
            values = np.stack([high, whole - (high << MEAN_DIGIT)], axis=1)
        # Lower digits of all parties add up.
        bits = max(1, ceil(log2(machine.n_providers)))
        return machine.private(None, values, (m, 2), MEAN_DIGIT, bits)


async def covariance(machine: Machine, inputs: Inputs, policy: Policy) -> Covariance:
    """From every party's Gram matrix; opens the total variance."""
    check_moments(inputs.moments, DATA_FRACTION)
    total = await total_variance(machine, inputs, policy.ahead)
    check_variance(total)
    return gram_covariance(machine, inputs, policy, total)


async def total_variance(machine: Machine, inputs: Inputs, ahead: bool) -> float:
    """tr C of the rows' covariance with divisor n, in units of the data's range; opened."""
    m, e, own = inputs.columns, ceil(log2(inputs.n)), inputs.moments
    f = DATA_FRACTION + e
    width = ceil(log2(m))
    row = machine.private(None, None if own is None else own.u.reshape(1, m), (1, m), f, 1)
    column = machine.private(None, None if own is None else -own.u.reshape(m, 1), (m, 1), f, 1)
    second = None if own is None else np.array([[inputs.n * own.squares]], dtype=object)
    squares = machine.private(None, second, (1, 1), 2 * f, 1 + width)
    options: dict[str, Any] = {"fraction": 2 * f, "bits": 1 + width, "name": "total variance"}
    if ahead:  # what is only added would not travel
        first = inputs.providers[0]
        one = machine.private(first, [[1]] if first in inputs.mine else None, (1, 1), 0, 1)
        trace = await machine.product((row, column), (squares, one), ahead=True, **options)
    else:
        trace = await machine.product((row, column), plain=squares, **options)
    opened = await machine.opened(trace, smudge_bits=2 * f - _TRACE_FRACTION)
    return float(opened[0, 0]) * 4.0**e / inputs.n**2


@dataclass(frozen=True)
class GramCovariance(Covariance):
    """C = sum of G_i - u u^T, where every party has formed its own G_i (the paper's Precomp)."""

    G: Shared
    u_columns: Shared
    u_rows: Shared
    mean_bits: int
    entry_bits: int
    low_bits: int
    """The lower digit of a mean is worth 2^-low_bits of the higher one."""

    @property
    def digits(self) -> int:
        """Of a matrix whose entries are large beside their deviations, doubles keep fewer than asked for."""
        return min(self.policy.gram_fraction, _DOUBLE_BITS - self.entry_bits)

    async def times(self, machine: Machine, P: Shared) -> Shared:
        """P G - (P u) u^T; only the difference is ever refreshed, for P G alone has no bound."""
        cut, ahead = self._cut(machine, P), self.policy.ahead
        same = {"fraction": self.policy.sketch_fraction, "cut": cut, "ahead": ahead}
        bits, below = self.mean_bits + 1, 2.0**-self.low_bits
        Pu = await machine.product((P, self.u_columns), bits=bits, name="P u", **same)
        high, low = machine.part(Pu, slice(None), slice(0, 1)), machine.part(Pu, slice(None), slice(1, 2))
        b = machine.combine([(-1.0, high), (-below, low)], bits=bits)
        pair = machine.hstack([b, machine.combine([(below, b)], bits=bits)])
        return await machine.product((P, self.G), (pair, self.u_rows), bits=1, name="P C", **same)

    def _cut(self, machine: Machine, P: Shared) -> Cut:
        """How the sketch is encrypted once for both products."""
        uses = self.policy.iterations + 1
        job = Job(((P, self.G),), self.policy.sketch_fraction, self.mean_bits + 1, "P C", right_uses=uses)
        return cut_for(machine, job, spare=2)  # for the noise of the second term


def gram_covariance(machine: Machine, inputs: Inputs, policy: Policy, total: float) -> GramCovariance:
    """Every party's part of C, rounded."""
    m, n, own, f = inputs.columns, inputs.n, inputs.moments, policy.gram_fraction
    scale = total * HEADROOM
    mean_norm = sqrt(m / scale)  # columns are below one in magnitude
    mean_bits = max(0, ceil(log2(mean_norm)))
    entry_bits = max(1, ceil(log2(1 + 1 / scale)))
    if f + entry_bits >= _WORD_BITS:
        raise ParameterError(
            "the rows differ too little, compared with their range, to compute their covariance",
            hint="give the columns' bounds as (low, high), close to the values",
        )
    gram: Any = None
    both: Any = None
    low_bits = f - _fewer_digits(m, machine.n_providers, mean_bits)
    if own is not None:
        assert own.G is not None, "the moments were taken without a Gram matrix"
        exact = own.G.astype(float) * 2.0 ** (-2 * DATA_FRACTION) / (n * scale)
        gram = np.rint(exact * 2.0**f).astype(np.int64)
        mean = own.u.astype(float) * 2.0**-DATA_FRACTION / (n * sqrt(scale))
        high = np.rint(mean * 2.0**f)
        low = np.rint((mean * 2.0**f - high) * 2.0**low_bits)
        both = np.stack([high, low]).astype(np.int64)
    # The rounding of a party may take a part of C beyond its bound by one unit.
    G = machine.private(None, gram, (m, m), f, entry_bits + 1, max(1, ceil(log2(1 + mean_norm**2))))
    rows = machine.private(None, both, (2, m), f, max(0, ceil(-log2(scale) / 2)) + 1, mean_bits + 1)
    transposed = None if both is None else np.ascontiguousarray(both.T)
    columns = machine.private(None, transposed, (m, 2), f, rows.bits, mean_bits + 1)
    return GramCovariance(inputs, policy, total, G, columns, rows, mean_bits, entry_bits, low_bits)


def _fewer_digits(m: int, n_providers: int, mean_bits: int) -> int:
    """What the lower digits of means go without, so that all parties' together are no longer than a mean.

    A party's is at most half a unit of the higher digit in each column, and nothing makes them cancel.
    """
    return max(0, ceil(log2(m) / 2 + log2(n_providers)) - 1 - mean_bits)
