"""Secret vectors in slots, and what a program may do with them.

A program is written once and run by every role with its own machine: a provider's, the coordinator's, or,
for tests and planning, one on plain numbers or one that only counts. A vector's level is public, so every
role knows by itself when a refresh is due. A matrix is a list of vectors, its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "SHARE_FRACTION",
    "Approximation",
    "Integers",
    "Matrix",
    "Operation",
    "Slots",
    "Tally",
    "Values",
    "Vector",
    "Where",
    "joined",
]

Values = npt.NDArray[np.float64]
"""Numbers in the clear, from slot 0 on; slots beyond hold zeros."""
Integers = npt.NDArray[np.object_]
"""Whole numbers of any size, from slot 0 on."""
SHARE_FRACTION = 40
"""Bits after the point of shares, unless somebody says otherwise."""


class Where(Enum):
    """Which roles hold a vector."""

    EVERYBODY = "everybody"
    """The same ciphertext at the coordinator and at every provider."""
    COORDINATOR = "coordinator"
    """The coordinator alone, which computes on it for all."""
    OWN = "own"
    """Every provider has one of its own, of which others use only the sum; the coordinator has none."""


@dataclass(frozen=True, eq=False)
class Vector:
    """A secret vector in the slots of one ciphertext, or of several."""

    where: Where
    level: int
    """How many rescalings are left before the ciphertext is at level zero."""
    held: Any
    """This role's ciphertext, or a tuple of several; None at a role that does not hold it."""
    wide: int = 1
    """How many ciphertexts it takes."""

    def __repr__(self) -> str:
        return f"Vector({self.where.value}, level={self.level})"

    def parts(self) -> list[Vector]:
        """Each ciphertext as a vector of its own."""
        if self.wide == 1:
            return [self]
        held = [None] * self.wide if self.held is None else self.held
        return [Vector(self.where, self.level, x) for x in held]


def joined(parts: Sequence[Vector]) -> Vector:
    """Vectors in one ciphertext each, at one place, as one in several."""
    if len(parts) == 1:
        return parts[0]
    held = None if parts[0].held is None else tuple(x.held for x in parts)
    return Vector(parts[0].where, min(x.level for x in parts), held, len(parts))


Matrix = list[Vector]
"""Rows."""


@dataclass(frozen=True)
class Approximation:
    """A function as a Chebyshev series on an interval: what is outside of it comes out wrong."""

    name: str
    low: float
    high: float
    coefficients: tuple[float, ...]

    @property
    def degree(self) -> int:
        """The degree of the polynomial."""
        return len(self.coefficients) - 1

    @property
    def depth(self) -> int:
        """Levels that evaluating it takes: the paper's ceil(1 + log2 d), the change of interval included."""
        return 1 + int(np.ceil(np.log2(self.degree + 1)))


class Operation(Enum):
    """What is counted."""

    ADD = "additions"
    WEIGH = "products with clear numbers"
    MULTIPLY = "products of ciphertexts"
    ROTATE = "rotations"
    RELINEARISE = "relinearisations"
    RESCALE = "rescalings"
    REFRESH = "refreshes"
    RERANDOMISE = "re-randomisations"
    SEND = "ciphertexts sent"


@dataclass
class Tally:
    """Operations of one role by kind, in all and for each named part of the program."""

    total: Counter[Operation] = field(default_factory=Counter)
    parts: dict[str, Counter[Operation]] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def add(self, operation: Operation, times: int = 1) -> None:
        """Count an operation, for every part that is open."""
        self.total[operation] += times
        for name in self._open:
            self.parts[name][operation] += times

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what happens inside under this name too."""
        self.parts.setdefault(name, Counter())
        self._open.append(name)
        try:
            yield
        finally:
            self._open.remove(name)


class Slots(ABC):
    """What a program may do with vectors in slots.

    Local verbs work where their operands are held, and make an empty vector of the right level elsewhere. Of
    operands at different places, the result is OWN if one is, else COORDINATOR if one is. A vector in one
    ciphertext stands beside one in several as often as it takes; clear numbers are cut.
    """

    slots: int
    """How many numbers a vector holds (the paper's t)."""
    fresh_level: int
    """The level after a refresh."""
    lowest: int
    """The lowest level at which a refresh is possible; fresh_level - lowest is the paper's lambda."""
    n_providers: int
    tally: Tally

    # ---- local ----

    @abstractmethod
    def add(self, *xs: Vector) -> Vector:
        """The sum of vectors."""

    @abstractmethod
    def subtract(self, x: Vector, y: Vector) -> Vector:
        """x - y."""

    @abstractmethod
    def plus(self, x: Vector, values: Values) -> Vector:
        """A vector plus public numbers."""

    @abstractmethod
    def scaled(self, x: Vector, number: float) -> Vector:
        """A vector times one public number: an integer of few bits costs no level, anything else one."""

    @abstractmethod
    def weighted(self, x: Vector, values: Values) -> Vector:
        """Every slot times a public number of its own; one level."""

    @abstractmethod
    def own_inner(self, terms: Sequence[tuple[Vector, Values | None]], wide: int = 1) -> Vector:
        """The sum of vectors times this provider's own clear numbers (None at other roles): OWN; one level.

        ``wide``: how many ciphertexts the clear numbers take. One rescaling of each in all. What leaves of it
        is re-randomised by :meth:`total`.
        """

    @abstractmethod
    def times(self, x: Vector, y: Vector) -> Vector:
        """The slotwise product; one level."""

    @abstractmethod
    def inner(self, pairs: Sequence[tuple[Vector, Vector | Values]]) -> Vector:
        """The sum of slotwise products (with public numbers, where the second is clear); one level.

        Relinearised and rescaled once, after adding up (the paper's lazy form).
        """

    @abstractmethod
    def rotate(self, x: Vector, steps: int) -> Vector:
        """Cyclic rotation of all slots to the left (to the right, if negative), by powers of two."""

    @abstractmethod
    def polynomial(self, x: Vector, approximation: Approximation) -> Vector:
        """The approximation in every slot; its depth in levels."""

    @abstractmethod
    def at_coordinator(self, x: Vector) -> Vector:
        """The same vector, for the coordinator alone to go on with: providers let it go."""

    @abstractmethod
    def at_providers(self, x: Vector) -> Vector:
        """A vector that everybody has, for every provider to go on with by itself: OWN."""

    # ---- together ----

    @abstractmethod
    async def encrypted_total(self, rows: Sequence[Values] | None, count: int, wide: int = 1) -> Matrix:
        """The sum over providers of their own clear rows (None at the coordinator), encrypted there."""

    @abstractmethod
    async def total(self, rows: Matrix) -> Matrix:
        """The sum over providers of OWN rows (the paper's Xi), re-randomised as they leave; there."""

    @abstractmethod
    async def broadcast(self, rows: Matrix) -> Matrix:
        """Rows of the coordinator, for everybody."""

    @abstractmethod
    async def refresh(self, rows: Matrix) -> Matrix:
        """Rows of the coordinator, or of everybody, at the fresh level; every provider takes part. There."""

    @abstractmethod
    async def opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        """So many first numbers of rows for the receivers only, flooded with noise; None for everybody else.

        The other slots are set to zero before, which takes a level.
        """

    @abstractmethod
    async def opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values] | None:
        """So many first numbers of every provider's OWN rows, for itself alone; one level as well."""

    @abstractmethod
    async def to_shares(
        self, rows: Matrix, lengths: Sequence[int], fraction: int = SHARE_FRACTION
    ) -> list[Integers] | None:
        """Every provider's own part of rows of the coordinator or of everybody: whole numbers.

        They add up to the numbers times 2^fraction, rounded (the paper's protocol 1: decryption under masks).
        The coordinator has no part. Counted as a refresh.
        """

    @abstractmethod
    async def from_shares(
        self,
        shares: Sequence[Integers] | None,
        lengths: Sequence[int],
        modulus: int,
        fraction: int = SHARE_FRACTION,
    ) -> Matrix:
        """Rows of the coordinator from what providers have of them, which add up modulo a number."""

    @abstractmethod
    async def shuffled(self, values: Sequence[float]) -> Matrix:
        """Public numbers, encrypted in an order that nobody knows; each in every slot of a row. There."""

    # ---- what follows from these ----

    async def room(self, rows: Matrix, levels: int) -> Matrix:
        """The rows, those with fewer levels left above the lowest than asked for refreshed together."""
        due = [i for i, x in enumerate(rows) if x.level - self.lowest < levels]
        if not due:
            return list(rows)
        fresh = await self.refresh([rows[i] for i in due])
        out = list(rows)
        for i, x in zip(due, fresh, strict=True):
            out[i] = x
        return out
