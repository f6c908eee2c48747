"""Which keys there are, in the order in which they are made, and what makes one of them public.

All are sums of the providers' parts. Key parts are large: one key is made after the other, and the coordinator adds
parts up as they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from atoll.crypto import slots
from atoll.crypto.slots import Keys, Set
from atoll.secret_matrices.courses import digest_of

PUBLIC, FIRST, SECOND = "public", "relinearisation 1", "relinearisation 2"


class KeyTotals:
    """The keys as they become known: sums of parts, by name."""

    def __init__(self, chosen: Set, session: bytes) -> None:
        self.set = chosen
        self.common = digest_of(session, "keys")
        self.totals: dict[str, memoryview] = {}

    @cached_property
    def rotations(self) -> dict[str, int]:
        """Rotations by powers of two, by name."""
        return {f"rotation {1 << i}": 1 << i for i in range(self.set.slots.bit_length() - 1)}

    @cached_property
    def names(self) -> list[str]:
        """All keys in order; a key's place is its place in messages."""
        return [PUBLIC, FIRST, SECOND, *self.rotations]

    def place(self, name: str) -> int:
        """Its place in messages."""
        return self.names.index(name)

    def part(self, secret: slots.Secret, name: str, seed: bytes) -> memoryview:
        """One provider's part; slow."""
        if name == PUBLIC:
            return secret.public_part(self.common, seed)
        if name == FIRST:
            return secret.relinearisation_part_1(self.common, seed)
        if name == SECOND:
            return secret.relinearisation_part_2(self.common, seed, self.totals[FIRST])
        return secret.rotation_part(self.common, seed, self.rotations[name])

    def keys(self) -> Keys:
        """What evaluates; slow."""
        return Keys(
            self.set,
            self.common,
            public=self.totals[PUBLIC],
            relinearisation=(self.totals[FIRST], self.totals[SECOND]),
            rotations={step: self.totals[name] for name, step in self.rotations.items()},
        )


def added(parts: Sequence[memoryview]) -> memoryview:
    """The sum of parts; one alone is its own sum."""
    return parts[0] if len(parts) == 1 else slots.total(parts)
