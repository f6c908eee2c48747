"""Parties own columns: the covariance as X^T X, without forming it, and the scores of the common rows.

The paper's appendix D.2. P X^T is a sum over the parties' columns and is refreshed; times X, each party's
columns of P C are a product of their own, and are put side by side.

Bounds: X is the table without its means over sqrt(n tr C (1 + 2^-6)), so its Frobenius norm, and that of
any part of it, is below one also after rounding. P0 X^T then has Gaussian entries of standard deviation at
most 1 / (sqrt(rho) + 8), of which none reaches two (2^-200), and for the same reason as in P0 C, whose norm
is below one, the norm of P X^T is below one from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.errors import RangeOverflow
from atoll.protocols.pca.sfpca.recipes.columns import Split, added, steps, total_variance
from atoll.protocols.pca.sfpca.recipes.covariance import Covariance, Policy
from atoll.protocols.pca.sfpca.recipes.direct import Inputs, check_variance
from atoll.randomness import expand
from atoll.secret_matrices.machine import Job, Machine, Shared
from atoll.secret_matrices.widths import with_one_left

_PIECE_ROWS = 1 << 14
"""Rows of one product."""
_GROUP_PIECES = 4
"""Pieces of rows whose products are under way at a time."""
_EXTRA_BITS = 3
"""Entries of X keep so many bits more than entries of C would."""
SCORE_ROWS = 1 << 12
_SCORE_FRACTION, _ROW_FRACTION = 44, 40

_Terms = Sequence[tuple[Shared, Shared]]


class Piece(NamedTuple):
    """Some rows of everybody's columns, each also transposed."""

    straight: tuple[Shared, ...]
    transposed: tuple[Shared, ...]


@dataclass(frozen=True)
class ColumnCovariance(Covariance):
    """C = X^T X, of which every party has its own columns of X."""

    split: Split
    groups: tuple[tuple[Piece, ...], ...]

    async def times(self, machine: Machine, P: Shared) -> Shared:
        """(P X^T) X, over groups of rows."""
        owners, uses = range(len(self.split.owners)), self.policy.iterations + 1
        lefts = [machine.part(P, slice(None), place) for _, place in self.split.blocks()]
        parts = []
        for group in self.groups:
            across = [list(zip(lefts, piece.transposed, strict=True)) for piece in group]
            T = await machine.products(self._jobs(machine, across, "P X^T", uses))
            back = [[(left, piece.straight[i]) for left, piece in zip(T, group, strict=True)] for i in owners]
            parts.append(machine.hstack(await machine.products(self._jobs(machine, back, "P C", uses))))
        return added(machine, parts, bits=1)

    def _jobs(self, machine: Machine, terms: Sequence[_Terms], name: str, uses: int) -> list[Job]:
        F, ahead = self.policy.sketch_fraction, self.policy.ahead
        jobs = [Job(tuple(pairs), F, 1, name, right_uses=uses, ahead=ahead) for pairs in terms]
        return with_one_left(machine, jobs)


async def column_covariance(machine: Machine, inputs: Inputs, policy: Policy) -> ColumnCovariance:
    """Every party's columns, scaled and rounded; opens the total variance."""
    split = inputs.split
    assert split is not None, "the columns are split"
    total = await total_variance(machine, split, None if inputs.moments is None else inputs.moments.squares)
    check_variance(total)
    form = ColumnCovariance(inputs, policy, total, split, ())
    f = policy.gram_fraction + _EXTRA_BITS
    factor = 2.0**-split.fraction / sqrt(split.rows * form.scale)
    check_norm(split, factor)
    pieces = [
        _piece(machine, inputs, split, slice(*rows), f, factor) for rows in steps(split.rows, _PIECE_ROWS)
    ]
    groups = [tuple(pieces[i : i + _GROUP_PIECES]) for i in range(0, len(pieces), _GROUP_PIECES)]
    return replace(form, groups=tuple(groups))


def _piece(machine: Machine, inputs: Inputs, split: Split, rows: slice, f: int, factor: float) -> Piece:
    straight, transposed = [], []
    count = rows.stop - rows.start
    for owner, width in zip(split.owners, split.widths, strict=True):
        known, own, across = split.of(owner, rows), None, None
        if known is not None and inputs.rotation_seed is not None:
            own = dithered(
                known.astype(np.float64) * (factor * 2.0**f), inputs.rotation_seed, owner, rows.start
            )
            across = np.ascontiguousarray(own.T)
        straight.append(machine.private(owner, own, (count, width), f, 1, 0))
        transposed.append(machine.private(owner, across, (width, count), f, 1, 0))
    return Piece(tuple(straight), tuple(transposed))


def dithered(values: npt.NDArray[np.float64], seed: bytes, *domain: str | int) -> npt.NDArray[np.int64]:
    """Rounded up or down at random, so that columns of few distinct values are not rescaled."""
    chance = np.frombuffer(expand(seed, 2 * values.size, "dither of columns", *domain), dtype="<u2")
    return np.floor(values + chance.reshape(values.shape) * 2.0**-16).astype(np.int64)


def check_norm(split: Split, factor: float) -> None:
    """A party's own columns must keep the bound that everybody's masks are made for."""
    for table in split.tables.values():
        squares = sum(
            float(np.square(table[start:stop] * factor).sum())
            for start, stop in steps(len(table), _PIECE_ROWS)
        )
        if squares > 1:
            raise RangeOverflow("columns are longer than the total variance allows; nothing more was sent")


def score_jobs(machine: Machine, W: Shared, split: Split) -> list[Job]:
    """W X^T, some of the common rows at a time: every owner's columns in one sum."""
    lefts = [machine.part(W, slice(None), place) for _, place in split.blocks()]
    # A row without its mean is at most twice as long as sqrt(m).
    bits = 2 + ceil(log2(split.columns) / 2)
    jobs = []
    for start, stop in steps(split.rows, SCORE_ROWS):
        terms = []
        for left, (owner, place) in zip(lefts, split.blocks(), strict=True):
            known, own = split.of(owner, slice(start, stop)), None
            if known is not None:
                own = np.rint(np.ldexp(known.T, _ROW_FRACTION - split.fraction)).astype(np.int64)
            shape = (place.stop - place.start, stop - start)
            terms.append((left, machine.private(owner, own, shape, _ROW_FRACTION, 1)))
        jobs.append(Job(tuple(terms), _SCORE_FRACTION, bits, "scores"))
    return with_one_left(machine, jobs)
