"""One party's machine: it exchanges masked shares with the other parties, through nobody.

Where triples and random bits come from is a supply's matter (:mod:`supplies`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from atoll import randomness
from atoll.network import Network, Record
from atoll.randomness import fresh_seed
from atoll.secret_numbers.field import Elements, elements, from_bytes, integers_below, to_bytes
from atoll.secret_numbers.machine import Parties, Triples
from atoll.secret_numbers.messages import MaskedShares, check_step
from atoll.study.address import Address

__all__ = ["Party", "Supply"]


class Supply(ABC):
    """Triples and random bits, in the order in which all parties ask for them."""

    @abstractmethod
    async def triples(self, party: Party, count: int) -> Triples:
        """This party's shares of so many triples."""

    @abstractmethod
    async def random_bits(self, party: Party, count: int) -> Elements:
        """This party's shares of so many random bits."""

    @abstractmethod
    async def close(self, party: Party) -> None:
        """Nothing more will be asked for."""


class Party(Parties):
    """One of the parties; ``session`` binds what it draws to one use."""

    held = 1

    def __init__(
        self, net: Network, record: Record, session: str, parties: Sequence[Address], supply: Supply
    ) -> None:
        self.net, self.parties = net, list(parties)
        self.n_parties = len(self.parties)
        self.first = self.net.me == self.parties[0]
        self.others = [p for p in self.parties if p != net.me]
        self._seed = record.under(session)("own numbers", fresh_seed)
        self._supply, self._step, self._drawn = supply, 0, 0

    async def opened(self, shares: Elements) -> Elements:
        self._step += 1
        step, own = self._step, shares[0]
        await self.net.broadcast(self.others, MaskedShares(step, memoryview(to_bytes(own))))
        total = own

        def add(_: Address, message: MaskedShares) -> None:
            nonlocal total
            check_step(message.step, step)
            total = total + from_bytes(message.body, own.size).reshape(own.shape)

        await self.net.fold(MaskedShares, self.others, add)
        return elements(total)

    async def triples(self, count: int) -> Triples:
        return await self._supply.triples(self, count)

    async def random_bits(self, count: int) -> Elements:
        return await self._supply.random_bits(self, count)

    def own_integers(self, count: int, bound: int) -> Elements:
        return integers_below(self.own_seed("hiding"), (1, count), bound, "hiding")

    def own_seed(self, what: str) -> bytes:
        """A seed for one use, from what this party drew at the start."""
        self._drawn += 1
        return randomness.derive(self._seed, what, self._drawn)

    async def close(self) -> None:
        """Whoever supplies need not wait any longer."""
        await self._supply.close(self)


def joined(parts: Sequence[Elements]) -> Elements:
    """Arrays of one row, one after the other."""
    return np.concatenate(parts, axis=1)
