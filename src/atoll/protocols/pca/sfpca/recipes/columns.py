"""Columns of one table, each with one party: what a party forms of its own, and the exact covariance.

Every party subtracts its own columns' means itself, so nothing of the mean enters the covariance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.protocols.pca.sfpca.recipes.moments import Moments
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import with_one_left

Deviations = npt.NDArray[np.int64]

_BATCH_VALUES = 1 << 20
"""Values of the table that are encrypted at a time."""
_SUMMED_ROWS = 1 << 13
_TRACE_FRACTION, _SMUDGED = 96, 16


@dataclass(frozen=True)
class Split:
    """Whose columns stand where in the joint table; ``tables``: what this role knows of them.

    A table holds the deviations from the columns' means, as integers / 2^fraction, in units of the
    data's range; all tables have their rows in one order.
    """

    rows: int
    owners: tuple[str, ...]
    widths: tuple[int, ...]
    fraction: int
    tables: Mapping[str, Deviations] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Split({self.rows} rows, {len(self.owners)} owners, {self.columns} columns)"

    @property
    def columns(self) -> int:
        return sum(self.widths)

    def blocks(self) -> list[tuple[str, slice]]:
        """Every owner with the place of its columns."""
        ends = list(accumulate(self.widths))
        return [
            (owner, slice(end - width, end))
            for owner, width, end in zip(self.owners, self.widths, ends, strict=True)
        ]

    def of(self, owner: str, rows: slice) -> Deviations | None:
        """Some rows of an owner's columns, where this role knows them."""
        table = self.tables.get(owner)
        return None if table is None else table[rows]


def evenly_split(owners: Sequence[str], columns: int, rows: int) -> Split:
    """So many columns, dealt out evenly, of which nothing is known."""
    count = len(owners)
    widths = [max(1, columns // count + (i < columns % count)) for i in range(count)]
    return Split(rows, tuple(owners), tuple(widths), 60)


def own_columns(A: Deviations, before: int, columns: int) -> tuple[Moments, Deviations]:
    """The sums of a party's columns at their place among all, and the columns without their means.

    The mean is rounded to the grid: what that leaves of it is squared, and far below the last digit. The sum
    of squares is as good as a double; nothing cancels in it any more.
    """
    n, width = A.shape
    totals = column_totals(A)
    table = A - np.array([(2 * total + n) // (2 * n) for total in totals], dtype=np.int64)
    squares = sum(
        float(np.square(table[start:stop].astype(np.float64)).sum()) for start, stop in steps(n, _SUMMED_ROWS)
    )
    u = np.zeros(columns, dtype=object)
    u[before : before + width] = totals
    return Moments(n, u, int(squares), None), table


def column_totals(A: Deviations) -> list[int]:
    """The sum of every column, exactly, although it may be wider than a word."""
    half, totals = 32, np.zeros(A.shape[1], dtype=object)
    for start, stop in steps(len(A), _SUMMED_ROWS):
        high, low = A[start:stop] >> half, A[start:stop] & ((1 << half) - 1)
        totals += (high.sum(axis=0).astype(object) << half) + low.sum(axis=0).astype(object)
    return [int(total) for total in totals]


async def scatter(machine: Machine, split: Split, shown: bool) -> Shared:
    """X^T X / 2^e, exactly, where 2^e is the next power of two above the number of rows."""
    e = ceil(log2(split.rows))
    step = max(1, _BATCH_VALUES // split.columns)
    parts = [
        machine.hstack(await machine.products(_gram_jobs(machine, split, slice(start, stop), e, shown)))
        for start, stop in steps(split.rows, step)
    ]
    return added(machine, parts, bits=e + 1).times_power_of_two(-e)


def _gram_jobs(machine: Machine, split: Split, rows: slice, e: int, shown: bool) -> list[Job]:
    """Everybody's columns, encrypted together, times each owner's own."""
    f, count = split.fraction, rows.stop - rows.start
    # A deviation is below two ranges; squared, no column exceeds the number of rows.
    left = machine.private(None, _embedded(split, rows), (split.columns, count), f, 1)
    norm = ceil((e + log2(max(split.widths))) / 2)
    rights = [
        machine.private(owner, split.of(owner, rows), (count, width), f, 1, norm)
        for owner, width in zip(split.owners, split.widths, strict=True)
    ]
    jobs = [Job(((left, right),), 2 * f, e + 1, "covariance", ahead=shown) for right in rights]
    return with_one_left(machine, jobs)


def _embedded(split: Split, rows: slice) -> Any:
    """The transposed table, zero where this role does not know it."""
    if not split.tables:
        return None
    values = np.zeros((split.columns, rows.stop - rows.start), np.int64)
    for owner, place in split.blocks():
        known = split.of(owner, rows)
        if known is not None:
            values[place] = known.T
    return values


async def total_variance(machine: Machine, split: Split, squares: int | None) -> float:
    """tr C with divisor n, in units of the data's range; opened."""
    fraction, bits = _TRACE_FRACTION + _SMUDGED, 1 + ceil(log2(split.columns))
    own: Any = None if squares is None else [[_over(squares, split, fraction)]]
    parts = machine.private(None, _objects(own), (1, 1), fraction, bits)
    first = split.owners[0]
    one = machine.private(first, np.array([[1]]) if first in split.tables else None, (1, 1), 0, 1)
    trace = await machine.product((one, parts), fraction=fraction, bits=bits, name="total variance")
    return float((await machine.opened(trace, smudge_bits=_SMUDGED))[0, 0])


def _over(squares: int, split: Split, fraction: int) -> int:
    """A sum of squares over n, at that fraction."""
    return (squares << fraction) // (split.rows << (2 * split.fraction))


def _objects(values: Any) -> Any:
    return None if values is None else np.array(values, dtype=object)


# ---- what the forms share ----


def steps(rows: int, step: int) -> list[tuple[int, int]]:
    """The rows in pieces."""
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def added(machine: Machine, parts: Sequence[Shared], *, bits: int) -> Shared:
    """The sum of matrices of one scale."""
    return machine.combine([(1.0, part) for part in parts], bits=bits) if len(parts) > 1 else parts[0]
