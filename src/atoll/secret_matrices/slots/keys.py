"""Which keys there are, in the order in which they are made, and what makes one of them public.

All are sums of the providers' parts. Key parts are large: one key is made after the other, and the
coordinator adds parts up as they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from atoll.crypto import slots
from atoll.crypto.slots import Keys, Secret, Set
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
        return {f"rotation {step}": step for step in self.set.rotation_steps}

    @cached_property
    def names(self) -> list[str]:
        """All keys in order; a key's place is its place in messages."""
        return [PUBLIC, FIRST, SECOND, *self.rotations]

    def place(self, name: str) -> int:
        """Its place in messages."""
        return self.names.index(name)

    def part(self, secret: Secret, name: str, seed: bytes) -> memoryview:
        """One provider's part; slow."""
        if name == PUBLIC:
            return memoryview(secret.public_part(self.common, seed))
        if name == FIRST:
            return memoryview(secret.relinearisation_part_1(self.common, seed))
        if name == SECOND:
            return memoryview(secret.relinearisation_part_2(self.common, seed, self.totals[FIRST]))
        return memoryview(secret.rotation_part(self.common, seed, self.rotations[name]))

    def added(self, parts: Sequence[memoryview]) -> memoryview:
        """The sum of parts; slow."""
        return added(self.set, parts)

    def keys(self) -> Keys:
        """What evaluates; slow."""
        return Keys(self.set, self.common, list(self.totals.values()))


def added(chosen: Set, parts: Sequence[memoryview]) -> memoryview:
    """The sum of parts; one alone is its own sum."""
    return parts[0] if len(parts) == 1 else memoryview(slots.total(chosen, parts))
