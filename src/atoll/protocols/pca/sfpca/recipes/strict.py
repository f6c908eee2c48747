"""The strict recipe: power iterations on an encrypted sketch, orthonormalised under encryption.

Opened: total variance, the rho Ritz values (by one rotation that nobody knows) and, to whom the study
names, components and offset. rho = k + 24 whatever the data. The policy "opened-sketch" also opens the
eigenvalues of the sketch's Gram matrix, by a rotation of their own, and sends second halves of more products
ahead: it takes three fifths of the rounds.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from atoll.errors import MessageError
from atoll.protocols.pca.sfpca.recipes.ahead import in_terms, travelling
from atoll.protocols.pca.sfpca.recipes.certificate import PublicTerms, weighed
from atoll.protocols.pca.sfpca.recipes.covariance import MEAN_DIGIT, POLICIES, Covariance, Policy
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
from atoll.secret_matrices.coefficients import COEFFICIENT_BITS, as_objects, public_integers
from atoll.secret_matrices.machine import Floats, Job, Machine, Rounds, Shared
from atoll.secret_matrices.polynomials import STEP_BITS, Basis, evaluate, schedule, times_m
from atoll.secret_matrices.rotations import gaussians
from atoll.secret_matrices.widths import with_one_left

OVERSAMPLING = 24
SMALL_FRACTION = 100
"""Fractional bits of the small matrices while the sketch is orthonormalised."""
_RESULT_FRACTION = 60
_STRETCH_BITS = 26
"""Noise in what is opened of a sketch is never below 2^-51."""
_STEP_FRACTION = 80
"""Of k x k matrices while the components are orthonormalised."""


async def strict(machine: Machine, inputs: Inputs, k: int, policy: Policy = POLICIES["default"]) -> Found:
    """Components from the top of a Krylov sketch; refused unless the certificate holds."""
    rho = min(k + OVERSAMPLING, inputs.columns)
    rotations = machine.beside(joint_rotation(machine, inputs, rho, ahead=policy.ahead))
    more = None
    if policy.opens_sketch:
        more = machine.beside(joint_rotation(machine, inputs, rho, "sketch", ahead=policy.ahead))
    C = await joint_covariance(machine, inputs, policy)  # Alg 1, l.2
    P = start(machine, inputs, policy, rho)  # Alg 1, l.3
    for _ in range(policy.iterations):
        P = await C.times(machine, P)  # Alg 1, l.4
    if more is None:
        Q = await orthonormalised(machine, P, policy)
    else:
        Q = await orthonormalised_in_the_open(machine, P, policy, await machine.finished(more))
    machine.forget(P)  # from here on, what was made of P and Q for products is only in the way
    Y = await C.times(machine, Q)
    machine.forget(Q)
    H = await machine.finished(rotations)
    plain, Yu = await grams(machine, Q, Y, None if C.standardised else C.mean(machine), policy.ahead)
    small = await rotated(machine, H, plain, policy.ahead)  # Alg 1, l.5
    opened = await machine.opened_symmetric(small.Z, smudge_bits=smudge_bits(machine, rho))
    theta, U = await decomposed(machine, opened)  # Alg 1, l.6
    public = PublicTerms(
        inputs.columns,
        machine.n_providers,
        C.digits,
        policy.iterations,
        _reach(machine, policy, rho),
        C.row_error,
    )
    errors = await weighed(machine, small, theta, U, k, public)
    top = Top(machine, small.S, theta[:k], U[:, :k], policy.ahead)
    jobs = [errors.job, top.step_job(), *top.jobs(H, Y, Yu)]
    tau, LN, *parts = await machine.products(travelling(jobs, policy.ahead))
    certificate = await errors.opened(machine, tau)
    certificate.check()
    V = await top.orthonormal(machine.hstack(parts), LN)  # Alg 1, l.7
    W = replace(machine.part(V, slice(None), slice(0, inputs.columns)), bits=1)
    values = np.maximum(theta, 0.0) * C.scale
    if C.standardised is not None:
        return Found(W, None, inputs.padding, values, C.total, certificate, C.standardised)
    Wu = machine.part(V, slice(None), slice(inputs.columns, None))
    return Found(W, Wu, 1.0, values, C.total, certificate)


async def joint_covariance(machine: Machine, inputs: Inputs, policy: Policy) -> Covariance:
    """The joint covariance, in the form that suits how islands hold the table."""
    of_columns = inputs.split is not None
    return await (column_covariance if of_columns else covariance)(machine, inputs, policy)


def _reach(machine: Machine, policy: Policy, rho: int) -> float:
    """log2 of the smallest singular values of the sketch that are orthonormalised."""
    if not policy.opens_sketch:
        return schedule(policy.schedule).range_log2
    # What the one polynomial step brings to one is at least this long: s^2 / (s^2 + least).
    shortest = schedule(policy.schedule).range_log2
    least = least_square(machine.n_providers, rho, smudge_bits(machine, rho))
    return log2(least / (4.0**-shortest - 1)) / 2


def start(machine: Machine, inputs: Inputs, policy: Policy, rho: int) -> Shared:
    """P0: a sum of everybody's secret Gaussians, N(0, 1) / (sqrt(rho) + 8)."""
    shape, own = (rho, inputs.columns), None
    if inputs.rotation_seed is not None:
        parts = len(inputs.providers) / len(inputs.mine)
        normal = gaussians(inputs.rotation_seed, rho * inputs.columns, "sketch").reshape(shape)
        scaled = normal / ((sqrt(rho) + 8) * sqrt(parts))
        own = np.rint(scaled * 2.0**policy.sketch_fraction).astype(np.int64)
    return machine.private(None, own, shape, policy.sketch_fraction, 1)


def gram(machine: Machine, left: Shared, right: Shared, *, ahead: bool = False) -> Job:
    """left right^T with all its digits."""
    norm = ceil(log2(right.shape[0]) / 2) + 1
    transposed = with_norm(machine.transpose(right), norm)
    return Job(((left, transposed),), left.fraction + right.fraction, 1, "Gram matrix", ahead=ahead)


async def orthonormalised(machine: Machine, P: Shared, policy: Policy) -> Shared:
    """Q = M^(-1/2) P with M = P P^T, by the policy's schedule."""
    steps = schedule(policy.schedule).steps
    # All are sent its total: the polynomials that it goes into go ahead.
    (whole,) = await machine.products([gram(machine, P, P, ahead=True)])
    M = at_fraction(machine, whole, SMALL_FRACTION, bits=1)
    W: Shared | None = None
    grown = 0
    for step in steps[:-1]:
        A, MA = await evaluate(Basis(machine, M, SMALL_FRACTION), [step, times_m(step)])
        rights = [MA] if W is None else [MA, W]
        size = MA.shape[1]
        job = Job(((A, machine.hstack(rights)),), SMALL_FRACTION, STEP_BITS, "M and W", ahead=True)
        (out,) = await machine.products([job])
        M = machine.part(out, slice(None), slice(0, size))
        W = A if W is None else machine.part(out, slice(None), slice(size, 2 * size))
        # W / 2^grown is kept below one, so that its bound does not depend on the data.
        grown += STEP_BITS
        W = at_fraction(machine, W.times_power_of_two(-STEP_BITS), SMALL_FRACTION, bits=0)
    assert W is not None
    WP = machine.beside(_scaled_rows(W.times_power_of_two(grown), P))
    (A,) = await evaluate(Basis(machine, M, SMALL_FRACTION), [steps[-1]])
    return await machine.product((A, await machine.finished(WP)), fraction=P.fraction, bits=1, name="Q")


def _scaled_rows(W: Shared, P: Shared) -> Rounds[Shared]:
    """W P, whose rows are nearly orthonormal."""
    right = with_norm(P, ceil(log2(P.shape[0]) / 2) + 1)
    (WP,) = yield [Job(((W, right),), P.fraction + 10, 3, "W P")]
    return WP


async def orthonormalised_in_the_open(machine: Machine, P: Shared, policy: Policy, H: Shared) -> Shared:
    """Q = M^(-1/2) P by the opened spectrum of M, and one polynomial step for what its noise leaves.

    H M H^T is opened for a rotation H of its own. A public matrix times H then makes the rows of P nearly
    orthonormal; those of singular values below the policy's range stay too short.
    """
    rho = P.shape[0]
    rotating: dict[str, Any] = {"fraction": ROTATION_FRACTION, "bits": 1, "ahead": policy.ahead}
    (whole,) = await machine.products([in_terms(machine, gram(machine, P, P, ahead=policy.ahead))])
    M = with_norm(at_fraction(machine, whole, SMALL_FRACTION, bits=1), 0)
    HM = await machine.product((H, M), name="H M", **rotating)
    Z = await machine.product((HM, machine.transpose(H)), name="H M H^T", **rotating)
    noise = smudge_bits(machine, rho)
    opened = await machine.opened_symmetric(Z, smudge_bits=noise)
    weights = await stretched(machine, opened, least_square(machine.n_providers, rho, noise))
    W = machine.times_public(weights, H, fraction=_STEP_FRACTION, bits=_STRETCH_BITS)
    right = with_norm(P, ceil(log2(rho) / 2) + 1)
    stretching = Job(((W, right),), P.fraction + 10, 1, "W P", ahead=policy.ahead)
    (WP,) = await machine.products([in_terms(machine, stretching)])
    (again,) = await machine.products([in_terms(machine, gram(machine, WP, WP, ahead=policy.ahead))])
    basis = Basis(machine, at_fraction(machine, again, SMALL_FRACTION, bits=1), SMALL_FRACTION)
    (A,) = await evaluate(basis, [schedule(policy.schedule).steps[-1]])
    (Q,) = await machine.products(
        [in_terms(machine, Job(((A, WP),), P.fraction, 1, "Q", ahead=policy.ahead))]
    )
    return Q


def least_square(n_providers: int, rho: int, noise_bits: int) -> float:
    """A power of two that no eigenvalue of all parties' noise in an opened matrix reaches."""
    return 2.0 ** (ceil(log2(n_providers * rho)) + noise_bits - ROTATION_FRACTION)


async def stretched(machine: Machine, Z: Floats, least: float) -> Floats:
    """(Z + least)^(-1/2), a little less of it, the same bits for every role.

    Values beyond their bound would show through their masks. So every role checks, in exact integers, that
    the coordinator's matrix brings no row of the sketch beyond length one: Z + least exceeds what was opened.
    """
    values, U = np.linalg.eigh(Z)
    root = (U / np.sqrt(np.maximum(values, 0.0) + least)) @ U.T
    root *= (1 - 2.0**-9) / np.sqrt(max(1.0, longest_square(root, Z, least)))
    found = (await machine.same(root.ravel(), recomputed=False)).reshape(Z.shape)
    if not longest_square(found, Z, least) <= 1 - 2.0**-9:
        raise MessageError("the matrix that orthonormalises the sketch is not that of the opened one")
    return found


def longest_square(root: Floats, Z: Floats, least: float) -> float:
    """The largest eigenvalue of root (Z + least) root^T, from exact integers: large numbers cancel in it."""
    digits = 110
    inner = as_objects(np.rint(np.ldexp(Z + 0.0, digits))) + as_objects(np.eye(len(Z))) * int(
        least * 2.0**digits
    )
    outer = public_integers(root)
    exact = (outer @ inner @ outer.T) >> (2 * COEFFICIENT_BITS + digits - 60)
    product = exact.astype(np.float64) * 2.0**-60
    return float(np.linalg.eigvalsh((product + product.T) / 2)[-1])


class Small(NamedTuple):
    """The sketch's small matrices in the secret basis: Q C Q^T, Q C^2 Q^T and Q Q^T, rotated."""

    Z: Shared
    S: Shared
    N: Shared


async def grams(
    machine: Machine, Q: Shared, Y: Shared, mean: Shared | None, ahead: bool
) -> tuple[Small, Shared | None]:
    """Y Q^T, Y Y^T and Q Q^T in one product; beside it Y times the mean, if there is one."""
    rho = Q.shape[0]
    first, second = slice(0, rho), slice(rho, 2 * rho)
    QY = machine.vstack([Q, Y])
    jobs = [gram(machine, QY, QY)]
    if mean is not None:
        # Rows of Q and Y are no longer than two; entries of the mean's digits are below 2^bits.
        bits = 1 + mean.bits + ceil(log2(mean.shape[0]) / 2)
        jobs.append(Job(((QY, mean),), jobs[0].fraction, bits, "Y u"))
    both, *digits = await machine.products(travelling(with_one_left(machine, jobs), ahead))
    blocks = [
        machine.part(both, rows, cols) for rows, cols in ((second, first), (second, second), (first, first))
    ]
    small = Small(*(at_fraction(machine, block, SMALL_FRACTION, bits=1) for block in blocks))
    if mean is None:
        return small, None
    high, low = (machine.part(digits[0], second, slice(i, i + 1)) for i in range(2))
    return small, machine.combine([(1.0, high), (2.0**-MEAN_DIGIT, low)], bits=digits[0].bits)


async def rotated(machine: Machine, H: Shared, small: Small, ahead: bool) -> Small:
    """H X H^T for each X."""
    rho = H.shape[0]
    options: dict[str, Any] = {"fraction": ROTATION_FRACTION, "bits": 1, "ahead": ahead}
    left = await machine.product((H, machine.hstack(list(small))), name="H X", **options)
    stacked = machine.vstack(
        [machine.part(left, slice(None), slice(i * rho, (i + 1) * rho)) for i in range(3)]
    )
    out = await machine.product((stacked, machine.transpose(H)), name="H X H^T", **options)
    return Small(*(machine.part(out, slice(i * rho, (i + 1) * rho), slice(None)) for i in range(3)))


class Top:
    """V = U_k^T H Y / theta, one power step beyond the Ritz vectors, and ordered Gram-Schmidt of its rows.

    Two Newton steps, V <- (1 + L) V with L made of V V^T - 1, bring the rows to where the certificate wants
    them. V V^T = U^T S U / theta^2 is known before V is, and the next one from it.

    Bounds before the certificate is known: Q C^2 Q^T <= |C| Q C Q^T, and |C| is below one. So no entry of
    V V^T exceeds 1 / theta_k, nor one of V its root.
    """

    def __init__(self, machine: Machine, S: Shared, theta: Floats, U: Floats, ahead: bool) -> None:
        k = len(theta)
        self.machine, self.ahead = machine, ahead
        self.bits = 1 + max(0, ceil(-log2(theta[-1])))
        self.weights = U.T / theta[:, None]
        self.order = np.tril(np.ones((k, k)), -1) + np.eye(k) / 2
        across = machine.times_public(self.weights, S, fraction=_STEP_FRACTION, bits=self.bits + 1)
        self.N = machine.times_public(
            self.weights, machine.transpose(across), fraction=_STEP_FRACTION, bits=self.bits
        )
        self.L = self._step(self.N, self.bits + 1)

    def _step(self, N: Shared, bits: int) -> Shared:
        """L: what Gram-Schmidt takes off, to first order."""
        off = self.machine.plus_public(N, -np.eye(N.shape[0]))
        return self.machine.weighted(off, -self.order, fraction=_STEP_FRACTION, bits=bits)

    def step_job(self) -> Job:
        """L N."""
        return Job(((self.L, self.N),), _STEP_FRACTION, 2 * (self.bits + _half_log(self.N)) + 1, "L V V^T")

    def jobs(self, H: Shared, Y: Shared, Yu: Shared | None) -> list[Job]:
        """V, and V u where there is a mean u."""
        top = self.machine.times_public(self.weights, H, fraction=SMALL_FRACTION - self.bits, bits=self.bits)
        jobs = [Job(((top, with_norm(Y, 1)),), _RESULT_FRACTION, self.bits, "components")]
        if Yu is not None:
            jobs.append(Job(((top, Yu),), _RESULT_FRACTION, self.bits + _mean_bits(Y.shape[1]), "offset"))
        return with_one_left(self.machine, jobs)

    async def orthonormal(self, V: Shared, LN: Shared) -> Shared:
        """Both steps, once the certificate holds; V and V u side by side."""
        machine, norm = self.machine, _half_log(V) + 1
        half = machine.combine([(1.0, self.N), (1.0, LN)], bits=1)  # (1 + L) V V^T
        wide = 1 + _mean_bits(V.shape[1])
        L, right = replace(self.L, bits=1), with_norm(replace(V, bits=wide), norm + wide)
        jobs = [
            Job(((L, right),), _RESULT_FRACTION, wide, "L V"),
            Job(((half, with_norm(machine.transpose(L), norm)),), _STEP_FRACTION, 1, "V V^T"),
        ]
        LV, rest = await machine.products(travelling(jobs, self.ahead))
        V = machine.combine([(1.0, V), (1.0, LV)], bits=wide)
        L = self._step(machine.combine([(1.0, half), (1.0, rest)], bits=1), 1)
        again = Job(((L, with_norm(V, norm + wide)),), _RESULT_FRACTION, wide, "L V", ahead=self.ahead)
        (LV,) = await machine.products([again])
        return machine.combine([(1.0, V), (1.0, LV)], bits=wide)


def _half_log(x: Shared) -> int:
    """log2 of the square root of the number of rows."""
    return ceil(log2(x.shape[0]) / 2)


def _mean_bits(m: int) -> int:
    """A row of length one times a mean of entries below one."""
    return 1 + ceil(log2(m) / 2)
