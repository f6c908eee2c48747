"""The course of a product, as far as provider and coordinator have it in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import numpy as np

from atoll.crypto.products import Integers, Ring
from atoll.errors import ParameterError
from atoll.randomness import fresh_seed
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.courses import (
    Course,
    Left,
    digest_of,
    lefts,
    to_encrypt,
)
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.machine import Floats, Group, Job, Shared, concerned
from atoll.secret_matrices.openings import (
    release,
)
from atoll.secret_matrices.widths import widths_for
from atoll.study.address import Address


@dataclass
class Chain:
    """Rounds of products that were recorded, and the public parts of those that are made."""

    rounds: list[list[Course]] = field(default_factory=list)
    totals: dict[int, Integers] = field(default_factory=dict)


def unchainable(what: str) -> ParameterError:
    """A chain that would need what the coordinator and one provider know alone."""
    return ParameterError(
        f"{what}: a chain of products begins with matrices that providers know",
        hint="begin the chain earlier, or multiply in rounds of their own",
    )


class RoleMachine(LocalMachine):
    """The course of a product, as far as provider and coordinator have it in common."""

    _chain: Chain | None = None
    """While a program is recorded."""

    def _key_common(self, family: str) -> bytes:
        return digest_of(self.session, "key", family)

    def _common(self, step: int, ring: Ring) -> bytes:
        return digest_of(self.session, "common", ring.name, step)

    def _seed(self, what: str, step: int) -> bytes:
        return self.record(f"{what} {step}", fresh_seed)

    async def chained(self, program: Awaitable[Sequence[Shared]]) -> list[Shared]:
        """See :mod:`chains`. What goes on beside waits until the chain is made."""
        beside, self._beside = self._beside, ()
        chain = self._chain = Chain()
        try:
            results = await program
        finally:
            self._chain, self._beside = None, beside
        courses = [course for round_ in chain.rounds for course in round_]
        wanted = [left for course in courses for left in lefts(course.job, course.widths, course.group)]
        self._begin([self.all_providers])
        missing = to_encrypt(wanted)
        await self._encrypt_all(missing, whole=False)
        for left in missing:
            left.sent()
        await self._prepare_all(courses)
        await self._run(chain.rounds, chain.totals)
        return [
            Shared(x.shape, x.fraction, x.bits, await self._owned(x), self.all_providers, x.norm_bits)
            for x in results
        ]

    async def _recorded(self, chain: Chain, jobs: Sequence[Job]) -> list[Shared]:
        """The results of products that will be made: a provider's share of them is known."""
        for job in jobs:
            self._check_chainable(job)
        courses = [
            Course(
                job,
                widths_for(self.n_providers, job, precisions=self.precisions),
                self.all_providers,
                self.next_step(),
            )
            for job in jobs
        ]
        chain.rounds.append(courses)
        return [self._result(course, await self._masks(course)) for course in courses]

    def _check_chainable(self, job: Job) -> None:
        if job.plain is not None and job.plain.carrier is not None:
            raise unchainable(job.name)
        for x in (matrix for term in job.terms for matrix in term):
            if not self._public_here(x) or (x.known and x.carrier is not None):
                raise unchainable(job.name)

    def _public_here(self, x: Shared) -> bool:  # noqa: ARG002  the coordinator knows no public part
        return True

    async def _masks(self, course: Course) -> Integers | None:  # noqa: ARG002  providers mask
        """This role's share of a product that is not made yet."""
        return None

    @abstractmethod
    async def _prepare_all(self, courses: Sequence[Course]) -> None:
        """Make the second halves of all products of a chain, as far as nobody's data are in them."""

    @abstractmethod
    async def _run(self, rounds: Sequence[Sequence[Course]], totals: dict[int, Integers]) -> None:
        """Make the products of a chain, round by round."""

    async def _owned(self, x: Shared) -> Integers:
        """This role's share of what a chain made: the carrier's has the public part in it."""
        return np.zeros_like(x.share)

    async def _one_round(self, jobs: Sequence[Job]) -> list[Shared]:
        if self._chain is not None:
            return await self._recorded(self._chain, jobs)
        groups = [concerned(self.all_providers, job) for job in jobs]
        all_widths = [
            widths_for(len(group), job, precisions=self.precisions)
            for job, group in zip(jobs, groups, strict=True)
        ]
        wanted = [left for made in zip(jobs, all_widths, groups, strict=True) for left in lefts(*made)]
        self._begin(groups)
        missing = to_encrypt(wanted)
        await self._encrypt_all(missing)
        for left in missing:
            left.sent()
        courses = [
            Course(job, widths, group, self.next_step())
            for job, widths, group in zip(jobs, all_widths, groups, strict=True)
        ]
        shares = await self._multiply_all(courses)
        return [self._result(course, shares.get(course.step)) for course in courses]

    def _begin(self, groups: Sequence[Group]) -> None:
        """Products of these groups follow."""

    def _senders(self, job: Job) -> list[Address]:
        """Who has a part of the right sides, or something to add."""
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(str(p) in y.holders for y in matrices)]

    def _members(self, group: Group) -> list[Address]:
        return [p for p in self.providers if str(p) in group]

    def _carrier(self, group: Group) -> str:
        return str(self._members(group)[0])

    def _result(self, course: Course, share: Integers | None) -> Shared:
        y, words = course.widths.layouts[0], course.widths.clearing.share_words
        if share is None:
            share = np.zeros((y.rows, y.cols, words), np.uint64)
        return Shared(
            (y.rows, y.cols),
            course.job.fraction,
            course.job.bits,
            share,
            course.group | {str(self.coordinator)},
            carrier=self._carrier(course.group),
            carried=self._carried(course),
        )

    def _carried(self, course: Course) -> Carried | None:  # noqa: ARG002  carriers have one
        return None

    @abstractmethod
    async def _encrypt_all(self, wanted: Sequence[Left], *, whole: bool = True) -> None:
        """Encrypt left matrices under their groups' keys; the ciphertexts go into the matrices' caches.

        Unless ``whole``, without the coordinator's part.
        """

    @abstractmethod
    async def _multiply_all(self, courses: Sequence[Course]) -> dict[int, Integers]:
        """Multiply, refresh, and return this role's share of each result, by step."""

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        return await release(self, x, receivers)
