"""Eigenvectors of a secret matrix, largest eigenvalue first, one after the other; nothing is opened.

X is a positive matrix of trace one that commutes with A, and at first A itself. One step,

    X <- s X^2 + (1 - s p) X,    p = tr X^2,    s = (1 + q)(1 + q^2)(1 + q^4) ...,    q = 1 - p,

keeps the trace without a division: 1 - s p is q^(2^n) for n factors, so s comes as near to 1/p as a step pays
rounds for. Of two eigenvalues the larger one gains, at most as much as by squaring. If the first one stands
alone, X becomes the projector on its vector; A - A X has the others, and begins again once its trace is one.

Bounds, whatever the data: A is positive and its trace at most one, so X is, then, at every step. No entry of
such matrices, of their squares and of the sums above exceeds one. Rounding could make a matrix negative by
some units: every A is lifted by more than that. A trace t is raised by a product of (1 + q^(2^i)) with
q = 1 - t, which exceeds neither 1/t nor 2^n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from atoll.protocols.pca.sfpca.recipes.direct import with_norm
from atoll.secret_matrices.machine import Machine, Shared

FRACTION = 60
LIFT = 2.0**-40
"""Of all eigenvalues, for each vector: roundings of a product, 256 parties and 128 rows, are below 2^-45."""


class Course(NamedTuple):
    """How long each vector is looked for; public and fixed in advance."""

    raised: int
    """A trace from 2^-raised on is brought to one, every time a vector has been taken off."""
    factors: tuple[int, ...]
    """Of s in every step until the purity is taken."""
    polish: int = 2
    """Steps from there on, without factors: each squares what is left of other vectors."""


class Projectors(NamedTuple):
    """The projectors side by side, and for each the p = tr X^2 before every step until it counts as pure."""

    X: Shared
    purities: list[list[Shared]]


async def projectors(machine: Machine, A: Shared, k: int, course: Course, lift: float) -> Projectors:
    """Of the k largest eigenvalues of A, of trace at most one; no eigenvalue is below -``lift``."""
    found, purities = [], []
    for i in range(k):
        A = await raised(machine, lifted(machine, A, LIFT if i else max(lift, LIFT)), course.raised)
        X, seen = await isolated(machine, A, course)
        found.append(X)
        purities.append(seen)
        if i + 1 < k:
            AX = await machine.product(
                (A, with_norm(X, 0)), fraction=FRACTION, bits=1, name="A X", ahead=True
            )
            A = machine.combine([(1.0, A), (-1.0, AX)], bits=1)
    return Projectors(machine.hstack(found), purities)


def lifted(machine: Machine, A: Shared, lift: float) -> Shared:
    """(A + A^T) / 2 with larger eigenvalues and no larger trace."""
    less = (1 - A.shape[0] * lift) / 2
    return machine.combine([(less, A), (less, machine.transpose(A))], identity=lift, bits=1)


async def raised(machine: Machine, A: Shared, factors: int) -> Shared:
    """A over its trace, or times 2^factors where that is less."""
    s, _ = await series(machine, one_minus(machine, machine.trace(A, bits=1)), factors)
    return await scaled(machine, [(s, A)])


async def isolated(machine: Machine, A: Shared, course: Course) -> tuple[Shared, list[Shared]]:
    """The projector on the first vector of A, of trace one, and how pure it was on the way."""
    X, seen = A, []
    for i, factors in enumerate((*course.factors, *(0,) * course.polish)):
        X, p = await step(machine, X, factors)
        if i <= len(course.factors):
            seen.append(p)
    return X, seen


async def step(machine: Machine, X: Shared, factors: int) -> tuple[Shared, Shared]:
    """s X^2 + (1 - s p) X, and p."""
    X2 = await machine.product((X, with_norm(X, 0)), fraction=FRACTION, bits=1, name="X X", ahead=True)
    p = machine.trace(X2, bits=1)
    q = one_minus(machine, p)
    if not factors:
        return machine.combine([(1.0, X2), (1.0, await scaled(machine, [(q, X)]))], bits=1), p
    s, q = await series(machine, q, factors)
    return await scaled(machine, [(s, X2), (q, X)]), p


async def series(machine: Machine, q: Shared, factors: int) -> tuple[Shared, Shared]:
    """(1 + q)(1 + q^2) ... of so many factors, and the power of q that would be next, for q in [0, 1]."""
    s = machine.combine([(1.0, q)], identity=1.0, bits=2)
    for i in range(factors):
        # q^(2^i) makes its square and, but for the first one, another factor.
        rights = machine.hstack([q, s]) if i else q
        made = await machine.product((q, rights), fraction=FRACTION, bits=i + 1, name="factors", ahead=True)
        q = replace(machine.part(made, slice(None), slice(0, 1)), bits=1)
        if i:
            s = machine.combine([(1.0, s), (1.0, machine.part(made, slice(None), slice(1, 2)))], bits=i + 2)
    return s, q


async def scaled(machine: Machine, terms: Sequence[tuple[Shared, Shared]]) -> Shared:
    """A sum of secret numbers times matrices whose entries, and those of the sum, are at most one."""
    shape = terms[0][1].shape
    size = shape[0] * shape[1]
    numbers = machine.hstack([number for number, _ in terms])
    rows = machine.vstack([machine.reshaped(X, (1, size)) for _, X in terms])
    made = await machine.product(
        (numbers, with_norm(rows, 1)), fraction=FRACTION, bits=1, name="scaled", ahead=True
    )
    return machine.reshaped(made, shape)


def one_minus(machine: Machine, x: Shared) -> Shared:
    """1 - x of a number."""
    return machine.combine([(-1.0, x)], identity=1.0, bits=1)
