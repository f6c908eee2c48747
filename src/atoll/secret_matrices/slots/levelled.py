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
    joined,
)

__all__ = [
    "LIST_LEVEL",
    "Levelled",
    "lengths_of_parts",
    "pasted",
    "polynomial_operations",
    "rotations_of",
    "whole",
]

OPENING_ROOM = 2
"""An opening takes a level, and is made at one at least."""
LIST_LEVEL = 3
"""Of a shuffled list: a number is put into its slot, what is opened is cut out, and a level is left."""
LARGEST_INTEGER = 1024
"""Public factors up to here grow a vector by no more than ten bits, and need no rescaling."""


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


def lengths_of_parts(lengths: Sequence[int], slots: int) -> list[int]:
    """So many first numbers of rows, ciphertext by ciphertext."""
    return [min(slots, n - start) for n in lengths for start in range(0, n, slots)]


def pasted(found: list[Values] | None, lengths: Sequence[int], slots: int) -> list[Values] | None:
    """Rows from what was opened of their ciphertexts."""
    if found is None:
        return None
    parts = iter(found)
    return [np.concatenate([next(parts) for _ in range(0, n, slots)]) for n in lengths]


def _held(x: Vector, i: int) -> Any:
    return x.held if x.wide == 1 else x.held[i]


def _flat(rows: Matrix) -> Matrix:
    return [part for x in rows for part in x.parts()]


def _regrouped(parts: Matrix, wide: Sequence[int]) -> Matrix:
    left = iter(parts)
    return [joined([next(left) for _ in range(count)]) for count in wide]


class Levelled(Slots):
    """The bookkeeping of a machine; what a role holds is up to the machine."""

    def __init__(
        self,
        *,
        leads: bool,
        n_providers: int,
        slots: int,
        fresh_level: int,
        lowest: int,
        verify: bool = False,
    ) -> None:
        """``verify``: providers have, and compute, all that the coordinator has and computes."""
        self.leads = leads
        self.verify = verify
        self.n_providers = n_providers
        self.slots = slots
        self.fresh_level = fresh_level
        self.lowest = lowest
        self.tally = Tally()

    def _here(self, where: Where) -> bool:
        if where is Where.EVERYBODY:
            return True
        if where is Where.COORDINATOR:
            return self.leads or self.verify
        return not self.leads

    def _made(
        self,
        operands: Sequence[Vector],
        depth: int,
        counts: dict[Operation, int],
        make: Callable[[int], Any],
        wide: int = 1,
    ) -> Vector:
        """What a local verb makes of each part of its operands, counted where it happens."""
        wide = max(wide, *(x.wide for x in operands))
        if any(x.wide not in (1, wide) for x in operands):
            raise RunError("vectors in different numbers of ciphertexts do not go together")
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
            return Vector(where, level, None, wide)
        for operation, times in counts.items():
            if times:
                self.tally.add(operation, times * wide)
        return Vector(where, level, make(0) if wide == 1 else tuple(make(i) for i in range(wide)), wide)

    def _cut(self, values: Values, i: int) -> Values:
        """The part of clear numbers for the i-th ciphertext."""
        if values.shape[-1] <= self.slots:
            return values if i == 0 else np.zeros(self.slots)
        return values[..., i * self.slots : (i + 1) * self.slots]

    def _breadth(self, values: Values) -> int:
        return max(1, -(-int(values.shape[-1]) // self.slots))

    # ---- local ----

    def add(self, *xs: Vector) -> Vector:
        if len(xs) == 1:
            return xs[0]
        return self._made(xs, 0, {Operation.ADD: len(xs) - 1}, lambda i: self._add([_held(x, i) for x in xs]))

    def subtract(self, x: Vector, y: Vector) -> Vector:
        return self._made([x, y], 0, {Operation.ADD: 1}, lambda i: self._subtract(_held(x, i), _held(y, i)))

    def plus(self, x: Vector, values: Values) -> Vector:
        one = {Operation.ADD: 1}
        return self._made(
            [x], 0, one, lambda i: self._plus(_held(x, i), self._cut(values, i)), self._breadth(values)
        )

    def scaled(self, x: Vector, number: float) -> Vector:
        exact = whole(number)
        counts = {Operation.WEIGH: 1, Operation.RESCALE: 0 if exact else 1}
        return self._made([x], 0 if exact else 1, counts, lambda i: self._scaled(_held(x, i), number))

    def weighted(self, x: Vector, values: Values) -> Vector:
        return self.inner([(x, values)])

    def own_inner(self, terms: Sequence[tuple[Vector, Values | None]], wide: int = 1) -> Vector:
        counts = {Operation.WEIGH: len(terms), Operation.ADD: len(terms) - 1, Operation.RESCALE: 1}
        x = self._made([x for x, _ in terms], 1, {}, lambda _: None, wide)
        if x.where is Where.COORDINATOR:
            raise RunError("a provider cannot multiply what only the coordinator has", hint="broadcast it")
        if self.leads:
            return Vector(Where.OWN, x.level, None, x.wide)
        for operation, times in counts.items():
            self.tally.add(operation, times * x.wide)
        made = [self._inner([(_held(y, i), self._own(v, i)) for y, v in terms]) for i in range(x.wide)]
        return Vector(Where.OWN, x.level, made[0] if x.wide == 1 else tuple(made), x.wide)

    def _own(self, values: Values | None, i: int) -> Any:
        """Only the machine that counts has none."""
        return None if values is None else self._cut(values, i)

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

        def second(y: Vector | Values, i: int) -> Any:
            return _held(y, i) if isinstance(y, Vector) else self._cut(y, i)

        wide = max((self._breadth(y) for _, y in pairs if not isinstance(y, Vector)), default=1)
        return self._made(
            operands, 1, counts, lambda i: self._inner([(_held(x, i), second(y, i)) for x, y in pairs]), wide
        )

    def rotate(self, x: Vector, steps: int) -> Vector:
        steps %= self.slots
        if not steps:
            return x
        counts = {Operation.ROTATE: rotations_of(steps, self.slots)}
        return self._made([x], 0, counts, lambda i: self._rotate(_held(x, i), steps))

    def polynomial(self, x: Vector, approximation: Approximation) -> Vector:
        counts = polynomial_operations(approximation.degree)
        return self._made(
            [x], approximation.depth, counts, lambda i: self._polynomial(_held(x, i), approximation)
        )

    def at_coordinator(self, x: Vector) -> Vector:
        if x.where is Where.OWN:
            raise RunError("own vectors reach the coordinator as a total only")
        held = x.held if self._here(Where.COORDINATOR) else None
        return Vector(Where.COORDINATOR, x.level, held, x.wide)

    def at_providers(self, x: Vector) -> Vector:
        if x.where is not Where.EVERYBODY:
            raise RunError("what not everybody has is not a provider's to go on with", hint="broadcast it")
        return Vector(Where.OWN, x.level, None if self.leads else x.held, x.wide)

    # ---- together ----

    async def encrypted_total(self, rows: Sequence[Values] | None, count: int, wide: int = 1) -> Matrix:
        if not self.leads and (rows is None or len(rows) != count):
            raise RunError(f"a provider gives {count} rows of its own to a total of so many")
        self._count_total(count * wide)
        cut = (
            None if rows is None else [self._cut(x, i) if wide > 1 else x for x in rows for i in range(wide)]
        )
        held = await self._encrypted_total(cut, count * wide)
        self._count_told(count * wide)
        made = [Vector(Where.COORDINATOR, self.fresh_level, x) for x in held]
        return _regrouped(made, [wide] * count)

    async def total(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.OWN})
        flat = _flat(rows)
        self._count_total(len(flat))
        if not self.leads:
            self.tally.add(Operation.RERANDOMISE, len(flat))
        held = await self._total(flat)
        self._count_told(len(flat))
        made = [Vector(Where.COORDINATOR, x.level, y) for x, y in zip(flat, held, strict=True)]
        return _regrouped(made, [x.wide for x in rows])

    async def broadcast(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.COORDINATOR})
        flat = _flat(rows)
        if self.leads and not self.verify:
            self.tally.add(Operation.SEND, len(flat) * self.n_providers)
        held = await self._broadcast(flat)
        made = [Vector(Where.EVERYBODY, x.level, y) for x, y in zip(flat, held, strict=True)]
        return _regrouped(made, [x.wide for x in rows])

    async def refresh(self, rows: Matrix) -> Matrix:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        self._refreshable(rows)
        flat = _flat(rows)
        self.tally.add(Operation.REFRESH, len(flat))
        made = [Vector(Where.COORDINATOR, self.fresh_level, x) for x in await self._refresh(flat)]
        return _regrouped(made, [x.wide for x in rows])

    async def opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        alone, cut = self._alone(rows, lengths)
        return pasted(await self._opened(alone, cut, receivers), lengths, self.slots)

    async def opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        self._all_at(rows, {Where.OWN})
        alone, cut = self._alone(rows, lengths)
        return pasted(await self._opened_own(alone, cut), lengths, self.slots)

    async def to_shares(
        self, rows: Matrix, lengths: Sequence[int], fraction: int = SHARE_FRACTION
    ) -> list[Integers] | None:
        self._all_at(rows, {Where.COORDINATOR, Where.EVERYBODY})
        self._refreshable(rows)
        if any(x.wide > 1 for x in rows):
            raise RunError("a vector in several ciphertexts is not taken to shares")
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

    async def shuffled(self, values: Sequence[float]) -> Matrix:
        if self.verify:
            raise RunError("who computes for itself cannot check a shuffle", hint="verify = false")
        if not self.leads:
            self.tally.add(Operation.SEND, len(values))
            self.tally.add(Operation.RERANDOMISE, len(values))
        held = await self._shuffled(values)
        return [Vector(Where.COORDINATOR, LIST_LEVEL, x) for x in held]

    def _alone(self, rows: Matrix, lengths: Sequence[int]) -> tuple[Matrix, list[int]]:
        """Ciphertexts of which nothing is left but the slots to be opened: an opening shows all."""
        if low := [x for x in rows if x.level < OPENING_ROOM]:
            raise RunError(
                f"a vector at level {low[0].level} cannot be opened: {OPENING_ROOM} is the lowest",
                hint="refresh before: room()",
            )
        cut = lengths_of_parts(lengths, self.slots)
        parts = [
            part for x, n in zip(rows, lengths, strict=True) for part in x.parts()[: -(-n // self.slots)]
        ]
        pairs = zip(parts, cut, strict=True)
        return [x if n >= self.slots else self.weighted(x, np.ones(n)) for x, n in pairs], cut

    def _refreshable(self, rows: Matrix) -> None:
        low = min((x.level for x in rows), default=self.lowest)
        if low < self.lowest:
            raise RunError(f"a vector at level {low} cannot be refreshed: {self.lowest} is the lowest")

    def _count_total(self, count: int) -> None:
        if self.leads:
            self.tally.add(Operation.ADD, (self.n_providers - 1) * count)
        else:
            self.tally.add(Operation.SEND, count)

    def _count_told(self, count: int) -> None:
        """Sums of rows that providers are told, who verify."""
        if self.leads and self.verify:
            self.tally.add(Operation.SEND, self.n_providers * count)

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

    @abstractmethod
    async def _shuffled(self, values: Sequence[float]) -> Sequence[Any]: ...
