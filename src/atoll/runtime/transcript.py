"""What a run cost: messages, bytes, rounds, and seconds per role and step."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any, Final

import msgspec

from atoll.shown import html_table, text_table
from atoll.study.address import Address

_HEADER = ("role", "messages", "bytes", "seconds")
_SHOWN = 20


NOTED: Final = 4_000
"""Messages of a run that are noted one by one; of more, only the sums are kept."""


class Noted(msgspec.Struct, array_like=True, frozen=True):
    """One message on its way: when (seconds from the first), from whom to whom, its kind and size."""

    at: float
    sender: str
    to: str
    kind: str
    bytes: int


class RoleCost(msgspec.Struct):
    """One role's part."""

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    bytes_received: int = 0
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    """Elapsed time by step."""
    cpu_seconds: float = 0.0
    """Processor time of everything the role did; measured where one thing is done at a time."""

    @property
    def step_seconds(self) -> float:
        """All steps together. Steps of several roles run side by side, so roles do not add up to the run."""
        return sum(self.seconds.values())


class Transcript(msgspec.Struct):
    """The cost of one run. ``rounds`` is the longest chain of messages that wait for each other."""

    roles: dict[str, RoleCost] = msgspec.field(default_factory=dict)
    rounds: int = 0
    wall_seconds: float = 0.0
    apart_seconds: float = 0.0
    """The same with every party on a machine of its own; measured where one thing is done at a time."""
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """Messages by their kind."""
    course: list[Noted] = msgspec.field(default_factory=list)
    """The first messages, one by one, in the order in which they were sent."""
    begun: float | None = None
    """When the first was sent, by a clock that counts from anywhere."""

    def _title(self) -> str:
        return (
            f"{self.messages:,} messages, {self.bytes:,} bytes, {self.rounds} rounds, "
            f"{self.wall_seconds:.3g} s"
        )

    def _rows(self) -> list[tuple[str, int, int, float]]:
        """Role by role; where there are very many, all parties of a role together."""
        if len(self.roles) <= _SHOWN:
            return [(n, c.messages_sent, c.bytes_sent, c.step_seconds) for n, c in self.roles.items()]
        return [
            (f"{row['parties']} x {role}", row["messages"], row["bytes"], row["seconds"])
            for role, row in self.by_role().items()
        ]

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(_HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        return html_table(self._title(), _HEADER, self._rows())

    @property
    def messages(self) -> int:
        return sum(cost.messages_sent for cost in self.roles.values())

    @property
    def bytes(self) -> int:
        return sum(cost.bytes_sent for cost in self.roles.values())

    def of(self, address: Address | str) -> RoleCost:
        return self.roles.setdefault(str(address), RoleCost())

    def sent(self, sender: Address, to: Address, kind: str, size: int) -> None:
        cost = self.of(sender)
        cost.messages_sent += 1
        cost.bytes_sent += size
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if len(self.course) < NOTED:
            now = time.monotonic()
            self.begun = now if self.begun is None else self.begun
            self.course.append(Noted(round(now - self.begun, 6), str(sender), str(to), kind, size))

    def received(self, receiver: Address, size: int) -> None:
        cost = self.of(receiver)
        cost.messages_received += 1
        cost.bytes_received += size

    def computed(self, address: Address, step: str, seconds: float) -> None:
        spent = self.of(address).seconds
        spent[step] = spent.get(step, 0.0) + seconds

    def links(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Messages and bytes from whom to whom, of those that were noted one by one."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for one in self.course:
            messages, size = found.get((one.sender, one.to), (0, 0))
            found[one.sender, one.to] = messages + 1, size + one.bytes
        return found

    def of_party(self, party: str) -> Transcript:
        """What one party sees of it: its own roles, and what they sent and were sent."""
        mine = {name: cost for name, cost in self.roles.items() if name.rpartition("/")[0] == party}
        course = [one for one in self.course if one.sender in mine or one.to in mine]
        return Transcript(
            roles=mine, rounds=self.rounds, wall_seconds=self.wall_seconds, course=course, begun=self.begun
        )

    def by_role(self) -> dict[str, dict[str, Any]]:
        """Totals over all parties that play a role."""
        totals: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"parties": 0, "messages": 0, "bytes": 0, "seconds": 0.0}
        )
        for name, cost in self.roles.items():
            row = totals[name.rpartition("/")[2]]
            row["parties"] += 1
            row["messages"] += cost.messages_sent
            row["bytes"] += cost.bytes_sent
            row["seconds"] += cost.step_seconds
        return dict(totals)
