"""Where PPPCA's numbers do not fit the fixed-point grid: whose they are, and of which column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from atoll import fixedpoint
from atoll.data.island import Matrix
from atoll.data.statistics import Moments
from atoll.errors import RangeOverflow
from atoll.protocols.pca.decompose import is_constant

# A sum of squared deviations below this has fewer than 40 bits on the grid.
SMALLEST_SCATTER = 2.0 ** (40 - fixedpoint.FRACTION_BITS)

_HINT = "divide the column by a public power of ten, everywhere"


def check_own(local: Moments, island: str, columns: Sequence[str], contributors: int) -> None:
    """Refuse an island's own numbers before any of them leaves: later, others' would look wrong."""
    scatter = np.diag(local.scatter)
    with np.errstate(over="ignore"):
        # A column that is constant here may be so everywhere: then nothing large is squared.
        still = is_constant(scatter / local.n, local.mean, local.n)
        squares = scatter + local.n * np.where(still, np.abs(local.mean), np.square(local.mean))
    wrong = ~(squares < fixedpoint.bound(contributors))  # also true for nan
    if wrong.any():
        raise RangeOverflow(
            f"{island}: column {columns[int(np.argmax(wrong))]!r} has values so large that the sum of their "
            f"squares is outside the fixed-point range, ±{fixedpoint.bound(contributors):.3g} for "
            f"{contributors} contributors",
            hint=_HINT,
        )


@contextmanager
def named(island: str, columns: Sequence[str]) -> Iterator[None]:
    """An overflow about the joint mean, with its column: this island's rows alone do fit."""
    try:
        yield
    except RangeOverflow as error:
        if error.entry is None:
            raise
        raise RangeOverflow(
            f"column {_column(error.entry, columns)!r}: the rows of {island} are so far from the joint mean "
            "that their squared deviations are outside the fixed-point range; in this column islands hold "
            "values of very different size",
            hint=_HINT,
        ) from None


def _column(entry: int, columns: Sequence[str]) -> str:
    """Of an entry of what is sent: a sum for each column, then the upper triangle, row by row."""
    d = len(columns)
    return columns[entry] if entry < d else columns[int(np.triu_indices(d)[0][entry - d])]


def check_grid(C: Matrix, mean: Matrix, n: int, columns: tuple[str, ...], standardize: bool) -> None:
    """Refuse deviations so small that the grid cannot hold them: an underflow is no result either."""
    diagonal, varies = np.diag(C) * (n - 1), ~is_constant(np.diag(C) * (n - 1) / n, mean, n)
    small = (diagonal < SMALLEST_SCATTER) & varies
    if small.any() and (standardize or diagonal.max() < SMALLEST_SCATTER):
        raise RangeOverflow(
            f"column {columns[int(np.argmax(small))]!r} deviates by less than the fixed-point grid resolves",
            hint="multiply the column by a public power of ten",
        )
