"""What an encryption must bring to be used for the layers of a mix.

A *batch* is what travels from hop to hop: one item for every segment of every contributor, all of one size.
Keys are given in the order in which layers are put on: the mediator's first, then the contributors'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atoll import randomness
from atoll.errors import MessageError
from atoll.fixedpoint import Limbs

_DOMAIN = "atoll/mix/v1"

Batch = tuple[bytes, ...]


class Hop(NamedTuple):
    """A place in an order: the contributor that strips a layer, counted from the mediator (0) outwards."""

    session: str
    block: str
    order: int
    place: int

    @property
    def context(self) -> str:
        """What the layer at this place is bound to."""
        return f"{self.session}/{self.block}/order {self.order}/place {self.place}"

    def at(self, place: int) -> Hop:
        return self._replace(place=place)


class Wrapped(NamedTuple):
    """One contributor's items of one order, and what they will look like on the way."""

    items: Batch
    marks: tuple[frozenset[bytes], ...]
    """By place: digests of these items as that place receives them; empty where they change on the way."""


class Form(ABC):
    """One kind of layers."""

    @abstractmethod
    def private_key(self, root: bytes, context: str) -> bytes:
        """A private key from a fresh seed; ``context``: whose it is, and for which session."""

    @abstractmethod
    def public_key(self, private: bytes) -> bytes:
        """What others need to put a layer on; with a proof where the form needs one."""

    @abstractmethod
    def check_key(self, public: bytes, context: str) -> None:
        """Refuse what is not a public key of this form."""

    @abstractmethod
    def size(self, n: int, layers: int) -> int:
        """How long an item of n values is under so many layers, the mediator's included."""

    @abstractmethod
    def wrap(self, segments: Sequence[Limbs], keys: Sequence[bytes], hop: Hop, seed: bytes) -> Wrapped:
        """Every segment under one layer for each key."""

    @abstractmethod
    def strip(
        self, batch: Sequence[bytes], private: bytes, below: Sequence[bytes], hop: Hop, seed: bytes
    ) -> Batch:
        """The batch without one layer, shuffled; ``below``: the keys of the layers that stay on."""

    @abstractmethod
    def read(self, batch: Sequence[bytes], private: bytes, hop: Hop, n: int) -> list[Limbs]:
        """The segments, from under the last layer: the mediator's."""


def check_batch(batch: Sequence[bytes], count: int, size: int) -> None:
    """As many items as there must be, of one size, no two the same."""
    if len(batch) != count:
        raise MessageError(f"{len(batch)} items came where {count} were due")
    if any(len(item) != size for item in batch):
        raise MessageError(f"an item does not have the {size} bytes that are due")
    if len(set(batch)) != count:
        raise MessageError("an item came twice")


def shuffled(count: int, seed: bytes, *domain: str | int) -> list[int]:
    """A uniform permutation: the order of random words, of which no two are equal."""
    for attempt in range(100):
        words = randomness.expand_words(seed, count, _DOMAIN, "shuffle", attempt, *domain)
        if len(np.unique(words)) == count:
            return [int(k) for k in np.argsort(words)]
    raise AssertionError("a hundred collisions of 64-bit words do not happen")
