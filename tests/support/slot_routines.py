"""The paper's routines as programs for the machine on slots, with the numbers that they should find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.support.slot_runs import provider

from atoll.secret_matrices.slots.approximations import Approximations, Recording, agreed
from atoll.secret_matrices.slots.counting import Counting
from atoll.secret_matrices.slots.eigen import eigen
from atoll.secret_matrices.slots.householder import householder
from atoll.secret_matrices.slots.levelled import Levelled
from atoll.secret_matrices.slots.machine import Matrix, Operation, Slots, Tally, Values
from atoll.secret_matrices.slots.orthogonal import dqr, qr
from atoll.secret_matrices.slots.packed import packed, square_product, unpacked
from atoll.secret_matrices.slots.products import (
    Method,
    breadth,
    dots,
    multiply,
    own_factor,
    repeated,
    sums_times,
    times_transpose,
)

FIRST = frozenset({provider(0)})
Found = list[Values] | None
Routine = Callable[[Slots, Any], Awaitable[Found]]


def symmetric(size: int, seed: int = 7) -> Values:
    """A matrix whose eigenvalues are well apart, 1 and below."""
    turned = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    return (turned * 3.0 ** -np.arange(size)) @ turned.T


def parts(whole: Values, providers: int = 3, seed: int = 3) -> list[Values]:
    """What each provider adds to a matrix."""
    given = np.random.default_rng(seed).normal(size=(providers, *whole.shape)) * 0.1
    given[-1] += whole - given.sum(axis=0)
    return list(given)


def inputs(*wholes: Values, providers: int = 3) -> list[Any]:
    """The coordinator's input, which is none, and the providers' parts of every matrix."""
    split = [parts(whole, providers) for whole in wholes]
    return [None, *zip(*split, strict=True)]


async def encrypted_sum(m: Slots, own: Any, which: int, shape: tuple[int, int]) -> Matrix:
    """A matrix of which every provider has a part, encrypted at the coordinator."""
    rows = None if own is None else [repeated(row, m.slots) for row in own[which]]
    return await m.encrypted_total(rows, shape[0], breadth(shape[1], m.slots))


async def shown(m: Slots, rows: Matrix, length: int) -> Found:
    return await m.opened(rows, [length] * len(rows), FIRST)


def by_method(method: Method, a: int, b: int, c: int) -> Routine:
    """M1, M2, M3: an encrypted matrix times the providers' own."""

    async def program(m: Slots, own: Any) -> Found:
        M = await m.broadcast(await encrypted_sum(m, own, 0, (a, b)))
        factor = own_factor(m, method, (b, c), None if own is None else own[1])
        with m.tally.part("routine"):
            out = multiply(m, M, factor)
        return await shown(m, await m.total(out), c)

    return program


def by_transpose(a: int, b: int) -> Routine:
    """M1 on an encrypted matrix and itself."""

    async def program(m: Slots, own: Any) -> Found:
        M = await encrypted_sum(m, own, 0, (a, b))
        with m.tally.part("routine"):
            out = times_transpose(m, M, M, b)
        return await shown(m, out, a)

    return program


def by_one_vector(case: int, a: int, b: int) -> Routine:
    """M4: times 1 mu^T, or mu 1^T."""

    async def program(m: Slots, own: Any) -> Found:
        M = await encrypted_sum(m, own, 0, (a, b))
        [mu] = await encrypted_sum(m, own, 1, (1, b))
        with m.tally.part("routine"):
            out = sums_times(m, M, b, mu) if case == 1 else dots(m, M, mu, b)
        return await shown(m, out, b if case == 1 else min(b, m.slots))

    return program


def squares(size: int) -> Routine:
    """M5, from rows and back to rows."""

    async def program(m: Slots, own: Any) -> Found:
        A = packed(m, await encrypted_sum(m, own, 0, (size, size)), size)
        B = packed(m, await encrypted_sum(m, own, 1, (size, size)), size)
        with m.tally.part("routine"):
            out = square_product(m, A, B, size)
        return await shown(m, unpacked(m, out, size), size)

    return program


def reflector(length: int, at: int, use: Approximations) -> Routine:
    """Algorithm 2."""

    async def program(m: Slots, own: Any) -> Found:
        [v] = await encrypted_sum(m, own, 0, (1, length))
        with m.tally.part("routine"):
            out = await householder(m, v, length, at, use)
        return await shown(m, [out], length)

    return program


def factorised(rows: int, length: int, use: Approximations) -> Routine:
    """Algorithm 3: Q, then R."""

    async def program(m: Slots, own: Any) -> Found:
        V = await encrypted_sum(m, own, 0, (rows, length))
        with m.tally.part("routine"):
            Q, R = await qr(m, V, length, use)
        return await shown(m, Q + R, length)

    return program


def factorised_apart(rows: int, length: int, use: Approximations) -> Routine:
    """DQR^T: every provider has its own columns, and finds those of Q."""

    async def program(m: Slots, own: Any) -> Found:
        place, columns = (None, None) if own is None else (own[0], own[1])
        whole = None if own is None else [np.full(m.slots, 1 / m.n_providers)]
        [one] = await m.broadcast(await m.encrypted_total(whole, 1))  # own rows come from a product
        wide = None if columns is None else np.pad(columns, ((0, 0), (0, length - np.shape(columns)[1])))
        mine = [None] * rows if wide is None else [repeated(row, m.slots) for row in wide]
        V = [m.own_inner([(one, row)]) for row in mine]
        with m.tally.part("routine"):
            Q = await dqr(m, V, length, place, use)
        return await m.opened_own(Q, [length] * rows)

    return program


def decomposed(size: int, w: int, use: Approximations) -> Routine:
    """Algorithm 4: the eigenvectors, then the eigenvalues."""

    async def program(m: Slots, own: Any) -> Found:
        M = await encrypted_sum(m, own, 0, (size, size))
        with m.tally.part("routine"):
            Q, values = await eigen(m, M, w, use)
        return await shown(m, [*Q, values], size)

    return program


def one_after_another(*routines: Routine) -> Routine:
    """Several routines on one machine, each with its own inputs: what all of them found."""

    async def program(m: Slots, own: Any) -> Any:
        return [await r(m, None if own is None else own[i]) for i, r in enumerate(routines)]

    return program


def learned(make: Callable[[Approximations], Routine], given: Sequence[Any], run: Any) -> Approximations:
    """The approximations on the intervals that a run in the clear finds."""
    recording = Recording()
    run(make(recording), given)
    return agreed(recording.intervals())


@dataclass(frozen=True)
class Counted:
    """What a routine costs the coordinator and one provider, without a number."""

    coordinator: Tally
    provider: Tally

    def routine(self, operation: Operation) -> int:
        """Where the routine runs: at the coordinator, or at every provider."""
        return max(t.parts["routine"][operation] for t in (self.coordinator, self.provider))


def counted(program: Routine, *shapes: tuple[int, int], slots: int = 8192, apart: bool = False) -> Counted:
    """The operations of a routine at the paper's parameters, on nothing but zeros of these shapes."""
    zeros = [np.zeros(shape) for shape in shapes]
    given = (1, *zeros) if apart else zeros
    tallies = []
    for leads in (True, False):
        m: Levelled = Counting(leads=leads, n_providers=3, slots=slots, fresh_level=9, lowest=2)
        coroutine = program(m, None if leads else given)
        try:
            coroutine.send(None)  # type: ignore[attr-defined]
        except StopIteration:
            tallies.append(m.tally)
    return Counted(*tallies)
