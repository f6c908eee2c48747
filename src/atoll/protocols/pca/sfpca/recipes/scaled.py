"""The covariance of standardised columns, C = D S D: the correlation matrix is never formed.

S = G - u u^T is everybody's Gram matrices, added up, without the mean; D is secret (:mod:`correlation`), here
over the root of C's scale, so that the trace of C is just below one.

    X = D P^T, b = P w          one round: every column of the sketch times its own secret number; w = D u
    Y = X^T G - b u^T           one round
    P C = (D Y^T)^T             one round

X and Y are refreshed, G never meets the sketch without its mean.

Bounds. C = K K^T with K = D S^(1/2), whose Frobenius norm is at most one. So |P K| is at most one as |P C|
is: for the first sketch by the same tail of Gaussians, for later ones because |C| is below one. An entry of Y
is a row of P K times a column of S^(1/2), no longer than one. An entry of X is one of P times one of D.

Digits. Errors meet D at most twice, and D is at most 2^reach where a column counts as varying (below that the
opened trace is not whole and the run has ended). So G and u have 2 reach digits more than Gram matrices have;
X, b and Y, which meet one D yet, reach more than the sketch. Only b u^T takes the mean off: what rounding
leaves in X meets G itself, in the worst case, every column at the end of its range, sqrt(m)/4 units of P.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, log2, sqrt
from typing import Any

from atoll.protocols.pca.sfpca.recipes.correlation import standardised
from atoll.protocols.pca.sfpca.recipes.covariance import HEADROOM, Covariance, Policy
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Inputs, check_variance, column_sums
from atoll.protocols.pca.sfpca.recipes.moments import check_moments
from atoll.secret_matrices.entrywise import REACH, ROOT_BITS
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import cut_for


@dataclass(frozen=True)
class ScaledCovariance(Covariance):
    """C = D S D, of which everybody has a Gram matrix and column sums, and nobody D."""

    D: Shared
    """A column."""
    G: Shared
    u_row: Shared
    w: Shared
    """D u, a row."""
    reach: int
    """No entry of D that counts exceeds 2^reach."""

    async def times(self, machine: Machine, P: Shared) -> Shared:
        """P C: the mean is taken off before anything is refreshed, for P D G alone has no bound."""
        across, fraction, longest = machine.transpose(P), P.fraction + self.reach + 2, P.bits + self.D.bits
        ahead = self.policy.ahead
        scaling = Job(((self.D, across),), fraction, longest, "P D", entrywise=True, ahead=ahead)
        cut = cut_for(machine, scaling)  # D is encrypted once for both products of all iterations
        X, b = await machine.products(
            [
                replace(scaling, cut=cut),
                Job(((self.w, across),), fraction, longest + ceil(log2(P.shape[1])), "P D u", ahead=ahead),
            ]
        )
        minus_b = machine.combine([(-1.0, machine.transpose(b))], bits=b.bits)
        uses = self.policy.iterations + 1
        Y = await machine.product(
            (machine.transpose(X), self.G),
            (minus_b, self.u_row),
            fraction=P.fraction + self.reach + 1,
            bits=1,
            name="P D S",
            right_uses=uses,
            ahead=ahead,
        )
        last = replace(scaling, terms=((self.D, machine.transpose(Y)),), fraction=P.fraction, bits=1, cut=cut)
        (C,) = await machine.products([replace(last, name="P C")])
        return machine.transpose(C)


async def scaled_covariance(machine: Machine, inputs: Inputs, policy: Policy) -> ScaledCovariance:
    """From every party's Gram matrix; opens how many columns vary."""
    check_moments(inputs.moments, DATA_FRACTION)
    u = column_sums(machine, inputs)
    table = await standardised(machine, await _variances(machine, inputs, u), u, inputs.roots)
    check_variance(table.varying)
    scale = table.varying * HEADROOM
    less = floor(log2(table.varying) / 2)
    bits, reach = max(0, ROOT_BITS - less), max(0, REACH - less)
    D = machine.combine([(1 / sqrt(scale), table.D)], fraction=policy.sketch_fraction + 10, bits=bits)
    # One digit more makes up for the column sums, which are rounded too.
    digits = policy.gram_fraction + 1 + 2 * reach
    G, rounded = _parts(machine, inputs, digits)
    w = await machine.product(
        (D, rounded), fraction=policy.sketch_fraction + reach + 6, bits=bits + 1, name="D u", entrywise=True
    )
    return ScaledCovariance(
        inputs,
        policy,
        table.varying,
        D,
        G,
        machine.transpose(rounded),
        machine.transpose(w),
        reach,
        standardised=table,
    )


async def _variances(machine: Machine, inputs: Inputs, u: Shared) -> Shared:
    """The diagonal of S, exactly."""
    m, own = inputs.columns, inputs.moments
    squares = None if own is None else (inputs.n * own.G.diagonal()).reshape(m, 1)
    f = u.fraction
    plain = machine.private(None, squares, (m, 1), 2 * f, 1)
    minus_u = machine.private(None, None if own is None else -own.u.reshape(m, 1), (m, 1), f, 1)
    return await machine.product(
        (u, minus_u), plain=plain, fraction=2 * f, bits=1, name="variances", entrywise=True, ahead=True
    )


def _parts(machine: Machine, inputs: Inputs, digits: int) -> tuple[Shared, Shared]:
    """Everybody's G and column sums, rounded to so many digits and one."""
    m, e, own = inputs.columns, ceil(log2(inputs.n)), inputs.moments
    gram: Any = None
    sums: Any = None
    if own is not None:
        gram = _rounded(inputs.n * own.G, 2 * (DATA_FRACTION + e) - digits)
        sums = _rounded(own.u.reshape(m, 1), DATA_FRACTION + e - digits - 1)
    G = machine.private(None, gram, (m, m), digits, 1)
    return G, machine.private(None, sums, (m, 1), digits + 1, 1)


def _rounded(values: Any, drop: int) -> Any:
    """Integers with fewer digits, or with zeros behind them."""
    return values << -drop if drop <= 0 else (values + (1 << (drop - 1))) >> drop
