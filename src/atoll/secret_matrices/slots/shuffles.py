"""A list of encrypted numbers in an order that nobody knows: every provider shuffles it in turn.

After appendix D.3 of the SF-PCA paper. The numbers themselves are public. The first provider encrypts them,
in an order of its own; each further one puts them in an order of its own and re-randomises them, so that
whoever sees a list before and after cannot say which ciphertext became which; the last one gives it to the
coordinator. As long as one provider keeps its order to itself, nobody knows where a number is.

Adversary: passive. There is no proof of a shuffle: a provider that puts other numbers in the place of these
is not noticed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atoll.crypto.slots import Ciphertext, Keys, Set
from atoll.randomness import derive, expand_words
from atoll.secret_matrices.slots import steps
from atoll.secret_matrices.slots.levelled import LIST_LEVEL
from atoll.secret_matrices.slots.steps import written
from atoll.study.address import Address


def first(keys: Keys, values: Sequence[float], seed: bytes) -> list[memoryview]:
    """The list as it sets out: every number in all slots of a ciphertext, in this provider's order."""
    rows = [np.full(keys.set.slots, values[i]) for i in order(len(values), seed)]
    return written(keys.encrypt_all(rows, derive(seed, "encrypt"), LIST_LEVEL))


def passed_on(keys: Keys, xs: Sequence[Ciphertext], seed: bytes) -> list[memoryview]:
    """The list in this provider's order, every ciphertext hidden by an encryption of zero."""
    some = [xs[i] for i in order(len(xs), seed)]
    return written(keys.rerandomised_all(some, derive(seed, "hide")))


def read(chosen: Set, body: memoryview, sender: Address) -> Ciphertext:
    """One of a list, as it arrives."""
    return steps.read(chosen, body, LIST_LEVEL, sender)


def order(count: int, seed: bytes) -> list[int]:
    """A uniform permutation: the order of random words, of which no two are equal."""
    for attempt in range(100):
        words = expand_words(seed, count, "atoll/slots/order/1", attempt)
        if len(np.unique(words)) == count:
            return [int(i) for i in np.argsort(words)]
    raise AssertionError("a hundred collisions of 64-bit words do not happen")
