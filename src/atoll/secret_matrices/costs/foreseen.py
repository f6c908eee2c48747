"""The machine that counts what a program takes all roles: messages, bytes, rounds and processor seconds.

The program runs twice on shapes: at a provider, to see what it does between two meetings, and at the
coordinator, where messages of all roles are counted at each meeting, as
:mod:`atoll.secret_matrices.slots.roles` says that they travel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from atoll.crypto.shamir import SHARE_BYTES
from atoll.crypto.slots import (
    HEADER_BYTES,
    OPENING,
    PUBLIC,
    REFRESH,
    RELINEARISATION_1,
    RELINEARISATION_2,
    ROTATION,
    SHARE,
    SWITCHING,
    Set,
)
from atoll.secret_matrices.costs.counted import at_once
from atoll.secret_matrices.costs.wires import COORDINATOR, TOPIC, Wires
from atoll.secret_matrices.slots.counting import Counting
from atoll.secret_matrices.slots.keys import FIRST, KeyTotals
from atoll.secret_matrices.slots.levelled import LIST_LEVEL
from atoll.secret_matrices.slots.machine import Matrix, Operation, Tally, Values, Where
from atoll.secret_matrices.slots.party import AT_ONCE, OPENING_LEVEL
from atoll.secret_matrices.slots.rates import SlotRates
from atoll.secret_matrices.slots.steps import FLOODING_BITS
from atoll.secret_matrices.slots.sums import note_bytes

__all__ = ["Foreseen", "foreseen"]

_SEED = 32
_WORD_BYTES = 16
_POINT = 150
"""Bytes of a share of a dealt output, beside its numbers and everybody's commitments."""
Work = Counter[Operation]


class _Noted(Counting):
    """A provider's operations until each meeting."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__(leads=False, **sizes)
        self.moments: list[Work] = []

    def meet(self) -> None:
        """Note what was done so far."""
        self.moments.append(Counter(self.tally.total))

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Any]:
        self.meet()
        return await super()._encrypted_total(rows, count)

    async def _total(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        return await super()._total(rows)

    async def _broadcast(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        return await super()._broadcast(rows)

    async def _refresh(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        return await super()._refresh(rows)

    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        self.meet()
        return await super()._opened(rows, lengths, receivers)

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        self.meet()
        return await super()._opened_own(rows, lengths)

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> None:
        self.meet()
        await super()._to_shares(rows, lengths, fraction)

    async def _shuffled(self, values: Sequence[float]) -> Sequence[Any]:
        self.meet()
        return await super()._shuffled(values)


class Foreseen(Counting):
    """The coordinator's operations, and everybody's messages."""

    def __init__(
        self, chosen: Set, wires: Wires, rates: SlotRates, coordinator: str, *, verify: bool = False
    ) -> None:
        super().__init__(leads=True, **sizes_of(chosen, wires.n_providers, verify))
        self.set, self.wires, self.rates = chosen, wires, rates
        self._coordinator = coordinator
        self._effort = wires.costing.effort
        self._moments: Iterator[Work] = iter(())
        self._before: tuple[Work, Work] = (Counter(), Counter())
        self._circles: set[frozenset[str]] = set()
        self.key_bytes = 0

    # ---- keys ----

    def set_up(self) -> None:
        """Seeds, commitments, key parts and their sums."""
        w, totals = self.wires, KeyTotals(self.set, bytes(_SEED))
        w.gathered(_SEED)
        w.broadcast((_SEED + 2) * w.n_providers)
        sizes = {name: self._key_size(totals, name) for name in totals.names}
        public, *others = totals.names
        self.key_bytes = sum(sizes.values())
        per_byte = self.rates.key_byte
        self._effort.provider(self.rates.keys, width=2)
        w.compared(2 * _SEED + TOPIC)
        w.gathered(sizes[public])
        for i, name in enumerate(w.providers):
            w.broadcast(sizes[public], [p for j, p in enumerate(w.providers) if j != i])
            del name
        notes = 0
        for name in others:
            w.gathered(sizes[name])
            self._effort.coordinator(per_byte * sizes[name] * w.n_providers)
            w.broadcast(sizes[name])
            w.costing.fingerprint(2 * sizes[name], range(w.n_providers))  # of its own part, and of the sum
            w.costing.digest(sizes[name], range(w.n_providers))
            notes += note_bytes(self.set)
            if name in (FIRST, others[-1]):
                w.compared(TOPIC + notes)
                notes = 0
        self._effort.coordinator(self.rates.keys_read, width=2)

    def _key_size(self, totals: KeyTotals, name: str) -> int:
        step = totals.rotations.get(name, 0)
        kinds = (PUBLIC, RELINEARISATION_1, RELINEARISATION_2)
        return self.set.size(ROTATION if step else kinds[totals.place(name)], None, step)

    # ---- between meetings ----

    def along(self, moments: Sequence[Work]) -> None:
        """What a provider does meanwhile."""
        self._moments = iter(moments)

    def meet(self) -> None:
        """Book everybody's operations since the last meeting; refreshes are booked where they happen."""
        here, there = Counter(self.tally.total), next(self._moments)
        (done_here, done_there), self._before = self._before, (here, there)
        own = self.rates.provider(Tally(_since(done_here, here)))
        theirs = self.rates.provider(Tally(_since(done_there, there)))
        self._effort.coordinator(own, width=AT_ONCE)
        self._effort.provider(theirs, width=AT_ONCE)

    def check(self) -> None:
        """Providers compare what they were told."""
        moduli = 16 * len(self.set.moduli) if self.verify else 0
        self.wires.compared(TOPIC + moduli)

    # ---- totals and broadcasts ----

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Any]:
        self.meet()
        self._sums([self.set.top] * count)
        return await super()._encrypted_total(rows, count)

    async def _total(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        self._sums([x.level for x in rows])
        return await super()._total(rows)

    def _sums(self, levels: Sequence[int]) -> None:
        sizes = [self.set.ciphertext_bytes(level) for level in levels]
        for size in sizes:
            self.wires.gathered(size)
        self._told(sizes)

    def _told(self, sizes: Sequence[int]) -> None:
        """Sums, to providers who verify."""
        if self.verify:
            for size in sizes:
                self.wires.broadcast(size)

    async def _broadcast(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        if not self.verify:
            for x in rows:
                self.wires.broadcast(self.set.ciphertext_bytes(x.level))
        return await super()._broadcast(rows)

    # ---- refreshes and openings ----

    def _ask(self, rows: Matrix, level: int) -> None:
        for x in rows:
            if x.where is Where.COORDINATOR and not self.verify:
                self.wires.broadcast(self._half(min(level, x.level)))
        self.check()

    def _half(self, level: int) -> int:
        return HEADER_BYTES + (self.set.ciphertext_bytes(level) - HEADER_BYTES) // 2

    def _parts(self, count: int, seconds: float, size: int, added: float) -> None:
        """Parts from everybody, added up as they come; ``seconds`` and ``added`` are of one."""
        self._effort.provider(count * seconds, width=AT_ONCE)
        for _ in range(count):
            self.wires.gathered(size)
        self._effort.coordinator(count * self.n_providers * added)

    async def _refresh(self, rows: Matrix) -> Sequence[Any]:
        self.meet()
        self._ask(rows, self.lowest)
        size, rates = self.set.size(REFRESH, self.lowest), self.rates
        self._parts(len(rows), rates.refresh_part, size, rates.part_added)
        self._told([size] * len(rows))
        made = len(rows) * rates.each[Operation.REFRESH]
        self._effort.coordinator(made, width=AT_ONCE)
        if self.verify:
            self._effort.provider(made, width=AT_ONCE)
        return await super()._refresh(rows)

    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        self.meet()
        self._join(receivers)
        self._ask(rows, OPENING_LEVEL)
        size = self.set.size(SWITCHING, OPENING_LEVEL, FLOODING_BITS)
        self._parts(len(rows), self.rates.opening_part, size, self.rates.part_added)
        names = self._names(receivers)
        for _ in rows:
            self.wires.posted(COORDINATOR, size, names)
        self._reached(names)
        return await super()._opened(rows, lengths, receivers)

    def _names(self, receivers: frozenset[str]) -> list[str]:
        return [COORDINATOR if name == self._coordinator else name for name in sorted(receivers)]

    def _reached(self, names: Sequence[str]) -> None:
        w = self.wires
        w.deepest = max(w.deepest, *(w.depth_of(name) for name in names))

    def _join(self, receivers: frozenset[str]) -> None:
        """The receivers' key, once: its secret to all of them, the key itself to other providers."""
        if receivers in self._circles:
            return
        self._circles.add(receivers)
        w, members = self.wires, set(self._names(receivers))
        guests = sorted(members - {COORDINATOR, *w.providers})
        first = next(name for name in (COORDINATOR, *w.providers, *guests) if name in members)
        w.posted(first, _SEED, members)
        w.posted(first, self.set.size(PUBLIC), [name for name in w.providers if name not in members])

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        self.meet()
        w = self.wires
        for _ in rows:
            w.told(self._half(OPENING_LEVEL))
        w.heard()
        self.check()
        others = self.n_providers - 1
        self._effort.provider(self.n_providers * len(rows) * self.rates.opening_part, width=AT_ONCE)
        for _ in rows:
            w.told(self.set.size(OPENING, OPENING_LEVEL, FLOODING_BITS))
        w.heard()
        self._effort.provider(others * len(rows) * self.rates.part_added)
        w.deepest = max(w.deepest, *w.depths.values())
        return await super()._opened_own(rows, lengths)

    async def _shuffled(self, values: Sequence[float]) -> Sequence[Any]:
        self.meet()
        row = self.set.ciphertext_bytes(LIST_LEVEL)
        chain = (*self.wires.providers, COORDINATOR)
        for sender, receiver in pairwise(chain):
            self.wires.posted(sender, row, [receiver], times=len(values))
        return await super()._shuffled(values)

    # ---- shares ----

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> None:
        self.meet()
        self._ask(rows, self.lowest)
        size = self.set.size(SHARE, self.lowest)
        self._parts(len(rows), self.rates.refresh_part, size, self.rates.part_added)
        self._told([size] * len(rows))
        if self.verify:
            self.check()
        else:
            for length in lengths:
                self.wires.broadcast(_WORD_BYTES * length, self.wires.providers[:1])
        await super()._to_shares(rows, lengths, fraction)

    def dealt(self, outputs: Sequence[tuple[int, int]], threshold: int) -> None:
        """Outputs, by rows and length, dealt among the providers."""
        numbers = sum(rows * length for rows, length in outputs)
        self.wires.costing.deal(numbers, threshold)
        self.wires.compared(SHARE_BYTES * numbers)
        self.wires.compared(_SEED * len(outputs) + TOPIC)

    def released(self, rows: int, length: int, receivers: frozenset[str]) -> None:
        """A dealt output, from everybody to its receivers."""
        size = SHARE_BYTES * rows * length + _SEED * self.n_providers + _POINT
        self.wires.handed_out(size, frozenset(self._names(receivers)))


def _since(before: Work, now: Work) -> Work:
    """What was done since, but for refreshes."""
    spent = now - before
    del spent[Operation.REFRESH]
    return spent


def sizes_of(chosen: Set, n_providers: int, verify: bool) -> dict[str, Any]:
    """What a counting machine has to know."""
    return {
        "n_providers": n_providers,
        "slots": chosen.slots,
        "fresh_level": chosen.top,
        "lowest": chosen.refresh_level,
        "verify": verify,
    }


def foreseen(m: Foreseen, program: Callable[[Counting], Awaitable[None]]) -> None:
    """Count a program, after the keys."""
    noted = _Noted(**sizes_of(m.set, m.n_providers, m.verify))
    at_once(program(noted))  # type: ignore[arg-type]
    noted.meet()
    m.along(noted.moments)
    at_once(program(m))  # type: ignore[arg-type]
    m.meet()
