"""Local statistics in one pass over the rows: count, mean and centred scatter, block by block.

Blocks are merged by the pairwise update of Chan, Golub and LeVeque (1983), so a table is read once, in
pieces that fit the cache, on all cores. A table whose means are large beside its deviations is read
relative to its first row: means are kept as that row plus a small difference, and digits that a double
cannot hold are never asked of it.

The blocks and their order follow from the table's shape alone: the same table gives the same bits,
however many cores work on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.data.island import BLOCK_BYTES, Chosen, Matrix
from atoll.errors import DataError
from atoll.threads import in_order

_BLOCKS_PER_SPAN = 8
_SPAN_BYTES = 1 << 26
"""Blocks of wide tables are large: fewer of them are read at a time."""

# Squared mean over variance of a column up to which squares are formed before centring: a difference of
# squares then loses 4 of a double's nearly 16 digits.
_HARMLESS_MEAN = 1e4


class Moments(NamedTuple):
    """n, the mean as ``base + delta``, and the scatter about it."""

    n: int
    base: Matrix
    delta: Matrix
    scatter: Matrix

    @property
    def mean(self) -> Matrix:
        return self.base + self.delta


def moments(table: Chosen) -> Moments:
    """The table's moments; a missing or infinite value is refused with its place."""
    name, n_rows, d = table.island.name, table.n_rows, len(table.columns)
    if n_rows == 0:
        raise DataError(f"{name}: the table has no rows", hint="leave the island out of the study")
    step = max(BLOCK_BYTES // (8 * d), min(d, n_rows))  # products of blocks lower than wide are slow
    span = step * max(1, min(_BLOCKS_PER_SPAN, _SPAN_BYTES // (8 * d * step)))
    with np.errstate(invalid="ignore", over="ignore"):
        spans = table.blocks(span)
        first = next(spans)
        work = partial(_span, base=_base(first[:step]), step=step)
        parts = table.each_part(partial(_part, work=work))  # on a cluster, if the rows lie there
        if parts is None:
            parts = in_order(work, chain([first], spans), -(-n_rows // span))
        total = reduce(_merge, (part for part in parts if part is not None))
    if not np.isfinite(total.delta).all() or not np.isfinite(total.base).all():
        raise_for_missing(table)
        raise _too_large(table, ~np.isfinite(total.mean), "the sum of the values")
    if not np.isfinite(np.diag(total.scatter)).all():
        raise _too_large(table, ~np.isfinite(np.diag(total.scatter)), "the sum of the squares")
    return total


def _too_large(table: Chosen, wrong: Matrix, what: str) -> DataError:
    column = table.columns[int(np.argmax(wrong))]
    return DataError(
        f"{table.island.name}: {what} of column {column!r} exceeds a double's range",
        hint="divide the column by a public power of ten, everywhere",
    )


def _base(first: Matrix) -> Matrix:
    """Zero where means are harmless, else the first row."""
    mean = first.mean(axis=0)
    offset = first.mean(axis=0) ** 2 > _HARMLESS_MEAN * np.square(first - mean).mean(axis=0)
    return np.array(first[0]) if offset.any() else np.zeros(first.shape[1])


def _part(rows: Matrix, work: Callable[[Matrix], Moments]) -> Moments | None:
    """Of rows that lie elsewhere: there may be none."""
    with np.errstate(invalid="ignore", over="ignore"):
        return work(rows) if len(rows) else None


def _span(rows: Matrix, base: Matrix, step: int) -> Moments:
    return reduce(_merge, (_block(rows[i : i + step], base) for i in range(0, len(rows), step)))


def _block(rows: Matrix, base: Matrix) -> Moments:
    n = len(rows)
    rows = rows - base if base.any() else rows
    delta = np.ones(n) @ rows / n
    squares = rows.T @ rows
    of_mean = n * delta * delta
    if (of_mean > _HARMLESS_MEAN * (np.diag(squares) - of_mean)).any():
        rows = rows - delta
        left = np.ones(n) @ rows  # what the rounding of delta left over
        return Moments(n, base, delta, rows.T @ rows - np.outer(left / n, left))
    return Moments(n, base, delta, squares - np.outer(n * delta, delta))


def _merge(a: Moments, b: Moments) -> Moments:
    """The moments of two parts of one table."""
    n = a.n + b.n
    shift = b.delta - a.delta
    scatter = a.scatter + b.scatter
    scatter += np.outer(shift * (a.n * b.n / n), shift)
    return Moments(n, a.base, a.delta + shift * (b.n / n), scatter)


def about(local: Moments, centre: Matrix) -> tuple[Matrix, Matrix]:
    """Sum and scatter of the rows about another centre than the table's own mean."""
    shift = (local.base - centre) + local.delta  # never a difference of rounded means
    return local.n * shift, local.scatter + np.outer(local.n * shift, shift)


def raise_for_missing(
    table: Chosen, hint: str = "drop the row, or fill it in; a study of PCA can do both ([table] missing)"
) -> None:
    """Name the first missing or infinite value, and how many such values its column holds."""
    rows, first, total = 0, None, np.zeros((2, len(table.columns)), np.int64)
    for n, place, counts in table.mapped(_wrong):
        if first is None and place is not None:
            first = (rows + place[0], place[1], place[2])
        rows, total = rows + n, total + counts
    if first is None:
        return
    row, column, infinite = first
    count, kind = int(total[infinite, column]), ("a missing value (NaN)", "an infinite value (inf)")[infinite]
    more = f" (the first of {count:,})" if count > 1 else ""
    raise DataError(
        f"{table.island.name}: column {table.columns[column]!r} holds {kind} at "
        f"{table.island.place(row)}{more}",
        hint=hint,
    )


def _wrong(block: Matrix) -> tuple[int, tuple[int, int, int] | None, npt.NDArray[np.int64]]:
    """Rows, the first place that is missing (0) or infinite (1), and how many there are of both by column."""
    wrong = np.argwhere(~np.isfinite(block))
    counts = np.array([np.isnan(block).sum(axis=0), np.isinf(block).sum(axis=0)])
    if not len(wrong):
        return len(block), None, counts
    row, column = (int(i) for i in wrong[0])
    return len(block), (row, column, int(np.isinf(block[row, column]))), counts


def triangle(matrix: Matrix) -> Matrix:
    """The upper triangle as a vector."""
    return matrix[np.triu_indices(len(matrix))]


def from_triangle(vector: Matrix, d: int) -> Matrix:
    """A symmetric matrix from its upper triangle."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = vector
    return matrix + np.triu(matrix, 1).T
