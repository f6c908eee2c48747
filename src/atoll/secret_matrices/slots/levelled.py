"""What every machine keeps in the same way: levels, whereabouts, and the count of its operations.

A machine fills in the verbs with a leading underscore. They get what this role holds, and nothing else: where
a role holds nothing, they are not called. So a machine on plain numbers, one that only counts, and the
encrypted one count the same, and find the same program out of levels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atoll.errors import RunError
from atoll.secret_matrices.slots.machine import (
    SHARE_FRACTION,
    Approximation,
    Integers,
    Matrix,
    Operation,
    Slots,
    Tally,
    Values,
    Vector,
    Where,
)

__all__ = ["Levelled", "polynomial_operations", "rotations_of", "whole"]

OPENING_ROOM = 2
"""An opening takes a level, and is made at one at least."""
LARGEST_INTEGER = 2**19
"""Whole public factors up to here need no rescaling."""


def whole(number: float) -> bool:
    """Whether a vector times this public number stays at its level."""
    return abs(number) <= LARGEST_INTEGER and float(number).is_integer()


def rotations_of(steps: int, slots: int) -> int:
    """How many rotations by powers of two make up one: keys exist for those only."""
    return (steps % slots).bit_count()


def polynomial_operations(degree: int) -> dict[Operation, int]:
    """Operations of a Chebyshev series by baby steps and giant steps, the change of interval included.

    T_2 .. T_(2^s - 1) and T_(2^i), then pieces of 2^s terms, which pairwise products join into one. A product
    of that tree is relinearised only where it is multiplied again, and at the end.
    """
    bits = degree.bit_length()
    split = bits >> 1
    if 2**split + 2 ** (bits - split) + 1 > 2 ** (split + 1) + 2 ** (bits - split - 1):
        split += 1
    powers = (bits - 1) + (2**split - 1 - split)
    pieces = -(-(degree + 1) // 2**split)
    return {
        Operation.ADD: 1 + 2 * powers + (degree + 1) + (pieces - 1),
        Operation.WEIGH: 1 + (degree + 1 - pieces),
        Operation.MULTIPLY: powers + pieces - 1,
        Operation.RELINEARISE: powers + pieces // 2,
        Operation.RESCALE: 1 + powers + pieces,
    }


class Levelled(Slots):
    """The bookkeeping of a machine; what a role holds is up to the machine."""

    def __init__(self, *, leads: bool, n_providers: int, slots: int, fresh_level: int, lowest: int) -> None:
        self.leads = leads
        self.n_providers = n_providers
        self.slots = slots
        self.fresh_level = fresh_level
        self.lowest = lowest
        self.tally = Tally()

    def _here(self, where: Where) -> bool:
        if where is Where.EVERYBODY:
            return True
        return self.leads == (where is Where.COORDINATOR)

    def _made(
        self, operands: Sequence[Vector], depth: int, counts: dict[Operation, int], make: Callable[[], Any]
    ) -> Vector:
        """What a local verb makes of its operands, counted where it happens."""
        places = {x.where for x in operands}
        if places >= {Where.OWN, Where.COORDINATOR}:
            raise RunError("a provider's own vector and one of the coordinator's are nowhere together")
        where = next((w for w in (Where.OWN, Where.COORDINATOR) if w in places), Where.EVERYBODY)
        level = min(x.level for x in operands) - depth
        if level < 0:
            raise RunError(
                f"a step needs {depth} levels, and {level + depth} are left", hint="refresh before: room()"
            )
        if not self._here(where):
            return Vector(where, level, None)
        for operation, times in counts.items():
            if times:
                self.tally.add(operation, times)
        return Vector(where, level, make())

    # ---- local ----

    def add(self, *xs: Vector) -> Vector:
        if len(xs) == 1:
            return xs[0]
        return self._made(xs, 0, {Operation.ADD: len(xs) - 1}, lambda: self._add([x.held for x in xs]))

    def subtract(self, x: Vector, y: Vector) -> Vector:
        return self._made([x, y], 0, {Operation.ADD: 1}, lambda: self._subtract(x.held, y.held))

    def plus(self, x: Vector, values: Values) -> Vector:
        return self._made([x], 0, {Operation.ADD: 1}, lambda: self._plus(x.held, values))

    def scaled(self, x: Vector, number: float) -> Vector:
        exact = whole(number)
        counts = {Operation.WEIGH: 1, Operation.RESCALE: 0 if exact else 1}
        return self._made([x], 0 if exact else 1, counts, lambda: self._scaled(x.held, number))

    def weighted(self, x: Vector, values: Values) -> Vector:
        counts = {Operation.WEIGH: 1, Operation.RESCALE: 1}
        return self._made([x], 1, counts, lambda: self._inner([(x.held, values)]))

    def own_inner(self, terms: Sequence[tuple[Vector, Values | None]]) -> Vector:
        counts = {Operation.WEIGH: len(terms), Operation.ADD: len(terms) - 1, Operation.RESCALE: 1}
        x = self._made([x for x, _ in terms], 1, {}, lambda: None)
        if x.where is Where.COORDINATOR:
            raise RunError("a provider cannot multiply what only the coordinator has", hint="broadcast it")
        if self.leads:
            return Vector(Where.OWN, x.level, None)
        for operation, times in counts.items():
            self.tally.add(operation, times)
        return Vector(Where.OWN, x.level, self._inner([(x.held, values) for x, values in terms]))

    def times(self, x: Vector, y: Vector) -> Vector:
        return self.inner([(x, y)])

    def inner(self, pairs: Sequence[tuple[Vector, Vector | Values]]) -> Vector:
        operands = [x for x, _ in pairs] + [y for _, y in pairs if isinstance(y, Vector)]
        products = len(operands) - len(pairs)
        counts = {
            Operation.MULTIPLY: products,
            Operation.WEIGH: len(pairs) - products,
            Operation.ADD: len(pairs) - 1,
            Operation.RELINEARISE: min(products, 1),
            Operation.RESCALE: 1,
        }
        return self._made(
            operands,
            1,
            counts,
            lambda: self._inner([(x.held, y.held if isinstance(y, Vector) else y) for x, y in pairs]),
        )

    def rotate(self, x: Vector, steps: int) -> Vector:
        steps %= self.slots
        if not steps:
            return x
        counts = {Operation.ROTATE: rotations_of(steps, self.slots)}
        return self._made([x], 0, counts, lambda: self._rotate(x.held, steps))

    def polynomial(self, x: Vector, approximation: Approximation) -> Vector:
        counts = polynomial_operations(approximation.degree)
        return self._made([x], approximation.depth, counts, lambda: self._polynomial(x.held, approximation))

    def at_coordinator(self, x: Vector) -> Vector:
        if x.where is Where.OWN:
            raise RunError("own vectors reach the coordinator as a total only")
        return Vector(Where.COORDINATOR, x.level, x.held if self.leads else None)

    # ---- together ----

    async def encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Matrix:
        if not self.leads and (rows is None or len(rows) != count):
            raise RunError(f"a provider gives {count} rows of its own to a total of so many")
        self._count_total(count)
        held = await self._encrypted_total(rows, count)
        return [Vector(Where.COORDINATOR, self.fresh_level, x) for x in held]

    async def total(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.OWN})
        self._count_total(len(rows))
        if not self.leads:
            self.tally.add(Operation.RERANDOMISE, len(rows))
        held = await self._total(rows)
        return [Vector(Where.COORDINATOR, x.level, y) for x, y in zip(rows, held, strict=True)]

    async def broadcast(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.COORDINATOR})
        if self.leads:
            self.tally.add(Operation.SEND, len(rows) * self.n_providers)
        held = await self._broadcast(rows)
        return [Vector(Where.EVERYBODY, x.level, y) for x, y in zip(rows, held, strict=True)]

    async def refresh(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        self._refreshable(rows)
        self.tally.add(Operation.REFRESH, len(rows))
        held = await self._refresh(rows)
        return [Vector(Where.COORDINATOR, self.fresh_level, x) for x in held]

    async def opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        return await self._opened(self._alone(rows, lengths), lengths, receivers)

    async def opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        self._all_at(rows, {Where.OWN})
        return await self._opened_own(self._alone(rows, lengths), lengths)

    async def to_shares(
        self, rows: Matrix, lengths: Sequence[int], fraction: int = SHARE_FRACTION
    ) -> list[Integers] | None:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        self._refreshable(rows)
        self.tally.add(Operation.REFRESH, len(rows))
        return await self._to_shares(rows, lengths, fraction)

    async def from_shares(
        self,
        shares: Sequence[Integers] | None,
        lengths: Sequence[int],
        modulus: int,
        fraction: int = SHARE_FRACTION,
    ) -> Matrix:
        self._count_total(len(lengths))
        held = await self._from_shares(shares, lengths, modulus, fraction)
        return [Vector(Where.COORDINATOR, self.fresh_level, x) for x in held]

    def _alone(self, rows: Matrix, lengths: Sequence[int]) -> Matrix:
        """Rows of which nothing is left but the slots to be opened: an opening shows all."""
        if low := [x for x in rows if x.level < OPENING_ROOM]:
            raise RunError(
                f"a vector at level {low[0].level} cannot be opened: {OPENING_ROOM} is the lowest",
                hint="refresh before: room()",
            )
        pairs = zip(rows, lengths, strict=True)
        return [x if n >= self.slots else self.weighted(x, np.ones(n)) for x, n in pairs]

    def _refreshable(self, rows: Matrix) -> None:
        low = min((x.level for x in rows), default=self.lowest)
        if low < self.lowest:
            raise RunError(f"a vector at level {low} cannot be refreshed: {self.lowest} is the lowest")

    def _count_total(self, count: int) -> None:
        if self.leads:
            self.tally.add(Operation.ADD, (self.n_providers - 1) * count)
        else:
            self.tally.add(Operation.SEND, count)

    def _all_at(self, rows: Matrix, places: set[Where]) -> None:
        if wrong := [x for x in rows if x.where not in places]:
            raise RunError(f"vectors of {sorted(w.value for w in places)} are wanted here, not {wrong[0]}")

    # ---- what a machine fills in: on what this role holds ----

    @abstractmethod
    def _add(self, xs: Sequence[Any]) -> Any: ...

    @abstractmethod
    def _subtract(self, x: Any, y: Any) -> Any: ...

    @abstractmethod
    def _plus(self, x: Any, values: Values) -> Any: ...

    @abstractmethod
    def _scaled(self, x: Any, number: float) -> Any:
        """Without rescaling where the number is :func:`whole`."""

    @abstractmethod
    def _inner(self, pairs: Sequence[tuple[Any, Any]]) -> Any:
        """The second of a pair is what is held of a vector, or clear values."""

    @abstractmethod
    def _rotate(self, x: Any, steps: int) -> Any:
        """To the left, by 0 < steps < slots."""

    @abstractmethod
    def _polynomial(self, x: Any, approximation: Approximation) -> Any: ...

    @abstractmethod
    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Any]:
        """What this role holds of the totals: None at a provider. The same below."""

    @abstractmethod
    async def _total(self, rows: Matrix) -> Sequence[Any]: ...

    @abstractmethod
    async def _broadcast(self, rows: Matrix) -> Sequence[Any]: ...

    @abstractmethod
    async def _refresh(self, rows: Matrix) -> Sequence[Any]: ...

    @abstractmethod
    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None: ...

    @abstractmethod
    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None: ...

    @abstractmethod
    async def _to_shares(
        self, rows: Matrix, lengths: Sequence[int], fraction: int
    ) -> list[Integers] | None: ...

    @abstractmethod
    async def _from_shares(
        self, shares: Sequence[Integers] | None, lengths: Sequence[int], modulus: int, fraction: int
    ) -> Sequence[Any]: ...
