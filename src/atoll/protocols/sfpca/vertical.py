"""Parties own columns: the covariance as X^T X, without forming it, and the scores of the common rows.

The paper's appendix D.2. P X^T is a sum over the parties' columns and is refreshed; times X, each party's
columns of P C are a product of their own, and are put side by side.

Bounds: X is the table without its means over sqrt(n tr C (1 + 2^-6)), so its Frobenius norm, and that of
any part of it, is below one also after rounding. P0 X^T then has Gaussian entries of standard deviation at
most 1 / (sqrt(rho) + 8), of which none reaches two (2^-200), and for the same reason as in P0 C, whose norm
is below one, the norm of P X^T is below one from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat.product import KEPT_RIGHT_BYTES, Layout, Ring, family
from atoll.errors import ParameterError, RangeOverflow
from atoll.protocols.sfpca.bounds import layout_for, plan_for
from atoll.protocols.sfpca.columns import Split, added, alike, steps, total_variance
from atoll.protocols.sfpca.covariance import Covariance, Policy
from atoll.protocols.sfpca.direct import Inputs, check_variance
from atoll.protocols.sfpca.shared import Job, Machine, Shared
from atoll.randomness import expand

_PIECE_ROWS = 1 << 14
"""Rows of one product."""
_GROUP_PIECES = 4
"""Pieces of rows whose products are under way at a time."""
_EXTRA_BITS = 3
"""Entries of X keep so many bits more than entries of C would."""
_ENCODING_SHARE = 12
"""How much less a polynomial counts that only one party encodes than one that everybody encrypts."""
SCORE_ROWS = 1 << 12
_SCORE_FRACTION, _ROW_FRACTION = 44, 40


class Piece(NamedTuple):
    """Some rows of everybody's columns, each also turned."""

    straight: tuple[Shared, ...]
    turned: tuple[Shared, ...]


@dataclass(frozen=True)
class ColumnCovariance(Covariance):
    """C = X^T X, of which every party has its own columns of X."""

    split: Split
    groups: tuple[tuple[Piece, ...], ...]

    async def times(self, machine: Machine, P: Shared) -> Shared:
        """(P X^T) X, over groups of rows."""
        owners, rho = range(len(self.split.owners)), P.shape[0]
        lefts = [machine.part(P, slice(None), place) for _, place in self.split.blocks()]
        heights = [piece.straight[0].shape[0] for piece in self.groups[0]]
        across, back = (
            Shape(machine.parties, rho, inner, cols)
            for inner, cols in ((self.split.widths, tuple(heights)), (tuple(heights), self.split.widths))
        )
        parts = []
        for group in self.groups:
            jobs = [self._job(zip(lefts, piece.turned, strict=True), "P X^T") for piece in group]
            T = await machine.products(planned(machine, jobs, across))
            jobs = [self._job(zip(T, (p.straight[i] for p in group), strict=True), "P C") for i in owners]
            parts.append(machine.beside(await machine.products(planned(machine, jobs, back))))
        return added(machine, parts, bits=1)

    def _job(self, terms: Iterable[tuple[Shared, Shared]], name: str) -> Job:
        return Job(tuple(terms), "wide", self.policy.sketch_fraction, 1, name)


class Shape(NamedTuple):
    """Products that share their left sides: rows, the inner sizes of the terms, the columns of each job."""

    parties: int
    rows: int
    inner: tuple[int, ...]
    cols: tuple[int, ...]

    def blocks(self, ring: Ring) -> Layout:
        """Blocks that suit all of them together, no larger than the largest term and job."""
        uses = _ENCODING_SHARE * self.parties
        whole = layout_for(ring, self.rows, sum(self.inner), sum(self.cols), uses, kept=False)
        b = min(whole.block_inner, max(self.inner))
        c = min(max(self.cols), ring.degree // (whole.block_rows * b))
        return Layout(self.rows, self.inner[0], self.cols[0], whole.block_rows, b, c)

    def streamed(self, ring: Ring) -> bool:
        """Whether everybody's encoded right sides take too much memory."""
        y = self.blocks(ring)
        polys = sum(self.inner) * sum(self.cols) / (y.block_inner * y.block_cols)
        return polys * 8 * ring.degree * ring.limbs > KEPT_RIGHT_BYTES


def planned(machine: Machine, jobs: Sequence[Job], shape: Shape) -> list[Job]:
    """The jobs with their blocks, in the wide ring, or in a deep one where there are many parties."""
    for name in ("wide", "deep"):
        ring = family(name)[0]
        blocks, streamed = shape.blocks(ring), shape.streamed(ring)
        cut = [replace(job, ring=name, blocks=blocks, streamed=streamed) for job in jobs]
        if name == "deep" or fits(machine, cut[0]):
            break
    return alike(machine, cut)


def fits(machine: Machine, job: Job) -> bool:
    """Whether a ring of its family holds the product."""
    try:
        plan_for(machine.parties, job)
    except ParameterError:
        return False
    return True


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
    straight, turned = [], []
    count = rows.stop - rows.start
    for owner, width in zip(split.owners, split.widths, strict=True):
        known, own, across = split.of(owner, rows), None, None
        if known is not None and inputs.rotation_seed is not None:
            own = dithered(
                known.astype(np.float64) * (factor * 2.0**f), inputs.rotation_seed, owner, rows.start
            )
            across = np.ascontiguousarray(own.T)
        straight.append(machine.private(owner, own, (count, width), f, 1, 0))
        turned.append(machine.private(owner, across, (width, count), f, 1, 0))
    return Piece(tuple(straight), tuple(turned))


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
        jobs.append(Job(tuple(terms), "deep", _SCORE_FRACTION, bits, "scores"))
    return alike(machine, jobs)
