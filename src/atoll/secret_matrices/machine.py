"""Secret matrices, and the machine that computes on them.

A program is written once and run by every role with its own machine: a provider's, the coordinator's,
or, for tests and planning, a simulation. Whatever a program sees of a secret matrix is public: its
shape, its scale and its bound. Linear steps are local; products and openings travel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from atoll.secret_matrices.coefficients import Coefficient, Floats

__all__ = [
    "EVERY_PRECISION",
    "Beside",
    "Coefficient",
    "Cut",
    "Floats",
    "Group",
    "Job",
    "Machine",
    "Precision",
    "Rounds",
    "Shared",
    "concerned",
]


@dataclass(frozen=True, eq=False)
class Shared:
    """A secret matrix of integers / 2^fraction, each of magnitude below 2^bits.

    ``share`` is what this role holds of it; the shares of all roles add up to the matrix. ``holders``
    says (publicly) whose shares may differ from zero. ``norm_bits`` bounds the logarithm of the
    Frobenius norm where that is known to be better than what the entries give.
    """

    shape: tuple[int, int]
    fraction: int
    bits: int
    share: Any
    holders: frozenset[str]
    norm_bits: int | None = None
    known: bool = False
    """Whether a share is the holder's own data, within the bounds, rather than a wide random share."""
    cache: dict[Any, Any] = field(default_factory=dict)
    """Encodings and ciphertexts of this matrix, made once."""
    carrier: str | None = None
    """The provider that answers for the coordinator's part, if the coordinator has one: it multiplies by it,
    opens it with its own and says its fingerprints."""
    shown: frozenset[str] = frozenset()
    """The providers that know that part: its carrier, or all members of the group."""
    carried: Any = None
    """That part, at those who know it (a :class:`Carried`)."""
    dealt: Any = None
    """What this role holds of it where some of the providers are enough to release it (:mod:`threshold`)."""

    def __repr__(self) -> str:
        return f"Shared({self.shape[0]} x {self.shape[1]}, fraction={self.fraction}, bits={self.bits})"

    def times_power_of_two(self, exponent: int) -> Shared:
        """The matrix times 2^exponent: another scale for the same integers."""
        norm = None if self.norm_bits is None else self.norm_bits + exponent
        fraction, bits = self.fraction - exponent, self.bits + exponent
        return replace(self, fraction=fraction, bits=bits, norm_bits=norm, cache={})


class Precision(Enum):
    """How precise the products of a program are: the machine makes one key for each precision.

    A product is of low precision if its fraction, its bound and the bits of its right side are 55 or fewer
    together. The machine finds out by itself; a program only says beforehand which of the two it has.
    """

    LOW = "low"
    HIGH = "high"


EVERY_PRECISION = (Precision.LOW, Precision.HIGH)


class Cut(NamedTuple):
    """How a left matrix was cut into blocks and encrypted, for another product to use it as it is."""

    precision: Precision
    blocks: Any
    shift: int


@dataclass(frozen=True)
class Job:
    """The sum of the products of the pairs (plus ``plain``), rounded to ``fraction``.

    Whoever writes a job proves |result| < 2^bits: what is beyond would be disclosed. ``right_uses``
    tells how often the right side will be used again, which decides how it is cut into blocks.
    """

    terms: tuple[tuple[Shared, Shared], ...]
    fraction: int
    bits: int
    name: str
    plain: Shared | None = None
    right_uses: int = 1
    cut: Cut | None = None
    """How the left matrix is encrypted for several products (see :mod:`widths`); None: as suits this one."""
    entrywise: bool = False
    """Whether left sides are columns, and every entry is multiplied by its own row of the right side only."""
    ahead: bool = False
    """Whether second halves may travel beside the encryption of the left sides (see :mod:`roles`): two
    messages one after the other less. The right sides are then multiplied with each half by itself, and all
    members of the group are sent the masked total."""


Group = frozenset[str]
"""Providers who hold parts of the factors of a product; it is made under the key of these."""


def concerned(providers: Group, job: Job) -> Group:
    """The providers with a share of a product's factors; all providers, if there is only one."""
    matrices = [matrix for term in job.terms for matrix in term] + ([job.plain] if job.plain else [])
    group = providers & frozenset().union(*(matrix.holders for matrix in matrices))
    return group if len(group) > 1 else providers


T = TypeVar("T")
Rounds = Generator[Sequence[Job], list[Shared], T]
"""Products in rounds: yields the jobs of one, is sent what they made, and returns what the last leads to."""


class Beside(Generic[T]):
    """Rounds of products that nothing waits for yet: each joins the next round that the program makes."""

    value: T

    def __init__(self, rounds: Rounds[T]) -> None:
        self._rounds = rounds
        self.due: Sequence[Job] = ()
        """The jobs of its next round; none once it is done."""
        self._advance(None)

    def take(self, made: list[Shared]) -> None:
        """What came of the jobs that were due."""
        self._advance(made)

    def _advance(self, made: list[Shared] | None) -> None:
        try:
            self.due = next(self._rounds) if made is None else self._rounds.send(made)
        except StopIteration as end:
            self.due, self.value = (), end.value


class Machine(ABC):
    """What a program may do with secret matrices."""

    n_providers: int
    _beside: tuple[Beside[Any], ...] = ()
    precisions: tuple[Precision, ...] = EVERY_PRECISION
    """Of the products that there are keys for, the lower one first."""

    async def set_up(self, precisions: Sequence[Precision] = EVERY_PRECISION) -> None:
        """Make keys for products of these precisions; a machine without keys only remembers them."""
        self.precisions = tuple(precisions)

    def forget(self, x: Shared) -> None:
        """Empty the cache of encodings and ciphertexts of a matrix that no later product uses."""
        x.cache.clear()

    @abstractmethod
    def private(
        self,
        owner: str | None,
        values: Any,
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        """A matrix of which every provider knows a summand (owner None), or one provider the whole.

        ``values`` are this role's integers (at ``fraction``); None where it knows nothing.
        """

    async def products(self, jobs: Sequence[Job]) -> list[Shared]:
        """Independent sums of products, in one round; what goes on beside takes its next step in it."""
        beside = [(course, course.due) for course in self._beside]
        made = await self._one_round([*jobs, *(job for _, due in beside for job in due)])
        first = len(jobs)
        for course, due in beside:
            course.take(made[first : first + len(due)])
            first += len(due)
        self._beside = tuple(course for course in self._beside if course.due)
        return made[: len(jobs)]

    def beside(self, rounds: Rounds[T]) -> Beside[T]:
        """Begin rounds of products beside those of the program, until :meth:`finished` asks for them."""
        course = Beside(rounds)
        if course.due:
            self._beside += (course,)
        return course

    async def finished(self, course: Beside[T]) -> T:
        """What a course beside leads to; its last rounds, if there are any left."""
        while course.due:
            await self.products([])
        return course.value

    @abstractmethod
    async def _one_round(self, jobs: Sequence[Job]) -> list[Shared]:
        """Independent sums of products."""

    async def product(self, *terms: tuple[Shared, Shared], **options: Any) -> Shared:
        """One sum of products; options as in :class:`Job`."""
        return (await self.products([Job(terms, **options)]))[0]

    @abstractmethod
    def combine(
        self,
        terms: Sequence[tuple[Coefficient, Shared]],
        *,
        identity: Coefficient = 0.0,
        bits: int,
        fraction: int | None = None,
    ) -> Shared:
        """sum of coefficient times matrix, plus a multiple of the identity, rounded; local."""

    @abstractmethod
    def transpose(self, x: Shared) -> Shared:
        """The transpose."""

    @abstractmethod
    def hstack(self, matrices: Sequence[Shared]) -> Shared:
        """Matrices of one scale side by side."""

    @abstractmethod
    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        """A block of a matrix."""

    @abstractmethod
    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        """A public matrix times a secret one, rounded; local."""

    @abstractmethod
    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:
        """Every entry times its own public weight, rounded; local."""

    @abstractmethod
    def plus_public(self, x: Shared, values: Floats) -> Shared:
        """The matrix plus a public one; local."""

    @abstractmethod
    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        """The same entries, row by row, in another shape."""

    def vstack(self, matrices: Sequence[Shared]) -> Shared:
        """Matrices of one scale, one above the other."""
        return self.transpose(self.hstack([self.transpose(x) for x in matrices]))

    @abstractmethod
    def trace(self, x: Shared, *, bits: int) -> Shared:
        """The sum of the diagonal; local."""

    @abstractmethod
    def diagonal(self, x: Shared) -> Shared:
        """The diagonal as a column; local."""

    @abstractmethod
    def diag(self, x: Shared) -> Shared:
        """The matrix with this column as its diagonal and zeros elsewhere; local."""

    @abstractmethod
    def triangle(self, x: Shared) -> Shared:
        """The upper triangle of a symmetric matrix, row by row, as a column; local."""

    async def opened_symmetric(self, x: Shared, *, smudge_bits: int) -> Floats:
        """(x + x^T) / 2, for every role.

        The products that made x rounded its two halves differently. That difference is no part of the
        result, and who knows all other roundings could compare it with guesses: so it is never opened.
        """
        half = self.combine([(0.5, x), (0.5, self.transpose(x))], bits=x.bits)
        opened = await self.opened(self.triangle(half), smudge_bits=smudge_bits)
        out = np.empty(x.shape)
        upper = np.triu_indices(x.shape[0])
        out[upper] = opened[:, 0]
        out.T[upper] = opened[:, 0]
        return out

    @abstractmethod
    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:
        """The matrix, for every role, after every provider added uniform noise of so many bits."""

    @abstractmethod
    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:
        """The matrix plus uniform noise of so many bits from every provider; local."""

    async def dealt(self, matrices: Sequence[Shared], threshold: int) -> list[Shared]:  # noqa: ARG002
        """The same matrices, of which any ``threshold`` of the providers can release each from now on; a
        machine without parties that could leave has nothing to deal."""
        return list(matrices)

    @abstractmethod
    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        """The matrix for the receivers only; None for everybody else."""

    @abstractmethod
    async def same(self, values: Floats, *, recomputed: bool = True) -> Floats:
        """The coordinator's version of public numbers that every role computed.

        Processors round differently; shares weighted by different numbers do not add up any more. Numbers
        that differ by more than rounding are refused, unless the caller checks them itself (``recomputed``
        false), because they are not unique.
        """
