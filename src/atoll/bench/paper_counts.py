"""What the SF-PCA paper's routines and runs take in operations, counted on shapes: no keys, no data."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from atoll.bench.figure5 import ISLANDS
from atoll.protocols.pca.sfpca.paper.algorithm1 import Plan, Shape, Stretches, principal
from atoll.protocols.pca.sfpca.paper.certificate import examined
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course, cheaper
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.counting import Counting
from atoll.secret_matrices.slots.machine import Matrix, Slots, Tally, Vector, Where
from atoll.secret_matrices.slots.orthogonal import dqr, qr
from atoll.secret_matrices.slots.packed import square_product
from atoll.secret_matrices.slots.products import Method, multiply, own_factor, sums_times

SLOTS, FRESH, LOWEST = 8192, 9, 2
"""Of the set with the paper's parameters, which a test compares."""


class Setting(NamedTuple):
    """Tables of one size on every island, and the paper's letters."""

    rows: tuple[int, ...]
    columns: int
    p: int = 10
    psi: int = 4
    alpha: int = 4
    w: int = 5


class Counted(NamedTuple):
    """One run: the two kinds of roles."""

    method: str
    coordinator: Tally
    provider: Tally
    n_providers: int
    ciphertexts_of_a_row: int


def even(n: int, columns: int, islands: int = ISLANDS, **letters: int) -> Setting:
    """Rows split evenly; the largest island counts."""
    return Setting((ceil(n / islands),) * islands, columns, **letters)


def default(**letters: int) -> Setting:
    """The paper's appendix B."""
    return even(ISLANDS * 1024, 256, **letters)


# ---- whole runs ----


class _Stretched(Stretches):
    """Every row by a power of two, as most are."""

    def of(self, place: str, rows: Matrix) -> Sequence[int]:
        del place
        return [1] * len(rows)


def counted(setting: Setting, method: str = "auto") -> Counted:
    """Steps 2 to 7 and the certificate, at the coordinator and at a provider.

    Rows of more numbers than a ciphertext has slots, which the variant refuses, are counted as several tables
    of as many columns each, but for step 6: at least what a run on such rows would take.
    """
    wide = ceil(setting.columns / SLOTS)
    columns = ceil(setting.columns / wide)
    paper = Algorithm(p=setting.p, alpha=setting.alpha, w=setting.w)
    rho = setting.psi + setting.alpha
    shape = Shape(setting.rows, columns, setting.psi, rho)
    if method == "auto":
        method = cheaper(max(setting.rows), setting.columns, paper)
    course = Course("precomp" if method == "precomp" else "seq", "qr")
    plan = Plan(shape, course, paper, Recording(), (0,) * rho, _Stretched())

    async def run(m: Slots) -> None:
        found = await principal(m, plan, None)
        with m.tally.part("certificate"):
            await examined(m, plan, found)

    both = [_tally(run, leads, len(setting.rows)) for leads in (True, False)]
    for tally in both:
        for kind, times in tally.total.items():
            small = tally.parts["6"][kind]
            tally.total[kind] = wide * (times - small) + small
    return Counted(method, both[0], both[1], len(setting.rows), wide)


def _tally(run: Callable[[Slots], Awaitable[object]], leads: bool, n_providers: int = ISLANDS) -> Tally:
    m = Counting(leads=leads, n_providers=n_providers, slots=SLOTS, fresh_level=FRESH, lowest=LOWEST)

    async def alone() -> None:
        await run(m)

    asyncio.run(alone())
    return m.tally


# ---- single routines, at the sizes of the paper's Table 2 ----


class Routine(NamedTuple):
    """One line of Table 2: where it runs, and its seconds there."""

    name: str
    coordinator: Tally
    provider: Tally
    paper_seconds: float


def routines() -> Iterator[Routine]:
    """M1 to M5 and the factorisations."""
    nothing = Tally()
    for method, seconds in ((Method.M1, 59), (Method.M2, 51), (Method.M3, 3.8)):
        yield Routine(f"{method.name}, 8 x 256 x 256", nothing, _product(method), seconds)
    yield Routine("M4, 8 x 256", _at_coordinator(_one_vector), nothing, 0.7)
    yield Routine("M5, 8 x 8", _at_coordinator(_squares), nothing, 0.9)
    yield Routine("QR^T, 8 x 256", _at_coordinator(lambda m: qr(m, _rows(8), 256, Recording())), nothing, 117)
    yield Routine("DQR^T, 8 x 256", _at_coordinator(_apart), _tally(_apart, False), 227)
    yield Routine("QR^T, 8 x 8", _at_coordinator(lambda m: qr(m, _rows(8), 8, Recording())), nothing, 94)


def _rows(count: int, where: Where = Where.EVERYBODY) -> Matrix:
    return [Vector(where, FRESH, None) for _ in range(count)]


def _at_coordinator(run: Callable[[Slots], Awaitable[object]]) -> Tally:
    return _tally(run, True)


def _product(method: Method) -> Tally:
    async def run(m: Slots) -> None:
        multiply(m, _rows(8), own_factor(m, method, (256, 256), None))

    return _tally(run, False)


async def _one_vector(m: Slots) -> None:
    sums_times(m, _rows(8), 256, *_rows(1))


async def _squares(m: Slots) -> None:
    x, y = _rows(2)
    square_product(m, x, y, 8)


async def _apart(m: Slots) -> None:
    await dqr(m, _rows(8, Where.OWN), 256, None, Recording())
