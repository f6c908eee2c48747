"""The coordinator's part of a secret matrix, as one provider, its carrier, knows it too; or all members.

A refresh leaves the masked result with the coordinator, who could put anything in its place. So it sends
the result to a carrier as well, which checks that it is the sum of everybody's parts. From then on both do
the same linear steps on it; the coordinator adds it to what is encrypted, the carrier to its own share
wherever a share is multiplied or opened. The carrier learns what the coordinator knows anyway.

Of a product that may go ahead (:mod:`roles`) all members are sent the masked result. They check it, add it
where they multiply, and the coordinator adds nothing; one of them is still the carrier, who opens it.

Nobody must wait for it where it is not needed yet: steps are put off until somebody needs them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from atoll.crypto.products import Integers


class Carried:
    """The integers of that part, computed when they are first needed."""

    def __init__(self, make: Callable[[], Awaitable[Integers]]) -> None:
        self._make: Callable[[], Awaitable[Integers]] | None = make
        self._value: Integers | None = None

    async def value(self) -> Integers:
        """The words; what they were made from is let go."""
        if self._value is None:
            assert self._make is not None
            self._value, self._make = await self._make(), None
        return self._value
