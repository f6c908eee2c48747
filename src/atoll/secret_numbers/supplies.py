"""Where triples and random bits come from: a dealer, as the paper has it, or the parties themselves.

A dealer is a party of its own that sees no data and learns only how many were used; it must not collude with
a party. Without one, each pair of parties multiplies its summands under Paillier encryption (Gilboa 1999),
which costs some milliseconds a triple and pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from atoll.crypto import paillier
from atoll.errors import MessageError
from atoll.network import Network, Record
from atoll.randomness import SEED_BYTES, fresh_seed
from atoll.secret_numbers.field import (
    PRIME,
    Elements,
    elements,
    from_bytes,
    integers_below,
    to_bytes,
    uniform,
)
from atoll.secret_numbers.machine import Triples
from atoll.secret_numbers.messages import DealerSeed, Factors, Remainder, Supplied, Wanted
from atoll.secret_numbers.party import Party, Supply, joined
from atoll.study.address import Address

__all__ = ["Dealt", "Joint", "deal"]

_BATCH: Final = 4096
"""So many triples, and as many bits, are asked for at a time: a request is a round."""
_HIDING: Final = 80
"""A product under another party's key is masked by a number so many bits longer."""
_KEY_BITS: Final = 3072


class _Pool:
    """Shares that arrived and are not used yet: three rows of triples, or one of bits."""

    def __init__(self, rows: int) -> None:
        self.waiting: Elements = np.zeros((rows, 0), dtype=object)

    def add(self, more: Elements) -> None:
        self.waiting = joined([self.waiting, more])

    def missing(self, count: int) -> int:
        return max(0, count - int(self.waiting.shape[1]))

    def take(self, count: int) -> Elements:
        taken, self.waiting = self.waiting[:, :count], self.waiting[:, count:]
        return taken


class Dealt(Supply):
    """A dealer's: all parties but the last expand theirs from a seed, the last is sent what lacks."""

    def __init__(self, dealer: Address) -> None:
        self._dealer = dealer
        self._seed: bytes | None = None
        self._requests = 0
        self._triples, self._bits = _Pool(3), _Pool(1)

    async def triples(self, party: Party, count: int) -> Triples:
        if self._triples.missing(count):
            await self._more(party, max(_BATCH, count), 0)
        a, b, c = self._triples.take(count)
        return Triples(a[None], b[None], c[None])

    async def random_bits(self, party: Party, count: int) -> Elements:
        if self._bits.missing(count):
            await self._more(party, 0, max(_BATCH, count))
        return self._bits.take(count)

    async def close(self, party: Party) -> None:
        if party.first:
            await party.net.send(self._dealer, Wanted(0, 0))

    async def _more(self, party: Party, triples: int, bits: int) -> None:
        if party.first:
            await party.net.send(self._dealer, Wanted(triples, bits))
        self._requests += 1
        if party.net.me == party.parties[-1]:
            body = (await party.net.receive(Remainder, self._dealer)).body
            rest = from_bytes(body, 3 * triples + bits)
        else:
            if self._seed is None:
                self._seed = (await party.net.receive(DealerSeed, self._dealer)).seed
                if len(self._seed) != SEED_BYTES:
                    raise MessageError(f"a dealer's seed has {SEED_BYTES} bytes, not {len(self._seed)}")
            rest = _expanded(self._seed, self._requests, triples, bits)
        self._triples.add(rest[: 3 * triples].reshape(3, triples))
        self._bits.add(rest[3 * triples :].reshape(1, bits))


def _expanded(seed: bytes, request: int, triples: int, bits: int) -> Elements:
    return uniform(seed, (3 * triples + bits,), "supply", request)


async def deal(net: Network, record: Record, parties: Sequence[Address]) -> None:
    """The dealer's role: serve requests until the first party says that it was the last."""
    own = record("dealer", fresh_seed)
    seeds = {
        p: integers_below(own, (1,), 1 << 256, "seed", str(p))[0].to_bytes(32, "little") for p in parties[:-1]
    }
    for address, seed in seeds.items():
        await net.send(address, DealerSeed(seed))
    request = 0
    while True:
        wanted = await net.receive(Wanted, parties[0])
        if not 0 <= wanted.triples <= 1 << 24 or not 0 <= wanted.bits <= 1 << 24:
            raise MessageError(f"{parties[0]} asked for a number of triples or bits that no step needs")
        if not wanted.triples and not wanted.bits:
            return
        request += 1
        a, b = uniform(own, (2, wanted.triples), "factors", request)
        whole = np.concatenate([a, b, a * b % PRIME, integers_below(own, (wanted.bits,), 2, "bits", request)])
        known = sum(_expanded(seed, request, wanted.triples, wanted.bits) for seed in seeds.values())
        await net.send(parties[-1], Remainder(memoryview(to_bytes(elements(whole - known)))))


class Joint(Supply):
    """The parties' own, pair by pair under Paillier keys; nobody else takes part."""

    def __init__(self, key_bits: int = _KEY_BITS) -> None:
        self._bits = key_bits
        self._key: paillier.SecretKey | None = None

    async def close(self, party: Party) -> None:
        """Nobody waits."""

    async def random_bits(self, party: Party, count: int) -> Elements:
        """Every party draws bits; their exclusive or is known to nobody, if one party is honest."""
        total: Elements | None = None
        own = integers_below(party.own_seed("bits"), (1, count), 2, "bits")
        for address in party.parties:
            mine = own if address == party.net.me else np.zeros((1, count), dtype=object)
            total = mine if total is None else elements(total + mine - 2 * await party.product(total, mine))
        assert total is not None
        return total

    async def triples(self, party: Party, count: int) -> Triples:
        """c = (sum a_i)(sum b_j): party i encrypts a_i, party j multiplies by b_j and masks."""
        a, b = uniform(party.own_seed("factors"), (2, count), "factors")
        key = await self._own_key(party)
        mine = await party.net.compute(
            paillier.gilboa.encrypted, key.public, list(a), party.own_seed("encryption")
        )
        await party.net.broadcast(party.others, Factors(key.public.to_bytes(), mine))
        c = a * b
        for address, message in (await party.net.gather(Factors, party.others)).items():
            other = paillier.PublicKey.from_bytes(message.key)
            masks = integers_below(party.own_seed("hiding"), (count,), PRIME * PRIME << _HIDING, "hiding")
            zeros = party.own_seed("zeros")
            times_plus = paillier.gilboa.times_plus
            body = await party.net.compute(times_plus, other, message.body, list(b), list(masks), zeros)
            await party.net.send(address, Supplied(body))
            c = c - masks
        for answer in (await party.net.gather(Supplied, party.others)).values():
            c = c + await party.net.compute(paillier.gilboa.decrypted, key, answer.body, count)
        return Triples(elements(a)[None], elements(b)[None], elements(c)[None])

    async def _own_key(self, party: Party) -> paillier.SecretKey:
        if self._key is None:
            seed = party.own_seed("key")
            self._key = await party.net.compute(paillier.generate, paillier.parameters_for(self._bits), seed)
        return self._key
