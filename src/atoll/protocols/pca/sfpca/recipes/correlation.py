"""Standardised columns: the correlation matrix R = D S D, while nobody sees a variance.

S is the scatter matrix of the centred rows. Its diagonal, formed exactly on shares, says the variances;
D = diag(S)^(-1/2) is computed entry by entry under encryption. The direct recipe forms R on shares, every
row times its own secret number, twice. The strict one never does: it multiplies its sketch with D, with
everybody's own part of S, and with D again.

Bounds (columns lie in [-1, 1]): S_jj <= 1 and S_jj d_j^2 <= 1 whatever the data, so by Cauchy-Schwarz
|S_ij d_j| <= 1 and |R_ij| <= 1, constant columns included. Rounding moves an entry of R by less than
2^-90, and S_jj d_j^2 by less than 2^-78 from one.

A column without variance has a row of zeros in R. The trace of R is so the number of columns that vary:
the total variance, an output. A column that varies so little that d_j falls short (a standard deviation
below about 1/400,000 of its range) leaves the trace short of a whole number, and the run is refused; one
below 2e-13 cannot be told from a constant, in doubles neither, and counts as one.

A study may state ``least_deviation``: every column that is not constant varies at least so much. Fewer
polynomials then do; they fall short of one below it as the others do below 1/400,000, and the run is refused.
What varies some millions of times less than that counts as constant.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from atoll.errors import ParameterError
from atoll.secret_matrices.entrywise import LONG_ROOTS, ROOT_BITS, SHORT_ROOTS, inverse_roots
from atoll.secret_matrices.machine import Machine, Shared
from atoll.secret_matrices.polynomials import schedule

_MATRIX_FRACTION = 120
_SCATTER_FRACTION = 144
"""Of S where it is scaled: D, twice, makes 2^-104 of its rounding at most."""
_ROOT_FRACTION = 88
_RESULT_FRACTION = 60
_TRACE_BITS = 44
"""The trace is opened under noise of 2^-44: wide over rounding, narrow under a column that falls short."""
_WHOLE = 2.0**-40


class Standardised(NamedTuple):
    """What turns rows into standardised ones; all secret but ``varying``."""

    varying: int
    """How many columns are not constant: the trace of the correlation matrix, opened."""
    D: Shared
    """S_jj^(-1/2), a column."""
    u: Shared
    """The columns' sums, in units of S^(1/2)."""


def roots_for(least_deviation: float | None) -> str:
    """The shortest schedule of :func:`inverse_roots` for columns that vary at least so much.

    Units are powers of two, up to twice what no value of a column exceeds.
    """
    least = (least_deviation or 0.0) / 2
    fitting = (name for name in SHORT_ROOTS if least >= 2 ** schedule(name).range_log2)
    return next(fitting, LONG_ROOTS)


async def standardised(
    machine: Machine, variances: Shared, u: Shared, roots: str = LONG_ROOTS
) -> Standardised:
    """D from the diagonal of the scatter matrix S of columns in [-1, 1]; opens how many columns vary."""
    m = variances.shape[0]
    D, squares = await inverse_roots(machine, variances, roots)
    D = replace(machine.combine([(1.0, D)], fraction=_ROOT_FRACTION, bits=ROOT_BITS), bits=ROOT_BITS)
    # The diagonal of R is S_jj d_j^2, which the roots come with.
    trace = machine.times_public(np.ones((1, m)), squares, fraction=squares.fraction, bits=halvings(m) + 1)
    smudge = squares.fraction - _TRACE_BITS - machine.n_providers.bit_length()
    opened = await machine.opened(trace, smudge_bits=smudge)
    return Standardised(_varying(float(opened[0, 0]), roots), D, u)


async def correlations(machine: Machine, S: Shared, D: Shared) -> Shared:
    """D S D over 2^halvings: its trace is at most one."""
    R = S
    if S.fraction > _SCATTER_FRACTION:
        R = machine.combine([(1.0, S)], fraction=_SCATTER_FRACTION, bits=S.bits)
    for _ in range(2):
        rows = machine.transpose(R)
        R = await machine.product(
            (D, rows), fraction=_MATRIX_FRACTION, bits=1, name="scaled rows", entrywise=True
        )
    return R.times_power_of_two(-halvings(S.shape[0]))


def halvings(m: int) -> int:
    """How often the number of columns is halved until it is at most one."""
    return ceil(log2(m))


def _varying(trace: float, roots: str) -> int:
    whole = round(trace)
    if abs(trace - whole) <= _WHOLE:
        return whole
    if roots != LONG_ROOTS:
        raise ParameterError(
            "a column varies less than the study's least_deviation says",
            hint="leave least_deviation out, or make it smaller",
        )
    raise ParameterError(
        "a column varies by less than 1/400,000 of its range, too little to standardise it",
        hint="give bounds that fit every column, or subtract a public number from those far from zero",
    )


async def projection(machine: Machine, W: Shared, table: Standardised) -> tuple[Shared, Shared]:
    """W D, which turns rows into scores, and W D u."""
    DW = await machine.product(
        (table.D, machine.transpose(W)),
        fraction=_RESULT_FRACTION,
        bits=ROOT_BITS + 1,
        name="scaled rows",
        entrywise=True,
    )
    WD = machine.transpose(DW)
    # Rows of W have length one and entries of u are below one.
    offset = await machine.product(
        (WD, table.u), fraction=_RESULT_FRACTION, bits=score_bits(W.shape[1]), name="offset"
    )
    return WD, offset


def score_bits(m: int) -> int:
    """A bound on a standardised row or mean along a component: sqrt(m) of the largest entry, twice."""
    return ROOT_BITS + 2 + ceil(log2(m) / 2)
