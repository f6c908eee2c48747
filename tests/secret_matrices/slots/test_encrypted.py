"""Every verb of the machine on vectors in slots: encrypted, all roles on the local engine, and its twin."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.support.handles import opened
from tests.support.slot_programs import BOTH, LENGTH, OTHERS, everything, tables
from tests.support.slot_runs import COORDINATOR, INSECURE, Ran, clear, encrypted, provider, run_of
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.crypto import slots
from atoll.errors import AtollError, RangeOverflow, RunError
from atoll.runtime.replay import replay
from atoll.secret_matrices.slots import messages, roles, steps
from atoll.secret_matrices.slots.machine import Slots
from atoll.secret_matrices.slots.party import PAPER

PRECISE = 2e-3
"""What flooding leaves of openings."""


async def reception(receiver: roles.Receiver) -> Any:
    return await receiver.opened([LENGTH, 7], BOTH)


class Kept(Tap):
    """A tapped run."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = Decoder[Message](messages.MESSAGES)

    def kinds(self, address: Any) -> set[str]:
        return {type(self.decoder.decode(event.data)).__name__ for event in self.received(address)}


@pytest.fixture(scope="module")
def tap() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def ran(tap: Kept) -> Ran:
    return encrypted(everything, tables(), reception, observer=tap)


@pytest.fixture(scope="module")
def twin() -> Ran:
    return clear(everything, tables())


def assert_same(found: Any, due: Any) -> None:
    assert (found is None) == (due is None)
    for x, y in zip(found or [], due or [], strict=True):
        np.testing.assert_allclose(x, y, atol=PRECISE)


def test_every_role_finds_what_its_twin_finds(ran: Ran, twin: Ran) -> None:
    for name, due in twin.results.items():
        found = ran.results[name]
        assert found["levels"] == due["levels"]
        for what in ("refreshed", "of everybody", "own", "from shares"):
            assert_same(found[what], due[what])


def test_receivers_and_nobody_else_are_told_what_is_opened(ran: Ran) -> None:
    machines = {name: found for name, found in ran.results.items() if name != "office/consumer"}
    assert {name for name, found in machines.items() if found["refreshed"]} == {provider(1)}
    assert {name for name, found in machines.items() if found["of everybody"]} == OTHERS
    assert_same(ran.results["office/consumer"], machines[provider(1)]["refreshed"])


def test_the_count_of_operations_is_that_of_the_twin(ran: Ran, twin: Ran) -> None:
    assert set(ran.tallies) == set(twin.tallies)
    for name, tally in twin.tallies.items():
        assert ran.tallies[name].total == tally.total


def test_a_role_run_again_from_its_record_sends_the_same_bytes(ran: Ran, tap: Kept) -> None:
    run = run_of(everything, tables(), reception)
    for address, record in tap.records.items():
        sent = replay(
            run.protocol,
            run.study,
            address,
            None,  # type: ignore[arg-type]
            record.drawn,
            tap.inboxes[address],
            record.sendings,
        )[1]
        assert sent == tap.outboxes[address]


def test_who_is_sent_what(ran: Ran, tap: Kept) -> None:
    kinds = {str(a): tap.kinds(a) for a in tap.inboxes}
    assert kinds["hub/coordinator"] == {
        "SeedPart",
        "KeyPart",
        "SentRow",
        "RefreshPart",
        "SwitchingPart",
        "SharePart",
        "InputPart",
    }
    everybody = {
        "SessionSeed",
        "OthersKeyPart",
        "KeyTotal",
        "Compared",
        "GivenRow",
        "AskedRow",
        "OwnRow",
        "OwnPart",
        "ReceiverKey",
    }
    assert kinds[provider(0)] == everybody | {"PublicShare", "MaskedIntegers"}
    assert kinds[provider(1)] == everybody | {"SwitchedRow"}
    assert kinds[provider(2)] == everybody | {"SwitchedRow", "ReceiverSecret"}
    assert kinds["office/consumer"] == {"SwitchedRow", "ReceiverSecret"}


def test_no_draw_and_no_body_with_a_draw_in_it_is_used_twice(ran: Ran, tap: Kept) -> None:
    drawn = [draw for record in tap.records.values() for draw in record.drawn.values()]
    assert len(drawn) > 50
    assert len(set(drawn)) == len(drawn)


def test_handles_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def short(m: Slots, own: Any) -> Any:
        rows = await m.broadcast(await m.encrypted_total(None if own is None else list(own), 2))
        return await m.opened(rows, [LENGTH] * 2, frozenset({provider(0)}))

    with opened(monkeypatch) as found:
        encrypted(short, tables())
        assert len(found.numbers) > 5
        assert found.all_freed()


def test_rounds(ran: Ran) -> None:
    """A refresh of the coordinator's rows takes three: asked, compared, answered."""

    def program(refreshes: int) -> Any:
        async def run(m: Slots, own: Any) -> Any:
            rows = await m.encrypted_total(None if own is None else list(own), 2)
            for _ in range(refreshes):
                rows = await m.refresh(rows)

        return run

    rounds = [encrypted(program(k), tables()).transcript.rounds for k in (0, 1, 2)]
    assert [b - a for a, b in pairwise(rounds)] == [3, 3]


def test_a_vector_is_not_refreshed_below_the_lowest_level() -> None:
    async def careless(m: Slots, own: Any) -> Any:
        (x,) = await m.encrypted_total(None if own is None else [own[0]], 1)
        while x.level >= m.lowest:
            x = m.scaled(x, 0.5)
        return await m.refresh([x])

    with pytest.raises(RunError, match="cannot be refreshed"):
        encrypted(careless, tables())


def test_an_insecure_set_is_refused_without_the_flag_of_tests() -> None:
    with pytest.raises(AtollError, match="unknown"):
        slots.find(INSECURE)


def test_at_the_papers_parameters() -> None:
    """Once, as slots are 8,192: everybody finds what the twin finds."""
    found, due = (
        encrypted(everything, tables(), reception, set_name=PAPER),
        clear(everything, tables(), set_name=PAPER),
    )
    for name, expected in due.results.items():
        assert found.results[name]["levels"] == expected["levels"]
        for what in ("refreshed", "of everybody", "own", "from shares"):
            assert_same(found.results[name][what], expected[what])
        assert found.tallies[name].total == due.tallies[name].total


async def turned(m: Slots, own: Any) -> Any:
    """A row of 20 numbers turned by 5 is opened up to its tenth; and own ones."""
    rows = await m.broadcast(await m.encrypted_total(None if own is None else list(own), 2))
    opened = await m.opened([m.rotate(rows[0], 5)], [10], frozenset({provider(0)}))
    mine = await m.opened_own([m.own_inner([(rows[1], None if own is None else own[0])])], [10])
    return (opened, mine)


def whole_slots(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Receivers decrypt whole ciphertexts: what they find in all slots."""
    seen: list[np.ndarray] = []
    decrypt, opened = slots.Secret.decrypt, slots.opened

    def decrypted(key: slots.Secret, body: Any, length: int) -> np.ndarray:
        seen.append(decrypt(key, body))
        return seen[-1][:length]

    def together(x: slots.Ciphertext, total: Any, length: int) -> np.ndarray:
        seen.append(opened(x, total))
        return seen[-1][:length]

    monkeypatch.setattr(slots.Secret, "decrypt", decrypted)
    monkeypatch.setattr(slots, "opened", together)
    return seen


def test_what_lies_beyond_the_opened_slots_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is zero already, where providers would open all slots (a variant for this test alone)."""
    for name in ("switching_parts", "opening_parts"):
        make = getattr(slots.Secret, name)

        def unveiled(key: Any, xs: Any, lengths: Any, *rest: Any, make: Any = make) -> Any:
            return make(key, xs, [512] * len(lengths), *rest)

        monkeypatch.setattr(slots.Secret, name, unveiled)
    seen = whole_slots(monkeypatch)
    encrypted(turned, tables())
    assert len(seen) == 4
    for values in seen:
        assert len(values) == 512
        assert np.abs(values[:10]).max() > 0.01
        assert np.abs(values[10:]).max() < PRECISE


@pytest.mark.parametrize("own", [False, True])
def test_who_reads_further_than_was_opened_finds_noise(monkeypatch: pytest.MonkeyPatch, own: bool) -> None:
    async def one(m: Slots, rows: Any) -> Any:
        (x,) = await m.broadcast(await m.encrypted_total(None if rows is None else [rows[0]], 1))
        if own:
            return await m.opened_own([m.own_inner([(x, None if rows is None else rows[0])])], [10])
        return await m.opened([x], [10], frozenset({provider(0)}))

    whole_slots(monkeypatch)
    with pytest.raises(RangeOverflow, match="a value is wider than it can be"):
        encrypted(one, tables())


def test_flooding_grows_with_the_numbers_that_are_open() -> None:
    """Each is an equation for the key."""
    assert [steps.flooding_bits(n) for n in (1, 1 << 15, (1 << 15) + 1, 1 << 16, (1 << 16) + 1)] == [
        *(14, 14, 15, 15),
        16,
    ]
    assert steps.flooding_bits(10**8) == 26


def test_all_that_is_opened_under_one_key_counts_for_its_flooding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Openings of own rows count for every provider: all of them give parts of the same key."""
    used: list[int] = []
    for name in ("switching_parts", "opening_parts"):
        make = getattr(slots.Secret, name)

        def noted(key: Any, xs: Any, lengths: Any, *rest: Any, make: Any = make) -> Any:
            used.append(rest[-1])
            return make(key, xs, lengths, *rest)

        monkeypatch.setattr(slots.Secret, name, noted)
    monkeypatch.setattr(steps, "FLOODED_NUMBERS", 8)
    encrypted(turned, tables())
    # 10 numbers for one receiver, by three; then 10 of each provider's own: 40 in all.
    assert used == [15] * 3 + [17] * 9


def test_every_refreshed_row_has_a_polynomial_of_its_own() -> None:
    async def program(m: Slots, own: Any) -> Any:
        marks = []
        rows = await m.encrypted_total(None if own is None else list(own), 2)
        for _ in range(2):
            rows = await m.refresh(rows)
            marks += [x.held.value.mark() for x in rows if x.held is not None]
        return marks

    assert len(set(encrypted(program, tables()).results[str(COORDINATOR)])) == 4


def test_equal_rows_are_encrypted_differently() -> None:
    """More of them than are encrypted at once."""

    async def program(m: Slots, own: Any) -> Any:
        await m.encrypted_total(None if own is None else [own[0]] * 20, 20)

    kept = Kept()
    encrypted(program, tables(), observer=kept)
    arrived = [kept.decoder.decode(event.data) for event in kept.received(COORDINATOR)]
    sent = {bytes(message.body) for message in arrived if isinstance(message, messages.SentRow)}
    assert len(sent) == 3 * 20
