"""How far one row moves a statistic: closed forms, attained by some pair of neighbours unless said otherwise.

Neighbours: ``add-remove`` (one row more or less; the number of rows is private) or ``replace`` (one
row becomes another; the number of rows is public). Rows have Euclidean norm at most B.

Matrices are measured in the Frobenius norm: a symmetric matrix is released as its upper triangle with
noise of standard deviation sigma on the diagonal and sigma/sqrt(2) off it, which is the same as
isotropic noise on the vector (diagonal, sqrt(2) x off-diagonal), whose length is that norm.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from atoll.errors import ParameterError

Neighbours = Literal["add-remove", "replace"]


def check_neighbours(neighbours: str) -> None:
    if neighbours not in get_args(Neighbours):
        raise ParameterError(
            f"neighbours must be one of {', '.join(get_args(Neighbours))}, got {neighbours!r}",
            option="neighbours",
        )


def row_sum_l2(bound: float, neighbours: Neighbours) -> float:
    """Sum of rows: B, or 2B between opposite rows."""
    return bound if neighbours == "add-remove" else 2.0 * bound


def row_sum_l1(bound: float, features: int, neighbours: Neighbours) -> float:
    """The longest row in the 1-norm is B/sqrt(d) (1, ..., 1)."""
    return math.sqrt(features) * row_sum_l2(bound, neighbours)


def second_moments_frobenius(bound: float, neighbours: Neighbours) -> float:
    """sum x x^T: B^2, or sqrt(2) B^2 between orthogonal rows."""
    return bound * bound if neighbours == "add-remove" else math.sqrt(2.0) * bound * bound


def second_moments_triangle_l1(bound: float, features: int, neighbours: Neighbours) -> float:
    """Upper triangle in the 1-norm: (|x|_1^2 + |x|_2^2)/2 <= (d+1)/2 B^2; replacing at most doubles it."""
    once = (features + 1) / 2.0 * bound * bound
    return once if neighbours == "add-remove" else 2.0 * once


def pair_moments_frobenius(bound: float, *, padded: bool) -> float:
    """sum u u^T over the differences u of disjoint row pairs: one pair changes, by sqrt(2) B^2 at most.

    ``padded`` (add/remove): places for rows are drawn among more than there are rows, and a row more or
    less fills or empties one: a pair appears or disappears, which is B^2. Proofs: docs/explanation/pairs.md.
    """
    return bound * bound if padded else math.sqrt(2.0) * bound * bound


def pair_moments_triangle_l1(bound: float, features: int, *, padded: bool) -> float:
    """The same in the 1-norm of the upper triangle."""
    once = (features + 1) / 2.0 * bound * bound
    return once if padded else 2.0 * once


def histogram_l2(neighbours: Neighbours) -> float:
    """A row stands in one bin; replaced, it may change two."""
    return 1.0 if neighbours == "add-remove" else math.sqrt(2.0)


def histogram_l1(neighbours: Neighbours) -> float:
    return 1.0 if neighbours == "add-remove" else 2.0


def joint_release(bound: float, sum_weight: float, count_weight: float, neighbours: Neighbours) -> float:
    """(second moments, w v, u N) released together.

    Add/remove: Delta^2 = B^4 + w^2 B^2 + u^2. Replace (N stays): for rows of norm B with inner product
    s, Delta^2 = 2(B^4 - s^2) + 2 w^2 (B^2 - s), largest at s = -w^2/2, or at s = -B^2 if that is beyond.
    """
    square, w2 = bound * bound, sum_weight * sum_weight
    if neighbours == "add-remove":
        return math.sqrt(square * square + w2 * square + count_weight * count_weight)
    inner = max(-w2 / 2.0, -square)
    return math.sqrt(2.0 * (square * square - inner * inner) + 2.0 * w2 * (square - inner))


def centred_scatter_replace(rows: int) -> float:
    """S = R - v v^T/N with rows of norm 1, one replaced: 4(N-1)/N (all rows e1, one becomes -e1).

    A release of S with noise for sensitivity 1, as published, is too weak by this factor.
    """
    return 4.0 * (rows - 1) / rows
