"""A provider's machine: its part of the keys, its products and decryption shares, its accounts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Buffer, Ciphertext, Integers, Layout, Ring
from atoll.errors import MessageError
from atoll.randomness import fresh_seed
from atoll.secret_matrices import blinds
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.checks import Checks
from atoll.secret_matrices.courses import (
    Course,
    Left,
    Total,
    aligned,
    cleared,
    digest_of,
    encode_right,
    fingerprint,
    for_step,
    multiply,
    read_ciphertext,
    second_half,
    seen,
)
from atoll.secret_matrices.local import OwnMessage
from atoll.secret_matrices.machine import EVERY_PRECISION, Floats, Group, Precision, Shared
from atoll.secret_matrices.messages import (
    AllKeyParts,
    EncryptedMatrix,
    EncryptedShare,
    KeyParts,
    MaskedShare,
    MaskedTotal,
    OpenedMatrix,
    OpenedShare,
    ProductPart,
    PublicNumbers,
    SecondHalves,
    SecondPart,
)
from atoll.secret_matrices.openings import (
    check_masked,
    check_step,
    check_words,
    floats,
)
from atoll.secret_matrices.party import RoleMachine
from atoll.secret_matrices.sessions import agreed_seeds
from atoll.secret_matrices.widths import rings_for

_HASH = 32
_ROUNDING = 1e-9
"""By which processors may differ in numbers that follow from public ones by a few operations."""


class Told(NamedTuple):
    """Accounts that were sent, until those of the others are here."""

    topic: str
    note: bytes


class Provider(RoleMachine):
    """One provider's machine."""

    checks: Checks | None = None

    async def set_up(self, precisions: Sequence[Precision] = EVERY_PRECISION) -> None:
        """Agree on a session seed and on a secret of the providers; make keys, and see whose they are."""
        seeds = await agreed_seeds(self.net, self.record, self.coordinator, self.providers)
        self.session = digest_of(self.digest, *seeds)
        self.precisions, self.secrets = tuple(precisions), dict[Ring, go.Secret]()
        families = [rings_for(one)[0].family for one in precisions]
        parts = tuple(self._key_part(rings_for(one)) for one in precisions)
        nonce = self.record("check nonce", fresh_seed)
        # Everybody is bound to its part before it can see another's, which it could cancel.
        note = digest_of(self.session, self.me, *parts) + nonce
        notes = await self.net.agree(
            f"the seeds that {self.coordinator} sent", self.session, self.providers, note
        )
        self.checks = Checks(digest_of(self.session, "checks", *(notes[p][_HASH:] for p in self.providers)))
        self._pending: list[Course] = []
        self._settled: list[Course] = []
        self._totals: dict[int, Any] = {}
        self._untaken: list[Course] = []
        self._coming: list[tuple[Left, int]] = []
        self._adding = False
        self._news = False
        await self.net.send(self.coordinator, KeyParts(parts))
        self._key_parts: dict[str, dict[str, Buffer]] = {}
        for address, given in zip(self.providers, await self._all_key_parts(parts), strict=True):
            if digest_of(self.session, str(address), *given) != notes[address][:_HASH]:
                raise MessageError(
                    f"the key part that {self.coordinator} gave for {address} is not the one it committed to",
                    hint="nothing was encrypted; ask both of them why",
                )
            self._key_parts[str(address)] = dict(zip(families, given, strict=True))
        self._keys: dict[tuple[Ring, Group], go.PublicKey] = {}

    async def _all_key_parts(self, own: tuple[bytes, ...]) -> list[list[memoryview]]:
        """Everybody's, as they came: views of one message. All providers' parts have the same lengths."""
        body = (await self.net.receive(AllKeyParts, self.coordinator)).body
        each = sum(map(len, own))
        if len(body) != each * self.n_providers:
            raise MessageError(
                f"{self.coordinator} sent {len(body)} bytes of key parts, {each * self.n_providers} were due"
            )
        ends = list(accumulate(map(len, own)))
        return [
            [body[at + end - len(part) : at + end] for part, end in zip(own, ends, strict=True)]
            for at in range(0, len(body), each)
        ]

    def _key_part(self, rings: Sequence[Ring]) -> bytes:
        """One secret for rings of one family, which differ in the number of their moduli only."""
        name = rings[0].family
        seed = self.record(f"secret key {name}", fresh_seed)
        self.secrets |= {ring: go.Secret(ring, seed) for ring in rings}
        widest = self.secrets[rings[-1]]
        return widest.key_share(self._key_common(name), self.record(f"key error {name}", fresh_seed))

    def key(self, ring: Ring, group: Group) -> go.PublicKey:
        """Of a group of providers: the sum of their parts, cut to the ring's moduli."""
        if (ring, group) not in self._keys:
            parts = [self._key_parts[str(p)][ring.family][: ring.poly_size] for p in self._members(group)]
            self._keys[ring, group] = go.PublicKey(ring, parts, self._key_common(ring.family))
        return self._keys[ring, group]

    async def _send(self, message: OwnMessage) -> None:
        await self.net.send(self.coordinator, message)

    # ---- accounts ----

    @property
    def _accounts(self) -> Checks:
        assert self.checks is not None, "set_up comes first"
        return self.checks

    def _begin(self, groups: Sequence[Group]) -> None:
        # Masked totals of earlier products are used from here on.
        self._settled, self._pending, self._news = self._settled + self._pending, [], True
        for group in groups:
            self._accounts.account(group)

    async def _give(
        self, course: Left | Course, what: str, step: int, body: Buffer, count: int, sign: int = 1
    ) -> None:
        ring, readers = course.ring, course.readers
        residues = await self.net.compute(fingerprint, self._accounts, ring, body, count)
        self._accounts.give(course.group, what, step, residues, sign, readers=readers)

    async def check(self, *, last: bool = False) -> None:
        """Compare accounts with the other providers; unless it is the last time, without the totals of
        products that nothing was computed from yet: their carrier need not have them."""
        if self.checks is None:
            return
        self._settle_early(last=last)
        if not self._news:
            return
        await self._compare(await self._tell())

    def _settle_early(self, *, last: bool) -> None:
        """Totals that all members are sent are compared before whatever leaves next."""
        due = [course for course in self._pending if last or course.job.ahead]
        if due:
            self._settled += due
            self._pending = [course for course in self._pending if course not in due]
            self._news = True

    async def _tell(self) -> Told:
        """Send the other providers this one's accounts; what arrives later is in the next ones."""
        self._news = False
        await self._settle()
        told = Told(
            f"what {self.coordinator} sent before step {self._step + 1}", self._accounts.notes(self.me)
        )
        await self.net.tell(told.topic, self.session, self.providers, told.note)
        return told

    async def _compare(self, told: Told) -> None:
        """Wait for the others' accounts; refuse to go on unless they and this one's fit."""
        await self._take_totals()
        notes = await self.net.agreed(told.topic, self.session, self.providers, told.note)
        self._accounts.compare(self.me, {str(a): note for a, note in notes.items()}, str(self.coordinator))

    async def _settle(self) -> None:
        """Book what totals are made of; a carrier that alone is sent one, that total as well. With them go
        the digests of second halves, which arrived after the accounts of their round had been told."""
        for course in self._settled:
            group, step = course.group, course.step
            self._accounts.account(group)
            if self.me in group and course.given is not None and course.blind is not None:
                self._accounts.give(group, "total", step, course.given)
                self._accounts.give(group, "blind", step, course.blind)
            if course.job.ahead:
                # Others may not have sent their masked shares yet: this provider has.
                self._untaken += [course] if self.me in group else []
            elif self.me == self._carrier(group):
                total = await self._total(course)
                self._accounts.give(group, "total", step, total.residues, -1)
                self._accounts.give(group, "blind", step, total.blind, -1)
                await self._keep_carried(course)
        self._settled = []

    async def _take_totals(self) -> None:
        for course in self._untaken:
            total = await self._total(course)
            self._accounts.take_total(course.group, course.step, total.residues, total.blind, total.digest)
            await self._keep_carried(course)
        self._untaken = []

    async def _keep_carried(self, course: Course) -> None:
        if course.carried is not None:
            await course.carried.value()
        self._totals[course.step] = None  # a second one is refused

    # ---- products ----

    async def _encrypt_all(self, wanted: Sequence[tuple[Left, int]], courses: Sequence[Course]) -> None:
        for left, _ in wanted:
            self._accounts.account(left.group, left.readers)
        mine = [(left, step) for left, step in wanted if self.me in left.group]
        for left, step in mine:
            x, secret, common = left.matrix, self.secrets[left.ring], self._common(step, left.ring)
            limit = x.fraction + x.bits if x.known else 64 * x.share.shape[2]
            seed = self._seed("encryption", step)
            body = await self.net.compute(
                secret.encrypt, x.share, limit, left.shift, left.layout, common, seed
            )
            await self._send(EncryptedShare(step, body))
            await self._give(left, "encrypted", step, body, left.ring.degree)
            x.cache[left.key] = (left.ring, left.layout, None, common)
        for course in courses:
            if course.ahead and self.me in course.group:
                await self._send_second(course)
        self._coming, self._adding = mine, all(course.ahead for course in courses)
        if not self._adding:
            # Somebody's product waits for what is encrypted: then all accounts of the round do.
            await self._take_encrypted()
        for left, step in mine:
            if self.me == left.matrix.carrier and not (left.is_shown and self._adding):
                await self._give_carried(left, step)

    async def _take_encrypted(self) -> None:
        for left, step in self._coming:
            if self.me in left.readers:
                await self._take(left, step)
        self._coming = []

    async def _take(self, left: Left, step: int) -> None:
        """Keep an encrypted matrix as it came: whoever multiplies with it will read it."""
        body = for_step(await self.net.receive(EncryptedMatrix, self.coordinator), step)
        digest, residues = await self.net.compute(seen, self._accounts, left.ring, body, left.ring.degree)
        self._accounts.take(left.group, "encrypted", step, residues, digest, readers=left.readers)
        cache = left.matrix.cache
        if left.is_shown and self._adding:
            public = await left.matrix.carried.value()
            body = await self.net.compute(go.assemble, left.ring, public, left.shift, left.layout, [body])
            digest = digest_of(digest, public)
        cache["digest", *left.key] = digest
        if isinstance(cache[left.key], Ciphertext):
            await self.net.compute(cache[left.key].complete, body)
        else:
            cache[left.key] = (left.ring, left.layout, body, self._common(step, left.ring))

    async def _give_carried(self, left: Left, step: int) -> None:
        """The coordinator's part of an encrypted matrix is encoded, but not encrypted."""
        public = await left.matrix.carried.value()
        nothing = bytes(left.layout.left_polys * left.ring.poly_size)
        body = await self.net.compute(go.assemble, left.ring, public, left.shift, left.layout, [nothing])
        await self._give(left, "encrypted", step, body, left.ring.degree)

    async def _ciphertext(self, left: Left) -> Ciphertext:
        cache = left.matrix.cache
        if not isinstance(cache[left.key], Ciphertext):
            cache[left.key] = await self.net.compute(read_ciphertext, *cache[left.key])
        ciphertext: Ciphertext = cache[left.key]
        return ciphertext

    async def _right(self, ring: Ring, y: Shared, layout: Layout) -> go.Right:
        key = ("right", ring.name, layout)
        if key not in y.cache:
            share = await self.own_part(y)
            assert share is not None
            y.cache[key] = await self.net.compute(encode_right, ring, y, share, layout)
        right: go.Right = y.cache[key]
        return right

    # ---- second halves that go ahead ----

    async def _pairs(self, course: Course) -> list[tuple[Ciphertext, go.Right]]:
        """The left sides, which may be begun only, and this provider's own part of the right ones."""
        ring, layouts = course.widths.ring, course.widths.layouts
        return [
            (await self._ciphertext(course.left(i)), await self._own_right(ring, y, layouts[i]))
            for i, (_, y) in enumerate(course.job.terms)
            if self.me in y.holders
        ]

    async def _own_right(self, ring: Ring, y: Shared, layout: Layout) -> go.Right:
        """Of a carrier, without what it carries: all know that, later."""
        if self.me != y.carrier:
            return await self._right(ring, y, layout)
        key = ("own right", ring.name, layout)
        if key not in y.cache:
            y.cache[key] = await self.net.compute(encode_right, ring, y, y.share, layout)
        right: go.Right = y.cache[key]
        return right

    async def _public_right(self, ring: Ring, y: Shared, layout: Layout) -> go.Right:
        """The coordinator's part."""
        key = ("public right", ring.name, layout)
        if key not in y.cache:
            y.cache[key] = await self.net.compute(encode_right, ring, y, await y.carried.value(), layout)
        right: go.Right = y.cache[key]
        return right

    def _zero(self, course: Course) -> tuple[bytes, bytes]:
        """Seed and domain of the encryption of zero in both halves of this provider's product."""
        if course.zero is None:
            course.zero = self._seed("zero", course.step)
        return course.zero, digest_of(self.session, "product", course.step, str(course.widths))

    async def _send_second(self, course: Course) -> None:
        pairs = await self._pairs(course)
        if not pairs:
            return
        key = self.key(course.ring, course.group)
        body = await self.net.compute(second_half, key, pairs, *self._zero(course))
        await self._send(SecondPart(course.step, body))
        await self._give(course, "second", course.step, body, course.ring.degree)

    async def _own_ahead(self, course: Course) -> tuple[go.Ahead, list[bytes]]:
        """A product that went ahead, of which the rest is due; digests of what others made for it.

        Everybody adds second halves of the coordinator's part, and its carrier the first halves as well."""
        ring, layouts = course.widths.ring, course.widths.layouts
        own, public, found = await self._pairs(course), [], []
        for i, (_, y) in enumerate(course.job.terms):
            left = course.left(i)
            if self.me in y.holders:
                found.append(left.matrix.cache["digest", *left.key])
            if y.carrier is not None:
                pair = await self._ciphertext(left), await self._public_right(ring, y, layouts[i])
                public.append(pair)
                own += [pair] if self.me == y.carrier else []
                found.append(digest_of(await y.carried.value()))
        key = self.key(course.ring, course.group)
        return go.Ahead(key, own, *self._zero(course), public), found

    async def _own_product(self, course: Course) -> memoryview | None:
        """This provider's product, or None where (publicly) all its right sides are zero."""
        job, widths, step = course.job, course.widths, course.step
        ring, plain = widths.ring, job.plain
        adds = plain is not None and self.me in plain.holders
        mine = [i for i, (_, y) in enumerate(job.terms) if self.me in y.holders]
        if not mine and not adds:
            return None
        pairs = [
            (
                await self._ciphertext(course.left(i)),
                await self._right(ring, job.terms[i][1], widths.layouts[i]),
            )
            for i in mine or [0]
        ]
        added = None
        if adds and plain is not None:
            own = await self.own_part(plain)
            assert own is not None
            added = aligned(own, plain.fraction, widths, job.terms)
        seed, domain = self._seed("zero", step), digest_of(self.session, "product", step, str(widths))
        key = self.key(ring, course.group)
        return await self.net.compute(multiply, key, pairs, added, widths.clearing.value_bits, seed, domain)

    async def _multiply_all(self, courses: Sequence[Course]) -> dict[int, Integers]:
        self._pending += courses
        mine = [course for course in courses if self.me in course.group]
        for course in mine:
            message = None if course.ahead else await self._own_product(course)
            if message is not None:
                await self._send(ProductPart(course.step, message))
                head = course.widths.ring.residues_size(course.entries)
                await self._give(course, "second", course.step, message[head:], course.widths.ring.degree)
                await self._give_total(course, message[:head])
        # Whoever knows what all others gave finds out for itself whether what it is sent is their sum.
        told = await self._tell()
        await self._take_encrypted()
        # Those that went ahead arrive first.
        due = sorted(mine, key=lambda course: not course.ahead)
        seconds = {course.step: await self._second_halves(course) for course in due}
        # A decryption share of anything but the sum would say the key; of a sum that is too large, the value.
        await self._compare(told)
        return {course.step: await self._refreshed(course, seconds.pop(course.step)) for course in mine}

    async def _give_total(self, course: Course, body: Buffer) -> None:
        residues = await self.net.compute(
            fingerprint, self._accounts, course.widths.ring, body, course.entries
        )
        course.give(residues)

    async def _second_halves(self, course: Course) -> tuple[memoryview, bytes]:
        """Of a product, as they came, and their digest."""
        widths, step = course.widths, course.step
        second = for_step(await self.net.receive(SecondHalves, self.coordinator), step)
        digest, residues = await self.net.compute(
            seen, self._accounts, widths.ring, second, widths.ring.degree
        )
        domain = digest_of(self.session, "refresh", step, str(widths), digest)
        self._accounts.take(course.group, "second", step, residues, domain)
        return second, domain

    async def _refreshed(self, course: Course, halves: tuple[memoryview, bytes]) -> Integers:
        widths, step, (second, domain) = course.widths, course.step, halves
        refresh, seed = self.secrets[widths.ring].refresh, self._seed("mask", step)
        ahead = None
        if course.ahead:  # what is masked is made of the left sides too, and of totals
            ahead, read = await self._own_ahead(course)
            domain = digest_of(domain, *read)
        masked, share = await self.net.compute(
            refresh, second, widths.layouts[0], widths.clearing, seed, domain, ahead
        )
        blind = blinds.drawn(widths.ring, seed, domain)
        await self._send(MaskedShare(step, masked, blind))
        await self._give_total(course, masked)
        course.blind = blinds.residues(widths.ring, blind)
        return share

    def _carried(self, course: Course) -> Carried | None:
        async def made() -> Integers:
            return (await self._total(course)).share

        if self.me in self._told(course):
            course.carried = Carried(made)
        return course.carried

    async def _total(self, course: Course) -> Total:
        """The masked result of a product, once it is here."""
        widths, step = course.widths, course.step
        while step not in self._totals:
            message = await self.net.receive(MaskedTotal, self.coordinator)
            if message.step in self._totals:  # one to compute with, one to compare
                raise MessageError(f"{self.coordinator} sent a masked total twice, at step {message.step}")
            self._totals[message.step] = message
        if not isinstance(self._totals[step], Total):
            came = self._totals[step]
            self._totals[step] = await self.net.compute(
                cleared, self._accounts, widths, came.body, came.blind, course.entries
            )
        total: Total = self._totals[step]
        return total

    # ---- openings ----

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:
        check_masked(x)
        await self.check()
        step = self.next_step()
        share = await self.own_part(x)
        assert share is not None
        if smudge_bits:
            share = go.smudge(share, smudge_bits, self._seed("smudging", step), digest_of(self.session, step))
        self.has_opened = True
        await self._send(OpenedShare(step, share))
        opened = await self.net.receive(OpenedMatrix, self.coordinator)
        check_step(opened.step, step)
        check_words(opened.words, x.shape)
        self._accounts.open(self.all_providers, step, share, np.array(opened.words))
        self._news = True
        return floats(opened.words, x.fraction)

    async def same(self, values: Floats, *, recomputed: bool = True) -> Floats:
        step = self.next_step()
        message = await self.net.receive(PublicNumbers, self.coordinator)
        check_step(message.step, step)
        theirs = message.values
        if theirs.dtype != np.float64 or theirs.shape != values.shape or not np.isfinite(theirs).all():
            raise MessageError(f"{self.coordinator} sent public numbers of the wrong shape")
        if recomputed and not np.allclose(theirs, values, rtol=_ROUNDING, atol=0):
            raise MessageError(f"the public numbers that {self.coordinator} sent are not those computed here")
        self._accounts.see(self.all_providers, "public numbers", step, digest_of(theirs.tobytes()))
        self._news = True
        return np.array(theirs)
