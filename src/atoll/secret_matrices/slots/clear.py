"""The machine on plain numbers: one object for each role, so that a program runs here as it does encrypted.

A role holds numbers where it would hold a ciphertext, and None where it would not. Levels are kept as under
encryption; ``noise`` is the size of CKKS's error in a slot after a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from atoll import randomness
from atoll.errors import RunError
from atoll.secret_matrices.slots.approximations import Exact
from atoll.secret_matrices.slots.levelled import Levelled
from atoll.secret_matrices.slots.machine import Approximation, Integers, Matrix, Values

__all__ = ["COORDINATOR", "Clear", "Meeting", "provider", "together"]

COORDINATOR = "coordinator"
T = TypeVar("T")


def provider(i: int) -> str:
    """The name of a simulated provider."""
    return f"p{i}"


class Meeting:
    """Where simulated roles meet: everyone gives something, and gets what all gave in a fixed order."""

    def __init__(self, roles: Sequence[str]) -> None:
        self.roles = tuple(roles)
        self._steps = dict.fromkeys(roles, 0)
        self._given: dict[int, dict[str, Any]] = {}
        self._all: dict[int, asyncio.Future[list[Any]]] = {}

    async def of_all(self, role: str, given: Any) -> list[Any]:
        """What every role gave at this step, in the order of the roles."""
        step = self._steps[role]
        self._steps[role] += 1
        here = self._given.setdefault(step, {})
        ready = self._all.setdefault(step, asyncio.get_running_loop().create_future())
        here[role] = given
        if len(here) == len(self.roles):
            ready.set_result([here[name] for name in self.roles])
            del self._given[step], self._all[step]
        return await ready


async def together(
    program: Callable[[Any, Any], Awaitable[T]], machines: Sequence[Levelled], inputs: Sequence[Any]
) -> list[T]:
    """The program once at each machine, all at the same time: results in their order."""

    async def run(machine: Levelled, own: Any) -> T:
        return await program(machine, own)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(m, own)) for m, own in zip(machines, inputs, strict=True)]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [task.result() for task in tasks]


class Clear(Levelled):
    """One role's machine on plain numbers."""

    def __init__(
        self,
        role: str,
        meeting: Meeting,
        *,
        slots: int,
        fresh_level: int,
        lowest: int,
        noise: float = 0.0,
    ) -> None:
        super().__init__(
            leads=role == COORDINATOR,
            n_providers=len(meeting.roles) - 1,
            slots=slots,
            fresh_level=fresh_level,
            lowest=lowest,
        )
        self.role = role
        self._meeting = meeting
        self._noise = noise
        self.outside: dict[str, float] = {}
        """Values outside the interval of their approximation, by its name."""
        self._random = randomness.public(meeting.roles.index(role))

    @classmethod
    def machines(
        cls, n_providers: int, *, slots: int = 8192, fresh_level: int = 9, lowest: int = 2, noise: float = 0.0
    ) -> list[Clear]:
        """The coordinator's machine, then the providers'."""
        meeting = Meeting([COORDINATOR, *(provider(i) for i in range(n_providers))])
        return [
            cls(role, meeting, slots=slots, fresh_level=fresh_level, lowest=lowest, noise=noise)
            for role in meeting.roles
        ]

    def _filled(self, values: Values) -> Values:
        if len(values) > self.slots:
            raise RunError(f"{len(values)} numbers do not fit the {self.slots} slots of one ciphertext")
        return np.concatenate([values, np.zeros(self.slots - len(values))])

    def _noisy(self, values: Values) -> Values:
        if not self._noise:
            return values
        return np.asarray(values + self._noise * self._random.standard_normal(self.slots), np.float64)

    # ---- local ----

    def _add(self, xs: Sequence[Values]) -> Values:
        return np.sum(xs, axis=0)  # type: ignore[no-any-return]

    def _subtract(self, x: Values, y: Values) -> Values:
        return x - y

    def _plus(self, x: Values, values: Values) -> Values:
        return x + self._filled(values)

    def _scaled(self, x: Values, number: float) -> Values:
        return self._noisy(x * number)

    def _inner(self, pairs: Sequence[tuple[Values, Values]]) -> Values:
        total = np.zeros(self.slots)
        for x, y in pairs:
            total += x * (y if len(y) == self.slots else self._filled(y))
        return self._noisy(total)

    def _rotate(self, x: Values, steps: int) -> Values:
        return self._noisy(np.roll(x, -steps))

    def _polynomial(self, x: Values, approximation: Approximation) -> Values:
        if isinstance(approximation, Exact):
            return self._noisy(approximation.at(x))
        low, high = approximation.low, approximation.high
        if not low <= (value := float(x[0])) <= high:
            self.outside.setdefault(approximation.name, value)
        scaled = (2 * x - (low + high)) / (high - low)
        series = np.polynomial.chebyshev.chebval(scaled, approximation.coefficients)
        return self._noisy(np.asarray(series, np.float64))

    # ---- together ----

    async def _everybody(self, given: Any) -> tuple[Any, list[Any]]:
        """What the coordinator gave, and what the providers gave."""
        first, *others = await self._meeting.of_all(self.role, given)
        return first, others

    def _at_coordinator(self, rows: Sequence[Values]) -> Sequence[Any]:
        return [self._noisy(x) for x in rows] if self.leads else [None] * len(rows)

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Any]:
        own = None if self.leads or rows is None else [self._filled(x) for x in rows]
        _, given = await self._everybody(own)
        return self._at_coordinator([sum(g[i] for g in given) for i in range(count)])

    async def _total(self, rows: Matrix) -> Sequence[Any]:
        _, given = await self._everybody([x.held for x in rows])
        return self._at_coordinator([sum(parts) for parts in zip(*given, strict=True)])

    async def _broadcast(self, rows: Matrix) -> Sequence[Any]:
        first, _ = await self._everybody([x.held for x in rows])
        return list(first)

    async def _refresh(self, rows: Matrix) -> Sequence[Any]:
        first, _ = await self._everybody([x.held for x in rows])
        return self._at_coordinator(first)

    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        first, _ = await self._everybody([x.held for x in rows])
        return _cut(first, lengths) if self.role in receivers else None

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        await self._everybody(None)
        return None if self.leads else _cut([x.held for x in rows], lengths)

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> list[Integers] | None:
        """The first provider's part is everything."""
        values = _cut((await self._everybody([x.held for x in rows]))[0], lengths)
        if self.leads:
            return None
        whole = [np.array([round(Fraction(v) * 2**fraction) for v in x], dtype=object) for x in values]
        return whole if self.role == self._meeting.roles[1] else [0 * x for x in whole]

    async def _from_shares(
        self, shares: Sequence[Integers] | None, lengths: Sequence[int], modulus: int, fraction: int
    ) -> Sequence[Any]:
        _, given = await self._everybody(shares)
        sums = [sum(parts) + modulus // 2 for parts in zip(*given, strict=True)]
        values = [((x % modulus - modulus // 2) / 2**fraction).astype(np.float64) for x in sums]
        return self._at_coordinator(
            [self._filled(x[:length]) for x, length in zip(values, lengths, strict=True)]
        )

    async def _shuffled(self, values: Sequence[float]) -> Sequence[Any]:
        """In an order that is any other seed's in every run."""
        await self._everybody(None)
        order = randomness.public(len(values)).permutation(len(values))
        return self._at_coordinator([np.full(self.slots, values[i]) for i in order])


def _cut(rows: Sequence[Values], lengths: Sequence[int]) -> list[Values]:
    return [x[:n].copy() for x, n in zip(rows, lengths, strict=True)]
