"""Algorithm 1 of the SF-PCA paper, from step 2 to step 7, on vectors in the slots of ciphertexts.

Froelicher, Cho, Edupalli, Sousa, Bossuat, Pyrgelis, Troncoso-Pastoriza, Berger, Hubaux: Scalable and
Privacy-Preserving Federated Principal Component Analysis (2023), Algorithm 1; section 5.2.

Symbols: DP_i -> provider, A_i -> Own.table (in units in which the largest variance is about one), n_i ->
Shape.rows, m -> Shape.columns, psi -> Shape.psi, alpha, p, w -> Algorithm, rho = psi + alpha -> Shape.rho,
Pi -> CountSketch (:mod:`sketch`), o -> ``mean``, Xi -> ``machine.total``, G_i -> Factors.gram, P C ->
``times``, R_i = DQR^T(R_i) -> ``factorised_apart``. C is the joint covariance, sum_i G_i / n.

Adversary: passive; the coordinator (the paper's "one DP") with all providers but one. The coordinator
holds no part of the key. Learns: nobody anything but the intervals, and at the end what the study releases.

Deviations, each with the same result:
- Rounds. The four terms of the paper's G_i are multiplied apart: A_i^T A_i stays clear, and since the other
  three add up to -n o^T o over all providers, the coordinator subtracts (P o^T) o once (lazy mean-centring
  after the aggregation; the paper encrypts G_i). In Seq -R_i 1 o adds up to nothing and is left out.
- Steps 5 and 7. Z = Xi(P G_i) P^T and W = QR^T(U Xi(P G_i)): the sums of the paper's Xi(P_i P^T) and
  Xi(U P_i), taken before and not after the second product. For Seq these are Xi(Z_i Z_i^T) and Xi(Y_i
  A_i) as well.
- After each product with C the copies of a row in the slots are made the same again (:func:`alike`).
- Before QR^T and DQR^T rows are multiplied by public powers of two, so that all are about of length one.
- The certificate (:mod:`certificate`): one more product with C, of the components.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atoll.data.island import Matrix as Table
from atoll.protocols.pca.sfpca.paper import shared
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.protocols.pca.sfpca.paper.shared import OnShares
from atoll.secret_matrices.slots.approximations import Approximations
from atoll.secret_matrices.slots.eigen import eigen
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector
from atoll.secret_matrices.slots.orthogonal import dqr, qr
from atoll.secret_matrices.slots.products import (
    Factor,
    Method,
    breadth,
    choose,
    dots,
    encrypted_factor,
    multiply,
    own_factor,
    period,
    repeated,
    times_transpose,
)

ROOM_APART = 5
"""Levels from P to what DQR^T still takes of a row: a product, its mean, and three for a reflection."""
MOST_STRETCHED = 10
"""Powers of two up to this stretch a row without costing a level."""


class Shape(NamedTuple):
    """What every role knows of the tables."""

    rows: tuple[int, ...]
    """n_i; where islands hold columns, the rows that they have in common."""
    columns: int
    psi: int
    rho: int
    vertical: bool = False

    @property
    def n(self) -> int:
        """Rows of the joint table."""
        return self.rows[0] if self.vertical else sum(self.rows)

    @property
    def longest(self) -> int:
        """n_max."""
        return max(self.rows)


class Own(NamedTuple):
    """A provider's own numbers in the clear; where islands hold columns, centred, others' columns zero."""

    table: Table
    sketch: Table
    """Pi_i A_i, less Pi 1 times its part of the mean: one row for each of the joint sketch's."""
    means: Table | None = None
    """Where islands hold columns: what was subtracted."""
    place: int | None = None
    """The provider's number, for DQR^T."""

    def __repr__(self) -> str:
        return f"Own({self.table.shape[0]} x {self.table.shape[1]})"


class Stretches(ABC):
    """By which powers of two rows are multiplied before they are factorised."""

    @abstractmethod
    def of(self, place: str, rows: Matrix, length: int) -> Sequence[int]:
        """One for each row of so many numbers."""


class Plan(NamedTuple):
    """Everything public that the program rests on."""

    shape: Shape
    course: Course
    paper: Algorithm
    use: Approximations
    variances: tuple[int, ...]
    """Powers of two near the leading variances."""
    stretches: Stretches


class Found(NamedTuple):
    """What stays encrypted until the study's releases."""

    W: Matrix
    mean: Vector
    factors: Factors


class Factors(NamedTuple):
    """A provider's clear right-hand sides, prepared once: G_i, or A_i^T and A_i piece by piece."""

    gram: Factor | None
    pieces: tuple[Piece, ...]


class Piece(NamedTuple):
    """So many of a provider's rows as fit one ciphertext: A_i^T and A_i / n, and which rows there are."""

    transposed: Factor
    rows: Factor
    length: int
    own_rows: int | None
    """How many of them this provider has; None at the coordinator."""
    ones: Table | None
    """One, in the unit of ``transposed``, where it has a row."""


async def principal(m: Slots, plan: Plan, own: Own | None) -> Found:
    """Steps 2 to 7, each a part of the tally. Every role runs it; ``own`` is None at the coordinator."""
    shape, paper, use = plan.shape, plan.paper, plan.use
    factors, step = prepared(m, plan, own), m.tally.part
    with step("2"):
        mean = await mean_of(m, plan, own)  # o = Xi(Enc(o_i))
    with step("3"):
        P = await sketched(m, plan, own)  # P = Xi(Enc(Pi_i A_i - Pi 1 o_i))
    with step("4"):
        for j in range(paper.p):
            if plan.course.qr == "dqr":
                P = await factorised_apart(m, plan, factors, own, P, mean, f"power/{j}")
                continue
            P = await m.room(P, depth(plan, factors))
            Y = stretched(m, plan, await times(m, plan, factors, P, mean), f"power/{j}", shape.columns)
            Y = alike(m, Y, shape.columns)  # what it leaves between copies is not stretched
            P, _ = await qr(m, Y, shape.columns, use.inside(f"power/{j}"))  # P = QR^T(Xi(P G_i))
    with step("5"):
        P = await m.room(P, depth(plan, factors))
        Y = await times(m, plan, factors, P, mean)  # P_i = P G_i, added up
        Y = await m.room(alike(m, Y, shape.columns), 4)
        Z = times_transpose(m, Y, P, shape.columns)  # Z = Xi(P_i P^T)
    with step("6"):
        U = await eigenvectors(m, plan, Z)  # U = Eigen(Z, w)
    with step("7"):
        U = await m.room(U[: shape.psi], 3)
        UY = multiply(m, U, encrypted_factor(Method.M2, (shape.rho, shape.columns), Y))
        UY = alike(m, stretched(m, plan, UY, "components", shape.columns), shape.columns)
        W, _ = await qr(m, UY, shape.columns, use.inside("components"))  # W = QR^T(Xi(U P_i))
    return Found(W, mean, factors)


# ---- the steps ----


async def eigenvectors(m: Slots, plan: Plan, Z: Matrix) -> Matrix:
    """Rows of eigenvectors of Z, the largest eigenvalue first: encrypted, or by shares (the paper's lss)."""
    if isinstance(plan.use, OnShares) and plan.paper.nonlinear == "lss":
        return await shared.eigenvectors(m, plan.use.parties, Z)
    U, _ = await eigen(m, Z, plan.paper.w, plan.use.inside("eigen"))
    return U


async def mean_of(m: Slots, plan: Plan, own: Own | None) -> Vector:
    """The encrypted means of all columns; where islands hold columns, each encrypts those of its own."""
    rows = None
    if own is not None:
        o_i = own.table.sum(axis=0) / plan.shape.n if own.means is None else own.means
        rows = [repeated(o_i, m.slots)]
    (mean,) = await m.encrypted_total(rows, 1, breadth(plan.shape.columns, m.slots))
    return mean


async def sketched(m: Slots, plan: Plan, own: Own | None) -> Matrix:
    """The joint table's sketch."""
    rows = None if own is None else [np.apply_along_axis(repeated, -1, row, m.slots) for row in own.sketch]
    return await m.encrypted_total(rows, plan.shape.rho, breadth(plan.shape.columns, m.slots))


async def times(m: Slots, plan: Plan, factors: Factors, P: Matrix, mean: Vector) -> Matrix:
    """P C, at the coordinator, for a P that has room for it: Precomp, or Seq."""
    if factors.gram is not None:
        Y = await m.total(multiply(m, await given(m, P), factors.gram))
        return Y if plan.shape.vertical else without_mean(m, Y, P, mean, plan.shape.columns)
    if plan.shape.vertical:
        return await _by_columns(m, factors, P)
    (o,) = await given(m, [mean])
    R = projected(m, factors, await given(m, P), o, plan.shape.columns)
    return await m.total(_back(m, factors, R))


async def given(m: Slots, rows: Matrix) -> Matrix:
    """Rows of the coordinator, for every provider to multiply with its own numbers."""
    return [m.at_providers(x) for x in await m.broadcast(rows)]


def alike(m: Slots, rows: Matrix, length: int) -> Matrix:
    """Rows whose copies in the slots are the same again: the first one, as often as it fits.

    Copies drift apart with the noise. What differs between them no dot product sees, so that no reflection
    removes it, and every product with C makes it longer by the largest variance: after ten iterations it
    would be all there is of the later rows.
    """
    step = period(length)
    if step < m.slots:
        first = np.where(np.arange(m.slots) < step, 1.0, 0.0)
        rows = [m.weighted(row, first) for row in rows]
    further = m.slots // 2
    while further >= step:  # to the left, each by one of the keys
        rows = [m.add(row, m.rotate(row, further)) for row in rows]
        further //= 2
    return rows


async def factorised_apart(
    m: Slots, plan: Plan, factors: Factors, own: Own | None, P: Matrix, mean: Vector, place: str
) -> Matrix:
    """One power iteration of Seq with DQR^T: P = Xi(R_i A_i) for R_i = DQR^T(P A_i^T - P o^T 1^T).

    A_i is divided by the root of n both times. P's rows are not orthonormal, as in the paper.
    """
    shape, n_max = plan.shape, plan.shape.longest
    P = await given(m, await m.room(P, ROOM_APART))
    (o,) = await given(m, [mean])
    (R,) = projected(m, factors, P, o, shape.columns)
    R = stretched(m, plan, R, place, n_max)
    R = await dqr(m, R, n_max, None if own is None else own.place, plan.use.inside(place))
    return alike(m, await m.total(_back(m, factors, [R])), shape.columns)


def stretched(m: Slots, plan: Plan, rows: Matrix, place: str, length: int) -> Matrix:
    """Rows in units of about their length, which QR^T does not mind: Q is the same, R has these factors."""
    powers = plan.stretches.of(place, rows, length)
    return [m.scaled(row, 2**e) if e else row for row, e in zip(rows, powers, strict=True)]


def without_mean(m: Slots, Y: Matrix, P: Matrix, mean: Vector, length: int) -> Matrix:
    """Y - (P o^T) o: what P times uncentred moments is too much."""
    along = dots(m, P, mean, length)
    return [m.subtract(y, m.times(x, mean)) for y, x in zip(Y, along, strict=True)]


def projected(m: Slots, factors: Factors, P: Matrix, mean: Vector | None, columns: int) -> list[Matrix]:
    """P A_i^T - (P o^T) 1^T, a piece of rows at a time (also step 8); without a mean, of centred rows."""
    along = [] if mean is None else dots(m, P, mean, columns)
    found = []
    for piece in factors.pieces:
        R = multiply(m, P, piece.transposed)
        if mean is not None:
            R = [m.subtract(r, m.own_inner([(x, piece.ones)])) for r, x in zip(R, along, strict=True)]
        found.append(R)
    return found


def _back(m: Slots, factors: Factors, R: Sequence[Matrix]) -> Matrix:
    """The sum of R_i A_i / n over the pieces of a provider's rows."""
    parts = [multiply(m, r, piece.rows) for r, piece in zip(R, factors.pieces, strict=True)]
    return [m.add(*of_row) for of_row in zip(*parts, strict=True)]


async def _by_columns(m: Slots, factors: Factors, P: Matrix) -> Matrix:
    """The paper's D.2: R = Xi(P_i A_i^T), and R A_i of all islands side by side."""
    R = [await m.total(r) for r in projected(m, factors, await given(m, P), None, 0)]
    R = [await given(m, await m.room(r, 3)) for r in R]
    return await m.total(_back(m, factors, R))


# ---- what a provider prepares in the clear ----


def prepared(m: Slots, plan: Plan, own: Own | None) -> Factors:
    """G_i / n for Precomp; A_i^T and A_i / n for Seq, by the cheapest of the paper's M1 to M3.

    Scores take A_i^T with either.
    """
    shape = plan.shape
    table = None if own is None else own.table
    if plan.course.method == "precomp":
        d = shape.columns
        gram = None if table is None else table.T @ table / shape.n
        return Factors(own_factor(m, _method(m, shape.rho, d, d), (d, d), gram), ())
    if plan.course.qr == "dqr":
        unit = shape.n**-0.5
        return Factors(None, pieces_of(m, shape, table, unit, unit))
    return Factors(None, pieces_of(m, shape, table))


def pieces_of(
    m: Slots, shape: Shape, table: Table | None, there_unit: float = 1.0, back_unit: float | None = None
) -> tuple[Piece, ...]:
    """A provider's rows in as many pieces as the longest table of all has, in these units; back in 1/n."""
    found = []
    back_unit = 1 / shape.n if back_unit is None else back_unit
    for start in range(0, shape.longest, m.slots):
        length = min(m.slots, shape.longest - start)
        own_rows, ones, part = None, None, None
        if table is not None:
            some = table[start : start + length]
            part = np.zeros((length, shape.columns))
            own_rows = len(some)
            part[:own_rows] = some
            ones = repeated(np.where(np.arange(length) < own_rows, there_unit, 0.0), m.slots)
        there, back = (shape.columns, length), (length, shape.columns)
        forth = None if part is None else part.T * there_unit
        transposed = own_factor(m, _method(m, shape.rho, *there), there, forth)
        rows = own_factor(m, _method(m, shape.rho, *back), back, None if part is None else part * back_unit)
        found.append(Piece(transposed, rows, length, own_rows, ones))
    return tuple(found)


def depth(plan: Plan, factors: Factors) -> int:
    """Levels that a product with C takes until it is added up, and without its mean."""
    if factors.gram is not None:
        return 4
    piece = factors.pieces[0]
    there = piece.transposed.method.levels if plan.shape.vertical else max(2, piece.transposed.method.levels)
    return there + piece.rows.method.levels + 1


def _method(m: Slots, a: int, b: int, c: int) -> Method:
    return choose(a, b, c, slots=m.slots).method
