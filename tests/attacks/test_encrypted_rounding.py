"""What encrypted least squares opens has no digit that it does not need: roundings of hidden products and the
trace's last digits lie below noise. Beside it, two bounds that a server or a small table would get around."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_told_otherwise import nothing, run
from tests.support.examples import learning_columns

from atoll.codec import Message
from atoll.errors import DataError, MessageError
from atoll.protocols.learning.columns import table
from atoll.protocols.learning.columns.table import Joint
from atoll.protocols.learning.encrypted.program import TABLE_FRACTION, Block, Table, coefficients, own_factor
from atoll.secret_matrices.simulated import Simulated
from atoll.study.address import Address

RUNS = 40
RNG = np.random.default_rng(4)
Z = RNG.normal(size=(50, 5))
Z /= np.linalg.norm(Z, axis=0)


def table_of(columns: np.ndarray, seed: bytes = bytes(32)) -> Table:
    """Four columns of two owners, and the target."""
    held = np.trunc(columns * 2.0**TABLE_FRACTION).astype(np.int64)
    blocks = (Block("a", 2, held[:, :2]), Block("b", 2, held[:, 2:4]), Block("a", 1, held[:, 4:]))
    return Table(len(held), blocks, np.zeros((4, 4), dtype=object), own_factor(seed))


def fitted_on(machine: Simulated, held: Table, limit: int) -> Any:
    async def fitted() -> Any:
        await machine.set_up()
        return await coefficients(machine, held, limit)

    return asyncio.run(fitted())


class Noting(Simulated):
    """Notes the numbers that are opened before the end."""

    def __init__(self, uniform: Callable[[tuple[int, ...]], Any]) -> None:
        super().__init__(2, uniform)
        self.seen: list[float] = []

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        found = await super().opened(x, smudge_bits=smudge_bits)
        self.seen.append(float(found[0, 0]))
        return found


def once(seed: int) -> tuple[float, np.ndarray]:
    machine = Noting(np.random.default_rng(seed).random)

    w = np.vstack(
        [asyncio.run(machine.released(w, frozenset())) for w in fitted_on(machine, table_of(Z), 12)]
    )
    (lacking,) = machine.seen
    return lacking, w[:, 0]


@pytest.fixture(scope="module")
def opened() -> tuple[np.ndarray, np.ndarray]:
    lacking, found = zip(*(once(seed) for seed in range(RUNS)), strict=True)
    return np.array(lacking), np.array(found)


def test_the_trace_says_whether_columns_decide_and_no_more(opened: tuple[np.ndarray, np.ndarray]) -> None:
    """It lacks nothing. The noise is about 2^-9, and never so much that a run is refused."""
    lacking, _ = opened
    assert 2.0**-12 < lacking.std() < 2.0**-8
    assert abs(lacking).max() < 2.0**-7


def test_coefficients_are_released_with_noise_and_exact_enough(opened: tuple[np.ndarray, np.ndarray]) -> None:
    """Noise of 2^-39 of a coefficient's unit, where the columns' limit is 12."""
    _, found = opened
    truth = np.linalg.lstsq(Z[:, :4], Z[:, 4], rcond=None)[0]
    noise = (found - found.mean(axis=0)) * 4.0  # coefficients are released over the next power of two of d
    assert (noise.std(axis=0) > 2.0**-42).all()
    assert (noise.std(axis=0) < 2.0**-39).all()
    np.testing.assert_allclose(found, np.broadcast_to(truth, found.shape), atol=2.0**-37)


class Bare(Simulated):
    """Releases coefficients with their roundings, and notes how much noise was asked for."""

    noise = 0

    def smudged(self, x: Any, *, smudge_bits: int) -> Any:
        self.noise = smudge_bits
        return x


@pytest.mark.parametrize("limit", [10, 16, 20, 24])
def test_roundings_hide_also_where_columns_are_nearly_dependent(limit: int) -> None:
    """The nearer to singular, the more a rounding grows: noise of 2^-44 whatever the limit was too little."""
    near = np.random.default_rng(limit).normal(size=(200, 5))
    near[:, 1] = near[:, 0] + 2.0 ** (1.4 - limit / 2) * near[:, 1]
    near /= np.linalg.norm(near, axis=0)
    smallest = np.linalg.eigvalsh(near[:, :4].T @ near[:, :4])[0] / 4
    assert 2.0 ** -(limit + 1) < smallest < 2.0 ** -(limit - 1.5)
    found = []
    for seed in range(4):
        machine = Bare(8, np.random.default_rng(seed).random)
        found.append(np.vstack([w.share for w in fitted_on(machine, table_of(near), limit)]))
    rounding = max(abs(int(a) - int(b)) for w in found for a, b in zip(w[:, 0], found[0][:, 0], strict=True))
    assert 1 << 12 < rounding < 1 << (machine.noise - 17)
    assert limit < 20 or rounding << 17 > 1 << 36


def test_exchanged_classes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told the classes the other way round, every island would fit coefficients of the other sign."""
    example = learning_columns("classifier-columns")

    def exchanged(to: Address, message: Message) -> Message:
        del to
        return (
            structs.replace(message, classes=message.classes[::-1]) if isinstance(message, Joint) else message
        )

    monkeypatch.setattr(table, "compare", nothing)
    with pytest.raises(MessageError, match="other classes"):
        run(example, "server", exchanged)


@pytest.mark.parametrize(("rows", "refused"), [(3, True), (4, True), (5, False)])
def test_as_many_rows_as_coefficients_are_too_few(rows: int, refused: bool) -> None:
    joint = Joint(("a", "b", "c"), (1, 2), True, rows, ())
    if refused:
        with pytest.raises(DataError, match=f"{rows} rows for 4 coefficients"):
            table.refuse_few_rows(joint, 4)
    else:
        table.refuse_few_rows(joint, 4)
