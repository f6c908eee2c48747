"""The coordinator's machine: it has no key. It adds, relays, and knows the masked results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Buffer, Ciphertext, Integers, Layout, Ring
from atoll.errors import MessageError
from atoll.secret_matrices import messages
from atoll.secret_matrices.courses import (
    Course,
    Left,
    begin_ciphertext,
    digest_of,
    encode_right,
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
        for left, step in wanted:
            members, x = self._members(left.group), left.matrix
            arrived = await self.net.gather(messages.EncryptedShare, members)
            parts = [for_step(arrived[p], step) for p in members]
            public = x.share if self.me in x.holders else None
            body = await self.net.compute(go.assemble, left.ring, public, left.shift, left.layout, parts)
            await self.net.broadcast(self._members(left.readers), messages.EncryptedMatrix(step, body))
            x.cache[left.key] = (left.ring, left.layout, self._common(step, left.ring))
        self._ahead = {course.step: await self._added_seconds(course) for course in courses if course.ahead}

    async def _multiply_all(self, courses: Sequence[Course]) -> dict[int, Integers]:
        sums = [
            (course, self._ahead.pop(course.step) if course.ahead else await self._added_products(course))
            for course in courses
        ]
        shares = {}
        for course, total in sums:
            members = self._members(course.group)
            await self._fold(messages.MaskedShare, members, total.add_share, course.step)
            if not course.ahead:  # of others, carriers have the masked shares themselves
                await self.net.send(members[0], messages.MaskedTotal(course.step, total.total()))
            shares[course.step] = await self.net.compute(total.clear, course.widths.clearing)
        return shares

    async def _added_products(self, course: Course) -> go.ProductSum:
        total = go.ProductSum(course.widths.ring, course.widths.layouts[0])
        await self._fold(messages.ProductPart, self._senders(course.job), total.add, course.step)
        second = await self.net.compute(total.second)
        await self.net.broadcast(self._members(course.group), messages.SecondHalves(course.step, second))
        return total

    async def _added_seconds(self, course: Course) -> go.ProductSum:
        """The second halves that go ahead, and this role's own: it knows what it multiplies with, and no
        first half of it. What is added here, carriers compute too (:meth:`Provider._give_carried`)."""
        widths, step = course.widths, course.step
        total = go.ProductSum(widths.ring, widths.layouts[0])
        pairs = [
            (await self._begun(course.left(i)), await self._right(widths.ring, y, widths.layouts[i]))
            for i, (_, y) in enumerate(course.job.terms)
            if self.me in y.holders
        ]
        await self._fold(messages.SecondPart, self._senders(course.job), total.add_second, step)
        if pairs:
            await self.net.compute(total.add_public, pairs)
        second = await self.net.compute(total.second)
        await self.net.broadcast(self._members(course.group), messages.SecondHalves(step, second))
        return total

    async def _begun(self, left: Left) -> Ciphertext:
        cache = left.matrix.cache
        if not isinstance(cache[left.key], Ciphertext):
            cache[left.key] = await self.net.compute(begin_ciphertext, *cache[left.key])
        begun: Ciphertext = cache[left.key]
        return begun

    async def _right(self, ring: Ring, y: Shared, layout: Layout) -> go.Right:
        key = ("right", ring.name, layout)
        if key not in y.cache:
            y.cache[key] = await self.net.compute(encode_right, ring, y, y.share, layout)
        right: go.Right = y.cache[key]
        return right

    def _senders(self, job: Job) -> list[Address]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(str(p) in y.holders for y in matrices)]

    async def _fold(
        self,
        kind: type[messages.ProductPart | messages.SecondPart | messages.MaskedShare],
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
