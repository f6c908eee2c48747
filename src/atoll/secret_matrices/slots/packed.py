"""M5: a small matrix in one ciphertext, and the product of two of them (Jiang, Kim, Lauter, Song 2018).

A d x d matrix lies row by row and is repeated with period d^2, where d is a power of two: a smaller matrix
stands in its upper left corner. Entry (i, j) is in slot i d + j, and

    A B = sum over k of  phi^k(sigma(A)) * psi^k(tau(B))

with sigma(A)[i, j] = A[i, i + j], tau(B)[i, j] = B[i + j, j], phi shifting columns and psi rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Matrix, Slots, Values, Vector
from atoll.secret_matrices.slots.products import period

__all__ = ["PRODUCT_LEVELS", "packed", "public_square", "square_product", "unpacked"]

PRODUCT_LEVELS = 3
"""sigma or tau, phi, and the product."""


def public_square(values: npt.ArrayLike, slots: int) -> Values:
    """A clear matrix as it lies in the slots."""
    values = np.asarray(values, np.float64)
    size = max(values.shape)
    d = period(size)
    if d * d > slots:
        raise ParameterError(f"a matrix of {size} x {size} does not fit the {slots} slots of one ciphertext")
    whole = np.zeros((d, d))
    whole[: values.shape[0], : values.shape[1]] = values
    return np.tile(whole.reshape(-1), slots // (d * d))


# ---- from rows and back ----


def packed(m: Slots, rows: Matrix, size: int, start: int = 0) -> Vector:
    """Rows of period p(size) as a matrix, the first at ``start``: their period puts each there; one level."""
    masks = [_row(start + k, size, m.slots) for k in range(len(rows))]
    return m.inner(list(zip(rows, masks, strict=True)))


def unpacked(
    m: Slots, x: Vector, size: int, rows: Sequence[int] | None = None, mask: Values | None = None
) -> Matrix:
    """Rows of a matrix, without what a mask leaves out: of its first copy in the slots; one level.

    Copies of a matrix drift apart with the noise, and each goes on from what it has: the reflections of one
    would turn another.
    """
    d = period(size)
    wanted: Values = np.ones((size, size)) if mask is None else mask
    out = []
    for k in range(size) if rows is None else rows:
        only: Values = np.zeros((d, d))
        only[k, :size] = wanted[k]
        row = m.weighted(x, np.pad(only.reshape(-1), (0, m.slots - d * d)))
        step = m.slots // 2
        while step >= d:
            row = m.add(row, m.rotate(row, step))
            step //= 2
        out.append(row)
    return out


def _row(at: int, size: int, slots: int) -> Values:
    """One in a row of the square, up to its period."""
    only: Values = np.zeros((period(size), period(size)))
    only[at] = 1.0
    return public_square(only, slots)


# ---- the product ----


def _permuted(m: Slots, x: Vector, masks: Sequence[Values], step: int, baby: int) -> Vector:
    """The sum over k of mask k times x rotated by k steps: baby steps, giant steps; one level."""
    rotated = [x]
    while len(rotated) < min(baby, len(masks)):
        rotated.append(m.rotate(rotated[-1], step))
    total: Vector | None = None
    for first in reversed(range(0, len(masks), baby)):
        turned = [np.roll(mask, first * step) for mask in masks[first : first + baby]]
        part = m.inner(list(zip(rotated, turned, strict=False)))
        total = part if total is None else m.add(m.rotate(total, baby * step), part)
    assert total is not None
    return total


def sigma_baby(d: int) -> int:
    """Baby steps among the 2 d shifts of sigma."""
    return 1 << ((2 * d).bit_length() // 2)


def tau_baby(d: int) -> int:
    """Baby steps among the d shifts of tau."""
    return 1 << (d.bit_length() // 2)


def _sigma(m: Slots, x: Vector, d: int) -> Vector:
    """Row i rotated by i: shifts by i, or i - d where that passes its end; all counted from - d."""
    i, j = np.indices((d, d))
    masks = [public_square((i == k) & (j >= d - k), m.slots) for k in range(d)]
    masks += [public_square((i == k) & (j < d - k), m.slots) for k in range(d)]
    return _permuted(m, m.rotate(x, d * d - d), masks, 1, sigma_baby(d))


def _tau(m: Slots, x: Vector, d: int) -> Vector:
    """Column j rotated by j: shifts by j d."""
    _, j = np.indices((d, d))
    return _permuted(m, x, [public_square(j == k, m.slots) for k in range(d)], d, tau_baby(d))


def square_product(m: Slots, A: Vector, B: Vector, size: int) -> Vector:
    """A B (M5); three levels."""
    d = period(size)
    _, j = np.indices((d, d))
    left, right = _sigma(m, A, d), _tau(m, B, d)
    behind = m.rotate(left, d * d - d)
    pairs: list[tuple[Vector, Vector | Values]] = [(left, right)]
    for k in range(1, d):
        left, behind, right = m.rotate(left, 1), m.rotate(behind, 1), m.rotate(right, d)
        inside = public_square(j < d - k, m.slots)
        pairs.append((m.inner([(left, inside), (behind, 1 - inside)]), right))
    return m.inner(pairs)
