"""Run one role again from its record and its ordered inbox: the same bytes come out.

This is what makes a role resumable, and the test that it draws nothing outside its record.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from atoll import codec
from atoll.codec import Decoder, Message
from atoll.errors import RunError
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol, resolve, with_helpers
from atoll.protocols.own import Own
from atoll.runtime.inbox import Event, Inbox
from atoll.runtime.records import MemoryRecord, Sending
from atoll.study.address import Address
from atoll.study.model import Study
from atoll.threads import one_blas_thread

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class ReplayNetwork(Network):
    """Feeds a fixed inbox, one event at a time, and keeps what is sent."""

    def __init__(
        self, me: Address, inbox: Sequence[Event], decoder: Decoder[Message], record: Record
    ) -> None:
        self.me = me
        self._record = record
        self.sent: list[tuple[Address, bytes]] = []
        self._events = iter(inbox)
        self._inbox = Inbox(decoder)

    async def send(self, to: Address, message: Message) -> None:
        data = codec.encode(message)
        self._record.sent(to, hashlib.sha256(data).digest())
        self.sent.append((to, data))

    async def next(
        self, kind: type[M], senders: Iterable[Address], *, absent: set[Address] | None = None
    ) -> tuple[Address, M] | None:
        senders = set(senders)
        while (arrived := self._inbox.take(kind, senders, absent)) is None:
            if absent is not None and self._inbox.everyone_left(senders):
                return None
            event = next(self._events, None)
            if event is None:
                raise RunError(f"the recorded inbox of {self.me} ends before {kind.__name__}")
            self._inbox.put(event)
        return arrived

    async def compute(self, step: Callable[..., T], *args: Any) -> T:
        return step(*args)


def replay(
    protocol: Protocol,
    study: Study,
    address: Address,
    own: Own,
    drawn: Mapping[str, bytes],
    inbox: Sequence[Event],
    sendings: Sequence[Sending] = (),
) -> tuple[Learned, list[tuple[Address, bytes]]]:
    """What the role learns and sends, run again; ``sendings``: what it has sent, which it may not change."""
    study = resolve(protocol, study)
    protocol = with_helpers(protocol, study)
    record = MemoryRecord(drawn, sendings, may_draw=False)
    net = ReplayNetwork(address, inbox, Decoder[Message](protocol.all_messages(study)), record)
    with one_blas_thread:
        learned = asyncio.run(protocol.roles[address.role](net, study, own, record))
    return learned, net.sent
