"""A role's ordered inbox: everything that reached it, in the order in which it came.

Messages wait here until the role asks for their kind. A sender that has left is an event of the inbox
like any other, so that a role run again from its inbox sees the same history.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from atoll.codec import Decoder, Encoded, Message
from atoll.errors import MessageError, PartyLeft
from atoll.study.address import Address

M = TypeVar("M", bound=Message)


class Received(NamedTuple):
    """A message came."""

    sender: Address
    data: bytes | Encoded


class Left(NamedTuple):
    """A sender has left the run: nothing comes from it any more."""

    sender: Address


Event = Received | Left


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

    def put(self, event: Event, depth: int = 0, at: float = 0.0) -> Message | None:
        """Take an event; returns the message, where it is one."""
        message = None
        if isinstance(event, Left):
            self._left.add(event.sender)
        else:
            try:
                data = event.data
                message = self._decoder.of(data) if isinstance(data, Encoded) else self._decoder.decode(data)
            except MessageError as error:
                raise MessageError(f"from {event.sender}: {error.message}") from None
            self._waiting.append((event.sender, message, depth, at))
        if self._changed is not None:
            self._changed.set()
        return message

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
            error = PartyLeft(f"{names} left before sending {kind.__name__}", hint="start a new run")
            error.missing = tuple(sorted(address.party for address in gone))
            raise error
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
