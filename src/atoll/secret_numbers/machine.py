"""What parties may do with numbers of which each holds a share, and the steps that need nothing else.

Shares are elements of a field that add up to a number. Sums and public factors are local. A product takes
a triple of random numbers (a, b, ab) that was shared before anybody knew what it is for (Beaver 1991);
rounding takes random numbers of the parties' own (Catrina, Saxena 2010). What is opened on the way is
uniform, or hidden by a mask that is 64 bits wider than it.

Symbols of the literature: k -> MAGNITUDE, f -> FRACTION, kappa -> HIDING.

Adversary: passive; all parties but one, with whoever relays. A dealer of triples, where there is one, must
not collude with a party.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import numpy as np

from atoll.secret_numbers.field import FRACTION, MAGNITUDE, PRIME, Elements, elements, encoded

__all__ = ["HIDING", "Parties", "Triples"]

HIDING: Final = 64
"""A mask is so many bits wider than what it hides."""


class Triples(NamedTuple):
    """Shares of random numbers a and b and of their products."""

    a: Elements
    b: Elements
    c: Elements

    def __repr__(self) -> str:
        return f"Triples({self.a.shape[1]})"


class Parties(ABC):
    """The parties that this machine speaks for: one of them, or, in a simulation, all."""

    n_parties: int
    held: int
    """How many parties' shares are the rows of an array here."""
    first: bool
    """Whether row 0 is the first party's: public numbers are added there."""

    # ---- what a machine brings ----

    @abstractmethod
    async def opened(self, shares: Elements) -> Elements:
        """The numbers themselves, for every party; their shares have one row for each party held."""

    @abstractmethod
    async def triples(self, count: int) -> Triples:
        """Triples that nothing else has used."""

    @abstractmethod
    async def random_bits(self, count: int) -> Elements:
        """Shares of random bits that nobody knows."""

    @abstractmethod
    def own_integers(self, count: int, bound: int) -> Elements:
        """Integers below a bound, drawn by each party alone."""

    # ---- local steps ----

    def public(self, numbers: Any) -> Elements:
        """Shares of numbers that everybody knows: the first party has them, the others zeros."""
        out = np.zeros((self.held, *np.shape(numbers)), dtype=object)
        if self.first:
            out[0] = numbers
        return elements(out)

    def constant(self, numbers: Any, fraction: int = FRACTION) -> Elements:
        """Shares of fixed-point numbers that everybody knows."""
        return self.public(encoded(numbers, fraction))

    # ---- steps together ----

    async def product(self, x: Elements, y: Elements) -> Elements:
        """Products one by one, exact in the field. Everybody sees x - a and y - b, which are uniform."""
        x, y = np.broadcast_arrays(x, y)
        shape, count = x.shape, int(np.prod(x.shape[1:]))
        x, y = x.reshape(self.held, count), y.reshape(self.held, count)
        t = await self.triples(count)
        opened = await self.opened(elements(np.concatenate([x - t.a, y - t.b], axis=1)))
        d, e = opened[:count], opened[count:]
        both = self.public(d * e)
        return elements(t.c + d * t.b + e * t.a + both).reshape(shape)

    async def rounded(self, x: Elements, bits: int, magnitude: int) -> Elements:
        """x / 2^bits for |x| < 2^magnitude, off by fewer last places than there are parties, without bias.

        Everybody sees x plus masks of ``magnitude + HIDING`` bits of every party.
        """
        shape, count = x.shape, int(np.prod(x.shape[1:]))
        self._fits(magnitude + HIDING)
        # On average, low parts add up to (n_parties - 1) 2^(bits-1) more than what rounding down takes away.
        offset = (1 << magnitude) - (self.n_parties - 1) * (1 << bits) // 2
        low = self.own_integers(count, 1 << bits)
        high = self.own_integers(count, 1 << (magnitude + HIDING - bits))
        lifted = x.reshape(self.held, count) + self.public(np.full(count, offset, dtype=object))
        seen = await self.opened(elements(lifted + low + (high << bits)))
        whole = lifted + low - self.public(seen % (1 << bits))
        out = elements(whole) * pow(1 << bits, -1, PRIME) - self.public(
            np.full(count, 1 << (magnitude - bits), dtype=object)
        )
        return elements(out).reshape(shape)

    async def times(
        self, x: Elements, y: Elements, *, bits: int = FRACTION, magnitude: int = 2 * MAGNITUDE
    ) -> Elements:
        """Fixed-point products: rounded by so many bits. |x y| < 2^magnitude as integers."""
        return await self.rounded(await self.product(x, y), bits, magnitude)

    async def matrix_product(self, x: Elements, y: Elements) -> Elements:
        """A product of matrices (shares: party, row, column), added up before it is rounded once."""
        left, right = x[:, :, :, None], y[:, None, :, :]
        exact = await self.product(left, right)
        return await self.rounded(elements(exact.sum(axis=2)), FRACTION, 2 * MAGNITUDE)

    def _fits(self, bits: int) -> None:
        if self.n_parties << (bits + 2) >= PRIME:
            raise ValueError(
                f"a mask of {bits} bits for each of {self.n_parties} parties does not fit the field"
            )
