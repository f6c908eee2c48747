"""The accuracy certificate: one number, evaluated on shares and opened with the result.

tau bounds the squared errors of the k components, summed:

    e_i^2 = R_ii (mu/theta_i)^2 / (theta_i - mu)^2
            + sum_j min(1, theta_j/theta_i) [R_ij / ((max(theta_i, theta_j) - mu) (theta_i - theta_j))]^2
            + the orthonormality defect of the basis, (N_ij - 1)^2 (theta_i / gap_i)^2

R = U^T (Q C^2 Q^T) U - Theta^2 is the Gram matrix of the residuals, N = U^T Q Q^T U, mu a Ritz value
half way into the oversampling. Added to it, because tau cannot see it: the rounding of the Gram matrices,
public. Where trailing rows of the basis fell short of unit length, mu is replaced by what the power
iteration can have left out.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from atoll.errors import CertificateRefused
from atoll.protocols.sfpca.polynomials import schedule
from atoll.protocols.sfpca.shared import Floats, Machine, Shared

TOLERANCE = 0.014
DEFECT_TOLERANCE = 1e-3
_SHORTFALL = 0.1
_SMUDGE_BITS = 15
_SHORTFALL_BITS = 10
_FRACTION = 40
_OPENED_BITS = 48
_OUT_FRACTION = 30
# Weights beyond this mean gaps that no run resolves: the certificate then fails by itself.
_WEIGHT_LIMIT = 2.0**36


class PublicTerms(NamedTuple):
    """What the bound needs besides opened numbers."""

    columns: int
    parties: int
    gram_fraction: int
    iterations: int
    schedule: str
    row_error: float = 0.0
    """Where rows are rounded rather than Gram matrices: a bound on the norm of all errors."""


class Certificate(NamedTuple):
    """sqrt(tau) with the public terms; what was opened to compute it."""

    bound: float
    tau: float
    shortfall: float

    def check(self) -> None:
        """Refuse a result that the bound does not vouch for."""
        if not self.bound <= TOLERANCE:
            raise CertificateRefused(
                f"the components are certified to {self.bound:.2g} only, {TOLERANCE} is asked for",
                hint="the spectrum is too flat: other n_components, the accurate policy, or recipe='direct'",
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
    return Certificate(min(bound, 1.0), 0.0, 0.0)


async def certify(
    machine: Machine,
    small: tuple[Shared, Shared, Shared],
    theta: Floats,
    U: Floats,
    k: int,
    public: PublicTerms,
) -> Certificate:
    """Open the shortfall of the basis and tau, and add what is public."""
    _, S, N = small
    rho = len(theta)
    half = min(k + (rho - k) // 2, rho - 1)
    kept = U[:, : half + 1].T
    lengths = machine.times_public(kept, N, fraction=N.fraction, bits=2)
    lengths = machine.times_public(kept, machine.turned(lengths), fraction=N.fraction, bits=2)
    smudge = N.fraction - _SHORTFALL_BITS - machine.parties.bit_length()
    opened = await machine.opened(machine.trace(lengths, bits=7), smudge_bits=smudge)
    shortfall = half + 1 - float(opened[0, 0])
    mu = cut(theta, half, shortfall, rho, public)
    if not theta[k - 1] > mu:
        return Certificate(np.inf, np.inf, shortfall)
    R = machine.plus_public(in_basis(machine, S, U, k), -np.eye(k, rho) * (theta[:k] ** 2)[:, None])
    defect = machine.plus_public(in_basis(machine, N, U, k), -np.eye(k, rho))
    linear, cross, plain = weights(theta, mu, k)
    # One role's roundings for all: a share times another number than everybody's is noise.
    same = await machine.same(np.hstack([linear[:, None], cross, plain]))
    linear, cross, plain = same[:, 0], same[:, 1 : 1 + rho], same[:, 1 + rho :]
    tau = await _tau(machine, R, defect, linear, cross, plain)
    # The noise may have hidden as much as its own width.
    hidden = max(tau, 0.0) + 2.0**-_SMUDGE_BITS
    return Certificate(sqrt(hidden + rounding(theta, mu, k, public)), tau, shortfall)


def in_basis(machine: Machine, X: Shared, U: Floats, k: int) -> Shared:
    """U_k^T X U for a symmetric X."""
    left = machine.times_public(U[:, :k].T, X, fraction=X.fraction, bits=2)
    return machine.turned(machine.times_public(U.T, machine.turned(left), fraction=X.fraction, bits=2))


def cut(theta: Floats, half: int, shortfall: float, rho: int, public: PublicTerms) -> float:
    """mu: what the rest of the spectrum cannot exceed."""
    if rho >= public.columns:
        return 0.0  # nothing is left out
    mu = max(0.0, float(theta[half]))
    if shortfall <= _SHORTFALL:
        return mu
    smallest = 2.0 ** schedule(public.schedule).range_log2 * (sqrt(rho) + 8) / 0.25
    reached: float = smallest ** (1 / public.iterations)
    return min(1 - float(theta.sum()), max(mu, reached))


def weights(theta: Floats, mu: float, k: int) -> tuple[Floats, Floats, Floats]:
    """Weights of R_ii, of R_ij (inside the square) and of the orthonormality defect."""
    rho = len(theta)
    i, j = theta[:k, None], theta[None, :]
    positive = np.maximum(theta, 1e-12)
    linear = (mu / theta[:k]) ** 2 / (theta[:k] - mu) ** 2
    gap = i - j
    gap[np.arange(k), np.arange(k)] = np.inf
    with np.errstate(divide="ignore", over="ignore"):
        amplitude = np.sqrt(np.minimum(1.0, positive[None, :] / positive[:k, None]))
        cross = amplitude / ((np.maximum(i, j) - mu) * gap)
        nearest = np.abs(gap).min(axis=1)
        plain = np.broadcast_to((theta[:k] / np.minimum(nearest, theta[:k] - mu))[:, None], (k, rho))
    limit = _WEIGHT_LIMIT
    return (
        np.minimum(linear, limit),
        np.clip(np.nan_to_num(cross, nan=limit, posinf=limit, neginf=-limit), -limit, limit),
        np.minimum(np.nan_to_num(plain, posinf=limit), limit),
    )


def rounding(theta: Floats, mu: float, k: int, public: PublicTerms) -> float:
    """What the rounding of the parties' Gram matrices, or of their rows, may have moved."""
    if public.row_error:
        return sum(_moved_by_rows(theta, mu, i, public.row_error) for i in range(k))
    eta = 2.0**-public.gram_fraction * sqrt(public.parties / 12)
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


async def _tau(
    machine: Machine, R: Shared, defect: Shared, linear: Floats, cross: Floats, plain: Floats
) -> float:
    """The weighted sum of squares, by one product of a row with itself as a column."""
    k, rho = R.shape
    bits = 39
    diagonal = np.zeros((k, k))
    np.fill_diagonal(diagonal, linear)
    squares = machine.part(R, slice(None), slice(0, k))
    first = machine.trace(machine.weighted(squares, diagonal, fraction=_FRACTION, bits=bits), bits=bits + 5)
    parts = [
        machine.reshaped(machine.weighted(X, W, fraction=_FRACTION, bits=bits), (1, k * rho))
        for X, W in ((R, cross), (defect, plain))
    ]
    row = machine.beside(parts)
    second = await machine.product(
        (row, machine.turned(row)), ring="deep", fraction=_OUT_FRACTION, bits=2 * bits + 12, name="tau"
    )
    total = machine.combine(
        [(1.0, second), (1.0, machine.combine([(1.0, first)], fraction=_OUT_FRACTION, bits=bits + 5))],
        bits=2 * bits + 13,
    )
    # Every party adds noise; together they stay below 2^-15.
    smudge = _OUT_FRACTION - _SMUDGE_BITS - machine.parties.bit_length()
    return float((await machine.opened(total, smudge_bits=smudge))[0, 0])
