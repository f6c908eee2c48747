"""A threshold of the providers on vectors in slots: who stops, and what fewer have of the outputs."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.support.lying import lying
from tests.support.slot_programs import LENGTH, tables
from tests.support.slot_runs import COORDINATOR, MESSAGES, encrypted, provider
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.crypto import shamir
from atoll.errors import AtollError, MessageError, PartyLeft
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices.slots import dealing, steps
from atoll.secret_matrices.slots import messages as m
from atoll.secret_matrices.slots.dealing import Output, deal
from atoll.secret_matrices.threshold import release
from atoll.study.address import Address

PARTIES, ENOUGH = 5, 3
INPUTS = tables(PARTIES)
RECEIVERS = frozenset([str(COORDINATOR), *(provider(i) for i in range(PARTIES))])


async def program(machine: Any, own: Any) -> Any:
    """Sums, a refresh and a product, of which three rows are dealt and released."""
    x, y = await machine.encrypted_total(None if own is None else list(own), 2)
    (z,) = await machine.refresh([machine.times(x, y)])
    held = await deal(machine, [Output([x, z], LENGTH), Output([y], 3)], ENOUGH)
    return [await release(machine, one, RECEIVERS) for one in held]


def truth() -> list[np.ndarray]:
    x, y = sum(INPUTS[1:])
    return [np.array([x, x * y]), y[None, :3]]


class Shares(Tap):
    """Everything that a role ever sent as its part or share of something, by what it is of."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = Decoder[Message](MESSAGES)
        self.shares: dict[tuple[Any, ...], set[bytes]] = defaultdict(set)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        super().sent(sender, receiver, data)
        message: Any = self.decoder.decode(bytes(data))
        kind = type(message)
        if kind in (m.RefreshPart, m.SharePart, m.SwitchingPart):
            self.shares[kind, sender, message.step, message.place].add(bytes(data))
        elif kind is mm.ReleasedPoint:
            self.shares[kind, sender, message.which].add(bytes(data))
        elif kind is mm.DealtShare:  # one for each receiver
            self.shares[kind, sender, message.step, receiver].add(bytes(data))


def stopped(crash: dict[str, int], *, verify: bool = False) -> tuple[Any, AtollError | None, Shares]:
    """What the coordinator has, or the error."""
    tap = Shares()
    try:
        ran = encrypted(program, INPUTS, observer=tap, verify=verify, may_leave=PARTIES - ENOUGH, crash=crash)
    except AtollError as error:
        return None, error, tap
    return ran.results[str(COORDINATOR)], None, tap


@cache
def whole() -> Shares:
    found, error, tap = stopped({})
    assert error is None
    assert_true(found)
    return tap


def assert_true(found: Any) -> None:
    for one, due in zip(found, truth(), strict=True):
        np.testing.assert_allclose(one, due, atol=1e-4)


def first(kind: type[Message], name: str) -> int:
    """Which of a provider's messages, counted from 1, is its first of a kind."""
    party = Address(name, "provider")
    return [type(whole().decoder.decode(data)) for _, data in whole().outboxes[party]].index(kind) + 1


@pytest.mark.parametrize("verify", [False, True])
def test_whoever_stops_after_dealing_is_missed_by_nobody(verify: bool) -> None:
    dealt = {f"p{i}/provider": first(mm.DealtShare, f"p{i}") + PARTIES - 1 for i in (0, 3)}
    if verify:
        found, error, _ = stopped({}, verify=True)
    else:
        found, error, _ = stopped(dealt)
    assert error is None
    assert_true(found)


def test_a_third_stop_is_one_too_many() -> None:
    crash = {f"p{i}/provider": first(mm.DealtShare, f"p{i}") + PARTIES - 1 for i in (0, 2, 3)}
    _, error, tap = stopped(crash)
    assert isinstance(error, PartyLeft)
    assert not any(kind is mm.ReleasedPoint for kind, *_ in tap.shares)


@pytest.mark.parametrize("kind", [m.SentRow, m.RefreshPart, m.SharePart])
def test_who_stops_before_shares_are_dealt_ends_the_run(kind: type[Message]) -> None:
    _, error, tap = stopped({"p4/provider": first(kind, "p4")})
    assert isinstance(error, PartyLeft)
    assert error.missing == ("p4",)
    assert not any(kind in (mm.DealtShare, mm.ReleasedPoint) for kind, *_ in tap.shares)


@pytest.mark.parametrize("seed", range(6))
def test_two_stops_at_random_end_in_the_output_or_in_a_clear_error(seed: int) -> None:
    """`python -m benchmarks.slots_stops` does it two hundred times."""
    draw = random.Random(seed)
    crash = {}
    for i in draw.sample(range(PARTIES), 2):
        last = len(whole().outboxes[Address(f"p{i}", "provider")])
        crash[provider(i)] = draw.randint(1 if seed % 2 else first(mm.DealtShare, f"p{i}") + 1, last)
    found, error, seen = stopped(crash)
    assert all(len(bodies) == 1 for bodies in seen.shares.values())
    if error is None:
        assert_true(found)
    else:
        assert isinstance(error, PartyLeft)
        assert error.hint


def test_fewer_than_a_threshold_have_nothing_of_what_was_dealt() -> None:
    """What two members are sent by a third one: numbers of the whole field, on no line with its own."""
    tap = whole()
    for dealer in ("p2", "p3", "p4"):
        dealt: list[Any] = [
            tap.decoder.decode(event.data)
            for i in range(2)
            for event in tap.received(Address(f"p{i}", "provider"))
            if event.sender.party == dealer
        ]
        bodies = [one.body for one in dealt if isinstance(one, mm.DealtShare)]
        one, two = (shamir.numbers_from_bytes(body, 2 * LENGTH + 3) for body in bodies)
        assert min(int(v).bit_length() for v in (*one, *two)) > 480
        assert all((2 * a - b) % shamir.PRIME >> 400 for a, b in zip(one, two, strict=True))


def test_a_share_that_was_not_committed_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, receiver: Address, message: Any) -> Any:
        if not isinstance(message, mm.ReleasedPoint) or sender.party != "p1":
            return message
        values = shamir.numbers_from_bytes(message.body, message.rows * message.cols)
        values[0] = (values[0] + 1) % shamir.PRIME
        fields = {name: getattr(message, name) for name in message.__struct_fields__}
        return mm.ReleasedPoint(**fields | {"body": memoryview(shamir.numbers_to_bytes(values))})

    lying(monkeypatch, lie)
    _, error, _ = stopped({})
    assert isinstance(error, MessageError)
    assert "p1/provider sent a share of an output that is not the one it committed to" in str(error)


# ---- widths ----


def test_noise_of_dealt_outputs_is_that_of_openings() -> None:
    assert steps.FLOODING_BITS == 14
    assert dealing.flooding_bits(8192, 38) == 23  # 14 + half of log2(16,384), at 40 bits after the point
    assert dealing.flooding_bits(512, 38) == 21


def test_the_noise_is_there() -> None:
    """Five uniform numbers of 21 bits: 1.24e-6. Of an opening 14 bits a coefficient: 0.88e-6 in a slot."""

    async def both(machine: Any, own: Any) -> Any:
        rows = await machine.encrypted_total(None if own is None else [own, own], 2)
        (held,) = await deal(machine, [Output(rows[:1], 512)], ENOUGH)
        dealt = await release(machine, held, RECEIVERS)
        (opened,) = await machine.opened(rows[1:], [512], RECEIVERS)
        return dealt, opened

    rows = np.random.default_rng(3).uniform(-0.1, 0.1, (PARTIES, 512))
    dealt, opened = encrypted(both, [None, *rows]).results[str(COORDINATOR)]
    due = rows.sum(axis=0)
    assert 1.0e-6 < np.std(dealt[0] - due) < 1.6e-6
    assert 0.7e-6 < np.std(opened - due) < 1.1e-6


def test_every_dealt_row_has_noise_of_its_own() -> None:
    """Two rows of one output and noise: their difference would have none, and show how they were computed."""

    async def twice(machine: Any, own: Any) -> Any:
        rows = await machine.encrypted_total(None if own is None else [own, own], 2)
        (held,) = await deal(machine, [Output(rows, 512)], ENOUGH)
        return await release(machine, held, RECEIVERS)

    rows = np.random.default_rng(4).uniform(-0.1, 0.1, (PARTIES, 512))
    one, other = encrypted(twice, [None, *rows]).results[str(COORDINATOR)]
    assert 1.4e-6 < np.std(one - other) < 2.3e-6  # twice 1.24e-6, independent
