"""What the coordinator and all providers but one see of the last one, on the machine on vectors in slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.slot_programs import BOTH, LENGTH, everything, tables
from tests.support.slot_runs import COORDINATOR, encrypted, provider
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.crypto.slots import HEADER_BYTES, Ciphertext, Keys
from atoll.secret_matrices.slots import messages, roles, steps
from atoll.secret_matrices.slots.machine import Slots
from atoll.study.address import Address

VICTIM = Address("p0", "provider")
SECRET = 37
"""The one number of the victim's that an attacker does not know, out of a hundred."""


def bodies(tap: Tap, receiver: Address, sender: Address) -> list[Any]:
    """Everything large that one role received of another."""
    decoder = Decoder[Message](messages.MESSAGES)
    arrived = [decoder.decode(event.data) for event in tap.received(receiver) if event.sender == sender]
    return [message for message in arrived if isinstance(message, messages.PlacedBody)]


def row_of(secret: int) -> np.ndarray:
    """The victim's row: all of it but one number is known."""
    row = np.arange(LENGTH) / 100
    row[7] = secret / 100
    return row


async def product(m: Slots, own: Any) -> Any:
    """What everybody has, times one's own row, added up."""
    (x,) = await m.broadcast(await m.encrypted_total(None if own is None else [own], 1))
    await m.total([m.own_inner([(x, own)])])
    return (m.keys, x.held.value) if own is None else None  # type: ignore[attr-defined]


def guessed() -> list[int]:
    """The numbers that fit to what the coordinator was sent: it tries all on the ciphertext that it has."""
    tap = Tap()
    inputs = [None, row_of(SECRET), row_of(1), row_of(2)]
    keys, x = encrypted(product, inputs, observer=tap).results[str(COORDINATOR)]
    arrived = [m for m in bodies(tap, COORDINATOR, VICTIM) if isinstance(m, messages.SentRow)]
    sent = Ciphertext.from_bytes(keys.set, arrived[-1].body)
    return [guess for guess in range(100) if keys.inner([(x, row_of(guess))]).mark() == sent.mark()]


def test_a_product_that_was_not_rerandomised_shows_the_private_factor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A variant for this test alone: what leaves is the product as it is."""
    monkeypatch.setattr(steps, "rerandomised", lambda _keys, xs, _seed: steps.written(xs))
    assert guessed() == [SECRET]


def test_a_product_as_it_is_sent_fits_to_no_private_factor() -> None:
    assert guessed() == []


async def own_product(m: Slots, own: Any) -> Any:
    (x,) = await m.broadcast(await m.encrypted_total(None if own is None else [own], 1))
    await m.opened_own([m.own_inner([(x, own)])], [LENGTH])
    return (m.keys, x.held.value) if own is None else None  # type: ignore[attr-defined]


@pytest.mark.parametrize("hidden", [True, False])
def test_own_rows_that_others_help_to_open_do_not_show_the_private_factor(
    monkeypatch: pytest.MonkeyPatch, hidden: bool
) -> None:
    if not hidden:  # a variant for this test alone
        monkeypatch.setattr(Keys, "rerandomised_all", lambda _keys, xs, _seed: list(xs))
    tap = Tap()
    inputs = [None, row_of(SECRET), row_of(1), row_of(2)]
    keys, x = encrypted(own_product, inputs, observer=tap).results[str(COORDINATOR)]
    other = Address("p1", "provider")
    (sent,) = [m for m in bodies(tap, other, VICTIM) if isinstance(m, messages.OwnRow)]
    mark, fitting = Ciphertext.from_half(keys.set, sent.body).mark(), []
    for guess in range(100):
        tried = keys.weighted(keys.inner([(x, row_of(guess))]), np.ones(LENGTH))
        if keys.lowered(tried, 1).mark() == mark:
            fitting.append(guess)
    assert fitting == ([] if hidden else [SECRET])


# ---- everything that is received ----


def distance(rows: np.ndarray) -> float:
    """How far the least uniform row is from uniform: Kolmogorov's distance times the root of its length."""
    shares = np.sort(rows / rows.max(axis=1, keepdims=True).clip(1), axis=1)
    count = rows.shape[1]
    above = np.abs(shares - np.arange(1, count + 1) / count).max(axis=1)
    below = np.abs(shares - np.arange(count) / count).max(axis=1)
    return float(np.sqrt(count) * np.maximum(above, below).max())


def residues(body: memoryview, slots: int) -> np.ndarray:
    return np.frombuffer(body, "<u8", offset=HEADER_BYTES).reshape(-1, 2 * slots).astype(np.float64)


def test_all_that_a_coalition_receives_looks_uniform() -> None:
    """A row is one polynomial modulo one modulus: of 10,000 uniform ones, one is off by 3.6 in 10^7 runs."""
    tap = Tap()

    async def reception(receiver: roles.Receiver) -> Any:
        return await receiver.opened([LENGTH, 7], BOTH)

    async def program(m: Slots, own: Any) -> Any:
        return (await everything(m, own), m.slots)

    slots = encrypted(program, tables(), reception, observer=tap).results[str(COORDINATOR)][1]
    received: dict[str, float] = {}
    for receiver in (COORDINATOR, Address("p1", "provider"), Address("p2", "provider")):
        for sender in (VICTIM, COORDINATOR):
            for message in bodies(tap, receiver, sender):
                if isinstance(message, messages.PublicShare | messages.MaskedIntegers):
                    continue  # whole numbers, for the first provider alone
                name, far = type(message).__name__, distance(residues(message.body, slots))
                received[name] = max(received.get(name, 0.0), far)
    assert {name for name, far in received.items() if far > 3.6} == set()
    assert set(received) == {
        "KeyPart",
        "OthersKeyPart",
        "KeyTotal",
        "SentRow",
        "GivenRow",
        "AskedRow",
        "RefreshPart",
        "SwitchingPart",
        "SwitchedRow",
        "OwnRow",
        "OwnPart",
        "SharePart",
        "InputPart",
    }


def test_the_measure_notices_what_is_not_uniform() -> None:
    rng = np.random.default_rng(0)
    uniform = rng.integers(0, 1 << 38, (1000, 1024)).astype(np.float64)
    assert distance(uniform) < 3.6
    narrow = uniform.copy()
    narrow[3] = rng.integers(-(1 << 30), 1 << 30, 1024) % ((1 << 38) - 1)
    assert distance(narrow) > 10
    assert provider(0) == str(VICTIM)
