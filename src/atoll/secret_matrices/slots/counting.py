"""The machine that only counts: shapes and levels without numbers, for a plan before keys exist.

It is one role, alone: meetings end at once. Clear numbers that a program gives it are not looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.secret_matrices.slots.levelled import Levelled
from atoll.secret_matrices.slots.machine import Approximation, Integers, Matrix, Slots, Tally, Values

__all__ = ["Counting", "Tallies", "tallied"]

HELD = object()
"""What a role holds of any vector here: that it has it."""


class Counting(Levelled):
    """One role's operations. Nothing is opened: what a program does with an opened result, it must skip."""

    async def encrypted_total(self, rows: Sequence[Values] | None, count: int, wide: int = 1) -> Matrix:
        """Rows may be None everywhere: how many there are is known."""
        return await super().encrypted_total([np.zeros(0)] * count if rows is None else rows, count, wide)

    def _add(self, xs: Sequence[Any]) -> Any:
        return HELD

    def _subtract(self, x: Any, y: Any) -> Any:
        return HELD

    def _plus(self, x: Any, values: Values) -> Any:
        return HELD

    def _scaled(self, x: Any, number: float) -> Any:
        return HELD

    def _inner(self, pairs: Sequence[tuple[Any, Any]]) -> Any:
        return HELD

    def _rotate(self, x: Any, steps: int) -> Any:
        return HELD

    def _polynomial(self, x: Any, approximation: Approximation) -> Any:
        return HELD

    def _at_coordinator(self, count: int) -> Sequence[Any]:
        return [HELD if self.leads or self.verify else None] * count

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Any]:
        return self._at_coordinator(count)

    async def _total(self, rows: Matrix) -> Sequence[Any]:
        return self._at_coordinator(len(rows))

    async def _broadcast(self, rows: Matrix) -> Sequence[Any]:
        return [HELD] * len(rows)

    async def _refresh(self, rows: Matrix) -> Sequence[Any]:
        return self._at_coordinator(len(rows))

    async def _opened(
        self,
        rows: Matrix,
        lengths: Sequence[int],
        receivers: frozenset[str],
    ) -> list[Values] | None:
        return None

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        return None

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> list[Integers] | None:
        return None

    async def _from_shares(
        self, shares: Sequence[Integers] | None, lengths: Sequence[int], modulus: int, fraction: int
    ) -> Sequence[Any]:
        return self._at_coordinator(len(lengths))

    async def _shuffled(self, values: Sequence[float]) -> Sequence[Any]:
        return self._at_coordinator(len(values))


class Tallies(NamedTuple):
    """A program's operations at the coordinator and at a provider."""

    coordinator: Tally
    provider: Tally


def tallied(
    program: Callable[[Slots], Coroutine[Any, Any, object]],
    *,
    n_providers: int,
    slots: int,
    fresh_level: int,
    lowest: int,
    verify: bool = False,
) -> Tallies:
    """Count a program at both kinds of roles."""
    found = []
    for leads in (True, False):
        m = Counting(
            leads=leads,
            n_providers=n_providers,
            slots=slots,
            fresh_level=fresh_level,
            lowest=lowest,
            verify=verify,
        )
        asyncio.run(program(m))
        found.append(m.tally)
    return Tallies(*found)
