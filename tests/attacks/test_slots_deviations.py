"""A coordinator, or a provider, of the machine on vectors in slots that does not follow the protocol.

What a provider answers is a function of its secret key. Nothing of that leaves before the providers have
compared what they were told, and no ciphertext gets two answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.lying import lying
from tests.support.slot_programs import LENGTH, tables
from tests.support.slot_runs import encrypted, provider

from atoll.codec import Decoder, Message
from atoll.errors import AtollError, MessageError
from atoll.runtime.engine import Observer
from atoll.secret_matrices.slots import messages as m
from atoll.secret_matrices.slots.machine import Slots
from atoll.study.address import Address

ANSWERS = (m.RefreshPart, m.SwitchingPart, m.OwnPart)


class Sent(Observer):
    """Which messages left."""

    def __init__(self) -> None:
        self.decoder = Decoder[Message](m.MESSAGES)
        self.kinds: Counter[type] = Counter()
        self.places: Counter[tuple[type, int]] = Counter()

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message: Any = self.decoder.decode(bytes(data))
        self.kinds[type(message)] += 1
        if isinstance(message, m.PlacedBody):
            self.places[type(message), message.place] += 1


async def refreshing(machine: Slots, own: Any) -> Any:
    """A total is refreshed, broadcast, refreshed again and opened."""
    rows = await machine.encrypted_total(None if own is None else list(own), 2)
    rows = await machine.refresh(rows)
    rows = await machine.refresh(await machine.broadcast(rows))
    return await machine.opened(rows, [LENGTH] * 2, frozenset({provider(0)}))


async def opening(machine: Slots, own: Any) -> Any:
    rows = await machine.encrypted_total(None if own is None else list(own), 2)
    return await machine.opened(rows, [LENGTH] * 2, frozenset({provider(0)}))


async def opening_own(machine: Slots, own: Any) -> Any:
    rows = await machine.broadcast(await machine.encrypted_total(None if own is None else list(own), 2))
    return await machine.opened_own(
        [machine.own_inner([(x, None if own is None else own[0])]) for x in rows], [LENGTH] * 2
    )


def ended(program: Any, tap: Sent) -> AtollError:
    with pytest.raises(AtollError) as raised:
        encrypted(program, tables(), observer=tap)
    return raised.value


def other(body: memoryview) -> memoryview:
    """A body of which one residue of the last polynomial is another, and still a residue."""
    data = bytearray(body)
    last = int.from_bytes(data[-8:], "little")
    data[-8:] = (last - 1 if last else 1).to_bytes(8, "little")
    return memoryview(bytes(data))


def changed(message: Any, body: memoryview) -> Any:
    return type(message)(message.step, message.place, body)


def to_one(kind: type, receiver: str, say: Callable[[Any], Any]) -> Any:
    def lie(sender: Address, to: Address, message: Any) -> Any:
        return say(message) if isinstance(message, kind) and str(to) == receiver else message

    return lie


@pytest.mark.parametrize("receiver", [provider(0), provider(2)])
@pytest.mark.parametrize(
    ("program", "kind", "answered"),
    [
        (refreshing, m.AskedRow, 0),
        (refreshing, m.GivenRow, 6),  # the first refresh was answered honestly, by three for two rows
        (opening, m.AskedRow, 0),
        (opening_own, m.GivenRow, 0),
        (opening_own, m.OwnRow, 0),
    ],
)
def test_providers_told_different_ciphertexts_answer_none(
    monkeypatch: pytest.MonkeyPatch, program: Any, kind: type, receiver: str, answered: int
) -> None:
    lying(monkeypatch, to_one(kind, receiver, lambda message: changed(message, other(message.body))))
    tap = Sent()
    error = ended(program, tap)
    assert isinstance(error, MessageError)
    assert "was told something else" in str(error)
    assert sum(tap.kinds[kind] for kind in ANSWERS) == answered


@pytest.mark.parametrize("told", [1, 2])
def test_a_receiver_that_gives_one_provider_another_key_is_answered_by_none(
    monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    """A part under a key of somebody else's would be readable by him."""
    lying(monkeypatch, to_one(m.ReceiverKey, provider(told), lambda x: m.ReceiverKey(other(x.body))))
    tap = Sent()
    assert "was told something else" in str(ended(opening, tap))
    assert tap.kinds[m.SwitchingPart] == 0


def test_a_second_refresh_of_one_ciphertext_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator asks everybody alike, for the second time, what it asked before."""
    asked: dict[int, memoryview] = {}

    def lie(sender: Address, to: Address, message: Any) -> Any:
        if not isinstance(message, m.AskedRow):
            return message
        asked.setdefault(message.place, message.body)
        return changed(message, asked[message.place])

    async def twice(machine: Slots, own: Any) -> Any:
        for _ in range(2):
            await machine.refresh(await machine.encrypted_total(None if own is None else list(own), 2))

    lying(monkeypatch, lie)
    tap = Sent()
    error = ended(twice, tap)
    assert "asks a second time for parts of one ciphertext" in str(error)
    assert tap.kinds[m.RefreshPart] == 6


def test_a_program_that_has_a_vector_refreshed_twice_is_refused() -> None:
    """By another verb, and with public numbers added: the half that parts are made from is the same."""

    async def careless(machine: Slots, own: Any) -> Any:
        rows = await machine.encrypted_total(None if own is None else list(own), 2)
        rows = await machine.broadcast([machine.scaled(x, 2) for x in rows])
        await machine.refresh(rows)
        await machine.to_shares([machine.plus(x, tables()[1][0]) for x in rows], [LENGTH] * 2)

    tap = Sent()
    with pytest.raises(MessageError, match="a second time"):
        encrypted(careless, tables(), observer=tap)
    assert tap.kinds[m.SharePart] == 0


def test_an_owner_that_asks_for_what_was_refreshed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that wants to read a global vector in place of its own rows."""
    given: list[memoryview] = []

    def lie(sender: Address, to: Address, message: Any) -> Any:
        if isinstance(message, m.AskedRow):
            given.append(message.body)
        if isinstance(message, m.OwnRow) and str(sender) == provider(1):
            return changed(message, given[0])
        return message

    async def program(machine: Slots, own: Any) -> Any:
        rows = await machine.encrypted_total(None if own is None else list(own), 2)
        low = [machine.weighted(x, tables()[1][0]) for x in rows]
        while low[0].level > 2:
            low = [machine.scaled(x, 0.5) for x in low]
        rows = await machine.broadcast(await machine.refresh(low))
        x = machine.own_inner([(rows[0], None if own is None else own[0])])
        while x.level > 2:
            x = machine.scaled(x, 0.5)
        return await machine.opened_own([x], [LENGTH])

    lying(monkeypatch, lie)
    tap = Sent()
    ended(program, tap)
    assert tap.kinds[m.OwnPart] == 0


def test_parts_at_another_level_than_everybody_counts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An opening is asked for modulo one modulus, of everybody alike."""

    def lie(sender: Address, to: Address, message: Any) -> Any:
        if not isinstance(message, m.AskedRow):
            return message
        body = bytes(message.body)
        row = (len(body) - 8) // 2
        return changed(message, memoryview(body[:3] + bytes([0]) + body[4 : 8 + row]))

    lying(monkeypatch, lie)
    tap = Sent()
    assert "asks for parts at level 0, level 1 was due" in str(ended(opening, tap))
    assert tap.kinds[m.SwitchingPart] == 0


# ---- keys ----


def test_a_public_key_part_that_was_not_committed_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may choose its part after the others' chooses the key."""

    def lie(sender: Address, to: Address, message: Any) -> Any:
        wrong = isinstance(message, m.OthersKeyPart) and message.place == 1
        return changed(message, other(message.body)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = ended(opening, tap)
    assert "is not the one it committed to" in str(error)
    assert tap.kinds[m.SentRow] == 0


def test_a_provider_that_sends_another_part_than_it_committed_to_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Any:
        wrong = isinstance(message, m.KeyPart) and message.place == 0 and str(sender) == provider(1)
        return changed(message, other(message.body)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = ended(opening, tap)
    assert "is not the one it committed to" in str(error)
    assert tap.kinds[m.SentRow] == 0


@pytest.mark.parametrize("place", [1, 2, 5], ids=["first round", "second round", "a rotation"])
def test_an_evaluation_key_told_differently_is_found_out(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Any:
        wrong = isinstance(message, m.KeyTotal) and message.place == place and str(to) == provider(1)
        return changed(message, other(message.body)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = ended(opening, tap)
    assert "was told something else" in str(error)
    assert tap.kinds[m.SentRow] == 0
    if place == 1:  # its answer would multiply the secret with a number of the coordinator's choice
        assert tap.places[m.KeyPart, 2] == 0


@pytest.mark.parametrize("place", [1, 2, 5], ids=["first round", "second round", "a rotation"])
def test_an_evaluation_key_that_is_not_the_sum_of_parts_is_found_out(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """The same wrong sum for everybody."""

    def lie(sender: Address, to: Address, message: Any) -> Any:
        wrong = isinstance(message, m.KeyTotal) and message.place == place
        return changed(message, other(message.body)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = ended(opening, tap)
    assert "not the sum of the providers' parts" in str(error)
    assert tap.kinds[m.SentRow] == 0
    if place == 1:
        assert tap.places[m.KeyPart, 2] == 0


def test_a_session_seed_without_ones_own_part_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Any:
        return m.SessionSeed((bytes(32),) * 3) if isinstance(message, m.SessionSeed) else message

    lying(monkeypatch, lie)
    tap = Sent()
    assert "not made from every provider's part" in str(ended(opening, tap))
    assert tap.kinds[m.KeyPart] == 0


# ---- strict messages ----


@pytest.mark.parametrize(
    "kind", [m.SentRow, m.GivenRow, m.AskedRow, m.RefreshPart, m.KeyTotal, m.SwitchedRow]
)
@pytest.mark.parametrize("spoil", ["step", "place", "short", "residue"])
def test_a_message_of_another_place_or_size_is_refused(
    monkeypatch: pytest.MonkeyPatch, kind: type, spoil: str
) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Any:
        if not isinstance(message, kind):
            return message
        step, place, body = message.step, message.place, bytes(message.body)
        if spoil == "step":
            step += 1
        elif spoil == "place":
            place += 1
        elif spoil == "short":
            body = body[:-8]
        else:
            body = body[:-8] + bytes([255] * 8)
        return kind(step, place, memoryview(body))

    lying(monkeypatch, lie)
    tap = Sent()
    assert isinstance(ended(refreshing, tap), AtollError)


def test_without_a_lie_the_same_program_passes() -> None:
    tap = Sent()
    assert encrypted(refreshing, tables(), observer=tap).results[provider(0)] is not None
    assert tap.kinds[m.RefreshPart] == 12
    assert tap.kinds[m.AskedRow] == 12  # two rows to three providers, at the first refresh and at the opening
