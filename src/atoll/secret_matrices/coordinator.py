"""The coordinator's machine: it has no key. It adds, relays, and knows the masked results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Buffer, Integers
from atoll.errors import MessageError
from atoll.secret_matrices import blinds, messages
from atoll.secret_matrices.courses import (
    Course,
    Left,
    digest_of,
    for_step,
)
from atoll.secret_matrices.machine import EVERY_PRECISION, Floats, Job, Precision, Shared
from atoll.secret_matrices.openings import (
    added_up,
    floats,
    share_words,
)
from atoll.secret_matrices.party import RoleMachine
from atoll.secret_matrices.sessions import collected_seeds
from atoll.secret_matrices.widths import rings_for
from atoll.study.address import Address


class Coordinator(RoleMachine):
    """The coordinator's machine: no key. It adds, relays, and knows the masked results."""

    async def set_up(self, precisions: Sequence[Precision] = EVERY_PRECISION) -> None:
        """Collect seeds and key parts."""
        self.precisions = tuple(precisions)
        seeds = await collected_seeds(self.net, self.providers)
        self.session = digest_of(self.digest, *seeds)
        keys = await self.net.gather(messages.KeyParts, self.providers)
        due = [rings_for(one)[-1].poly_size for one in precisions]
        wrong = [str(p) for p in self.providers if list(map(len, keys[p].parts)) != due]
        if wrong:
            raise MessageError(f"{', '.join(wrong)} sent parts of other keys than this run has")
        everybody = memoryview(b"".join(part for p in self.providers for part in keys[p].parts))
        await self.net.broadcast(self.providers, messages.AllKeyParts(everybody))

    async def check(self, *, last: bool = False) -> None:
        """The coordinator does nothing here: providers compare among themselves."""

    async def _encrypt_all(self, wanted: Sequence[tuple[Left, int]], courses: Sequence[Course]) -> None:
        ahead = all(course.ahead for course in courses)
        for left, step in wanted:
            members, x = self._members(left.group), left.matrix
            arrived = await self.net.gather(messages.EncryptedShare, members)
            parts = [for_step(arrived[p], step) for p in members]
            # Where all who read it know this role's part, they add it themselves.
            public = x.share if self.me in x.holders and not (left.is_shown and ahead) else None
            body = await self.net.compute(go.assemble, left.ring, public, left.shift, left.layout, parts)
            await self.net.broadcast(self._members(left.readers), messages.EncryptedMatrix(step, body))
        self._ahead = {course.step: await self._added_seconds(course) for course in courses if course.ahead}

    async def _multiply_all(self, courses: Sequence[Course]) -> dict[int, Integers]:
        sums = [
            (course, self._ahead.pop(course.step) if course.ahead else await self._added_products(course))
            for course in courses
        ]
        shares, shown = {}, []
        for course, total in sums:
            blind = await self._add_shares(course, total)
            # One that is wider than its masks ends the run here, before a provider is shown it.
            shares[course.step] = await self.net.compute(total.clear, course.widths.clearing)
            shown.append(messages.MaskedTotal(course.step, total.total(), blind))
        # Whoever still owes a share of this round has seen none of its totals.
        for (course, _), message in zip(sums, shown, strict=True):
            await self.net.broadcast(self._members(self._told(course)), message)
        return shares

    async def _add_shares(self, course: Course, total: go.ProductSum) -> bytes:
        """Everybody's masked shares; the sum of their blinds."""
        ring, parts = course.ring, list[bytes]()

        def add(_: Address, message: messages.MaskedShare) -> None:
            total.add_share(for_step(message, course.step))
            parts.append(message.blind)

        await self.net.fold(messages.MaskedShare, self._members(course.group), add)
        return blinds.added(ring, parts)

    async def _added_products(self, course: Course) -> go.ProductSum:
        total = go.ProductSum(course.widths.ring, course.widths.layouts[0])
        await self._fold(messages.ProductPart, self._senders(course.job), total.add, course.step)
        second = await self.net.compute(total.second)
        await self.net.broadcast(self._members(course.group), messages.SecondHalves(course.step, second))
        return total

    async def _added_seconds(self, course: Course) -> go.ProductSum:
        """The second halves that go ahead. This role adds nothing: providers know its part, and add it."""
        widths, step = course.widths, course.step
        total = go.ProductSum(widths.ring, widths.layouts[0])
        await self._fold(messages.SecondPart, self._senders(course.job), total.add_second, step)
        second = await self.net.compute(total.second)
        await self.net.broadcast(self._members(course.group), messages.SecondHalves(step, second))
        return total

    def _senders(self, job: Job) -> list[Address]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(str(p) in y.holders for y in matrices)]

    async def _fold(
        self,
        kind: type[messages.ProductPart | messages.SecondPart],
        senders: Sequence[Address],
        add: Callable[[Buffer], None],
        step: int,
    ) -> None:
        await self.net.fold(kind, senders, lambda _, message: add(for_step(message, step)))

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:  # noqa: ARG002  providers smudge
        step = self.next_step()
        arrived = await self.net.gather(messages.OpenedShare, self.providers)
        self.has_opened = True
        words = added_up([share_words(arrived[p], step, x) for p in self.providers])
        await self.net.broadcast(self.providers, messages.OpenedMatrix(step, words))
        return floats(words, x.fraction)

    async def same(self, values: Floats, *, recomputed: bool = True) -> Floats:  # noqa: ARG002  they check
        step = self.next_step()
        values = self.record.kept(f"public numbers {step}", np.ascontiguousarray(values))
        await self.net.broadcast(self.providers, messages.PublicNumbers(step, values))
        return values
