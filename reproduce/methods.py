"""The ways to components that the figures compare.

*Ours* is the default of ``protocol="dpdpca"``: the same integers, stages and noise shares, with a plain sum
in place of the cryptography, which changes no number; at the largest sizes the shares are drawn as their
sum. *As printed* is the noise of the paper's Algorithm 2 on the centred scatter; it is less private than it
says. PrivateLocalPCA gets the same printed noise, at every owner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from atoll.privacy.dp_moments import Plan
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import Crowd
from atoll.privacy.paper_forms import centred_scatter, gaussian_matrices
from atoll.protocols.pca.privatelocal import Subspace, finish, local_subspace, merge
from atoll.randomness import derive
from reproduce.common import Floats, Look

NONE = "no privacy"
OURS = "DPDPCA, our default"
PRINTED = "DPDPCA as printed (less private than stated)"
LOCAL = "PrivateLocalPCA, same printed noise"
PRINTED_RAW = "DPDPCA as printed, rows not normalised (not private)"
LOCAL_RAW = "PrivateLocalPCA, rows not normalised (not private)"
RANDOM = "random directions"

LOOKS = {
    NONE: Look("#000000", "s"),
    OURS: Look("#0072B2", "o"),
    PRINTED: Look("#E69F00", "^"),
    LOCAL: Look("#009E73", "D"),
    PRINTED_RAW: Look("#D55E00", "^", "--"),
    LOCAL_RAW: Look("#CC79A7", "D", "--"),
    RANDOM: Look("#888888", "x", ":"),
}


_MOST_DRAWS = 100_000_000


def top(matrix: Floats, k: int) -> Floats:
    """The k leading eigenvectors as rows."""
    d = len(matrix)
    return np.asarray(scipy.linalg.eigh(matrix, subset_by_index=[d - k, d - 1])[1].T[::-1])


def exact(rows: Floats, k: int) -> Floats:
    return top(centred_scatter(rows), k)


def ours(rows: Floats, k: int, owners: int, epsilon: float, delta: float, seed: bytes) -> Floats:
    """Distributed noise against one colluder, two mean steps, rows normalised around the centre."""
    d = rows.shape[1]
    plan = Plan(d, 1.0, epsilon, delta, crowd=Crowd(owners, colluders=1))
    # A share of millions of entries for each of hundreds of owners takes hours to draw.
    if owners * d * d > _MOST_DRAWS:
        return top(rehearse(plan, [rows], seed, at_once=True).moments.matrix, k)
    return top(rehearse(plan, np.array_split(rows, owners), seed).moments.matrix, k)


def as_printed(scatter: Floats, k: int, epsilon: float, delta: float, seed: bytes) -> Floats:
    """Algorithm 2's noise, once, on the centred scatter."""
    return top(scatter + gaussian_matrices(seed, len(scatter), epsilon, delta)[0], k)


def owner_after_owner(parts: Sequence[Floats], k: int, epsilon: float, delta: float, seed: bytes) -> Floats:
    """PrivateLocalPCA's steps with Algorithm 2's noise at every owner."""
    d = parts[0].shape[1]
    merged: Subspace | None = None
    for turn, part in enumerate(parts):
        noise = gaussian_matrices(derive(seed, turn), d, epsilon, delta)[0]
        mine = Subspace(local_subspace(part.T @ part + noise, k), 0.0, float(len(part)))
        merged = mine if merged is None else merge(merged, mine)
    assert merged is not None
    return finish(merged)[0]


def random_directions(d: int, k: int, seed: int) -> Floats:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(d, k)))[0].T)


def captured(components: Floats, scatter: Floats) -> float:
    """Variance in the span of the components."""
    basis = np.linalg.qr(components.T)[0]
    return float(np.sum(basis * (scatter @ basis)))
