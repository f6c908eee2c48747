"""The machines of provider and coordinator: products and openings as messages.

One product, seen from a provider (P) and the coordinator (C); parts in brackets only where the left
matrix is not yet encrypted:

    [P -> C  EncryptedShare    its share under its own key, common second half]
    [C -> P  EncryptedMatrix   the sum: first halves of the ciphertext]
     P -> C  ProductPart       ciphertext times its share of the right matrix, re-randomised
     C -> P  SecondHalves      of the summed product
     P -> C  MaskedShare       decryption share under a mask; minus the mask, truncated, is its new share

A provider sends a MaskedShare and the next EncryptedShare without waiting in between, so a product
costs two round trips. Every message names its step; every draw is recorded under it and bound to the
session, the step and the bytes it answers, so that the same step never masks two ciphertexts alike.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atoll.crypto.hazmat import product as go
from atoll.crypto.hazmat.product import Ciphertext, Integers, Layout, Ring
from atoll.errors import MessageError
from atoll.network import Address
from atoll.protocols.sfpca.bounds import Widths, plan_for
from atoll.protocols.sfpca.holder import ShareHolder
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
from atoll.protocols.sfpca.shared import Floats, Job, Shared
from atoll.randomness import SEED_BYTES, fresh_seed

FAMILIES = ("wide", "deep")


def _digest(*parts: bytes | str | int) -> bytes:
    state = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


class _Party(ShareHolder):
    """What provider and coordinator have in common: the course of a product."""

    def _key_common(self, family: str) -> bytes:
        return _digest(self.session, "key", family)

    def _take_keys(self, keys: Sequence[bytes]) -> None:
        """The rings of a family share one key, cut to their moduli."""
        for name, key in zip(FAMILIES, keys, strict=True):
            for ring in go.family(name):
                self.keys[ring] = go.PublicKey(ring, [key[: ring.poly_size]], self._key_common(name))

    def _common(self, step: int, ring: Ring) -> bytes:
        return _digest(self.session, "common", ring.name, step)

    def _seed(self, what: str, step: int) -> bytes:
        return self.record(f"{what} {step}", fresh_seed)

    async def products(self, jobs: Sequence[Job]) -> list[Shared]:
        plans = [plan_for(self.parties, job) for job in jobs]
        wanted = [
            (plan.ring, x, layout, shift)
            for job, plan in zip(jobs, plans, strict=True)
            for (x, _), layout, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True)
        ]
        await self._encrypt_all([w for i, w in enumerate(wanted) if not _is_kept(w, wanted[:i])])
        lefts = [
            [
                x.kept[_left_key(plan.ring, layout, shift)]
                for (x, _), layout, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True)
            ]
            for job, plan in zip(jobs, plans, strict=True)
        ]
        shares = await self._multiply_all(jobs, plans, lefts)
        return [
            Shared(
                (plan.layouts[0].rows, plan.layouts[0].cols), job.fraction, job.bits, share, self.everybody
            )
            for job, plan, share in zip(jobs, plans, shares, strict=True)
        ]

    async def _own_product(
        self, job: Job, plan: Widths, lefts: Sequence[Ciphertext], step: int
    ) -> bytes | None:
        """This role's product, or None where (publicly) all its right sides are zero."""
        ring, plain = plan.ring, job.plain
        adds = plain is not None and self.me in plain.holders
        held = [i for i, (_, y) in enumerate(job.terms) if self.me in y.holders]
        if not held and not adds:
            return None
        pairs = [
            (
                lefts[i],
                await self.net.compute(
                    _encode_right, ring, job.terms[i][1], plan.layouts[i], job.streamed
                ),
            )
            for i in held or [0]
        ]
        added = _aligned(plain, plan, job.terms) if adds and plain is not None else None
        seed, domain = self._seed("zero", step), _digest(self.session, "product", step, str(plan))
        return await self.net.compute(
            _multiply, self.keys[ring], pairs, added, plan.clearing.value_bits, seed, domain
        )

    @abstractmethod
    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        """Encrypt left matrices under the collective key; the ciphertexts are kept with them."""

    @abstractmethod
    async def _multiply_all(
        self, jobs: Sequence[Job], plans: Sequence[Widths], lefts: Sequence[Sequence[Ciphertext]]
    ) -> list[Integers]:
        """Multiply, refresh, and return this role's share of each result."""

    async def _keep(self, wanted: _Left, step: int, body: bytes) -> None:
        ring, x, layout, shift = wanted
        common = self._common(step, ring)
        x.kept[_left_key(ring, layout, shift)] = await self.net.compute(
            _read_ciphertext, ring, layout, body, common
        )


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

    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        steps = [self.next_step() for _ in wanted]
        for (ring, x, layout, shift), step in zip(wanted, steps, strict=True):
            limit = x.fraction + x.bits if x.known else 64 * x.share.shape[2]
            secret, common, seed = (
                self.secrets[ring],
                self._common(step, ring),
                self._seed("encryption", step),
            )
            body = await self.net.compute(secret.encrypt, x.share, limit, shift, layout, common, seed)
            await self.net.send(self.coordinator, EncryptedShare(step, body))
        for left, step in zip(wanted, steps, strict=True):
            await self._keep(
                left, step, _for_step(await self.net.receive(EncryptedMatrix, self.coordinator), step)
            )

    async def _multiply_all(
        self, jobs: Sequence[Job], plans: Sequence[Widths], lefts: Sequence[Sequence[Ciphertext]]
    ) -> list[Integers]:
        steps = [self.next_step() for _ in jobs]
        for job, plan, left, step in zip(jobs, plans, lefts, steps, strict=True):
            message = await self._own_product(job, plan, left, step)
            if message is not None:
                await self.net.send(self.coordinator, ProductPart(step, message))
        shares = []
        for plan, step in zip(plans, steps, strict=True):
            second = _for_step(await self.net.receive(SecondHalves, self.coordinator), step)
            domain = _digest(self.session, "refresh", step, str(plan), second)
            refresh, seed = self.secrets[plan.ring].refresh, self._seed("mask", step)
            masked, share = await self.net.compute(
                refresh, second, plan.layouts[0], plan.clearing, seed, domain
            )
            await self.net.send(self.coordinator, MaskedShare(step, masked))
            shares.append(share)
        return shares

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:
        check_masked(x)
        step = self.next_step()
        share = x.share
        if smudge_bits:
            share = go.smudge(share, smudge_bits, self._seed("smudging", step), _digest(self.session, step))
        await self.net.send(self.coordinator, OpenedShare(step, share))
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
        key_parts = await self.net.gather(KeyParts, self.providers)
        keys = []
        for index, name in enumerate(FAMILIES):
            shares = [key_parts[p].parts[index] for p in self.providers]
            keys.append(go.PublicKey(go.family(name)[-1], shares, self._key_common(name)).to_bytes())
        self._take_keys(keys)
        await self.net.broadcast(self.providers, CollectiveKeys(tuple(keys)))

    async def _encrypt_all(self, wanted: Sequence[_Left]) -> None:
        steps = [self.next_step() for _ in wanted]
        for (ring, x, layout, shift), step in zip(wanted, steps, strict=True):
            arrived = await self.net.gather(EncryptedShare, self.providers)
            parts = [_for_step(arrived[p], step) for p in self.providers]
            public = x.share if self.me in x.holders else None
            body = await self.net.compute(go.assemble, ring, public, shift, layout, parts)
            await self.net.broadcast(self.providers, EncryptedMatrix(step, body))
            await self._keep((ring, x, layout, shift), step, body)

    async def _multiply_all(
        self, jobs: Sequence[Job], plans: Sequence[Widths], lefts: Sequence[Sequence[Ciphertext]]
    ) -> list[Integers]:
        steps = [self.next_step() for _ in jobs]
        totals = []
        for job, plan, left, step in zip(jobs, plans, lefts, steps, strict=True):
            total = go.ProductSum(plan.ring, plan.layouts[0])
            own = await self._own_product(job, plan, left, step)
            if own is not None:
                await self.net.compute(total.add, own)
            await self._fold(ProductPart, self._senders(job), total.add, step)
            second = await self.net.compute(total.second)
            await self.net.broadcast(self.providers, SecondHalves(step, second))
            totals.append(total)
        shares = []
        for plan, total, step in zip(plans, totals, steps, strict=True):
            await self._fold(MaskedShare, self.providers, total.add_share, step)
            shares.append(await self.net.compute(total.clear, plan.clearing))
        return shares

    def _senders(self, job: Job) -> list[Address]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(str(p) in y.holders for y in matrices)]

    async def _fold(
        self,
        kind: type[ProductPart | MaskedShare],
        senders: Sequence[Address],
        add: Callable[[bytes], None],
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


def _encode_right(ring: Ring, y: Shared, layout: Layout, streamed: bool | None) -> go.Right:
    key = ("right", ring.name, layout)
    if key not in y.kept:
        limit = y.fraction + y.bits if y.known else 64 * y.share.shape[2]
        y.kept[key] = go.Right(ring, y.share, limit, layout, streamed)
    right: go.Right = y.kept[key]
    return right


def _multiply(
    key: go.PublicKey,
    pairs: Sequence[tuple[Ciphertext, go.Right]],
    plain: Integers | None,
    limit: int,
    seed: bytes,
    domain: bytes,
) -> bytes:
    return go.multiply(key, pairs, plain=plain, limit=limit, seed=seed, domain=domain)


def _read_ciphertext(ring: Ring, layout: Layout, body: bytes, common: bytes) -> Ciphertext:
    return Ciphertext(ring, layout, body, common)


def _aligned(plain: Shared, plan: Widths, terms: Sequence[tuple[Shared, Shared]]) -> Integers:
    """The plain summand at the scale of the product."""
    x, y = terms[0]
    up = x.fraction + y.fraction + plan.shifts[0] - plain.fraction
    values = go.to_ints(plain.share) << up
    return go.from_ints(values, plan.clearing.value_bits // 64 + 1)


def _for_step(message: Any, step: int) -> bytes:
    check_step(message.step, step)
    body: bytes = message.body
    return body


_Left = tuple[Ring, Shared, Layout, int]


def _left_key(ring: Ring, layout: Layout, shift: int) -> tuple[Any, ...]:
    return (ring, layout.block_rows, layout.block_inner, layout.block_cols, shift)


def _is_kept(left: _Left, earlier: Sequence[_Left]) -> bool:
    ring, x, layout, shift = left
    key = _left_key(ring, layout, shift)
    return key in x.kept or any(other is x and _left_key(r, y, s) == key for r, other, y, s in earlier)
