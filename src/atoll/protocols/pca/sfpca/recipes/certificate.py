"""The accuracy certificate: one number, evaluated on shares and opened with the result.

tau bounds the squared errors of the k components, summed:

    e_i^2 = R_ii (mu/theta_i)^2 / (theta_i - mu)^2
            + sum_j min(1, theta_j/theta_i) [R_ij w_ij]^2,  w_ij = 1 / ((max(theta_i, theta_j) - mu) gap_ij)
            + the orthonormality defect of the basis, (N_ij - 1)^2 (theta_i / gap_i)^2

R = U^T (Q C^2 Q^T) U - Theta^2 is the Gram matrix of the residuals, N = U^T Q Q^T U, gap_ij the distance
of two Ritz values, and mu what the rest of the spectrum cannot exceed: a Ritz value half way into the
oversampling or, where the basis may have lost its trailing rows, what the power iteration can have left out.

Two more terms drive tau beyond its tolerance where the first three mean nothing:

- gaps: residuals R_ii move a Ritz value by up to R_ii / (theta_i - mu). Where that is half a gap, the gap of
  the Ritz values says nothing about that of the eigenvalues (pairs that only the sketch tells apart).
- orthonormality: V V^T - 1 = R_ij / (theta_i theta_j) for the rows V that two Newton steps orthonormalise.

Added to it, because tau cannot see it: the rounding of the Gram matrices, public.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from atoll.errors import CertificateRefused
from atoll.secret_matrices.machine import Floats, Job, Machine, Shared

TOLERANCE = 0.014
DEFECT_TOLERANCE = 0.03
"""From here two Newton steps reach 1e-6; whatever the other terms accept has been below 0.003."""
GAP_TOLERANCE = 0.5
"""The part of a gap by which the residuals may move it."""
_SMUDGE_BITS = 15
_FRACTION = 40
_OPENED_BITS = 48
_OUT_FRACTION = 30
_WEIGHTED_BITS = 39
# Weights beyond this mean gaps that no run resolves: the certificate then fails by itself.
_WEIGHT_LIMIT = 2.0**36
LEAST_VALUE = 2.0**-30
"""Ritz values from here on, of a trace of one, are certified: smaller ones drown in rounding."""


class PublicTerms(NamedTuple):
    """Public numbers that the bound needs besides the opened ones."""

    columns: int
    n_providers: int
    gram_fraction: int
    iterations: int
    range_log2: float
    """Of the singular values of the sketch that are orthonormalised."""
    row_error: float = 0.0
    """Where rows are rounded rather than Gram matrices: a bound on the norm of all errors."""


class Certificate(NamedTuple):
    """sqrt(tau) with the public terms, and tau as it was opened."""

    bound: float
    tau: float

    def check(self) -> None:
        """Refuse a result that the bound does not vouch for."""
        if not self.bound < 1:  # what any two directions keep says nothing
            raise _nothing_certified()
        if not self.bound <= TOLERANCE:
            raise CertificateRefused(
                f"the components are certified to {self.bound:.2g} only, {TOLERANCE} is asked for",
                hint="the spectrum is too flat: try another n_components, recipe='accurate' or 'direct'",
            )


def of_spectrum(values: Floats, k: int) -> Certificate:
    """The bound where everything but the precision of the opened matrix is exact.

    Nothing is refused by it: where eigenvalues coincide, any basis of their space is as good.
    """
    error = 2.0**-_OPENED_BITS * len(values)
    gaps = np.abs(np.subtract.outer(values[:k], values))
    gaps[np.arange(k), np.arange(k)] = np.inf
    with np.errstate(divide="ignore"):
        bound = float(np.sqrt(((error / gaps.min(axis=1)) ** 2).sum()))
    return Certificate(min(bound, 1.0), 0.0)


def _nothing_certified() -> CertificateRefused:
    return CertificateRefused(
        "the result cannot be certified: the data have fewer components, or some of equal variance",
        hint="choose another n_components, recipe='accurate' or recipe='direct'",
    )


class Weighed(NamedTuple):
    """tau before it is opened: a product, what is added to it, and the public terms of the bound."""

    job: Job
    first: Shared
    public: float

    async def opened(self, machine: Machine, squares: Shared) -> Certificate:
        """Open tau, and add what is public."""
        total = machine.combine([(1.0, squares), (1.0, self.first)], bits=squares.bits + 1)
        # Every party adds noise; together they stay below 2^-15.
        smudge = _OUT_FRACTION - _SMUDGE_BITS - machine.n_providers.bit_length()
        tau = float((await machine.opened(total, smudge_bits=smudge))[0, 0])
        # The noise may have hidden as much as its own width.
        hidden = max(tau, 0.0) + 2.0**-_SMUDGE_BITS
        return Certificate(sqrt(hidden + self.public), tau)


async def weighed(
    machine: Machine,
    small: tuple[Shared, Shared, Shared],
    theta: Floats,
    U: Floats,
    k: int,
    public: PublicTerms,
) -> Weighed:
    """The certificate's product; refused where the spectrum alone says that nothing can be certified."""
    _, S, N = small
    rho = len(theta)
    half = min(k + (rho - k) // 2, rho - 1)
    mu = cut(theta, half, public)
    if not theta[k - 1] > max(mu, LEAST_VALUE):
        raise _nothing_certified()
    # One role's roundings for all: a share times another number than everybody's is noise.
    linear, squared, plain = np.split(
        await machine.same(np.concatenate([w.ravel() for w in weights(theta, mu, k, half + 1)])),
        [k, k + (half + 1) * rho],
    )
    diagonal = np.zeros((half + 1, rho))
    diagonal[:, : half + 1] = np.diag(theta[: half + 1] ** 2)
    R = machine.plus_public(in_basis(machine, S, U, half + 1), -diagonal)
    defect = machine.plus_public(in_basis(machine, N, U, k), -np.eye(k, rho))
    first = weighted_trace(machine, R, linear)
    parts = [(R, squared.reshape(half + 1, rho)), (defect, np.repeat(plain[:, None], rho, axis=1))]
    return Weighed(_sum_of_squares(machine, parts), first, rounding(theta, mu, k, public))


def in_basis(machine: Machine, X: Shared, U: Floats, k: int) -> Shared:
    """U_k^T X U for a symmetric X."""
    left = machine.times_public(U[:, :k].T, X, fraction=X.fraction, bits=2)
    return machine.transpose(machine.times_public(U.T, machine.transpose(left), fraction=X.fraction, bits=2))


def cut(theta: Floats, half: int, public: PublicTerms) -> float:
    """mu: what the rest of the spectrum cannot exceed, whether or not trailing rows were lost.

    Rows of the basis are lost below the schedule's range: eigenvalues below ``reached`` may then be missing
    (unless less than that is left of the trace). Above it a Ritz value bounds them.
    """
    rho = len(theta)
    if rho >= public.columns:
        return 0.0  # nothing is left out
    smallest = 2.0**public.range_log2 * (sqrt(rho) + 8) / 0.25
    reached: float = smallest ** (1 / public.iterations)
    return max(0.0, float(theta[half]), min(1 - float(theta.sum()), reached))


def weights(theta: Floats, mu: float, k: int, rows: int) -> tuple[Floats, Floats, Floats]:
    """Weights of R_ii (k), of R_ij inside the square (rows x rho), of the orthonormality defect (k)."""
    first = theta[:k]
    linear = (mu / first) ** 2 / (first - mu) ** 2
    gap = first[:, None] - theta
    np.fill_diagonal(gap, np.inf)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        single = 1 / ((np.maximum(first[:, None], theta) - mu) * gap)
        squared = np.zeros((rows, len(theta)))
        squared[:k] = single**2 * np.clip(theta / first[:, None], 0.0, 1.0)
        squared[:k, :k] += (TOLERANCE / DEFECT_TOLERANCE / np.outer(first, first)) ** 2
        moved = (single**2).sum(axis=0)[:rows]
        moved[:k] += (single**2).sum(axis=1)
        squared[np.arange(rows), np.arange(rows)] += (TOLERANCE / GAP_TOLERANCE) ** 2 * moved
        plain = first / np.minimum(np.abs(gap).min(axis=1), first - mu)
    return _limited(linear), _limited(np.sqrt(squared)), _limited(plain)


def _limited(values: Floats) -> Floats:
    return np.minimum(np.nan_to_num(values, nan=_WEIGHT_LIMIT, posinf=_WEIGHT_LIMIT), _WEIGHT_LIMIT)


def rounding(theta: Floats, mu: float, k: int, public: PublicTerms) -> float:
    """What the rounding of the parties' Gram matrices, or of their rows, may have moved."""
    if public.row_error:
        return sum(_moved_by_rows(theta, mu, i, public.row_error) for i in range(k))
    eta = 2.0**-public.gram_fraction * sqrt(public.n_providers / 12)
    total = 0.0
    for i in range(k):
        others = np.delete(theta, i)
        with np.errstate(divide="ignore"):
            within = (1 / (theta[i] - others) ** 2).sum()
        total += within + max(0, public.columns - len(theta)) / (theta[i] - mu) ** 2
    return float(eta**2 * total)


def _moved_by_rows(theta: Floats, mu: float, i: int, error: float) -> float:
    """The i-th component's squared error when rows B are B + E, with |E| bounded by ``error``.

    v_j^T (B^T E + E^T B + E^T E) v_i over the gap, where B v_j is as long as sqrt(theta_j): no assumption
    is made about E, which in data of few distinct values is anything but random.
    """
    others = np.maximum(np.append(np.delete(theta, i), mu), 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        nearest = (1 / (theta[i] - others) ** 2).max()
        outer = (others / (theta[i] - others) ** 2).max()
    return float(3 * error**2 * (outer + (theta[i] + error**2) * nearest))


def weighted_trace(machine: Machine, R: Shared, linear: Floats) -> Shared:
    """sum of linear_i R_ii."""
    k = len(linear)
    square = machine.part(R, slice(0, k), slice(0, k))
    weighted = machine.weighted(square, np.diag(linear), fraction=_FRACTION, bits=_WEIGHTED_BITS)
    trace = machine.trace(weighted, bits=_WEIGHTED_BITS + 5)
    return machine.combine([(1.0, trace)], fraction=_OUT_FRACTION, bits=_WEIGHTED_BITS + 5)


def _sum_of_squares(machine: Machine, parts: Sequence[tuple[Shared, Floats]]) -> Job:
    """The sum of weighted squares, by one product of a row with itself as a column."""
    row = machine.hstack(
        [
            machine.reshaped(
                machine.weighted(X, W, fraction=_FRACTION, bits=_WEIGHTED_BITS), (1, X.shape[0] * X.shape[1])
            )
            for X, W in parts
        ]
    )
    bits = 2 * _WEIGHTED_BITS + 12
    return Job(((row, machine.transpose(row)),), _OUT_FRACTION, bits, "tau")
