"""The machines of provider and coordinator: products and openings as messages.

One product, seen from a provider (P) and the coordinator (C); parts in brackets only where the left
matrix is not yet encrypted:

    [P -> C  EncryptedShare    its share under its own key, common second half]
    [C -> P  EncryptedMatrix   the sum: first halves of the ciphertext]
     P -> C  ProductPart       ciphertext times its share of the right matrix, re-randomised
     C -> P  SecondHalves      of the summed product
     P -> C  MaskedShare       decryption share under a mask; minus the mask, truncated, is its new share

A provider sends a MaskedShare and the next EncryptedShare without waiting in between, so a product
costs two round trips. Every message names its step, and every draw is recorded under it. So is the digest
of what leaves: a role that runs again sends the same bytes for a step, or ends before it sends others.

A product concerns the providers that hold a part of its factors: it is made under the key of these alone,
and the others neither work nor receive anything. Whoever has something to hide in it has a part of the
key, so nobody is worse off; and the rotations of fifty parties cost each of them six products, not fifty.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.crypto.hazmat import product as go
from atoll.crypto.hazmat.golib import Buffer
from atoll.crypto.hazmat.product import Ciphertext, Integers, Layout, Ring
from atoll.errors import MessageError
from atoll.network import Address
from atoll.protocols.sfpca.bounds import Widths, plan_for
from atoll.protocols.sfpca.holder import OwnMessage, ShareHolder
from atoll.protocols.sfpca.messages import (
    CollectiveKeys,
    EncryptedMatrix,
    EncryptedShare,
    KeyParts,
    MaskedShare,
    OpenedMatrix,
    OpenedShare,
    ProductPart,
    PublicNumbers,
    SecondHalves,
    SeedPart,
    SessionSeed,
)
from atoll.protocols.sfpca.openings import added_up, check_masked, check_step, floats, release, share_words
from atoll.protocols.sfpca.shared import Floats, Group, Job, Shared, concerned
from atoll.randomness import SEED_BYTES, fresh_seed

FAMILIES = ("wide", "deep")


def _digest(*parts: Buffer | str | int) -> bytes:
    state = hashlib.sha256()
    for part in parts:
        data = str(part).encode() if isinstance(part, str | int) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


class _Left(NamedTuple):
    """A matrix that is encrypted for the left side of products, once for each way of using it."""

    ring: Ring
    group: Group
    matrix: Shared
    layout: Layout
    shift: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Under which the matrix keeps its ciphertext."""
        y = self.layout
        return (self.ring, self.group, y.block_rows, y.block_inner, y.block_cols, self.shift)

    def is_kept(self, earlier: Sequence[_Left]) -> bool:
        """Whether there is such a ciphertext, or will be."""
        return self.key in self.matrix.kept or any(
            other.matrix is self.matrix and other.key == self.key for other in earlier
        )


class _Course(NamedTuple):
    """One product on its way."""

    job: Job
    plan: Widths
    group: Group
    step: int

    def left(self, index: int) -> _Left:
        """A term's left side."""
        x, _ = self.job.terms[index]
        return _Left(self.plan.ring, self.group, x, self.plan.layouts[index], self.plan.shifts[index])


class _Party(ShareHolder):
    """What provider and coordinator have in common: the course of a product."""

    def _key_common(self, family: str) -> bytes:
        return _digest(self.session, "key", family)

    def _take_keys(self, keys: Sequence[bytes]) -> None:
        """The rings of a family share one key, cut to their moduli."""
        for name, key in zip(FAMILIES, keys, strict=True):
            for ring in go.family(name):
                self._take_key(ring, self.all_providers, key[: ring.poly_size])

    def _take_key(self, ring: Ring, group: Group, key: bytes) -> None:
        self.keys[ring, group] = go.PublicKey(ring, [key], self._key_common(ring.family))

    def _common(self, step: int, ring: Ring) -> bytes:
        return _digest(self.session, "common", ring.name, step)

    def _seed(self, what: str, step: int) -> bytes:
        return self.record(f"{what} {step}", fresh_seed)

    async def products(self, jobs: Sequence[Job]) -> list[Shared]:
        groups = [concerned(self.all_providers, job) for job in jobs]
        plans = [plan_for(len(group), job) for job, group in zip(jobs, groups, strict=True)]
        wanted = [
            _Left(plan.ring, group, x, layout, shift)
            for job, plan, group in zip(jobs, plans, groups, strict=True)
            for (x, _), layout, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True)
        ]
        await self._encrypt_all([left for i, left in enumerate(wanted) if not left.is_kept(wanted[:i])])
        for plan, group in zip(plans, groups, strict=True):
            if (plan.ring, group) not in self.keys and self._concerns(group):
                await self._agree_key(plan.ring, group)
        courses = [
            _Course(job, plan, group, self.next_step())
            for job, plan, group in zip(jobs, plans, groups, strict=True)
        ]
        shares = await self._multiply_all(courses)
        return [self._result(course, shares.get(course.step)) for course in courses]

    def _concerns(self, group: Group) -> bool:
        return self.me in group or self.me == str(self.coordinator)

    def _result(self, course: _Course, share: Integers | None) -> Shared:
        y, words = course.plan.layouts[0], course.plan.clearing.share_words
        if share is None:
            share = np.zeros((y.rows, y.cols, words), np.uint64)
        holders = course.group | {str(self.coordinator)}
        return Shared((y.rows, y.cols), course.job.fraction, course.job.bits, share, holders)

    async def _own_product(self, course: _Course) -> memoryview | None:
        """This role's product, or None where (publicly) all its right sides are zero."""
        job, plan, step = course.job, course.plan, course.step
        ring, plain = plan.ring, job.plain
        adds = plain is not None and self.me in plain.holders
        held = [i for i, (_, y) in enumerate(job.terms) if self.me in y.holders]
        if not held and not adds:
            return None
        pairs = [
            (
                await self._ciphertext(course.left(i)),
                await self.net.compute(_encode_right, ring, job.terms[i][1], plan.layouts[i]),
            )
            for i in held or [0]
        ]
        added = _aligned(plain, plan, job.terms) if adds and plain is not None else None
        seed, domain = self._seed("zero", step), _digest(self.session, "product", step, str(plan))
        key = self.keys[ring, course.group]
        return await self.net.compute(_multiply, key, pairs, added, plan.clearing.value_bits, seed, domain)

    @abstractmethod
    async def _agree_key(self, ring: Ring, group: Group) -> None:
        """The public key of some of the providers, from the coordinator."""

    @abstractmethod
    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        """Encrypt left matrices under their groups' keys; the ciphertexts are kept with them."""

    @abstractmethod
    async def _multiply_all(self, courses: Sequence[_Course]) -> dict[int, Integers]:
        """Multiply, refresh, and return this role's share of each result, by step."""

    def _keep(self, left: _Left, step: int, body: Buffer) -> None:
        """Keep an encrypted matrix as it came: whoever multiplies with it will read it."""
        left.matrix.kept[left.key] = (left.ring, left.layout, body, self._common(step, left.ring))

    async def _ciphertext(self, left: _Left) -> Ciphertext:
        kept = left.matrix.kept
        if not isinstance(kept[left.key], Ciphertext):
            kept[left.key] = await self.net.compute(_read_ciphertext, *kept[left.key])
        ciphertext: Ciphertext = kept[left.key]
        return ciphertext


class Provider(_Party):
    """One provider's machine."""

    async def set_up(self) -> None:
        """Agree on a session seed, make keys, add them up."""
        seed = self.record("session seed", fresh_seed)
        await self.net.send(self.coordinator, SeedPart(seed))
        seeds = (await self.net.receive(SessionSeed, self.coordinator)).seeds
        if len(seeds) != self.parties or seed not in seeds or any(len(s) != SEED_BYTES for s in seeds):
            raise MessageError("the session's seed was not made from everybody's parts")
        self.session = _digest(self.digest, *seeds)
        self.secrets: dict[Ring, go.Secret] = {}
        parts = []
        for name in FAMILIES:
            seed = self.record(f"secret key {name}", fresh_seed)
            self.secrets |= {ring: go.Secret(ring, seed) for ring in go.family(name)}
            widest = self.secrets[go.family(name)[-1]]
            parts.append(
                widest.key_share(self._key_common(name), self.record(f"key error {name}", fresh_seed))
            )
        await self.net.send(self.coordinator, KeyParts(tuple(parts)))
        self._take_keys((await self.net.receive(CollectiveKeys, self.coordinator)).keys)

    async def _send(self, message: OwnMessage) -> None:
        await self.bind(message)
        await self.net.send(self.coordinator, message)

    async def _agree_key(self, ring: Ring, group: Group) -> None:
        (key,) = (await self.net.receive(CollectiveKeys, self.coordinator)).keys
        self._take_key(ring, group, key)

    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        steps = [(left, self.next_step()) for left in wanted]
        mine = [(left, step) for left, step in steps if self.me in left.group]
        for left, step in mine:
            x, secret, common = left.matrix, self.secrets[left.ring], self._common(step, left.ring)
            limit = x.fraction + x.bits if x.known else 64 * x.share.shape[2]
            seed = self._seed("encryption", step)
            body = await self.net.compute(
                secret.encrypt, x.share, limit, left.shift, left.layout, common, seed
            )
            await self._send(EncryptedShare(step, body))
        for left, step in mine:
            message = await self.net.receive(EncryptedMatrix, self.coordinator)
            self._keep(left, step, _for_step(message, step))

    async def _multiply_all(self, courses: Sequence[_Course]) -> dict[int, Integers]:
        mine = [course for course in courses if self.me in course.group]
        for course in mine:
            message = await self._own_product(course)
            if message is not None:
                await self._send(ProductPart(course.step, message))
        return {course.step: await self._refreshed(course.plan, course.step) for course in mine}

    async def _refreshed(self, plan: Widths, step: int) -> Integers:
        second = _for_step(await self.net.receive(SecondHalves, self.coordinator), step)
        domain = _digest(self.session, "refresh", step, str(plan), second)
        refresh, seed = self.secrets[plan.ring].refresh, self._seed("mask", step)
        masked, share = await self.net.compute(refresh, second, plan.layouts[0], plan.clearing, seed, domain)
        await self._send(MaskedShare(step, masked))
        return share

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:
        check_masked(x)
        step = self.next_step()
        share = x.share
        if smudge_bits:
            share = go.smudge(share, smudge_bits, self._seed("smudging", step), _digest(self.session, step))
        await self._send(OpenedShare(step, share))
        opened = await self.net.receive(OpenedMatrix, self.coordinator)
        check_step(opened.step, step)
        return floats(opened.words, x.fraction)

    async def same(self, values: Floats) -> Floats:
        step = self.next_step()
        message = await self.net.receive(PublicNumbers, self.coordinator)
        check_step(message.step, step)
        theirs = message.values
        if theirs.dtype != np.float64 or theirs.shape != values.shape or not np.isfinite(theirs).all():
            raise MessageError("public numbers have the wrong shape")
        return np.array(theirs)

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        return await release(self, x, receivers)


class Coordinator(_Party):
    """The coordinator's machine: no key; it holds the public, masked shares."""

    async def set_up(self) -> None:
        """Collect seeds and key parts."""
        parts = await self.net.gather(SeedPart, self.providers)
        seeds = tuple(parts[p].seed for p in self.providers)
        await self.net.broadcast(self.providers, SessionSeed(seeds))
        self.session = _digest(self.digest, *seeds)
        self._key_parts = await self.net.gather(KeyParts, self.providers)
        keys = [self._key_of(go.family(name)[-1], self.all_providers) for name in FAMILIES]
        self._take_keys(keys)
        await self.net.broadcast(self.providers, CollectiveKeys(tuple(keys)))

    def _key_of(self, ring: Ring, group: Group) -> bytes:
        index = FAMILIES.index(ring.family)
        parts = [self._key_parts[p].parts[index][: ring.poly_size] for p in self._members(group)]
        return go.PublicKey(ring, parts, self._key_common(ring.family)).to_bytes()

    def _members(self, group: Group) -> list[Address]:
        return [p for p in self.providers if str(p) in group]

    async def _agree_key(self, ring: Ring, group: Group) -> None:
        key = self._key_of(ring, group)
        self._take_key(ring, group, key)
        await self.net.broadcast(self._members(group), CollectiveKeys((key,)))

    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        for left in wanted:
            step, members, x = self.next_step(), self._members(left.group), left.matrix
            arrived = await self.net.gather(EncryptedShare, members)
            parts = [_for_step(arrived[p], step) for p in members]
            public = x.share if self.me in x.holders else None
            body = await self.net.compute(go.assemble, left.ring, public, left.shift, left.layout, parts)
            await self.net.broadcast(members, EncryptedMatrix(step, body))
            self._keep(left, step, body)

    async def _multiply_all(self, courses: Sequence[_Course]) -> dict[int, Integers]:
        sums = [(course, await self._added_products(course)) for course in courses]
        shares = {}
        for course, total in sums:
            await self._fold(MaskedShare, self._members(course.group), total.add_share, course.step)
            shares[course.step] = await self.net.compute(total.clear, course.plan.clearing)
        return shares

    async def _added_products(self, course: _Course) -> go.ProductSum:
        total = go.ProductSum(course.plan.ring, course.plan.layouts[0])
        own = await self._own_product(course)
        if own is not None:
            await self.net.compute(total.add, own)
        await self._fold(ProductPart, self._senders(course.job), total.add, course.step)
        second = await self.net.compute(total.second)
        await self.net.broadcast(self._members(course.group), SecondHalves(course.step, second))
        return total

    def _senders(self, job: Job) -> list[Address]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(str(p) in y.holders for y in matrices)]

    async def _fold(
        self,
        kind: type[ProductPart | MaskedShare],
        senders: Sequence[Address],
        add: Callable[[Buffer], None],
        step: int,
    ) -> None:
        await self.net.fold(kind, senders, lambda _, message: add(_for_step(message, step)))

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:  # noqa: ARG002  providers smudge
        step = self.next_step()
        arrived = await self.net.gather(OpenedShare, self.providers)
        words = added_up([x.share] + [share_words(arrived[p], step, x) for p in self.providers])
        await self.net.broadcast(self.providers, OpenedMatrix(step, words))
        return floats(words, x.fraction)

    async def same(self, values: Floats) -> Floats:
        step = self.next_step()
        await self.net.broadcast(self.providers, PublicNumbers(step, np.ascontiguousarray(values)))
        return values

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        return await release(self, x, receivers)


# ---- local steps ----


def _encode_right(ring: Ring, y: Shared, layout: Layout) -> go.Right:
    key = ("right", ring.name, layout)
    if key not in y.kept:
        limit = y.fraction + y.bits if y.known else 64 * y.share.shape[2]
        y.kept[key] = go.Right(ring, y.share, limit, layout)
    right: go.Right = y.kept[key]
    return right


def _multiply(
    key: go.PublicKey,
    pairs: Sequence[tuple[Ciphertext, go.Right]],
    plain: Integers | None,
    limit: int,
    seed: bytes,
    domain: bytes,
) -> memoryview:
    return go.multiply(key, pairs, plain=plain, limit=limit, seed=seed, domain=domain)


def _read_ciphertext(ring: Ring, layout: Layout, body: Buffer, common: bytes) -> Ciphertext:
    return Ciphertext(ring, layout, body, common)


def _aligned(plain: Shared, plan: Widths, terms: Sequence[tuple[Shared, Shared]]) -> Integers:
    """The plain summand at the scale of the product."""
    x, y = terms[0]
    up = x.fraction + y.fraction + plan.shifts[0] - plain.fraction
    values = go.to_ints(plain.share) << up
    return go.from_ints(values, plan.clearing.value_bits // 64 + 1)


def _for_step(message: Any, step: int) -> memoryview:
    check_step(message.step, step)
    body: memoryview = message.body
    return body
