"""A tap on a run: everything that moved, what each role drew, and how to run one again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tests.support.examples import Example

from atoll.protocols import Learned, protocol_of
from atoll.protocols.own import Own
from atoll.runtime.engine import Observer
from atoll.runtime.inbox import Event, Left, Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.records import MemoryRecord
from atoll.runtime.replay import replay
from atoll.study.address import Address


class Tap(Observer):
    """Keeps everything that moved."""

    def __init__(self) -> None:
        self.inboxes: dict[Address, list[Event]] = defaultdict(list)
        self.outboxes: dict[Address, list[tuple[Address, bytes]]] = defaultdict(list)
        self.records: dict[Address, MemoryRecord] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.outboxes[sender].append((receiver, bytes(data)))

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.inboxes[receiver].append(Received(sender, data))

    def left(self, receiver: Address, sender: Address) -> None:
        self.inboxes[receiver].append(Left(sender))

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.records[address] = record

    def received(self, address: Address) -> list[Received]:
        """The messages that reached a role."""
        return [event for event in self.inboxes[address] if isinstance(event, Received)]


def tapped(example: Example, faults: Faults | None = None) -> Tap:
    tap = Tap()
    protocol = protocol_of(example.study.protocol)
    LocalEngine(faults=faults).run(protocol, example.study, example.own, observer=tap)
    return tap


def resumed(
    example: Example, tap: Tap, address: Address, own: Own, inbox: Sequence[Event] | None = None, **drawn: Any
) -> tuple[Learned, list[tuple[Address, bytes]]]:
    """A role run again from its draws and from what it has sent, which it may not change."""
    record, protocol = tap.records[address], protocol_of(example.study.protocol)
    given = tap.inboxes[address] if inbox is None else inbox
    return replay(protocol, example.study, address, own, record.drawn | drawn, given, record.sendings)
