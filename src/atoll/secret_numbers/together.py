"""All parties in one, for tests and planning: their shares are the rows of an array."""

from __future__ import annotations

import numpy as np

from atoll import randomness
from atoll.secret_numbers.field import PRIME, Elements, elements, integers_below, uniform
from atoll.secret_numbers.machine import Parties, Triples

__all__ = ["Together"]


class Together(Parties):
    """Every party's shares, and a dealer; ``seen`` keeps what was opened, ``rounds`` counts how often."""

    first = True

    def __init__(self, n_parties: int, seed: bytes) -> None:
        self.n_parties = self.held = n_parties
        self._seed, self._drawn = seed, 0
        self.seen: list[Elements] = []
        self.rounds = 0
        self.used = 0

    def shared(self, values: Elements) -> Elements:
        """Shares of elements, as a dealer would make them."""
        others = uniform(self._fresh(), (self.n_parties - 1, *values.shape), "dealt")
        return elements(np.concatenate([others, (values - others.sum(axis=0))[None]]))

    async def opened(self, shares: Elements) -> Elements:
        self.rounds += 1
        self.seen.append(elements(shares.sum(axis=0)))
        return self.seen[-1]

    async def triples(self, count: int) -> Triples:
        self.used += count
        a, b = uniform(self._fresh(), (2, count), "triples")
        return Triples(self.shared(a), self.shared(b), self.shared(a * b % PRIME))

    async def random_bits(self, count: int) -> Elements:
        return self.shared(integers_below(self._fresh(), (count,), 2, "bits"))

    def own_integers(self, count: int, bound: int) -> Elements:
        return integers_below(self._fresh(), (self.n_parties, count), bound, "own")

    def _fresh(self) -> bytes:
        self._drawn += 1
        return randomness.derive(self._seed, "draw", self._drawn)
