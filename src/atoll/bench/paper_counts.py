"""What the SF-PCA paper's routines and runs take in operations, counted on shapes: no keys, no data."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from math import ceil
from typing import Any, NamedTuple

from atoll.bench import PAPER
from atoll.bench.figure5 import ISLANDS
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Circumstances
from atoll.secret_matrices.slots.approximations import Recording
from atoll.secret_matrices.slots.costs import FRESH, LOWEST
from atoll.secret_matrices.slots.counting import Tallies, tallied
from atoll.secret_matrices.slots.machine import Matrix, Slots, Tally, Vector, Where
from atoll.secret_matrices.slots.orthogonal import dqr, qr
from atoll.secret_matrices.slots.packed import square_product
from atoll.secret_matrices.slots.products import Method, multiply, own_factor, sums_times
from atoll.study.model import Party, Study

SLOTS = 8192
"""Of the set with the paper's parameters."""


class Setting(NamedTuple):
    """Tables of one size on every island, and the paper's letters."""

    rows: tuple[int, ...]
    columns: int
    p: int = 10
    psi: int = 4
    alpha: int = 4
    w: int = 5


def even(n: int, columns: int, islands: int = ISLANDS, **letters: int) -> Setting:
    """Rows split evenly; the largest island counts."""
    return Setting((ceil(n / islands),) * islands, columns, **letters)


def default(**letters: int) -> Setting:
    """The paper's appendix B."""
    return even(ISLANDS * 1024, 256, **letters)


# ---- whole runs ----


def study_of(setting: Setting, protocol: str, parameters: Mapping[str, Any]) -> Study:
    """A study of tables of this size."""
    everybody = ("provider", "consumer")
    released = dict.fromkeys(("components", "explained_variance", "n_samples", "certificate"), everybody)
    islands = tuple(Party(f"island-{i}", ("provider",)) for i in range(len(setting.rows)))
    return Study(
        name="PCA",
        protocol=protocol,
        parties=(*islands, Party("hub", ("coordinator",)), Party("office", ("consumer",))),
        parameters={"n_components": setting.psi, **parameters},
        release=released | {"scores": ("provider",)},
    )


def counted(setting: Setting, method: str = "auto") -> Tallies:
    """A whole run."""
    letters = {"p": setting.p, "alpha": setting.alpha, "w": setting.w, "method": method}
    operations = PROTOCOLS[PAPER].operations
    assert operations is not None, "the paper variant is counted"
    study = study_of(setting, PAPER, {"paper": letters})
    return operations(study, Circumstances(setting.columns, setting.rows))


# ---- single routines, at the sizes of the paper's Table 2 ----


class Routine(NamedTuple):
    """One line of Table 2: where it runs, and its seconds there."""

    name: str
    coordinator: Tally
    provider: Tally
    paper_seconds: float


def routines() -> Iterator[Routine]:
    """M1 to M5 and the factorisations: a provider's own products, and what the coordinator does for all."""
    for method, seconds in ((Method.M1, 59), (Method.M2, 51), (Method.M3, 3.8)):
        yield _own(f"{method.name}, 8 x 256 x 256", partial(_product, method), seconds)
    yield _common("M4, 8 x 256", _one_vector, 0.7)
    yield _common("M5, 8 x 8", _squares, 0.9)
    yield _common("QR^T, 8 x 256", partial(_factorised, 256), 117)
    yield Routine("DQR^T, 8 x 256", *_both(_apart), 227)
    yield _common("QR^T, 8 x 8", partial(_factorised, 8), 94)


_Program = Callable[[Slots], Coroutine[Any, Any, object]]


def _both(program: _Program) -> Tallies:
    return tallied(program, n_providers=ISLANDS, slots=SLOTS, fresh_level=FRESH, lowest=LOWEST)


def _own(name: str, program: _Program, seconds: float) -> Routine:
    return Routine(name, Tally(), _both(program).provider, seconds)


def _common(name: str, program: _Program, seconds: float) -> Routine:
    return Routine(name, _both(program).coordinator, Tally(), seconds)


def _rows(count: int, where: Where = Where.EVERYBODY) -> Matrix:
    return [Vector(where, FRESH, None) for _ in range(count)]


async def _product(method: Method, m: Slots) -> None:
    multiply(m, _rows(8), own_factor(m, method, (256, 256), None))


async def _factorised(length: int, m: Slots) -> None:
    await qr(m, _rows(8), length, Recording())


async def _one_vector(m: Slots) -> None:
    sums_times(m, _rows(8), 256, *_rows(1))


async def _squares(m: Slots) -> None:
    x, y = _rows(2)
    square_product(m, x, y, 8)


async def _apart(m: Slots) -> None:
    await dqr(m, _rows(8, Where.OWN), 256, None, Recording())
