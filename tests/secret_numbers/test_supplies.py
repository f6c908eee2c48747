"""Where masks of products come from: each serves once, none is narrower than said, nothing else is taken."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import numpy as np
import pytest
from tests.support.secret_numbers_runs import run
from tests.support.taps import Tap

from atoll import codec
from atoll.codec import Message
from atoll.errors import MessageError
from atoll.runtime.records import MemoryRecord
from atoll.secret_numbers import bits, supplies
from atoll.secret_numbers.field import FRACTION, MAGNITUDE, PRIME, encoded
from atoll.secret_numbers.machine import HIDING
from atoll.secret_numbers.messages import MESSAGES, DealerSeed, Factors, MaskedShares, Supplied, Wanted
from atoll.secret_numbers.party import Party
from atoll.secret_numbers.supplies import Dealt, Joint, deal
from atoll.secret_numbers.together import Together
from atoll.study.address import Address

A, B, DEALER = (Address(name, "provider") for name in ("a", "b", "d"))


class Net:
    """One role's network: what it is to receive, in order, and what it has sent."""

    def __init__(self, me: Address, *arriving: Message) -> None:
        self.me, self.arriving, self.sent = me, list(arriving), list[Message]()

    async def send(self, to: Address, message: Message) -> None:
        self.sent.append(message)

    async def broadcast(self, to: Any, message: Message) -> None:
        self.sent.append(message)

    async def receive(self, kind: type[Message], sender: Address) -> Message:
        assert isinstance(self.arriving[0], kind)
        return self.arriving.pop(0)

    async def fold(self, kind: type[Message], senders: Any, combine: Any, **_: Any) -> None:
        for sender in senders:
            combine(sender, await self.receive(kind, sender))


def party(net: Net, supply: Any = None, session: str = "s", record: Any = None) -> Party:
    return Party(net, record or MemoryRecord(), session, [A, B], supply or Dealt(DEALER))  # type: ignore[arg-type]


# ---- once ----


@pytest.mark.parametrize("n", [2, 3])
def test_no_triple_and_no_share_of_one_serves_twice(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products under one triple show the difference of their factors; requests are many."""
    monkeypatch.setattr(supplies, "_BATCH", 4)

    async def take(machine, which):  # type: ignore[no-untyped-def]
        taken = [await machine.triples(count) for count in (3, 3, 2, 5, 1)]
        return np.concatenate([np.concatenate([t.a, t.b, t.c]) for t in taken], axis=1)

    shares, _ = run(take, n)
    for row in shares:  # every party's own
        assert len(set(row.ravel())) == row.size == 42
    a, b, c = sum(shares) % PRIME
    assert (a * b % PRIME == c).all()
    assert len({*a, *b}) == 28


@pytest.mark.parametrize(("first", "then"), [(3, 2), (4, 1), (1, 4), (2, 9)])
def test_as_many_triples_and_bits_as_were_asked_for(
    first: int, then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one is missing, one triple would serve for two products, and show the difference of factors."""
    monkeypatch.setattr(supplies, "_BATCH", 4)

    async def take(machine, which):  # type: ignore[no-untyped-def]
        triples = [(await machine.triples(count)).a.shape for count in (first, then)]
        return triples, [(await machine.random_bits(count)).shape for count in (first, then)]

    shares, _ = run(take, 2)
    for triples, bits_ in shares:
        assert triples == [(1, first), (1, then)]
        assert bits_ == [(1, first), (1, then)]


def test_random_bits_are_bits_and_new_ones_at_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supplies, "_BATCH", 64)

    async def take(machine, which):  # type: ignore[no-untyped-def]
        return [(await machine.random_bits(64))[0] for _ in range(3)]

    shares, _ = run(take, 2)
    drawn = [tuple((x + y) % PRIME) for x, y in zip(*shares, strict=True)]
    assert {bit for row in drawn for bit in row} == {0, 1}
    assert len(set(drawn)) == 3
    assert all(16 < sum(row) < 48 for row in drawn)  # 2^-14 outside
    assert len({value for row in shares[0] for value in row}) == 192


def test_every_seed_of_a_partys_own_serves_once_and_in_one_session() -> None:
    record = MemoryRecord()
    one, two = (party(Net(A), session=name, record=record) for name in ("s", "t"))
    assert len({machine.own_seed("x") for machine in (one, two) for _ in range(20)}) == 40
    assert len(record.drawn) == 2


# ---- as wide as said ----


def test_what_the_bits_of_a_number_open_is_64_bits_wider_than_it() -> None:
    m = Together(2, bytes(32))
    asyncio.run(bits.bits_of(m, m.shared(encoded(np.linspace(0, 4, 50)))))
    widths = [int(value).bit_length() for value in m.seen[0]]
    assert max(widths) in (MAGNITUDE + HIDING, MAGNITUDE + HIDING + 1)
    assert min(widths) > MAGNITUDE + HIDING - 12


def test_a_mask_that_the_field_has_no_room_for_is_refused() -> None:
    """Reduced modulo the prime it would hide less, and the number be a wrong one."""
    for n, fits in ((2, 187), (3, 187), (256, 180)):
        m = Together(n, bytes(32))
        x = m.shared(encoded([1.0]))
        asyncio.run(m.rounded(x, FRACTION, fits))
        with pytest.raises(ValueError, match=f"a mask of {fits + 65} bits for each of {n} parties"):
            asyncio.run(m.rounded(x, FRACTION, fits + 1))


def test_keys_and_masks_of_pairs_are_as_docs_say() -> None:
    assert supplies._HIDING == 80
    assert inspect.signature(Joint).parameters["key_bits"].default == 3072


def test_a_product_for_another_party_is_hidden_by_80_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the owner of a key opens: its factor times the other's, and a mask 2^80 times wider."""
    tap, opened = Tap(), list[int]()
    real = supplies.paillier.gilboa.decrypted

    def decrypted(key: Any, body: bytes, count: int) -> list[int]:
        found = real(key, body, count)
        opened.extend(found)
        return found

    monkeypatch.setattr(supplies.paillier.gilboa, "decrypted", decrypted)

    async def take(machine, which):  # type: ignore[no-untyped-def]
        await machine.triples(12)

    run(take, 2, key_bits=2048, observer=tap)
    assert len(set(opened)) == 24
    assert 580 < max(number.bit_length() for number in opened) <= 591  # 2 * 255 + 80, and a carry
    decoder = codec.Decoder[Message](MESSAGES)
    kinds = [type(decoder.decode(m.data)) for a in tap.inboxes for m in tap.received(a)]  # type: ignore[arg-type]
    assert kinds.count(Factors) == kinds.count(Supplied) == 2


def test_no_seed_of_a_pairs_encryption_serves_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ciphertexts with one random factor show the quotient of what they hide."""
    seeds: list[bytes] = []
    gilboa = supplies.paillier.gilboa

    def noted(real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            seeds.append(arguments[-1])
            return real(*arguments)

        return call

    for name in ("encrypted", "times_plus"):
        monkeypatch.setattr(gilboa, name, noted(getattr(gilboa, name)))

    async def take(machine, which):  # type: ignore[no-untyped-def]
        for _ in range(2):
            await machine.triples(1)

    run(take, 3, key_bits=2048)
    assert len(seeds) == len(set(seeds)) == 3 * 2 * (1 + 2)
    assert {len(seed) for seed in seeds} == {32}


def test_no_mask_of_a_product_serves_for_two_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two owners of keys together would open a_i b + r and a_j b + r, and so b."""
    masks: list[int] = []
    gilboa = supplies.paillier.gilboa
    real = gilboa.times_plus

    def noted(key: Any, batch: bytes, factors: Any, hiding: Any, seed: bytes) -> bytes:
        masks.extend(int(mask) for mask in hiding)
        return real(key, batch, factors, hiding, seed)

    monkeypatch.setattr(gilboa, "times_plus", noted)

    async def take(machine, which):  # type: ignore[no-untyped-def]
        await machine.triples(2)

    run(take, 3, key_bits=2048)
    assert len(masks) == len(set(masks)) == 3 * 2 * 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_factors_arrive_as_were_asked_for(count: int) -> None:
    gilboa, paillier = supplies.paillier.gilboa, supplies.paillier
    key = paillier.generate(paillier.parameters_for(2048), bytes(32))
    batch = gilboa.encrypted(key.public, [1, 2], bytes(32))
    with pytest.raises(MessageError, match=f"2 encrypted factors arrived where {count} were due"):
        gilboa.decrypted(key, batch, count)
    with pytest.raises(MessageError, match=f"2 encrypted factors arrived where {count} were due"):
        gilboa.times_plus(key.public, batch, [1] * count, [5] * count, bytes(32))


# ---- nothing unasked ----


@pytest.mark.parametrize("step", [0, 2, -1])
def test_shares_of_another_step_are_not_added(step: int) -> None:
    """Shares of two openings together are a number that nobody has masked."""
    net = Net(A, MaskedShares(step, memoryview(bytes(32))))
    with pytest.raises(MessageError, match=f"shares for step {step} arrived where those for step 1 were due"):
        asyncio.run(party(net).opened(encoded([[1.0]])))


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_dealers_seed_has_32_bytes(length: int) -> None:
    with pytest.raises(MessageError, match=f"a dealer's seed has 32 bytes, not {length}"):
        asyncio.run(party(Net(A, DealerSeed(bytes(length)))).triples(1))


@pytest.mark.parametrize(("triples", "count"), [(-1, 1), (1, -1), (2**24 + 1, 0), (0, 2**24 + 1)])
def test_a_dealer_makes_no_more_than_any_step_needs(triples: int, count: int) -> None:
    net = Net(DEALER, Wanted(triples, count))
    with pytest.raises(MessageError, match="a number of triples or bits that no step needs"):
        asyncio.run(deal(net, MemoryRecord(), [A, B]))  # type: ignore[arg-type]


def test_a_dealer_ends_when_neither_is_wanted_and_not_before() -> None:
    net = Net(DEALER, Wanted(2, 0), Wanted(0, 3), Wanted(0, 0))
    asyncio.run(deal(net, MemoryRecord(), [A, B]))  # type: ignore[arg-type]
    seed, first, second = net.sent
    assert isinstance(seed, DealerSeed)
    assert [len(rest.body) for rest in (first, second)] == [2 * 3 * 32, 3 * 32]  # type: ignore[attr-defined]
