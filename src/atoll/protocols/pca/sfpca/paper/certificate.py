"""How a wrong result is noticed: one number, opened before anything is released.

A value outside its interval comes out wrong, and the program goes on with it. Whatever went wrong, the
components W must be orthonormal rows that the joint covariance C only stretches. So the providers multiply
once more, and everybody learns

    tau = sum_i |W_i C - l_i W_i|^2 / 4^a_i + sum_ij ((W W^T)_ij - d_ij)^2,    l_i = W_i C W_i^T,

where 2^a_i <= the simulated variance of component i, public. sqrt(tau) bounds, component by component, how
far l_i is from a true variance relative to 2^a_i, and the sine of W_i's angle to the eigenvectors of true
variances that are further from l_i than a gap g is at most sqrt(tau) 2^a_i / g. It rests on nothing that was
approximated: only on products, sums and the refreshes. What it cannot see are components that are
eigenvectors, but not of the largest variances: power iterations end in the largest unless the sketch
has nothing of them, and where variances are released, whoever has them checks that the rest could not
be larger than the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atoll.data.island import Matrix as Table
from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.paper.algorithm1 import Found, Own, Plan, times
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector
from atoll.secret_matrices.slots.products import dots, repeated, times_transpose


class Checked(NamedTuple):
    """Encrypted numbers about the components; each stands in every slot."""

    tau: Vector
    variances: Matrix
    W: Matrix


async def examined(m: Slots, plan: Plan, found: Found) -> Checked:
    """tau, and the components' variances."""
    h = plan.shape.columns
    W = await m.room(found.W, m.fresh_level - m.lowest)
    E = await m.room(await times(m, plan, found.factors, W, found.mean), 4)
    values = [dots(m, [e], w, h)[0] for e, w in zip(E, W, strict=True)]
    rest = [m.subtract(e, m.times(x, w)) for e, x, w in zip(E, values, W, strict=True)]
    rest = await m.room(rest, 4)
    wide = [m.scaled(r, 2.0**-a) for r, a in zip(rest, plan.variances, strict=False)]
    far = m.inner([(r, r) for r in wide])
    turned = times_transpose(m, W, W, h)
    unit = [repeated(-row, m.slots) for row in np.eye(len(W))]
    turned = await m.room([m.plus(x, row) for x, row in zip(turned, unit, strict=True)], 2)
    apart = m.inner([(x, x) for x in turned])
    tau = m.add(summed(m, far, h), summed(m, apart, len(W)))
    return Checked(tau, values, W)


def summed(m: Slots, x: Vector, length: int) -> Vector:
    """The sum of a row in every slot: rows are repeated with the next power of two as their period."""
    x, step = m.add(*x.parts()), 1
    while step < min(length, m.slots):
        x = m.add(x, m.rotate(x, step))
        step *= 2
    return x


def total_variance(plan: Plan, own: Own | None) -> list[Table] | None:
    """A provider's sum of squares: all of them, less the mean's own, are the total variance."""
    return None if own is None else [np.array([float((own.table**2).sum()) / plan.shape.n])]


def bound_of(tau: float) -> float:
    """Noise may leave tau below zero; what is far below it is no less wrong than what is far above."""
    return float(np.sqrt(abs(tau)))


def refuse_above(tolerance: float, tau: float) -> None:
    """End the run where the components do not hold."""
    bound = bound_of(tau)
    if not bound <= tolerance:  # NaN too
        raise CertificateRefused(
            f"the components hold to {bound:.2g} only, {tolerance:g} is asked for: nothing was released",
            hint="a value outside its interval (margin), too few iterations (p, w), or variances that differ "
            "by more than the ciphertexts' digits",
        )
