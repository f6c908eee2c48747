"""A role's ordered inbox: everything that reached it, in the order in which it came.

Messages wait here until the role asks for their kind. A sender that has left is an event of the inbox
like any other, so that a role run again from its inbox sees the same history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TypeVar

from atoll.codec import Decoder, Message
from atoll.errors import MessageError, PartyLeft
from atoll.study.address import Address

M = TypeVar("M", bound=Message)

Event = tuple[Address, bytes | None]
"""A message's sender and bytes; None in place of the bytes says that the sender has left."""


class Inbox:
    """Holds decoded messages in order of arrival; one role waits on it."""

    def __init__(self, decoder: Decoder[Message]) -> None:
        self._decoder = decoder
        self._waiting: deque[tuple[Address, Message, int, float]] = deque()
        self._left: set[Address] = set()
        self._changed: asyncio.Event | None = None
        self.depth = 0
        """How many messages had to come one after another to bring what the role has read."""
        self.latest = 0.0
        """When the latest of what the role has read arrived, by the clocks of a metered run."""

    def put(self, sender: Address, data: bytes | None, depth: int = 0, at: float = 0.0) -> None:
        if data is None:
            self._left.add(sender)
        else:
            try:
                self._waiting.append((sender, self._decoder.decode(data), depth, at))
            except MessageError as error:
                raise MessageError(f"from {sender}: {error.message}") from None
        if self._changed is not None:
            self._changed.set()

    def take(
        self, kind: type[M], senders: Iterable[Address], absent: set[Address] | None
    ) -> tuple[Address, M] | None:
        """The earliest message of ``kind`` from ``senders``, if one is here."""
        wanted = set(senders)
        for position, (sender, message, depth, at) in enumerate(self._waiting):
            if sender in wanted and isinstance(message, kind):
                del self._waiting[position]
                self.depth = max(self.depth, depth)
                self.latest = max(self.latest, at)
                return sender, message
        gone = wanted & self._left
        if gone and absent is None:
            names = ", ".join(sorted(str(address) for address in gone))
            raise PartyLeft(f"{names} left before sending {kind.__name__}", hint="start a new run")
        if absent is not None:
            absent |= gone
        return None

    def everyone_left(self, senders: Iterable[Address]) -> bool:
        return set(senders) <= self._left

    async def changed(self) -> None:
        """Wait until something arrives."""
        self._changed = asyncio.Event()
        await self._changed.wait()
        self._changed = None
