"""Products in a chain: all that needs no data is prepared in one round, then each takes a single message.

A provider's share of a product is minus the mask that it drew, truncated. It depends on nobody's data: only
the masked totals do. So every provider can run the whole program on its masks before the first product is
made, and all that is quadratic in masks travels at once. In one round, for all products x y of the chain:

    P -> C  EncryptedShare    its masks of x, encrypted
    C -> P  EncryptedMatrix   their sum: x without its public part X
    P -> C  PreparedPart      second halves of that ciphertext times its masks of y, re-randomised
    C -> P  SecondHalves      the sum
    P <-> P                   the comparison before a decryption share leaves (:mod:`checks`)

Then, product by product, providers send each other one message, past the coordinator:

    P <-> P                   its first halves at the results' places, X times its part of y, the decryption
                              share of the second halves, and its new mask: their sum

The sum is the masked total Z, the public part of x y, which every provider adds up and truncates by itself.
X and the public part Y of y were found in this way before; to the second halves all of them add those of x's
ciphertext times Y. What is decrypted is the same ciphertext as that of any other product, under a mask of
the same width; only Z, which the coordinator and one provider know of those, is known to all providers here.
Each message comes with a digest of all that arrived before, and the next comparison has that of the last
ones: whoever was sent something else ends the run before anything is opened.

The coordinator has no part of what a chain makes: the carrier adds the public part to its own share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.products import Buffer, Ciphertext, Clearing, Integers, Layout, Ring
from atoll.errors import MessageError
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.courses import Course, Left, digest_of, encode_right, read_ciphertext
from atoll.secret_matrices.machine import Shared
from atoll.secret_matrices.messages import PreparedPart
from atoll.secret_matrices.party import unchainable
from atoll.secret_matrices.provider import Provider
from atoll.secret_matrices.widths import Widths


class ChainingProvider(Provider):
    """A provider's machine, with chains."""

    # ---- recording ----

    async def _masks(self, course: Course) -> Integers:
        """This provider's share of a product that is not made yet."""
        return await self.net.compute(drawn_share, *self._masking(course))

    def _masking(self, course: Course) -> tuple[go.Secret, Layout, Clearing, bytes, bytes]:
        """What its masks follow from: the same when it is recorded and when it is made."""
        domain = digest_of(self.session, "chained", course.step, str(course.widths))
        widths, seed = course.widths, self._drawn("mask", course)
        return self.secrets[course.ring], widths.layouts[0], widths.clearing, seed, domain

    def _drawn(self, what: str, course: Course) -> bytes:
        if what not in course.draws:
            course.draws[what] = self._seed(what, course.step)
        return course.draws[what]

    def _carrier_of(self, matrices: Sequence[Shared], needed: bool) -> str | None:
        if self._chain is not None and not all(map(self._public_here, matrices)):
            raise unchainable("a sum")
        return super()._carrier_of(matrices, needed)

    def _carries(self, carrier: str) -> bool:
        return self._chain is not None or super()._carries(carrier)

    def _public_here(self, x: Shared) -> bool:
        return x.carrier is None or x.carried is not None

    def _carried(self, course: Course) -> Carried | None:
        if self._chain is None:
            return super()._carried(course)
        chain = self._chain

        async def made() -> Integers:
            return chain.totals[course.step]

        return Carried(made)

    # ---- preparing ----

    async def _prepare_all(self, courses: Sequence[Course]) -> None:
        self._firsts: dict[int, memoryview] = {}
        for course in courses:
            if self.net.me not in self._senders(course.job):
                continue
            pairs = [
                (await self._read(course.left(i)), await self._encoded(course, i, y.share))
                for i, (_, y) in self._mine(course)
            ]
            seed = self._seed("zero", course.step)
            message = await self._product_of(course, pairs, await self._added(course), seed)
            head = course.ring.residues_size(course.entries)
            self._firsts[course.step] = message[:head]
            await self._send(PreparedPart(course.step, message[head:]))
            await self._give(course, "second", course.step, message[head:], course.ring.degree)
        self._seconds = {course.step: await self._second_halves(course) for course in courses}
        await self.check()

    def _mine(self, course: Course) -> list[tuple[int, tuple[Shared, Shared]]]:
        """Terms of whose right side this provider has a part; who only adds something multiplies by zero."""
        terms = list(enumerate(course.job.terms))
        return [(i, term) for i, term in terms if self.me in term[1].holders] or terms[:1]

    async def _read(self, left: Left) -> Ciphertext:
        """A left side as it was sent, without its public part."""
        entry = left.matrix.cache[left.key]
        if isinstance(entry, Ciphertext):
            return entry
        ciphertext: Ciphertext = await self.net.compute(read_ciphertext, *entry)
        return ciphertext

    async def _encoded(self, course: Course, i: int, share: Integers) -> go.Right:
        """A part of a right side; it is used once, and large: nobody keeps it."""
        y, layout = course.job.terms[i][1], course.widths.layouts[i]
        right: go.Right = await self.net.compute(encode_right, course.ring, y, share, layout)
        return right

    # ---- product by product ----

    async def _run(self, rounds: Sequence[Sequence[Course]], totals: dict[int, Integers]) -> None:
        digest = digest_of(self.session, "chain", *(domain for _, domain in self._seconds.values()))
        for courses in rounds:
            bodies = [await self._link(course) for course in courses]
            topic = f"products in a chain, from step {courses[0].step}"
            notes = await self.net.agree(topic, digest, self.providers, b"".join(bodies))
            digest = digest_of(digest, *(notes[p] for p in self.providers))
            sizes = [len(body) for body in bodies]
            cut = {str(p): _cut(str(p), notes[p], sizes) for p in self.providers}
            for i, course in enumerate(courses):
                parts = [pieces[i] for pieces in cut.values()]
                totals[course.step] = await self.net.compute(masked_total, course.ring, course.widths, parts)
        # The last messages are compared with all else before anything is opened.
        self._accounts.see(self.all_providers, "chain", self.next_step(), digest)
        self._news = True

    async def _link(self, course: Course) -> memoryview:
        """What this provider adds to a masked total."""
        second, _ = self._seconds.pop(course.step)
        public, products = [], []
        for i, (x, y) in self._mine(course):
            if y.carried is not None:
                right = await self._encoded(course, i, await y.carried.value())
                public.append((await self._read(course.left(i)), right))
            if x.carried is not None:
                shift = course.widths.shifts[i]
                products.append((await x.carried.value(), await self._owned(y), shift))
        own = Own(
            self._firsts.pop(course.step, None), tuple(products), self.me == self._carrier(course.group)
        )
        return await self.net.compute(link, *self._masking(course), second, public, own)


# ---- heavy steps ----


def drawn_share(
    secret: go.Secret, layout: Layout, clearing: Clearing, seed: bytes, domain: bytes
) -> Integers:
    """Minus the masks that :func:`link` will add, truncated."""
    nothing = bytes(layout.out_polys * secret.ring.poly_size)
    return secret.refresh(nothing, layout, clearing, seed, domain)[1]


class Own(NamedTuple):
    """A provider's own part of a masked total."""

    first: Buffer | None
    """First halves of what was prepared, if it multiplied anything."""
    products: tuple[tuple[Integers, Integers, int], ...]
    """The public part of a left side, its own part of the right one, and a shift."""
    carries: bool
    """Whether it also adds the first halves that everybody knows."""

    def __repr__(self) -> str:
        return "Own(...)"


def link(
    secret: go.Secret,
    layout: Layout,
    clearing: Clearing,
    seed: bytes,
    domain: bytes,
    second: Buffer,
    public: Sequence[tuple[Ciphertext, go.Right]],
    own: Own,
) -> memoryview:
    """First halves at the results' places, the decryption share and the mask, added up."""
    total = go.ProductSum(secret.ring, layout)
    if own.first is not None:
        total.add_share(own.first)
    if public:
        known, second = go.add_public(second, public)
        if own.carries:
            total.add_share(known)
    for x, y, shift in own.products:
        total.add_product(x, y, shift)
    total.add_share(secret.refresh(second, layout, clearing, seed, domain)[0])
    return total.total()


def masked_total(ring: Ring, widths: Widths, parts: Sequence[Buffer]) -> Integers:
    """Everybody's parts of a masked total, added up and truncated."""
    total = go.ProductSum(ring, widths.layouts[0])
    for part in parts:
        total.add_share(part)
    return total.clear(widths.clearing)


def _cut(name: str, note: bytes, sizes: Sequence[int]) -> list[memoryview]:
    """A round's message, product by product."""
    if len(note) != sum(sizes):
        raise MessageError(f"{name} sent {len(note)} bytes of masked products, {sum(sizes)} were due")
    ends = np.cumsum(sizes)
    return [memoryview(note)[end - size : end] for end, size in zip(ends, sizes, strict=True)]
