"""The strict recipe: power iterations on an encrypted sketch, orthonormalised under encryption.

Opened: total variance, the rho Ritz values (by one rotation that nobody knows) and, to whom the study
names, components and offset. rho = k + 24 whatever the data.
"""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np

from atoll.protocols.pca.sfpca.recipes.certificate import PublicTerms, certify
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES, Covariance, Policy
from atoll.protocols.pca.sfpca.recipes.direct import (
    ROTATION_FRACTION,
    Found,
    Inputs,
    at_fraction,
    decomposed,
    joint_rotation,
    smudge_bits,
    with_norm,
)
from atoll.protocols.pca.sfpca.recipes.rows import covariance
from atoll.protocols.pca.sfpca.recipes.vertical import column_covariance
from atoll.secret_matrices.machine import Floats, Job, Machine, Shared
from atoll.secret_matrices.polynomials import STEP_BITS, Basis, evaluate, schedule, times_m
from atoll.secret_matrices.rotations import gaussians

OVERSAMPLING = 24
SMALL_FRACTION = 100
"""Fractional bits of the small matrices while the sketch is orthonormalised."""
_RESULT_FRACTION = 60


async def strict(machine: Machine, inputs: Inputs, k: int, policy: Policy = POLICIES["default"]) -> Found:
    """Components from the top of a Krylov sketch; refused unless the certificate holds."""
    rho = min(k + OVERSAMPLING, inputs.columns)
    C = await joint_covariance(machine, inputs, policy)  # Alg 1, l.2
    P = start(machine, inputs, policy, rho)  # Alg 1, l.3
    for _ in range(policy.iterations):
        P = await C.times(machine, P)  # Alg 1, l.4
    Q = await orthonormalised(machine, P, policy)
    Y = await C.times(machine, Q)
    H = await joint_rotation(machine, inputs, rho)
    small = await rotated(machine, H, await grams(machine, Q, Y))  # Alg 1, l.5
    opened = await machine.opened_symmetric(small.Z, smudge_bits=smudge_bits(machine, rho))
    theta, U = await decomposed(machine, opened)  # Alg 1, l.6
    public = PublicTerms(
        inputs.columns,
        machine.n_providers,
        C.digits,
        policy.iterations,
        policy.schedule,
        C.row_error,
    )
    certificate = await certify(machine, small, theta, U, k, public)
    certificate.check()
    V = await leading(machine, H, Y, theta[:k], U[:, :k])  # Alg 1, l.7
    W = await orthonormal_rows(machine, V)
    values = np.maximum(theta, 0.0) * C.scale
    if C.standardised is not None:
        return Found(W, None, inputs.padding, values, C.total, certificate, C.standardised)
    Wu = await machine.product(
        (W, C.mean(machine)),
        fraction=_RESULT_FRACTION,
        bits=1 + ceil(log2(inputs.columns) / 2),
        name="offset",
    )
    return Found(W, Wu, 1.0, values, C.total, certificate)


async def joint_covariance(machine: Machine, inputs: Inputs, policy: Policy) -> Covariance:
    """The joint covariance, in the form that suits how islands hold the table."""
    of_columns = inputs.split is not None
    return await (column_covariance if of_columns else covariance)(machine, inputs, policy)


def start(machine: Machine, inputs: Inputs, policy: Policy, rho: int) -> Shared:
    """P0: a sum of everybody's secret Gaussians, N(0, 1) / (sqrt(rho) + 8)."""
    shape, own = (rho, inputs.columns), None
    if inputs.rotation_seed is not None:
        parts = len(inputs.providers) / len(inputs.mine)
        normal = gaussians(inputs.rotation_seed, rho * inputs.columns, "sketch").reshape(shape)
        scaled = normal / ((sqrt(rho) + 8) * sqrt(parts))
        own = np.rint(scaled * 2.0**policy.sketch_fraction).astype(np.int64)
    return machine.private(None, own, shape, policy.sketch_fraction, 1)


async def gram(machine: Machine, left: Shared, right: Shared) -> Shared:
    """left right^T with all its digits."""
    norm = ceil(log2(right.shape[0]) / 2) + 1
    transposed = with_norm(machine.transpose(right), norm)
    return await machine.product(
        (left, transposed), fraction=left.fraction + right.fraction, bits=1, name="Gram matrix"
    )


async def orthonormalised(machine: Machine, P: Shared, policy: Policy) -> Shared:
    """Q = M^(-1/2) P with M = P P^T, by the policy's schedule."""
    steps = schedule(policy.schedule).steps
    M = at_fraction(machine, await gram(machine, P, P), SMALL_FRACTION, bits=1)
    W: Shared | None = None
    grown = 0
    for step in steps[:-1]:
        A, MA = await evaluate(Basis(machine, M, SMALL_FRACTION), [step, times_m(step)])
        rights = [MA] if W is None else [MA, W]
        size = MA.shape[1]
        job = Job(((A, machine.hstack(rights)),), SMALL_FRACTION, STEP_BITS, "M and W")
        (out,) = await machine.products([job])
        M = machine.part(out, slice(None), slice(0, size))
        W = A if W is None else machine.part(out, slice(None), slice(size, 2 * size))
        # W / 2^grown is kept below one, so that its bound does not depend on the data.
        grown += STEP_BITS
        W = at_fraction(machine, W.times_power_of_two(-STEP_BITS), SMALL_FRACTION, bits=0)
    assert W is not None
    wide = P.fraction + 10
    WP = await machine.product(
        (W.times_power_of_two(grown), with_norm(P, ceil(log2(P.shape[0]) / 2) + 1)),
        fraction=wide,
        bits=3,
        name="W P",
    )
    (A,) = await evaluate(Basis(machine, M, SMALL_FRACTION), [steps[-1]])
    return await machine.product((A, WP), fraction=P.fraction, bits=1, name="Q")


class Small(NamedTuple):
    """The sketch's small matrices in the secret basis: Q C Q^T, Q C^2 Q^T and Q Q^T, rotated."""

    Z: Shared
    S: Shared
    N: Shared


async def grams(machine: Machine, Q: Shared, Y: Shared) -> Small:
    """Y Q^T, Y Y^T and Q Q^T in one product."""
    rho = Q.shape[0]
    both = await gram(machine, machine.vstack([Q, Y]), machine.vstack([Q, Y]))
    first, second = slice(0, rho), slice(rho, 2 * rho)
    blocks = [
        machine.part(both, rows, cols) for rows, cols in ((second, first), (second, second), (first, first))
    ]
    return Small(*(at_fraction(machine, block, SMALL_FRACTION, bits=1) for block in blocks))


async def rotated(machine: Machine, H: Shared, small: Small) -> Small:
    """H X H^T for each X."""
    rho = H.shape[0]
    left = await machine.product(
        (H, machine.hstack(list(small))), fraction=ROTATION_FRACTION, bits=1, name="H X"
    )
    stacked = machine.vstack(
        [machine.part(left, slice(None), slice(i * rho, (i + 1) * rho)) for i in range(3)]
    )
    out = await machine.product(
        (stacked, machine.transpose(H)), fraction=ROTATION_FRACTION, bits=1, name="H X H^T"
    )
    return Small(*(machine.part(out, slice(i * rho, (i + 1) * rho), slice(None)) for i in range(3)))


async def leading(machine: Machine, H: Shared, Y: Shared, theta: Floats, U: Floats) -> Shared:
    """U_k^T H Y / theta: one power step beyond the Ritz vectors, nearly orthonormal once certified."""
    bits = 1 + max(0, ceil(-log2(theta[-1])))
    top = machine.times_public(U.T / theta[:, None], H, fraction=SMALL_FRACTION - bits, bits=bits)
    return await machine.product((top, with_norm(Y, 1)), fraction=_RESULT_FRACTION, bits=1, name="components")


async def orthonormal_rows(machine: Machine, V: Shared) -> Shared:
    """Ordered Gram-Schmidt by two Newton steps: the certificate bounds what they start from."""
    k = V.shape[0]
    order = np.tril(np.ones((k, k)), -1) + np.eye(k) / 2
    for _ in range(2):
        right = with_norm(machine.transpose(V), ceil(log2(k) / 2) + 1)
        E = await machine.product((V, right), fraction=_RESULT_FRACTION, bits=1, name="V V^T")
        L = machine.weighted(machine.plus_public(E, -np.eye(k)), -order, fraction=_RESULT_FRACTION, bits=1)
        LV = await machine.product(
            (L, with_norm(V, ceil(log2(k) / 2) + 1)),
            fraction=_RESULT_FRACTION,
            bits=1,
            name="L V",
        )
        V = machine.combine([(1.0, V), (1.0, LV)], bits=1)
    return V
