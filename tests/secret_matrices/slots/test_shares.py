"""Rows that become shares of the providers, and shares that become rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.slot_programs import LENGTH, PRIME, tables
from tests.support.slot_runs import COORDINATOR, Ran, clear, encrypted, provider
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.errors import MessageError, RangeOverflow
from atoll.secret_matrices.slots import integers, messages
from atoll.secret_matrices.slots.machine import SHARE_FRACTION, Slots
from atoll.study.address import Address


async def to_shares(m: Slots, own: Any) -> Any:
    rows = await m.encrypted_total(None if own is None else list(own), 2)
    return await m.to_shares(rows, [LENGTH, 3])


def added(ran: Ran, place: int) -> np.ndarray:
    return sum(ran.results[provider(i)][place] for i in range(3)) / 2.0**SHARE_FRACTION  # type: ignore[no-any-return]


def test_shares_add_up_to_the_rows_and_the_coordinator_has_none() -> None:
    ran, twin = encrypted(to_shares, tables()), clear(to_shares, tables())
    assert ran.results[str(COORDINATOR)] is twin.results[str(COORDINATOR)] is None
    for place, length in enumerate([LENGTH, 3]):
        due = sum(own[place][:length] for own in tables()[1:])
        np.testing.assert_allclose(added(ran, place).astype(float), due, atol=1e-6)
        np.testing.assert_allclose(added(twin, place).astype(float), due, atol=1e-11)


def test_a_share_is_as_wide_as_masks_are() -> None:
    ran = encrypted(to_shares, tables())
    for i in range(3):
        assert max(int(value).bit_length() for value in ran.results[provider(i)][0]) > 100


def test_shares_modulo_a_prime_come_back() -> None:
    """Each provider has a uniform number; modulo the prime they add up to small ones."""
    values = np.linspace(-900, 900, LENGTH)
    whole = np.array([round(v * 2**SHARE_FRACTION) for v in values], dtype=object)
    rng = np.random.default_rng(2)
    parts = [
        np.array([int.from_bytes(rng.bytes(32), "big") % PRIME for _ in values], dtype=object)
        for _ in range(2)
    ]
    parts.append((whole - sum(parts)) % PRIME)

    async def program(m: Slots, own: Any) -> Any:
        rows = await m.from_shares(None if own is None else [own], [LENGTH], PRIME)
        return await m.opened(rows, [LENGTH], frozenset({provider(1)}))

    ran = encrypted(program, [None, *parts])
    np.testing.assert_allclose(ran.results[provider(1)][0], values, atol=1e-4)


def test_what_the_first_provider_is_told_hides_a_number_in_all_its_bits() -> None:
    """A run with zeros and one with ones at the end of each number: what it adds up differs anywhere."""
    lowest = []
    for last in (0, 1):

        async def program(m: Slots, own: Any) -> Any:
            await m.from_shares(None if own is None else [own], [200], PRIME)

        tap = Tap()
        encrypted(
            program, [None, *(np.array([4 * i + last] * 200, dtype=object) for i in (1, 0, 0))], observer=tap
        )
        decoder = Decoder[Message](messages.MESSAGES)
        arrived = [decoder.decode(e.data) for e in tap.received(Address("p0", "provider"))]
        parts = [
            integers.from_bytes(m.body, 200, 32) for m in arrived if isinstance(m, messages.MaskedIntegers)
        ]
        assert len(parts) == 2
        lowest.append([int(value) & 3 for value in parts[0]])
    for found in lowest:
        assert {0, 1, 2, 3} == set(found)


def test_equal_rows_are_masked_differently() -> None:
    async def program(m: Slots, own: Any) -> Any:
        await m.from_shares(None if own is None else [own, own], [LENGTH] * 2, PRIME)

    tap = Tap()
    encrypted(program, [None, *(np.array([7] * LENGTH, dtype=object) for _ in range(3))], observer=tap)
    decoder = Decoder[Message](messages.MESSAGES)
    arrived = [decoder.decode(e.data) for e in tap.received(Address("p0", "provider"))]
    masked = [bytes(m.body) for m in arrived if isinstance(m, messages.MaskedIntegers)]
    assert len(set(masked)) == len(masked) == 4


@pytest.mark.parametrize("wide", [1 << 200, -(1 << 200), -(1 << 120)])
def test_numbers_too_large_for_slots_are_refused_on_their_way_back(wide: int) -> None:
    async def program(m: Slots, own: Any) -> Any:
        await m.from_shares(None if own is None else [own], [2], PRIME)

    parts = [np.array([wide, 1], dtype=object), *(np.array([0, 0], dtype=object) for _ in range(2))]
    with pytest.raises(RangeOverflow, match="beyond 2"):
        encrypted(program, [None, *parts])


def test_a_row_is_turned_into_shares_once() -> None:
    async def program(m: Slots, own: Any) -> Any:
        rows = await m.broadcast(await m.encrypted_total(None if own is None else list(own), 2))
        await m.to_shares(rows, [LENGTH] * 2)
        await m.to_shares(rows, [LENGTH] * 2)

    with pytest.raises(MessageError, match="a second time"):
        encrypted(program, tables())


def test_words_and_bytes_keep_signs() -> None:
    values = np.array([0, 1, -1, (1 << 127) - 1, -(1 << 127), 5 << 70], dtype=object)
    assert list(integers.from_words(integers.to_words(values, 8), 6)) == list(values)
    assert list(integers.from_bytes(integers.to_bytes(values, 17), 6, 17)) == list(values)
    with pytest.raises(MessageError, match="are not"):
        integers.from_bytes(b"123", 6)


def test_masks_are_uniform_around_zero() -> None:
    found = integers.wide_numbers(bytes(32), 4000, 114)
    assert max(abs(int(x)) for x in found) <= 1 << 113
    assert abs(np.mean(found / 2.0**113)) < 0.05
    assert np.std((found / 2.0**113).astype(float)) == pytest.approx(1 / np.sqrt(3), abs=0.02)
