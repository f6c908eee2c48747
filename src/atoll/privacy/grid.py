"""Rows on the integer grid: cut to a radius, quantised toward zero, multiplied in exact integers.

A sensitivity holds for real numbers; rounded sums of products break it. So every row becomes a vector
of integers first, its integer norm is checked, and sums and products of integers are exact. Each
row's integers depend on that row and on public numbers only.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from atoll.errors import DataError, RangeOverflow

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# A row of full length has norm 2^20: products of 2^40, of which 2^13 rows add up exactly in float64.
ROW_BITS = 20
ROW_UNITS = 1 << ROW_BITS
MOMENT_UNITS = ROW_UNITS * ROW_UNITS

_BLOCK_ROWS = 1 << (53 - 2 * ROW_BITS)
# Unit rows are at most this in any coordinate, rounding included; so squares fit int64 up to 2^20 columns.
_LONGEST_UNIT = 2.0
MAX_COLUMNS = 1 << 20
# Below, float64 has fewer digits.
_SMALLEST_RADIUS = float(np.finfo(np.float64).tiny)
# With so many rows the sums of one table could leave int64.
MAX_ROWS = 1 << (62 - 2 * ROW_BITS)


def checked_rows(rows: npt.ArrayLike, features: int) -> Floats:
    """A finite float64 table in row order, or an error that names the first bad row."""
    table = np.ascontiguousarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != features:
        raise DataError(f"expected a table with {features} columns, got shape {table.shape}")
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise DataError(
            f"row {int(np.flatnonzero(~finite)[0])} holds a value that is not a finite number",
            hint="impute or drop such rows before a private analysis",
        )
    check_size(table.shape[0])
    if features >= MAX_COLUMNS:
        raise RangeOverflow(
            f"a table has {features} columns, and integer norms hold fewer than {MAX_COLUMNS}"
        )
    return table


def check_size(rows: int, whose: str = "a table") -> None:
    """Refuse a table whose sums might not fit; to be asked before a release is paid for."""
    if rows >= MAX_ROWS:
        raise RangeOverflow(
            f"{whose} has {rows} rows, and the grid holds sums of fewer than {MAX_ROWS}",
            hint="split the table between two islands",
        )


def row_norms(table: Floats) -> Floats:
    """Euclidean norms; a row too long for float64 has norm infinity."""
    largest, _, norms = _scaled(table)
    with np.errstate(over="ignore"):
        return np.asarray(largest * norms)


def _scaled(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Each row's largest entry, the row over it, and the norm of that, which has all its digits."""
    largest = np.abs(table).max(axis=1, initial=0.0)
    largest = np.where(largest > 0.0, largest, 1.0)
    scaled = table / largest[:, None]
    return largest, scaled, np.sqrt((scaled * scaled).sum(axis=1))


def check_radius(radius: float) -> None:
    """A radius of zero, none at all, or one with lost digits would turn rows into what they are not."""
    if not (math.isfinite(radius) and radius >= _SMALLEST_RADIUS):
        raise DataError(
            f"rows cannot be cut at a radius of {radius!r}", hint="a radius is finite and positive"
        )


def shorten(table: Floats, radius: float) -> Floats:
    """Rows longer than ``radius`` are shortened to it."""
    check_radius(radius)
    norms = row_norms(table)
    # Divided first: the factor radius/norm may underflow where the quotient does not.
    return np.asarray(
        np.where((norms > radius)[:, None], table / np.maximum(norms, radius)[:, None] * radius, table)
    )


def cut_to_grid(table: Floats, radius: float) -> Integers:
    """Rows longer than ``radius`` are shortened to it; one unit is radius/2^20."""
    check_radius(radius)
    norms = row_norms(table)
    within = table / np.maximum(norms, radius)[:, None]
    return _truncate(np.where((norms > radius)[:, None], _directions(table), within))


def normalise_to_grid(table: Floats) -> Integers:
    """Every row but a zero row gets full length."""
    return _truncate(_directions(table))


def _directions(table: Floats) -> Floats:
    """Rows of length one, and zero rows. Not row/norm: of a row near 2^-1074 the norm has no digits left."""
    _, scaled, norms = _scaled(table)
    return np.asarray(scaled / np.where(norms > 0.0, norms, 1.0)[:, None])


def _truncate(unit_rows: Floats) -> Integers:
    """Toward zero; where float rounding left a row too long, it is shortened until its integers fit.

    The sensitivity is the largest integer norm, 2^20, and the last lines see to it whatever came before.
    They are a net, not the rule. With u = 2^-53 and s the row over its largest entry: every square, the
    square root and the quotient are wrong by a factor within 1 +- u, their sum of d terms within 1 +- d u
    in any order of adding. So a direction's squared norm is at most 1 + (d + 6) u, and toward zero makes no
    entry longer: the integers' squared norm, a whole number, is at most 2^40 (1 + (d + 6) u) < 2^40 + 1,
    which is 2^40, up to 8,000 columns; NumPy's sum by halves has an error of about 20 u + u log2 d in place
    of d u, which serves 2^20. A row within the radius comes out with an error of the same size.

    What is not finite has no integer: cast all the same, its square wraps around to nothing and passes for
    a short row, which then stands out in the sum beyond any noise.
    """
    if not (np.abs(unit_rows) <= _LONGEST_UNIT).all():  # neither is true of a NaN
        raise DataError("a row is not a finite number after it was scaled; it was not used")
    integers = np.trunc(unit_rows * ROW_UNITS).astype(np.int64)
    too_long = _integer_squared_norms(integers) > MOMENT_UNITS
    while too_long.any():
        shorter = np.trunc(integers[too_long] * (1.0 - 2.0**-ROW_BITS)).astype(np.int64)
        integers[too_long] = shorter
        too_long = _integer_squared_norms(integers) > MOMENT_UNITS
    return integers


def _integer_squared_norms(integers: Integers) -> Integers:
    return np.asarray((integers * integers).sum(axis=1))


def row_sum(integers: Integers) -> Integers:
    """Exact sum of the rows."""
    return np.asarray(integers.sum(axis=0, dtype=np.int64))


def second_moment_triangle(integers: Integers) -> Integers:
    """Exact sum of x x^T as [diagonal, upper triangle row by row].

    Blocks are so small that every partial sum is an integer below 2^53: float64 products are exact
    whatever the order of the additions, and run at the speed of BLAS.
    """
    features = integers.shape[1]
    total = np.zeros((features, features), dtype=np.int64)
    for start in range(0, integers.shape[0], _BLOCK_ROWS):
        block = integers[start : start + _BLOCK_ROWS].astype(np.float64)
        total += (block.T @ block).astype(np.int64)
    return pack_triangle(total)


def pack_triangle(matrix: Integers) -> Integers:
    """[diagonal, upper triangle row by row]."""
    upper = np.triu_indices(matrix.shape[0], 1)
    return np.concatenate([np.diagonal(matrix), matrix[upper]])


def unpack_triangle(packed: npt.ArrayLike, features: int) -> Floats:
    """The symmetric matrix of ``pack_triangle``, in float64."""
    values = np.asarray(packed).astype(np.float64)
    matrix = np.zeros((features, features))
    upper = np.triu_indices(features, 1)
    matrix[upper] = values[features:]
    matrix += matrix.T
    matrix[np.diag_indices(features)] = values[:features]
    return matrix


def triangle_size(features: int) -> int:
    return features * (features + 1) // 2
