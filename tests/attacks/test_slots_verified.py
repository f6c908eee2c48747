"""An active coordinator of the slot machine: what it gets, and what verifying providers refuse.

Where providers answer what they are asked, one refresh of a made-up ciphertext shows their keys, and one
opening in another's place shows a provider's rows. Where they verify, they ask themselves: the coordinator
sends sums only, and sums are checked.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_slots_deviations import Sent, changed, other, to_one
from tests.support.lying import lying
from tests.support.slot_programs import BOTH, LENGTH, everything, tables
from tests.support.slot_runs import COORDINATOR, clear, encrypted, provider

from atoll.crypto import slots
from atoll.crypto.slots import HEADER_BYTES, Ciphertext
from atoll.errors import AtollError, MessageError
from atoll.secret_matrices.slots import messages as m
from atoll.secret_matrices.slots import roles
from atoll.secret_matrices.slots.machine import Slots
from atoll.secret_matrices.slots.party import known
from atoll.study.address import Address

N = 1024
ANSWERS = (m.RefreshPart, m.SwitchingPart, m.SharePart, m.OwnPart)


def chosen() -> Any:
    return slots.find("test-slots-10", for_tests=True)


# ---- it computes the same ----


async def reception(receiver: roles.Receiver) -> Any:
    return await receiver.opened([LENGTH, 7], BOTH)


def test_verifying_providers_find_what_the_others_do() -> None:
    tap = Sent()
    ran = encrypted(everything, tables(), reception, verify=True, observer=tap)
    twin = clear(everything, tables())
    for name, due in twin.results.items():
        for what in ("refreshed", "of everybody", "own", "from shares"):
            found = ran.results[name][what]
            assert (found is None) == (due[what] is None)
            for x, y in zip(found or [], due[what] or [], strict=True):
                np.testing.assert_allclose(x, y, atol=2e-3)
    # The coordinator sends keys, sums and outputs, and no ciphertext to answer for.
    from_it = {m.OthersKeyPart, m.KeyTotal, m.SumOfParts, m.SwitchedRow, m.SessionSeed}
    all_kinds = set(tap.kinds)
    assert all_kinds & {m.AskedRow, m.GivenRow, m.PublicShare} == set()
    assert from_it <= all_kinds


# ---- the whole key, by one refresh ----


def crafted(body: memoryview) -> memoryview:
    """A half of a ciphertext that is a third of the modulus in its constant coefficient, and nothing else."""
    data = np.frombuffer(body, "<u8", offset=HEADER_BYTES).copy().reshape(-1, N)
    moduli = [int(q) for q in chosen().moduli[: len(data)]]
    third = int(np.prod(np.array(moduli, dtype=object))) // 3
    for row, q in zip(data, moduli, strict=True):
        row[:] = third % q  # the transform of a constant is that constant everywhere
    return memoryview(bytes(body[:HEADER_BYTES]) + data.tobytes())


def coefficients(part: memoryview) -> list[int]:
    """The masked decryption share in a part of a refresh: its three first rows, lifted."""
    rows = np.frombuffer(part, "<u8", offset=HEADER_BYTES).reshape(-1, N)[:3]
    moduli = [int(q) for q in chosen().moduli[:3]]
    whole = int(np.prod(np.array(moduli, dtype=object)))
    weights = [whole // q * pow(whole // q, -1, q) for q in moduli]
    values = [sum(int(x) * w for x, w in zip(column, weights, strict=True)) % whole for column in rows.T]
    return [value - whole if value > whole // 2 else value for value in values]


class Parts(Sent):
    """The parts of refreshes, as the coordinator received them."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[str, list[memoryview]] = defaultdict(list)
        self.halves: dict[str, memoryview] = {}
        self.drawn: dict[str, Any] = {}

    def finished(self, address: Address, record: Any) -> None:
        self.drawn[str(address)] = record.drawn

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        super().sent(sender, receiver, data)
        message: Any = self.decoder.decode(bytes(data))
        if isinstance(message, m.RefreshPart):
            self.bodies[str(sender)].append(message.body)
        elif isinstance(message, m.AskedRow) and message.place == 0:
            self.halves[str(receiver)] = message.body


async def refreshing(machine: Slots, own: Any) -> Any:
    rows = await machine.encrypted_total(None if own is None else list(own), 2)
    await machine.refresh(rows)


def test_one_refresh_of_a_made_up_ciphertext_shows_a_whole_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of the modulus, times a coefficient of the key: -1, 0 or 1; masks are a hundredth of that."""
    tap = Parts()

    def lie(_: Address, __: Address, message: Any) -> Any:
        wrong = isinstance(message, m.AskedRow) and message.place == 0
        return changed(message, crafted(message.body)) if wrong else message

    lying(monkeypatch, lie)
    with contextlib.suppress(AtollError):  # the coordinator cannot go on with it; it has what it wants
        encrypted(refreshing, tables(), observer=tap)
    for name in map(provider, range(3)):
        key = key_in(tap.bodies[name][0])
        assert [key.count(k) / N > 0.25 for k in (-1, 0, 1)] == [True] * 3
        # It is the key, and nothing that was drawn with it: with other masks, the same.
        secret = slots.Secret.generate(chosen(), tap.drawn[name]["secret key"])
        asked = Ciphertext.from_half(chosen(), tap.halves[name])
        (part,) = secret.refresh_parts([asked], [b"c" * 32], b"s" * 32)
        assert part != tap.bodies[name][0]
        assert key_in(part) == key


def key_in(part: memoryview) -> list[int]:
    """What the masks leave of a part of that ciphertext."""
    values, third = coefficients(part), modulus() // 3
    key = [round(value / third) for value in values]
    assert max(abs(value - k * third) for value, k in zip(values, key, strict=True)) <= 1 << 112
    return key


def modulus() -> int:
    """Of refreshes."""
    return int(np.prod(np.array([int(q) for q in chosen().moduli[:3]], dtype=object)))


def test_verifying_providers_make_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not asked: what they answer for is what they computed of sums that are right."""
    tap = Parts()

    def lie(_: Address, __: Address, message: Any) -> Any:
        if not isinstance(message, m.SumOfParts) or (message.step, message.place) != (1, 0):
            return message
        half = (len(message.body) - HEADER_BYTES) // 2
        head, first = bytes(message.body[:HEADER_BYTES]), bytes(message.body[HEADER_BYTES:][:half])
        second = crafted(memoryview(head + bytes(message.body[HEADER_BYTES + half :])))
        return changed(message, memoryview(head + first + bytes(second[HEADER_BYTES:])))

    lying(monkeypatch, lie)
    error = refused(refreshing, tap)
    assert "a sum that is not that of the providers' parts" in str(error)
    assert not tap.bodies


# ---- wrong sums, replaced rows ----


async def whole(machine: Slots, own: Any) -> Any:
    """Sums of encrypted rows, of products, of refreshes, of shares and back, all opened for all."""
    everybody = frozenset([str(COORDINATOR), *(provider(i) for i in range(3))])
    (x,) = await machine.encrypted_total(None if own is None else [own[0]], 1)
    (x,) = await machine.broadcast([x])
    (y,) = await machine.total([machine.own_inner([(x, None if own is None else own[1])])])
    (y,) = await machine.refresh([y])
    shares = await machine.to_shares([machine.times(y, y)], [LENGTH])
    (z,) = await machine.from_shares(shares, [LENGTH], 2**255 - 19)
    first = await machine.opened([z], [LENGTH], everybody)
    second = await machine.opened([machine.add(x, x)], [LENGTH], everybody)
    return first, second


def refused(program: Any, tap: Sent, *, verify: bool = True) -> AtollError:
    with pytest.raises(AtollError) as raised:
        encrypted(program, tables(), observer=tap, verify=verify)
    return raised.value


def at(step: int, kind: type, body: Any) -> Any:
    """A lie of the coordinator's at one step, to everybody alike."""

    def lie(_: Address, __: Address, message: Any) -> Any:
        wrong = isinstance(message, kind) and message.step == step
        return changed(message, body(message.body)) if wrong else message

    return lie


STEPS = {
    "of rows": (1, 0),
    "of products": (3, 0),
    "of a refresh": (4, 3),
    "of shares": (5, 6),
    "back": (6, 6),
}
"""Sums by name: the step at which they are sent, and parts that have left by then."""


@pytest.mark.parametrize("name", STEPS)
def test_a_wrong_sum_is_found_out_before_the_next_part_leaves(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    step, answered = STEPS[name]
    lying(monkeypatch, at(step, m.SumOfParts, other))
    tap = Sent()
    error = refused(whole, tap)
    assert isinstance(error, MessageError)
    assert "a sum that is not that of the providers' parts" in str(error)
    assert sum(tap.kinds[kind] for kind in ANSWERS) == answered


@pytest.mark.parametrize("name", STEPS)
def test_sums_that_differ_from_provider_to_provider_are_found_out(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    step, answered = STEPS[name]

    def lie(_: Address, to: Address, message: Any) -> Any:
        wrong = isinstance(message, m.SumOfParts) and message.step == step and str(to) == provider(1)
        return changed(message, other(message.body)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = refused(whole, tap)
    assert "was told something else" in str(error) or "not that of the providers' parts" in str(error)
    assert sum(tap.kinds[kind] for kind in ANSWERS) == answered


def test_two_wrong_sums_do_not_make_up_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken from one row is added to the other one: together they are right."""

    def lie(_: Address, __: Address, message: Any) -> Any:
        wrong = isinstance(message, m.SumOfParts) and message.step == 1
        return changed(message, moved(message.body, 1 - 2 * message.place)) if wrong else message

    lying(monkeypatch, lie)
    tap = Sent()
    error = refused(refreshing, tap)
    assert "a sum that is not that of the providers' parts" in str(error)
    assert tap.kinds[m.RefreshPart] == 0


def moved(body: memoryview, by: int) -> memoryview:
    """Every residue of the first half is one more or one less."""
    data = np.frombuffer(body, "<u8", offset=HEADER_BYTES).copy().reshape(2, -1, N)
    for row, q in zip(data[0], chosen().moduli, strict=True):
        row[:] = (row + np.uint64(int(q) + by)) % np.uint64(q)
    return memoryview(bytes(body[:HEADER_BYTES]) + data.tobytes())


def test_one_providers_row_in_the_place_of_the_sum_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without verifying it is opened: the coordinator reads that provider's row."""
    kept: dict[int, memoryview] = {}

    async def opening(machine: Slots, own: Any) -> Any:
        (x,) = await machine.encrypted_total(None if own is None else [own[0]], 1)
        return await machine.opened([x], [LENGTH], frozenset({str(COORDINATOR)}))

    read = roles.Coordinator._sums

    async def only_the_victims(self: Any, levels: Any) -> Any:
        """The coordinator keeps what the first provider sent, and goes on with that alone."""
        await read(self, levels)
        return [known(Ciphertext.from_bytes(self.set, kept[0]))]

    def lie(sender: Address, _: Address, message: Any) -> Any:
        if isinstance(message, m.SentRow) and str(sender) == provider(0):
            kept[message.place] = message.body
        if isinstance(message, m.SumOfParts):
            return changed(message, kept[message.place])
        return message

    lying(monkeypatch, lie)
    monkeypatch.setattr(roles.Coordinator, "_sums", only_the_victims)
    (row,) = encrypted(opening, tables()).results[str(COORDINATOR)]
    np.testing.assert_allclose(row, tables()[1][0], atol=2e-3)
    tap = Sent()
    error = refused(opening, tap)
    assert "not that of the providers' parts" in str(error)
    assert tap.kinds[m.SwitchingPart] == 0


def test_another_output_than_was_opened_is_found_out_where_all_providers_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The certificate is such an output: before anything else is opened, they compare."""
    lying(monkeypatch, at(7, m.SwitchedRow, _shifted))
    tap = Sent()
    error = refused(whole, tap)
    assert "not that of the providers' parts" in str(error)
    assert tap.kinds[m.SwitchingPart] == 3


def _shifted(body: memoryview) -> memoryview:
    """A constant more in the first half: every number that is read is another, by little."""
    data = np.frombuffer(body, "<u8", offset=HEADER_BYTES).copy().reshape(4, N)
    for row, q in zip(data[:2], chosen().moduli, strict=False):
        row[:] = (row + np.uint64(1 << 32)) % np.uint64(q)
    return memoryview(bytes(body[:HEADER_BYTES]) + data.tobytes())


def test_a_provider_that_lies_about_its_part_is_not_told_from_the_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it sent is not what it says that it sent: the run ends all the same."""
    lying(monkeypatch, to_one(m.SentRow, str(COORDINATOR), _first_of_two()))
    tap = Sent()
    error = refused(refreshing, tap)
    assert "the coordinator, or a provider's account, is wrong" in str(error)
    assert tap.kinds[m.RefreshPart] == 0


def _first_of_two() -> Any:
    done: list[int] = []

    def say(message: Any) -> Any:
        if done:
            return message
        done.append(1)
        return changed(message, other(message.body))

    return say
