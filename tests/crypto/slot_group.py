"""Three parties of encrypted slots in one place, with all their keys."""

from __future__ import annotations

import functools
import hashlib
import itertools

import numpy as np

from atoll.crypto.slots import Ciphertext, Keys, Secret, Values, find, opened, refreshed, total

TEST_SET = "test-slots-10"


def label(*parts: object) -> bytes:
    """A seed for tests."""
    return hashlib.sha256(repr(parts).encode()).digest()


class SlotGroup:
    """All parties' secrets and the keys that they made together."""

    def __init__(self, name: str, parties: int = 3) -> None:
        self.set = find(name, for_tests=True)
        self.common = label("common")
        self.secrets = [Secret.generate(self.set, label("secret", i)) for i in range(parties)]
        seeds = [label("key seed", i) for i in range(parties)]
        both = list(zip(self.secrets, seeds, strict=True))
        public = total(self.set, [s.public_part(self.common, seed) for s, seed in both])
        first = total(self.set, [s.relinearisation_part_1(self.common, seed) for s, seed in both])
        second = total(self.set, [s.relinearisation_part_2(self.common, seed, first) for s, seed in both])
        rotations = [
            total(self.set, [s.rotation_part(self.common, seed, step) for s, seed in both])
            for step in self.set.rotation_steps
        ]
        self.totals = [public, first, second, *rotations]
        self.keys = Keys(self.set, self.common, self.totals)
        self._count = itertools.count()

    def seed(self) -> bytes:
        """One that was not used yet."""
        return label("fresh", next(self._count))

    def encrypt(self, values: Values) -> Ciphertext:
        """A fresh ciphertext."""
        return self.keys.encrypt(np.asarray(values, dtype=np.float64), self.seed())

    def open(self, x: Ciphertext, flooding_bits: int = 1) -> Values:
        """What everybody together sees."""
        parts = [secret.opening_part(x, self.seed(), flooding_bits) for secret in self.secrets]
        return opened(x, total(self.set, parts))

    def refreshed(self, x: Ciphertext) -> Ciphertext:
        """The same vector at the highest level."""
        common = self.seed()
        parts = [secret.refresh_part(x, common, self.seed()) for secret in self.secrets]
        return refreshed(x, total(self.set, parts), common, len(self.secrets))


@functools.cache
def slot_group(name: str = TEST_SET) -> SlotGroup:
    """The group of a set, made once."""
    return SlotGroup(name)
