"""Encrypted least squares, attacked anew: a number of rows that is none, and what coefficients say.

With rows split nobody but the server knows the number of all rows, and every bound of the program rests on
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.attacks.test_encrypted_rounding import Noting, fitted_on
from tests.attacks.test_told_otherwise import changing, run
from tests.support.example_tables import Example, cut_frame
from tests.support.examples import EXAMPLES
from tests.support.learning_examples import encrypted_rows
from tests.support.lying import lying

import atoll
from atoll.codec import Message
from atoll.data.island import as_islands
from atoll.errors import MessageError, RangeOverflow, RunError
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.learning.encrypted import program, rows
from atoll.protocols.learning.encrypted.program import TABLE_FRACTION, Block, Table, own_factor
from atoll.protocols.learning.encrypted.rows import Common
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.openings import floats
from atoll.study.address import Address

ISLANDS, EACH = 6, 10


def alike() -> Example:
    """Columns that say nearly the same, so that one eigenvalue has almost all of their variance."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(ISLANDS * EACH, 1))
    frame = pd.DataFrame(signs * rng.uniform(0.5, 1, (ISLANDS * EACH, 4)))
    frame.columns = pd.Index(["age", "dose", "weight", "stay"])
    islands = as_islands({f"hospital-{i}": part for i, part in enumerate(cut_frame(frame, ISLANDS))})
    example, roles = encrypted_rows(), parties(islands, "provider", "server", "consumer")
    return Example(structs.replace(example.study, parties=roles), islands)


def coefficients(outcome: Any) -> Any:
    return outcome.learned[Address("consumer", "consumer")].outputs["model"]["coefficients"]


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form that believed whatever number all islands were told alike."""

    async def believed(*_: Any) -> bool:
        return True

    monkeypatch.setattr(rows, "rows_counted", believed)


def test_a_smaller_number_of_rows_brought_values_beyond_their_masks(uncounted: None) -> None:
    """A sixth of the rows: A has an eigenvalue above two, and every step squares what is beyond one."""
    with pytest.raises(RangeOverflow, match="wider than its masks"):
        run(alike(), "server", changing(Common, n=EACH))


def test_another_number_of_rows_made_another_model_that_nobody_noticed(uncounted: None) -> None:
    example = alike()
    honest = coefficients(run(example, "server", changing(Common)))
    other = coefficients(run(example, "server", changing(Common, n=3 * EACH)))
    assert np.abs(honest - other).max() > 1e-3


def counted_messages(monkeypatch: pytest.MonkeyPatch, say: Callable[[Message], Message]) -> Counter[type]:
    """How many messages of a kind one island sent; and other numbers of rows, or opened ones, to all."""
    left: Counter[type] = Counter()

    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        if sender.party == "hospital-3":
            left[type(message)] += 1
        return say(message) if sender.role == "server" else message

    lying(monkeypatch, lie)
    return left


@pytest.mark.parametrize("n", [EACH, 59, 61, 12 * EACH])
def test_another_number_of_rows_is_found_out_before_a_product_of_rows(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count itself is one product and one opening; nothing else has left."""
    left = counted_messages(monkeypatch, lambda m: structs.replace(m, n=n) if isinstance(m, Common) else m)
    example = alike()
    # The server may find a masked total that does not fit before a provider finds the number.
    words = f"server/server sent {n} as the number of all rows, which it is|wider than its masks"
    with pytest.raises((MessageError, RangeOverflow), match=words):
        LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
    assert left[mm.MaskedShare] <= 1
    assert left[mm.OpenedShare] <= 1


def test_an_opened_count_that_fits_the_lie_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server opens the count too: what it says of it is compared before the next decryption share."""

    def say(message: Message) -> Message:
        if isinstance(message, Common):
            return structs.replace(message, n=EACH)
        if isinstance(message, mm.OpenedMatrix):
            words = np.array(message.words)
            words.flat[:] = 0
            words.flat[0] = EACH << 40
            return mm.OpenedMatrix(message.step, words)
        return message

    left = counted_messages(monkeypatch, say)
    example = alike()
    with pytest.raises(MessageError, match="not that of the providers' parts"):
        LocalEngine().run(protocol_of(example.study.protocol), example.study, example.own)
    assert left[mm.MaskedShare] == 1


# ---- what a refused fit says ----


@pytest.fixture
def unblurred(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form that opened what the trace lacks as it was: all factors together are one."""
    one = 1 << 32
    monkeypatch.setattr(rows, "own_factor", lambda _: np.array([[one // 4]], dtype=object))


def in_other_units(place: int, steps: int) -> tuple[float, float]:
    """A server that tells units in which every column but one vanishes, and that one nearly: what it reads
    as the column's joint variance, and the true one."""
    example, told, opened = encrypted_rows(), list[int](), list[float]()
    parameters = {**example.study.parameters, "condition_bits": 4}
    example = Example(structs.replace(example.study, parameters=parameters), example.islands)

    def tell(_: Address, message: Message) -> Message:
        if isinstance(message, Common):
            told.append(message.exponents[place] + steps)
            units = tuple(told[-1] if i == place else 40 for i in range(len(message.exponents)))
            return structs.replace(message, exponents=units)
        if isinstance(message, mm.OpenedMatrix):
            opened.append(float(floats(np.array(message.words), 40)[0, 0]))
        return message

    with pytest.raises(RunError, match="leave a coefficient undecided"):
        run(example, "server", tell)
    column = np.concatenate([i.frame().iloc[:, place].to_numpy() for i in example.islands.values()])
    trace = max(0.0, 3.0 - opened[-1])  # of A V: 1 - (1 - x)^512, with x the variance in the units told
    return -float(np.expm1(np.log1p(-trace) / 512)) * 4.0 ** (told[-1] + 1), float(column.var())


@pytest.mark.usefixtures("unblurred")
def test_a_server_read_the_variance_of_any_column_off_a_trace_in_units_of_its_choice() -> None:
    read, true = in_other_units(1, 5)
    assert abs(read / true - 1) < 0.02


def test_the_trace_in_other_units_says_no_variance() -> None:
    read, _ = in_other_units(1, 5)
    assert read == 0.0  # what is opened is larger than any trace can lack


def refused(correlation: float, factor: Any) -> float:
    """What everybody sees of a refused fit of two islands' columns."""
    Z = np.random.default_rng(5).normal(size=(400, 3))
    Z = np.linalg.qr(Z)[0]
    Z[:, 1] = correlation * Z[:, 0] + np.sqrt(1 - correlation**2) * Z[:, 1]
    held = np.trunc(Z * 2.0**TABLE_FRACTION).astype(np.int64)
    blocks = tuple(Block(owner, 1, held[:, [i]]) for i, owner in enumerate("aba"))
    machine = Noting(np.random.default_rng(6).random)
    with pytest.raises(RunError):
        fitted_on(machine, Table(400, blocks, np.zeros((2, 2), dtype=object), factor), 4)
    return machine.seen[-1]


def correlation_of(lacking: float) -> float:
    """Of two columns, from (1 - x)^512, with x the smaller eigenvalue of their correlations over two."""
    return float(2 * np.exp(np.log(lacking) / 512) - 1)


def test_a_refused_fit_said_the_correlation_of_two_islands_columns() -> None:
    one = np.array([[1 << 32]], dtype=object)
    assert abs(correlation_of(refused(0.995, one)) - 0.995) < 1e-4


def test_a_refused_fit_says_hardly_more_than_that_it_is_one() -> None:
    """With one factor or another, very different correlations open the same number."""
    seen = {r: [refused(r, own_factor(bytes([i]) * 32)) for i in range(40)] for r in (0.99, 0.999)}
    low, high = (np.sort(np.log2(values)) for values in seen.values())
    assert np.ptp(low) > 15
    assert np.ptp(high) > 15
    assert (low > high[0]).mean() > 0.6
    assert (high < low[-1]).mean() > 0.6


def test_an_islands_factor_is_as_likely_in_every_octave() -> None:
    drawn = [int(own_factor(i.to_bytes(32, "little"))[0, 0]) for i in range(4000)]
    octaves = np.floor(np.log2(np.array(drawn, dtype=float))) - 32
    assert set(octaves) == set(range(20))
    counts = np.bincount(octaves.astype(int))
    assert ((counts - 200.0) ** 2 / 200.0).sum() < 60  # chi-squared with 19 degrees: beyond it once in 10^5
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("name", ["least-squares-encrypted", "least-squares-encrypted-rows"])
def test_every_island_draws_a_factor_that_nobody_else_knows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[bytes] = []

    def noting(seed: bytes) -> Any:
        seeds.append(seed)
        return own_factor(seed)

    for module in (program, rows):
        monkeypatch.setattr(module, "own_factor", noting)
    example = encrypted_rows() if name.endswith("rows") else EXAMPLES[name]()
    example = Example(
        structs.replace(example.study, parameters={**example.study.parameters, "condition_bits": 4}),
        example.islands,
    )
    with suppress(RunError):  # whether or not four bits are enough
        LocalEngine().run(protocol_of(name), example.study, example.own)
    assert len(set(seeds)) == len(example.islands)
    assert bytes(32) not in seeds


# ---- what coefficients say ----


def cut(values: Any) -> list[Any]:
    return np.array_split(values.astype(float), 3)


def test_coefficients_of_whole_numbers_say_their_sums_and_products() -> None:
    """One column of 0 to 3, a target of 0 to 9: slope and intercept are two fractions, and whoever has them
    has all sums. No noise that leaves a coefficient useful hides that."""
    rng = np.random.default_rng(3)
    n = 240
    x = rng.integers(0, 4, n)
    y = 2 * x + rng.integers(0, 4, n)
    model = atoll.LinearRegression(solver="encrypted", condition_bits=8).fit(cut(x[:, None]), cut(y))
    w, c = float(model.coef_[0]), float(model.intercept_)
    slope = Fraction(w).limit_denominator(n * n * 9)
    found = []
    for Sx in range(3 * n + 1):
        Sy = round(n * c + w * Sx)
        if abs(n * c + w * Sx - Sy) > 1e-6:
            continue
        for times in range(1, 9 * n * n // slope.denominator + 1):
            both = times * slope.denominator + Sx * Sx, times * slope.numerator + Sx * Sy
            Sxx, Sxy = (value // n for value in both)
            if not (both[0] % n or both[1] % n) and Sx <= Sxx <= 3 * Sx and (Sxx - Sx) % 2 == 0:
                found.append((Sx, Sy, Sxx, Sxy))
    assert found == [(x.sum(), y.sum(), x @ x, x @ y)]


@pytest.mark.parametrize("protocol", ["least-squares-encrypted", "least-squares-encrypted-rows"])
def test_a_review_says_what_coefficients_of_whole_numbers_say(protocol: str) -> None:
    example = EXAMPLES[protocol]()
    said = [said.learns for said in protocol_of(protocol).learns(example.study)]
    assert any("whole numbers" in words for words in said)
