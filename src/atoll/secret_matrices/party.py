"""The course of a product, as far as provider and coordinator have it in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from atoll.crypto.products import Integers, Ring
from atoll.randomness import fresh_seed
from atoll.secret_matrices import threshold as threshold_
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.courses import (
    Course,
    Left,
    digest_of,
    goes_ahead,
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


class RoleMachine(LocalMachine):
    """The course of a product, as far as provider and coordinator have it in common."""

    def _key_common(self, family: str) -> bytes:
        return digest_of(self.session, "key", family)

    def _common(self, step: int, ring: Ring) -> bytes:
        return digest_of(self.session, "common", ring.name, step)

    def _seed(self, what: str, step: int) -> bytes:
        return self.record(f"{what} {step}", fresh_seed)

    async def _one_round(self, jobs: Sequence[Job]) -> list[Shared]:
        groups = [concerned(self.all_providers, job) for job in jobs]
        all_widths = [
            widths_for(len(group), job, precisions=self.precisions)
            for job, group in zip(jobs, groups, strict=True)
        ]
        wanted = [left for made in zip(jobs, all_widths, groups, strict=True) for left in lefts(*made)]
        self._begin(groups)
        missing = [(left, self.next_step()) for left in to_encrypt(wanted)]
        for left, _ in missing:
            left.sent()
        courses = [
            Course(job, widths, group, self.next_step(), goes_ahead(job, widths, group))
            for job, widths, group in zip(jobs, all_widths, groups, strict=True)
        ]
        await self._encrypt_all(missing, courses)
        shares = await self._multiply_all(courses)
        return [self._result(course, shares.get(course.step)) for course in courses]

    def _begin(self, groups: Sequence[Group]) -> None:
        """Products of these groups follow."""

    def _members(self, group: Group) -> list[Address]:
        return [p for p in self.providers if str(p) in group]

    def _carrier(self, group: Group) -> str:
        return str(self._members(group)[0])

    def _told(self, course: Course) -> Group:
        """Who is sent the masked total."""
        return course.group if course.job.ahead else frozenset({self._carrier(course.group)})

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
            shown=self._told(course),
            carried=self._carried(course),
        )

    def _carried(self, course: Course) -> Carried | None:  # noqa: ARG002  providers have one
        return None

    @abstractmethod
    async def _encrypt_all(self, wanted: Sequence[tuple[Left, int]], courses: Sequence[Course]) -> None:
        """Encrypt left matrices, each in its step, under their groups' keys, and beside them send the second
        halves that go ahead; the ciphertexts go into the matrices' caches."""

    @abstractmethod
    async def _multiply_all(self, courses: Sequence[Course]) -> dict[int, Integers]:
        """Multiply, refresh, and return this role's share of each result, by step."""

    async def dealt(self, matrices: Sequence[Shared], threshold: int) -> list[Shared]:
        return await threshold_.deal(self, matrices, threshold)

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        if x.dealt is not None:
            return await threshold_.release(self, x.dealt, receivers)
        return await release(self, x, receivers)
