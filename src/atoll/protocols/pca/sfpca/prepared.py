"""Public facts and local sums that a provider prepares before encryption."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.data.island import Chosen, Matrix
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca import schema
from atoll.protocols.pca.sfpca.private import Noisy
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.protocols.pca.sfpca.recipes.columns import Deviations, Split, own_columns
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION
from atoll.protocols.pca.sfpca.recipes.moments import (
    QUICK_ROWS,
    Moments,
    RowTable,
    exact_moments,
    on_grid,
    quick_moments_of,
    row_moments,
    total_moments,
)
from atoll.protocols.pca.sfpca.recipes.rows import prefers_rows
from atoll.study.address import Address
from atoll.study.model import Study

_EXACT_ROWS = 4096
"""Exact sums are added up as Python integers, once for so many rows."""


class Public(NamedTuple):
    """What every role knows before the first encryption."""

    columns: tuple[str, ...]
    named: bool
    rows: tuple[int, ...]
    range: Range
    k: int
    recipes: tuple[str, ...] = ()
    """Run one after the other while certificates refuse."""
    widths: tuple[int, ...] = ()
    """Where islands hold columns: how many each of them has."""
    noisy: Noisy | None = None
    """With an epsilon: what the noise did to the covariance."""

    @property
    def n(self) -> int:
        return schema.joint_rows(self.rows, self.widths)


class OwnSums(NamedTuple):
    """Sums that a provider makes of its own table; deviations only where islands hold columns."""

    moments: Moments
    deviations: Deviations | None = None

    def __repr__(self) -> str:
        return f"OwnSums({self.moments!r})"  # deviations are rows


def own_sums(table: Chosen, public: Public, own: slice, exact: bool) -> OwnSums:
    """A provider's own sums, on the public grid."""
    if not public.widths:
        keep_rows = not exact and prefers_rows(public.rows, len(public.columns))
        return OwnSums(own_moments(table, public.range, exact, keep_rows))
    # Products with others' columns need all rows at once.
    A = on_grid(table.whole() - public.range.centre[own], public.range.exponent, DATA_FRACTION)
    return OwnSums(*own_columns(A, own.start, len(public.columns)))


def own_moments(table: Chosen, range_: Range, exact: bool, keep_rows: bool = False) -> Moments:
    """A provider's sums, on the public grid, piece by piece so that temporaries stay small."""
    if not exact and not keep_rows:
        there = table.each_part(partial(_quick, range_=range_))  # on a cluster, if the rows lie there
        return _quick_of(table.blocks(QUICK_ROWS), range_) if there is None else total_moments(there)
    of_piece, step = (exact_moments, _EXACT_ROWS) if exact else (row_moments, QUICK_ROWS)
    parts = table.mapped(partial(_on_grid, of_piece=of_piece, range_=range_), step)
    # Few rows of many columns are multiplied as they are.
    rows = RowTable(table.whole(), range_.centre, range_.exponent) if keep_rows else None
    return total_moments(parts)._replace(rows=rows)


def _on_grid(X: Matrix, of_piece: Callable[[npt.NDArray[np.int64]], Moments], range_: Range) -> Moments:
    return of_piece(on_grid(X - range_.centre, range_.exponent, DATA_FRACTION))


def _quick(rows: Matrix, range_: Range) -> Moments:
    """Of rows that lie elsewhere."""
    return _quick_of((rows[i : i + QUICK_ROWS] for i in range(0, max(1, len(rows)), QUICK_ROWS)), range_)


def _quick_of(blocks: Iterable[Matrix], range_: Range) -> Moments:
    room = np.empty((QUICK_ROWS, len(range_.centre)), np.int64)
    tables = (RowTable(X, range_.centre, range_.exponent) for X in blocks)
    return quick_moments_of(rows.on(DATA_FRACTION, room) for rows in tables)


def split_of(study: Study, me: Address, public: Public, sums: OwnSums | None) -> Split | None:
    """Whose columns stand where, with those of this role."""
    if not public.widths:
        return None
    owners = tuple(str(a) for a in study.who(PROVIDER))
    own = {str(me): sums.deviations} if sums is not None and sums.deviations is not None else {}
    return Split(public.n, owners, public.widths, DATA_FRACTION, own)
