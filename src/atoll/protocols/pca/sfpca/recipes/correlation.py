"""Standardised columns: the correlation matrix as shares, while nobody sees a variance.

The scatter matrix S of the centred rows is formed exactly, on shares. Its diagonal says the variances;
D = diag(S)^(-1/2) is computed entry by entry under encryption, and R = D S D in two products whose
right side, D, is diagonal and therefore cut into small squares. R is what both recipes then decompose.

Bounds (columns lie in [-1, 1]): S_jj <= 1 and S_jj d_j^2 <= 1 whatever the data, so by Cauchy-Schwarz
|S_ij d_j| <= 1 and |R_ij| <= 1, constant columns included. Rounding moves an entry of R by less than
2^-90, and S_jj d_j^2 by less than 2^-78 from one.

A column without variance has a row of zeros in R. The trace of R is so the number of columns that vary:
the total variance, an output. A column that varies so little that d_j falls short (a standard deviation
below about 1/400,000 of its range) leaves the trace short of a whole number, and the run is refused; one
below 2e-13 cannot be told from a constant, in doubles neither, and counts as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, isqrt, log2
from typing import NamedTuple

from atoll.errors import ParameterError
from atoll.secret_matrices.entrywise import ROOT_BITS, groups, inverse_roots
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import widest_ring

_MATRIX_FRACTION = 120
_ROOT_FRACTION = 88
_RESULT_FRACTION = 60
_TRACE_BITS = 44
"""The trace is opened under noise of 2^-44: wide over rounding, narrow under a column that falls short."""
_WHOLE = 2.0**-40


class Standardised(NamedTuple):
    """The columns' correlations, and what turns rows into standardised ones; all secret but ``varying``."""

    R: Shared
    """The correlation matrix over 2^``halvings``: its trace is at most one."""
    halvings: int
    varying: int
    """How many columns are not constant: the trace of the correlation matrix, opened."""
    roots: tuple[Shared, ...]
    """S_jj^(-1/2), as the diagonals of small squares."""
    u: Shared
    """The columns' sums, in units of S^(1/2)."""


async def standardised(machine: Machine, S: Shared, u: Shared) -> Standardised:
    """D S D for the scatter matrix S of columns in [-1, 1]; opens how many columns vary."""
    m = S.shape[0]
    D = await inverse_roots(machine, machine.diagonal(S))
    D = replace(machine.combine([(1.0, D)], fraction=_ROOT_FRACTION, bits=ROOT_BITS), bits=ROOT_BITS)
    roots = tuple(_square(machine, machine.part(D, cut, slice(None))) for cut in _cuts(m))
    half = machine.transpose(await _scaled(machine, S, roots, _MATRIX_FRACTION, 1))
    R = await _scaled(machine, half, roots, _MATRIX_FRACTION, 1)
    halvings = ceil(log2(m))
    R = R.times_power_of_two(-halvings)
    smudge = _MATRIX_FRACTION - _TRACE_BITS - machine.n_providers.bit_length()
    opened = await machine.opened(machine.trace(R, bits=1), smudge_bits=smudge)
    return Standardised(R, halvings, _varying(float(opened[0, 0]) * 2.0**halvings), roots, u)


def _varying(trace: float) -> int:
    whole = round(trace)
    if abs(trace - whole) > _WHOLE:
        raise ParameterError(
            "a column varies by less than 1/400,000 of its range, too little to standardise it",
            hint="give bounds that fit every column, or subtract a public number from those far from zero",
        )
    return whole


async def projection(machine: Machine, W: Shared, table: Standardised) -> tuple[Shared, Shared]:
    """W D, which turns rows into scores, and W D u."""
    WD = await _scaled(machine, W, table.roots, _RESULT_FRACTION, ROOT_BITS + 1)
    # Rows of W have length one and entries of u are below one.
    offset = await machine.product(
        (WD, table.u), fraction=_RESULT_FRACTION, bits=score_bits(W.shape[1]), name="offset"
    )
    return WD, offset


def score_bits(m: int) -> int:
    """A bound on a standardised row or mean along a component: sqrt(m) of the largest entry, twice."""
    return ROOT_BITS + 2 + ceil(log2(m) / 2)


def _square(machine: Machine, column: Shared) -> Shared:
    norm = column.bits + ceil(log2(column.shape[0]) / 2)
    return replace(machine.diag(column), norm_bits=norm)


def _cuts(m: int) -> list[slice]:
    """Columns of which a whole run, m x g, times its g x g square fills one polynomial."""
    return groups(m, max(1, isqrt(widest_ring().degree // m)))


async def _scaled(machine: Machine, X: Shared, roots: Sequence[Shared], fraction: int, bits: int) -> Shared:
    """X D, every column times its own secret number."""
    jobs, start = [], 0
    for square in roots:
        stop = start + square.shape[0]
        left = machine.part(X, slice(None), slice(start, stop))
        jobs.append(Job(((left, square),), fraction, bits, "scaled columns"))
        start = stop
    return machine.hstack(await machine.products(jobs))
