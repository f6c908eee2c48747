"""Encrypted least squares, attacked anew: a number of rows that is none, and what coefficients say.

With rows split nobody but the server knows the number of all rows, and every bound of the program rests on
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.attacks.test_told_otherwise import changing, run
from tests.support.example_tables import Example, cut_frame
from tests.support.examples import EXAMPLES
from tests.support.learning_examples import encrypted_rows
from tests.support.lying import lying

import atoll
from atoll.codec import Message
from atoll.data.island import as_islands
from atoll.errors import MessageError, RangeOverflow
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.learning.encrypted import rows
from atoll.protocols.learning.encrypted.rows import Common
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
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
