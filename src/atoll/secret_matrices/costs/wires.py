"""Messages of all roles, counted: how many, how large, and the longest chain of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.rates import shipped
from atoll.secret_matrices.costs.timing import Effort

FRAME = 40
"""Bytes of a message beside its body."""
COORDINATOR = "coordinator"
TOPIC = 100
"""Of what names a comparison, and its digest."""


class Wires:
    """What travels between the coordinator and the providers."""

    def __init__(self, providers: Sequence[str], costing: Costing | None = None) -> None:
        self.costing = costing or Costing(shipped(), Effort(len(providers)))
        self.providers = tuple(providers)
        self.n_providers = len(providers)
        self.messages = self.coordinator_bytes = 0
        self.sent = dict.fromkeys(self.providers, 0)
        self._told: dict[str, int] = {}
        self.deepest = 0
        """The longest chain of messages that ends at any receiver of an output."""
        # The longest chain of messages that ends at the coordinator, and at each provider.
        self.coordinator_depth, self.depths = 0, dict.fromkeys(self.providers, 0)
        self.guests: dict[str, int] = {}
        """The same at roles that only receive outputs; what they send is counted apart."""
        self.guest_bytes = 0

    @property
    def provider_bytes(self) -> int:
        """What the busiest provider sends."""
        return max(self.sent.values())

    def gathered(self, size: int, senders: Iterable[str] | None = None) -> None:
        """A message of every provider (or some) to the coordinator."""
        names = list(self.providers if senders is None else senders)
        self.messages += len(names)
        for name in names:
            self.sent[name] += size + FRAME
        self.coordinator_depth = max(self.coordinator_depth, *(self.depths[name] + 1 for name in names))
        self.costing.gathered(size + FRAME, self._indices(names))

    def broadcast(self, size: int, receivers: Iterable[str] | None = None) -> None:
        """A message of the coordinator to every provider, or to some."""
        names = list(self.providers if receivers is None else receivers)
        self.messages += len(names)
        self.coordinator_bytes += len(names) * (size + FRAME)
        self.deepen(names, self.coordinator_depth + 1)
        self.costing.broadcast(size + FRAME, self._indices(names))

    @property
    def depth(self) -> int:
        """The longest chain of messages so far."""
        return max(self.coordinator_depth, *self.depths.values())

    def deepen(self, names: Iterable[str], depth: int) -> None:
        """A chain of this length reached some providers."""
        self.depths.update((name, max(self.depths[name], depth)) for name in names)

    def compared(self, size: int) -> None:
        """A message of every provider to every other one, and nothing meanwhile."""
        self.told(size)
        self.heard()

    def told(self, size: int) -> None:
        """A message of every provider to every other one sets out."""
        others = self.n_providers - 1
        self.messages += self.n_providers * others
        for name in self.providers:
            self.sent[name] += others * (size + FRAME)
        self._told = {
            name: max(depth for other, depth in self.depths.items() if other != name) + 1
            for name in self.providers
        }
        self.costing.told(size + FRAME)

    def heard(self) -> None:
        """It arrived, and everybody waited for it."""
        for name, depth in self._told.items():
            self.deepen([name], depth)
        self.costing.heard()

    def handed_out(self, size: int, receivers: frozenset[str]) -> list[str]:
        """A message of every provider to every receiver but itself; the providers among these."""
        to = [name for name in self.providers if name in receivers]
        outside = len(receivers) - len(to)
        self.messages += (outside + len(to)) * self.n_providers - len(to)
        for name in self.providers:
            self.sent[name] += size * (outside + len(to) - (name in to))
        before = dict(self.depths)
        for name in to:
            self.deepen([name], max(depth for other, depth in before.items() if other != name) + 1)
        if COORDINATOR in receivers:
            self.coordinator_depth = max(self.coordinator_depth, *(depth + 1 for depth in before.values()))
        if receivers:
            self.deepest = max(self.deepest, *(depth + 1 for depth in before.values()))
        for line in self.costing.effort.timelines:
            line.exchanged(size * max(1, len(receivers)))
        return to

    def posted(self, sender: str, size: int, receivers: Iterable[str], *, times: int = 1) -> None:
        """Messages of anybody to some others, guests among them; everybody waits for what comes of them."""
        names = [name for name in receivers if name != sender]
        self.messages += times * len(names)
        sent = times * len(names) * (size + FRAME)
        if sender == COORDINATOR:
            self.coordinator_bytes += sent
        elif sender in self.sent:
            self.sent[sender] += sent
        else:
            self.guest_bytes += sent
        depth = self.depth_of(sender) + 1
        for name in names:
            self.reach(name, depth)
        for line in self.costing.effort.timelines:
            line.exchanged(times * size)

    def depth_of(self, name: str) -> int:
        """The longest chain of messages that ends there."""
        if name == COORDINATOR:
            return self.coordinator_depth
        return self.depths[name] if name in self.depths else self.guests.get(name, 0)

    def reach(self, name: str, depth: int) -> None:
        """A chain of this length reached somebody."""
        depth = max(depth, self.depth_of(name))
        if name == COORDINATOR:
            self.coordinator_depth = depth
        elif name in self.depths:
            self.depths[name] = depth
        else:
            self.guests[name] = depth

    def _indices(self, names: Iterable[str]) -> list[int]:
        wanted = set(names)
        return [i for i, name in enumerate(self.providers) if name in wanted]
