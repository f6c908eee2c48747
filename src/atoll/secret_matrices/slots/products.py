"""Products of encrypted rows with a matrix: the SF-PCA paper's M1 to M4.

A row of length h fills all slots: it is repeated with period p(h), the next power of two, with zeros between
h and p(h). Rotations are cyclic in the period then, a sum over a row stands in every slot after log2 p(h) of
them, and a product takes rows of period p(b) to rows of period p(c) with nothing to move into place.

M(a x b) times N(b x c), N clear and a provider's own, or encrypted:

- M1, dot products: R[i, j] = M[i, :] . N[:, j], put into slot j by a mask;
- M2, element duplication: R[i, :] = sum of M[i, j] in every slot times N[j, :];
- M3, diagonals: R[i, :] = sum of M[i, :] rotated by k times the k-th diagonal of N, baby steps, giant steps;
- M4, a matrix of one vector: M (1 mu^T), and M (mu 1^T).

What is added up is rescaled and relinearised once, afterwards (the paper's lazy form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.slots.machine import Matrix, Slots, Values, Vector

__all__ = [
    "Choice",
    "Factor",
    "Method",
    "Weights",
    "alike",
    "baby_steps",
    "choose",
    "columns_of",
    "diagonals_of",
    "dots",
    "encrypted_factor",
    "everywhere",
    "multiply",
    "operations",
    "own_factor",
    "period",
    "repeated",
    "repeatedly",
    "rows_of",
    "sums_times",
    "times_transpose",
    "unit",
]


class Method(Enum):
    """How a product is made."""

    M1 = "dot products"
    M2 = "element duplication"
    M3 = "diagonals"

    @property
    def levels(self) -> int:
        """Levels that it takes: a mask and a product, or the product alone."""
        return 1 if self is Method.M3 else 2


# ---- rows in slots ----


def period(length: int) -> int:
    """The period at which a row is repeated: the next power of two."""
    return 1 << (length - 1).bit_length()


def repeated(values: Values, slots: int) -> Values:
    """A row as it lies in the slots."""
    size = period(len(values))
    if size > slots:
        raise ParameterError(
            f"a row of {len(values)} numbers does not fit the {slots} slots of one ciphertext",
            hint="the paper variant takes tables of at most as many columns, and islands of as many rows",
        )
    row = np.zeros(size)
    row[: len(values)] = values
    return np.tile(row, slots // size)


def unit(at: int, length: int, slots: int) -> Values:
    """One in a coordinate of a row, zero elsewhere."""
    row = np.zeros(length)
    row[at] = 1.0
    return repeated(row, slots)


def everywhere(m: Slots, x: Vector, length: int) -> Vector:
    """The sum over a row, in every slot: log2 p rotations."""
    step = period(length) // 2
    while step:
        x = m.add(x, m.rotate(x, step))
        step //= 2
    return x


def repeatedly(m: Slots, row: Vector, length: int) -> Vector:
    """A row that stands in the first slots alone, as often as it fits."""
    step = m.slots // 2
    while step >= period(length):
        row = m.add(row, m.rotate(row, step))
        step //= 2
    return row


def alike(m: Slots, row: Vector, length: int) -> Vector:
    """A row whose copies in the slots are the same again: the first one, as often as it fits; one level."""
    if period(length) < m.slots:
        row = m.weighted(row, np.where(np.arange(m.slots) < period(length), 1.0, 0.0))
    return repeatedly(m, row, length)


# ---- a right factor, prepared for a method ----


@dataclass(frozen=True)
class Factor:
    """A b x c matrix prepared for a method: a provider's own in the clear, or encrypted."""

    method: Method
    shape: tuple[int, int]
    parts: Sequence[Values | None] | Matrix
    """Columns (M1), rows (M2) or diagonals (M3), as they lie in the slots; own clear ones are None at the
    coordinator."""

    def __repr__(self) -> str:
        kind = "encrypted" if isinstance(self.parts[0], Vector) else "own"
        return f"Factor({self.method.name}, {self.shape[0]} x {self.shape[1]}, {kind})"


def columns_of(N: Values, slots: int) -> list[Values]:
    """For M1."""
    return [repeated(column, slots) for column in N.T]


def rows_of(N: Values, slots: int) -> list[Values]:
    """For M2."""
    return [repeated(row, slots) for row in N]


def baby_steps(b: int) -> int:
    """How many of the p(b) diagonals one giant step holds: the power of two at, or next above, its root."""
    return 1 << ((period(b).bit_length()) // 2)


def diagonal_indices(k: int, b: int, c: int, slots: int) -> tuple[Any, Any]:
    """Row and column of N, modulo their periods, that diagonal k has in each slot.

    Diagonal k holds N[j + k, j] in slot j; those of giant step g are rotated to the right by g B beforehand.
    """
    baby = baby_steps(b)
    giant = k // baby * baby
    j = np.arange(slots)
    return (j + k - giant) % period(b), (j - giant) % period(c)


def diagonals_of(N: Values, slots: int) -> list[Values]:
    """For M3 (lines 1 to 3, the rotations of clear numbers)."""
    b, c = N.shape
    padded = np.zeros((period(b), period(c)))
    padded[:b, :c] = N
    return [padded[diagonal_indices(k, b, c, slots)] for k in range(period(b))]


_PREPARED = {Method.M1: columns_of, Method.M2: rows_of, Method.M3: diagonals_of}


def parts_of(method: Method, shape: tuple[int, int]) -> int:
    """How many columns, rows or diagonals a method wants."""
    return {Method.M1: shape[1], Method.M2: shape[0], Method.M3: period(shape[0])}[method]


def own_factor(m: Slots, method: Method, shape: tuple[int, int], values: Values | None) -> Factor:
    """Every provider's own clear matrix (None at the coordinator)."""
    if max(map(period, shape)) > m.slots:
        raise ParameterError(
            f"a matrix of {shape[0]} x {shape[1]} has rows or columns of more than {m.slots}"
        )
    if values is None:
        return Factor(method, shape, [None] * parts_of(method, shape))
    if values.shape != shape:
        raise ParameterError(f"a matrix of {values.shape} was to be one of {shape}")
    return Factor(method, shape, _PREPARED[method](values, m.slots))


def encrypted_factor(method: Method, shape: tuple[int, int], parts: Matrix) -> Factor:
    """An encrypted matrix: its columns, rows or diagonals."""
    if len(parts) != parts_of(method, shape):
        raise ParameterError(f"{method.value} want {parts_of(method, shape)} vectors of a {shape} matrix")
    return Factor(method, shape, parts)


# ---- M1, M2, M3 ----


def multiply(m: Slots, M: Matrix, factor: Factor) -> Matrix:
    """M times the factor: rows of period p(c)."""
    return {Method.M1: _by_dot_products, Method.M2: _by_duplication, Method.M3: _by_diagonals}[factor.method](
        m, M, factor
    )


def _inner(m: Slots, xs: Sequence[Vector], parts: Sequence[Any]) -> Vector:
    """The sum of vectors times parts of a factor."""
    if isinstance(parts[0], Vector):
        return m.inner(list(zip(xs, parts, strict=True)))
    return m.own_inner(list(zip(xs, parts, strict=True)))


def _by_dot_products(m: Slots, M: Matrix, factor: Factor) -> Matrix:
    """M1. The masks of a row's c dot products are one inner product."""
    b, c = factor.shape
    out = []
    for row in M:
        entries = [everywhere(m, _inner(m, [row], [part]), b) for part in factor.parts]
        out.append(m.inner([(x, unit(j, c, m.slots)) for j, x in enumerate(entries)]))
    return out


def _by_duplication(m: Slots, M: Matrix, factor: Factor) -> Matrix:
    """M2."""
    b, _ = factor.shape
    out = []
    for row in M:
        entries = [everywhere(m, m.weighted(row, unit(j, b, m.slots)), b) for j in range(b)]
        out.append(_inner(m, entries, factor.parts))
    return out


def _by_diagonals(m: Slots, M: Matrix, factor: Factor) -> Matrix:
    """M3 (lines 5 to 16): baby steps by one, giant steps from the last to the first."""
    b, _ = factor.shape
    baby = baby_steps(b)
    out = []
    for row in M:
        rotated = [row]
        while len(rotated) < min(baby, period(b)):
            rotated.append(m.rotate(rotated[-1], 1))
        total: Vector | None = None
        for first in reversed(range(0, period(b), baby)):
            step = _inner(m, rotated, factor.parts[first : first + baby])
            total = step if total is None else m.add(m.rotate(total, baby), step)
        assert total is not None
        out.append(total)
    return out


def times_transpose(m: Slots, X: Matrix, Y: Matrix, length: int) -> Matrix:
    """X Y^T by M1: the rows of Y are the columns that it wants."""
    return multiply(m, X, encrypted_factor(Method.M1, (length, len(Y)), Y))


# ---- M4 ----


def sums_times(m: Slots, M: Matrix, length: int, mu: Vector) -> Matrix:
    """M4, case 1: M (1 mu^T), the sum of each row times mu; one level."""
    return [m.times(everywhere(m, row, length), mu) for row in M]


def dots(m: Slots, M: Matrix, mu: Vector, length: int) -> Matrix:
    """M4, case 2: M (mu 1^T), the dot product of each row with mu in *every* slot; one level.

    Also in slots beyond a row: mask it where these are to be zero.
    """
    return [everywhere(m, m.times(row, mu), length) for row in M]


# ---- which method ----


@dataclass(frozen=True)
class Weights:
    """What operations cost, in products with clear numbers: the paper's ratios (table 2, section 6.1.1)."""

    rotation: float = 6.2
    weighing: float = 1.0
    product: float = 8.0


@dataclass(frozen=True)
class Choice:
    """The cheapest method for a product, and what each would cost."""

    shape: tuple[int, int, int]
    method: Method
    costs: dict[Method, float]

    def __str__(self) -> str:
        a, b, c = self.shape
        others = ", ".join(f"{method.name} {cost:,.0f}" for method, cost in self.costs.items())
        return f"{a} x {b} x {c}: {self.method.name} ({others})"


def operations(method: Method, a: int, b: int, c: int) -> tuple[int, int, int]:
    """Products with the factor, with masks, and rotations; tests compare them with what is counted."""
    if method is Method.M1:
        return a * c, a * c, a * c * _log2(b)
    if method is Method.M2:
        return a * b, a * b, a * b * _log2(b)
    baby = min(baby_steps(b), period(b))
    giant = period(b) // baby
    return a * period(b), 0, a * (baby - 1 + giant - 1)


def choose(a: int, b: int, c: int, *, encrypted: bool = False, weights: Weights | None = None) -> Choice:
    """The cheapest of M1 to M3 for (a x b) times (b x c), by measured weights."""
    weights = weights or Weights()
    costs = {}
    for method in Method:
        factors, masks, rotations = operations(method, a, b, c)
        costs[method] = (
            factors * (weights.product if encrypted else weights.weighing)
            + masks * weights.weighing
            + rotations * weights.rotation
        )
    return Choice((a, b, c), min(costs, key=lambda k: costs[k]), costs)


def _log2(length: int) -> int:
    return period(length).bit_length() - 1
