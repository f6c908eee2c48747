"""The coordinator and all providers but one, on the machine on vectors in slots: they can open nothing.

They have every message that one of them sent or was sent, and what they drew: all parts of the key but one.
Each attack is made with the last one's part as well, or on a variant for this test alone, and succeeds there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import ks_2samp
from tests.support.slot_programs import PRIME, tables
from tests.support.slot_runs import COORDINATOR, MESSAGES, encrypted, provider
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.crypto import slots
from atoll.crypto.slots import HEADER_BYTES, Ciphertext, Keys, Secret
from atoll.errors import RangeOverflow
from atoll.randomness import derive
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.slots import messages as m
from atoll.secret_matrices.slots import provider as machine
from atoll.secret_matrices.slots.integers import from_bytes, from_words
from atoll.secret_matrices.slots.machine import SHARE_FRACTION, Slots
from atoll.study.address import Address

LENGTH, PARTIES = 20, 3
N = 1024
NAMES = [Address(f"p{i}", "provider") for i in range(PARTIES)]
SEED = b"g" * 32


class View(NamedTuple):
    """A run of three providers, as a coalition of the coordinator and two of them may look at it."""

    keys: Keys
    rows: dict[str, Any]
    """The coordinator's, by what they are."""
    session: bytes
    tap: Tap
    results: dict[str, Any]

    def sent(self, who: Address, kind: type[m.PlacedBody], place: int = 0) -> memoryview:
        """The last one of a kind that somebody sent."""
        decoder = Decoder[Message](MESSAGES)
        found: list[Any] = [decoder.decode(data) for _, data in self.tap.outboxes[who]]
        return [x.body for x in found if isinstance(x, kind) and x.place == place][-1]

    def secret(self, who: Address) -> Secret:
        """What a member of the coalition drew."""
        return Secret.generate(self.keys.set, self.tap.records[who].drawn["secret key"])


async def program(machine_: Slots, own: Any) -> Any:
    """Sums, a product that is refreshed, and one that becomes shares; nothing is opened."""
    x, y = await machine_.encrypted_total(None if own is None else list(own), 2)
    z, w = machine_.times(x, y), machine_.times(x, x)
    await machine_.refresh([z])
    shares = await machine_.to_shares([w], [machine_.slots])
    if own is not None:
        return shares
    made = {name: row.held.value for name, row in (("x", x), ("z", z), ("w", w))}
    return machine_.keys, made, machine_.session  # type: ignore[attr-defined]


def view_of(inputs: Sequence[Any]) -> View:
    tap = Tap()
    results = encrypted(program, inputs, observer=tap).results
    return View(*results[str(COORDINATOR)], tap, results)


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(tables())


def opened(view: View, x: Ciphertext, parts: Sequence[Any]) -> np.ndarray:
    return slots.opened(x, slots.total(view.keys.set, list(parts)), LENGTH)


@pytest.mark.parametrize("victim", NAMES, ids=str)
def test_an_encrypted_row_opens_with_every_part_of_the_key_only(view: View, victim: Address) -> None:
    """What the last one encrypted, and what all have together."""
    own = tables()[1 + NAMES.index(victim)]
    sent = Ciphertext.from_bytes(view.keys.set, view.sent(victim, m.SentRow))
    for x, due in ((sent, own[0]), (view.rows["x"], sum(tables()[1:])[0])):
        low = view.keys.lowered(x, 1)
        parts = {name: view.secret(name).opening_part(low, SEED, 1, LENGTH) for name in NAMES}
        np.testing.assert_allclose(opened(view, low, parts.values()), due, atol=1e-4)
        coalition = [part for name, part in parts.items() if name != victim]
        guess = Secret.generate(view.keys.set, SEED).opening_part(low, SEED, 1, LENGTH)
        for tried in (coalition, [*coalition, guess]):
            with pytest.raises(RangeOverflow, match="a part is wrong or missing"):
                opened(view, low, tried)


# ---- refreshes ----


def rows_of(body: memoryview) -> np.ndarray:
    """Residues modulo the two lowest moduli, which is where rows are opened."""
    return np.frombuffer(body, "<u8", offset=HEADER_BYTES).reshape(-1, N)[:2].astype(object)


def opened_by_refresh(view: View, victim: Address, seed: bytes) -> np.ndarray:
    """Whoever has the seed that a mask is made from takes it off the last one's part of a refresh.

    A part with that seed and one's own key has the same mask: the difference is that of the keys' shares.
    """
    x, mates = view.keys.lowered(view.rows["z"], 2), [name for name in NAMES if name != victim]
    own = {name: view.secret(name).opening_part(x, SEED, 1, LENGTH) for name in mates}
    made = view.secret(mates[0]).refresh_part(x, digest_of(view.session, "common", "refresh", 2, 0), seed)
    share = rows_of(view.sent(victim, m.RefreshPart)) - rows_of(made) + rows_of(own[mates[0]])
    moduli = np.array([int(q) for q in view.keys.set.moduli[:2]], dtype=object)[:, None]
    body = bytes(own[mates[0]][:HEADER_BYTES]) + (share % moduli).astype("<u8").tobytes()
    return opened(view, x, [*own.values(), memoryview(body)])


@pytest.mark.parametrize("victim", NAMES, ids=str)
def test_a_refresh_opens_to_who_knows_the_last_ones_draw_and_to_nobody_else(
    view: View, victim: Address
) -> None:
    x, y = sum(tables()[1:])
    drawn = view.tap.records[victim].drawn["refresh 2"]
    np.testing.assert_allclose(opened_by_refresh(view, victim, derive(drawn, "from", 0)), x * y, atol=1e-4)
    # What the others drew for the same refresh is of no use, nor is the last one's draw for something else.
    tried = [view.tap.records[name].drawn["refresh 2"] for name in NAMES if name != victim]
    for seed in (*tried, view.tap.records[victim].drawn["encryption 1"], drawn):
        with pytest.raises(RangeOverflow, match="a part is wrong or missing"):
            opened_by_refresh(view, victim, derive(seed, "from", 1))


# ---- shares ----


def beside(view: View, victim: Address) -> np.ndarray:
    """What all others' shares of a row add up to: the row, and the last one's mask."""
    total = sum(np.asarray(view.results[str(name)][0]) for name in NAMES if name != victim)
    if victim == NAMES[0]:  # the masked row, which it added to its own, is the coordinator's as well
        body = view.sent(COORDINATOR, m.PublicShare)
        total = total + (from_bytes(body, view.keys.set.slots) << (SHARE_FRACTION - view.keys.set.scale_bits))
    return np.asarray(total)


@pytest.mark.parametrize("victim", NAMES, ids=str)
def test_shares_of_all_but_one_say_nothing_about_a_row(view: View, victim: Address) -> None:
    whole = sum(np.asarray(view.results[str(name)][0]) for name in NAMES)
    x, _ = sum(tables()[1:])
    np.testing.assert_allclose((whole / 2.0**SHARE_FRACTION)[:LENGTH].astype(float), x * x, atol=1e-4)
    found = beside(view, victim)
    bits = np.array([abs(int(value)).bit_length() for value in found])
    # Masks have 112 bits in each of 1,024 coefficients, and two more for the fraction.
    assert np.median(bits) > 114
    assert np.abs(np.corrcoef((found / 2.0**116).astype(float)[:LENGTH], x * x)[0, 1]) < 0.9


def test_shares_of_all_but_one_are_distributed_alike_whatever_the_last_one_has(view: View) -> None:
    """500 squares of 0.3 at the most, or of about 500."""

    def together(run: View, victim: Address | None) -> np.ndarray:
        missing = 0 if victim is None else np.asarray(run.results[str(victim)][0])
        whole = sum(np.asarray(run.results[str(name)][0]) for name in NAMES)
        return np.asarray((whole - missing)[:500] / 2.0**116).astype(float)

    large = view_of([None, np.full((2, 500), np.sqrt(500.0)), np.zeros((2, 500)), np.zeros((2, 500))])
    assert ks_2samp(together(view, None), together(large, None)).pvalue < 1e-9
    for victim in NAMES:
        assert ks_2samp(together(view, victim), together(large, victim)).pvalue > 1e-5


@pytest.mark.parametrize("narrow", [True, False])
def test_shares_on_their_way_back_are_masked(monkeypatch: pytest.MonkeyPatch, narrow: bool) -> None:
    """The first provider is sent shares under masks: with all others' shares, a number under one mask."""
    if narrow:  # a variant for this test alone
        wide = machine.wide_numbers
        monkeypatch.setattr(machine, "wide_numbers", lambda seed, length, _bits: wide(seed, length, 8))
    rng = np.random.default_rng(5)
    values = np.array([round(v * 2**SHARE_FRACTION) for v in rng.uniform(-900, 900, LENGTH)], dtype=object)
    parts = [
        np.array([int.from_bytes(rng.bytes(32), "big") % PRIME for _ in values], dtype=object)
        for _ in range(PARTIES - 1)
    ]
    parts.append((values - sum(parts)) % PRIME)

    async def back(machine_: Slots, own: Any) -> Any:
        await machine_.from_shares(None if own is None else [own], [LENGTH], PRIME)
        return (machine_.keys, {}, b"") if own is None else None  # type: ignore[attr-defined]

    tap = Tap()
    results = encrypted(back, [None, *parts], observer=tap).results
    seen = View(*results[str(COORDINATOR)], tap, results)
    for victim in NAMES[1:]:
        sent = from_bytes(seen.sent(victim, m.MaskedIntegers), LENGTH, 32)
        others = sum(part for name, part in zip(NAMES, parts, strict=True) if name != victim)
        found = (sent + others) % PRIME
        found = np.where(found > PRIME // 2, found - PRIME, found)
        off = np.array([abs(int(a) - int(b)) for a, b in zip(found, values, strict=True)], dtype=object)
        if narrow:
            assert off.max() < 1 << 8
        else:
            assert sorted(off)[LENGTH // 2] > 1 << 110


# ---- what is opened ----


async def opening(machine_: Slots, own: Any) -> Any:
    x, y = await machine_.encrypted_total(None if own is None else list(own), 2)
    found = await machine_.opened([x], [LENGTH], frozenset({provider(1)}))
    (z,) = await machine_.broadcast([y])
    mine = await machine_.opened_own([machine_.own_inner([(z, None if own is None else own[1])])], [LENGTH])
    made = {"x": x.held.value, "y": y.held.value} if own is None else {}
    keys = machine_.keys  # type: ignore[attr-defined]
    return (keys, made, b"") if own is None else (found, mine)


@pytest.mark.parametrize("victim", NAMES, ids=str)
def test_parts_of_what_is_opened_open_nothing_else(victim: Address) -> None:
    """The last one's parts are for one ciphertext each; beside another they are parts that are missing."""
    tap = Tap()
    results = encrypted(opening, tables(), observer=tap).results
    seen = View(*results[str(COORDINATOR)], tap, results)
    part = seen.sent(victim, m.OwnPart)
    for name in ("x", "y"):
        low = seen.keys.lowered(seen.keys.weighted(seen.rows[name], np.ones(LENGTH)), 1)
        mates = [seen.secret(one).opening_part(low, SEED, 14, LENGTH) for one in NAMES if one != victim]
        with pytest.raises(RangeOverflow, match="a part is wrong or missing"):
            opened(seen, low, [*mates, part])


def test_words_of_shares_are_whole_numbers() -> None:
    """The attacks above read them: they must not be wrong by themselves."""
    assert list(from_words(np.array([[5, 0], [2**64 - 1, 2**64 - 1]], dtype=np.uint64), 2)) == [5, -1]
