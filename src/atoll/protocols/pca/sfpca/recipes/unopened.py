"""The recipe of ``eigen = "encrypted"``: outputs and one bit are opened, no spectrum and no total variance.

The covariance is divided by what its trace cannot exceed, given the study's bounds. Of few columns, the
vectors are those of the matrix itself (:mod:`deflation`). Of more, they are those of Q C Q^T, where Q is the
orthonormal basis of a sketch as in :mod:`strict`, and components are made by two more products with C:
b = u^T Q C and c = b C. Vectors come out of their projectors u u^T by a secret Gaussian row g, as g^T u u^T,
and are divided by their length.

What the bit (:mod:`verdict`) vouches for, each as a number that is one where all is well:

- every projector is pure to 2^-8 before its last steps. No step does more than squaring does, so that
  the distance to the next eigenvalue, g of this one, is at least ln(2^9) / 2^steps. More than that:
  sum_j 4^j (1 - p_j) over the steps is above 1/g^2, for p_j falls short of one by at least 2x / (1 + x)^2
  with x = (1 - g)^(2^j);
- every normalised row is of length one: it is shorter where its length was below what inverse roots reach;
- of a sketch, E = 4 sum_i (1 - cos(b_i, c_i)) (w_i + w_(i-1)) with the sums w above, twice the squared
  residual over the squared gaps on both sides, is below 0.0001: then so are the squared errors.
"""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import Any, NamedTuple

import numpy as np

from atoll.errors import CertificateRefused, ParameterError
from atoll.protocols.pca.sfpca.recipes import rows
from atoll.protocols.pca.sfpca.recipes.certificate import TOLERANCE, Certificate
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES, Covariance, Policy, gram_covariance
from atoll.protocols.pca.sfpca.recipes.deflation import (
    FRACTION,
    Course,
    Projectors,
    one_minus,
    projectors,
)
from atoll.protocols.pca.sfpca.recipes.direct import (
    DATA_FRACTION,
    Found,
    Inputs,
    at_fraction,
    column_sums,
    scatter,
    with_norm,
)
from atoll.protocols.pca.sfpca.recipes.moments import check_moments
from atoll.protocols.pca.sfpca.recipes.strict import OVERSAMPLING, orthonormalised, start
from atoll.protocols.pca.sfpca.recipes.verdict import passes, powered, product_of
from atoll.secret_matrices.entrywise import inverse_roots
from atoll.secret_matrices.machine import Machine, Shared
from atoll.secret_matrices.rotations import gaussians

WHOLE_UP_TO = 64
"""Columns up to which no sketch is made: it would cost more rounds than it saves bytes."""
_GAUSSIAN_FRACTION = 40
_RESULT_FRACTION = 60
_COSINE_FRACTION = 100
_PURE, _LONG = 7, 20
"""Squarings of the evidence: it may fall short of one by about 2^-squarings."""
_ERROR = 12
"""And E may be 2^-_ERROR, halved."""
_ROOM = 0.25
"""What lifting the sketch's matrix by its rounding may take of its trace."""


class Effort(NamedTuple):
    """How long everything is looked for; public and fixed in advance."""

    sketch: Policy
    course: Course


EFFORTS = {
    "encrypted": Effort(
        POLICIES["accurate"]._replace(iterations=3), Course(raised=8, factors=(6, 5, 5, 4, 3, 2, 1))
    ),
    "encrypted-accurate": Effort(
        POLICIES["accurate"], Course(raised=20, factors=(6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1))
    ),
}


class Rows(NamedTuple):
    """Vectors that are to be divided by their lengths, and what they are vouched for by."""

    vectors: Shared
    roots: Shared
    lengths: Shared
    """One, or less where a root fell short."""
    errors: Shared | None = None
    """E over its bound, of a sketch."""


def sketches(k: int, m: int) -> bool:
    """Whether vectors are looked for in a sketch, or in the covariance itself."""
    return m > max(WHOLE_UP_TO, k + OVERSAMPLING)


async def unopened(machine: Machine, inputs: Inputs, k: int, effort: Effort) -> Found:
    """Components of which nothing but a bit is opened; refused unless it is one."""
    if not sketches(k, inputs.columns):
        A = await _whole(machine, inputs)
        found = await projectors(machine, A, k, effort.course, 0.0)
        made = await _of_matrix(machine, await _taken_out(machine, inputs, found, k))
    else:
        C = _covariance(machine, inputs, effort.sketch)
        Y, A, lift = await _sketched(machine, inputs, C, k)
        found = await projectors(machine, A, k, effort.course, lift)
        a = await _taken_out(machine, inputs, found, k)
        made = await _of_sketch(machine, C, await _times(machine, a, Y, C.policy), found, effort.course)
    # Rows over their lengths; no length is overestimated.
    ahead = {"fraction": _RESULT_FRACTION, "ahead": True}
    W = await machine.product((made.roots, made.vectors), bits=1, name="components", entrywise=True, **ahead)
    bits = 1 + ceil(log2(inputs.columns) / 2)
    offset = await machine.product((W, column_sums(machine, inputs)), bits=bits, name="offset", **ahead)
    if not await passes(machine, await _evidence(machine, made, found, effort.course)):
        raise CertificateRefused(
            "the components cannot be vouched for; nothing else is known, because nothing else was opened",
            hint="try fewer n_components, bounds closer to the values, or eigen='masked'",
        )
    return Found(W, offset, inputs.padding, None, None, Certificate(TOLERANCE, 0.0))


async def _whole(machine: Machine, inputs: Inputs) -> Shared:
    """The covariance over the most that its trace can be."""
    check_moments(inputs.moments, DATA_FRACTION)
    S, unit = await scatter(machine, inputs, shown=True)
    return machine.combine([(unit / (inputs.most_variance * (1 + 2.0**-20)), S)], fraction=FRACTION, bits=1)


def _covariance(machine: Machine, inputs: Inputs, policy: Policy) -> Covariance:
    """The form that suits the numbers of rows, scaled by what is public."""
    if rows.prefers_rows(inputs.sizes, inputs.columns):
        return rows.row_covariance(machine, inputs, policy, inputs.most_variance)
    check_moments(inputs.moments, DATA_FRACTION)
    return gram_covariance(machine, inputs, policy, inputs.most_variance)


async def _sketched(machine: Machine, inputs: Inputs, C: Covariance, k: int) -> tuple[Shared, Shared, float]:
    """Y = Q C and Q C Q^T, and how far its eigenvalues may be below zero."""
    rho = min(k + OVERSAMPLING, inputs.columns)
    P = start(machine, inputs, C.policy, rho)
    for _ in range(C.policy.iterations):
        P = await C.times(machine, P)
    Q = await orthonormalised(machine, P, C.policy)
    Y = await C.times(machine, Q)
    across = with_norm(machine.transpose(Q), ceil(log2(rho) / 2) + 1)
    A = await machine.product((Y, across), fraction=FRACTION, bits=1, name="Q C Q^T", ahead=True)
    # Gram matrices are rounded entry by entry, by every party; rows are not, but their products are.
    lift = max(machine.n_providers * inputs.columns * 2.0 ** -(C.digits + 1), 2.0**-30)
    if rho * lift > _ROOM:
        raise ParameterError(
            f"{inputs.columns} columns of {machine.n_providers} islands are too many for eigen='encrypted'",
            hint="eigen='masked'",
        )
    return Y, A, lift


async def _taken_out(machine: Machine, inputs: Inputs, found: Projectors, k: int) -> Shared:
    """g^T u u^T for every projector: rows of any length below one."""
    size, own = found.X.shape[0], None
    if inputs.rotation_seed is not None:
        parts = len(inputs.providers) / len(inputs.mine)
        normal = gaussians(inputs.rotation_seed, size, "row") / ((sqrt(size) + 8) * sqrt(parts))
        own = np.rint(normal * 2.0**_GAUSSIAN_FRACTION).astype(np.int64).reshape(1, size)
    g = machine.private(None, own, (1, size), _GAUSSIAN_FRACTION, 1)
    right = with_norm(found.X, ceil(log2(k) / 2))
    return machine.reshaped(
        await machine.product((g, right), fraction=FRACTION, bits=1, name="g X", ahead=True), (k, size)
    )


async def _times(machine: Machine, a: Shared, Y: Shared, policy: Policy) -> Shared:
    """a Y: rows of Y are no longer than one, together than sqrt(rho)."""
    right = with_norm(Y, ceil(log2(Y.shape[0]) / 2))
    return await machine.product((a, right), fraction=policy.sketch_fraction, bits=1, name="a Y", ahead=True)


async def _of_matrix(machine: Machine, a: Shared) -> Rows:
    """Nothing but their length is wrong with the rows."""
    squares = machine.diagonal(await _gram(machine, a))
    roots = await inverse_roots(machine, squares)
    return Rows(a, at_fraction(machine, roots.roots, _COSINE_FRACTION, bits=roots.roots.bits), roots.squares)


async def _of_sketch(machine: Machine, C: Covariance, b: Shared, found: Projectors, course: Course) -> Rows:
    """One more product with C, and how far it turns the rows."""
    k = b.shape[0]
    c = await C.times(machine, b)
    G = await _gram(machine, machine.vstack([b, c]))
    across = machine.diagonal(machine.part(G, slice(0, k), slice(k, 2 * k)))
    roots = await inverse_roots(machine, machine.diagonal(G), "default")
    of = at_fraction(machine, roots.roots, _COSINE_FRACTION, bits=roots.roots.bits)
    of_b, of_c = (machine.part(of, slice(i * k, (i + 1) * k), slice(0, 1)) for i in range(2))
    # b c over the length of b is no longer than c.
    half = await _entries(machine, of_b, across, _COSINE_FRACTION)
    cosines = await _entries(machine, of_c, half, FRACTION)
    errors = machine.plus_public(machine.combine([(-1.0, cosines)], bits=1), np.ones((k, 1)))
    return Rows(c, of_c, roots.squares, await _errors(machine, errors, found, course))


async def _gram(machine: Machine, x: Shared) -> Shared:
    """All rows times all rows; none is longer than one."""
    right = with_norm(machine.transpose(x), ceil(log2(x.shape[0]) / 2))
    return await machine.product((x, right), fraction=_COSINE_FRACTION, bits=1, name="lengths", ahead=True)


async def _entries(machine: Machine, x: Shared, y: Shared, fraction: int) -> Shared:
    return await machine.product(
        (x, y), fraction=fraction, bits=1, name="cosines", entrywise=True, ahead=True
    )


async def _errors(machine: Machine, errors: Shared, found: Projectors, course: Course) -> Shared:
    """E over its bound: what the rows turn by, weighed by the gaps on both sides."""
    weights = []
    bound = error_bits(len(found.purities), course)
    for i in range(len(found.purities)):
        terms: list[tuple[float, Any]] = []
        for seen in found.purities[max(0, i - 1) : i + 1]:
            terms += [(-(4.0 ** (j + 1)) * 2.0**-bound, p) for j, p in enumerate(seen)]
        whole = -sum(coefficient for coefficient, _ in terms)
        weights.append(machine.combine(terms, identity=whole, bits=1))
    row = machine.hstack(weights)
    return await machine.product((row, errors), fraction=FRACTION, bits=1, name="errors", ahead=True)


def error_bits(k: int, course: Course) -> int:
    """log2 of what E cannot exceed."""
    return ceil(log2(k)) + 2 * (len(course.factors) + 1) + 2


async def _evidence(machine: Machine, made: Rows, found: Projectors, course: Course) -> Shared:
    """One number for all of it."""
    lengths = await product_of(machine, at_fraction(machine, made.lengths, FRACTION, bits=1))
    if made.errors is not None:
        x = one_minus(machine, made.errors)
        x = await powered(machine, x, error_bits(len(found.purities), course) + _ERROR - _LONG)
        lengths = await machine.product((x, lengths), fraction=FRACTION, bits=1, name="evidence", ahead=True)
    pure = await product_of(machine, machine.vstack([seen[-1] for seen in found.purities]))
    x = await powered(machine, lengths, _LONG - _PURE)
    x = await machine.product((x, pure), fraction=FRACTION, bits=1, name="evidence", ahead=True)
    return await powered(machine, x, _PURE)
