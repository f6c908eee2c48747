"""Products on their way, and the heavy steps that a role does alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from atoll.crypto import products as go
from atoll.crypto.digest import digest
from atoll.crypto.products import Buffer, Ciphertext, Integers, Layout, Ring, streamed_right
from atoll.secret_matrices import blinds
from atoll.secret_matrices.carried import Carried
from atoll.secret_matrices.checks import Checks
from atoll.secret_matrices.machine import Group, Job, Shared
from atoll.secret_matrices.openings import check_step
from atoll.secret_matrices.widths import Widths

_MOST_ENCODED = 4
"""Polynomials of a right side for each one of the product, up to which encoding them twice is little work."""


def digest_of(*parts: Buffer | str | int) -> bytes:
    """A digest of several parts; each part's length is in it."""
    state = hashlib.sha256()
    for part in parts:
        data = str(part).encode() if isinstance(part, str | int) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()


class Left(NamedTuple):
    """A matrix that is encrypted for the left side of products, once for each way of using it."""

    ring: Ring
    group: Group
    matrix: Shared
    layout: Layout
    shift: int
    readers: Group
    """Who multiplies with it: nobody else is sent it."""

    @property
    def is_shown(self) -> bool:
        """Whether its readers know the coordinator's part of the matrix."""
        return self.matrix.carrier is not None and self.readers <= self.matrix.shown

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of its ciphertext in the matrix's cache."""
        y = self.layout
        blocks = (y.block_rows, y.block_inner, y.block_cols, y.entrywise)
        return (self.ring, self.group, *blocks, self.shift)

    @property
    def cached_by(self) -> Group:
        """Those who have this ciphertext in their cache."""
        readers: Group = self.matrix.cache.get(("readers", *self.key), frozenset())
        return readers

    def sent(self) -> None:
        """From now on its readers have it."""
        self.matrix.cache["readers", *self.key] = self.readers


def lefts(job: Job, widths: Widths, group: Group) -> list[Left]:
    """The left sides of a product, for whoever multiplies with them."""
    holders = [group & y.holders for _, y in job.terms]
    if job.plain is not None:
        # Who only adds something multiplies the first left side, by zero.
        holders[0] |= (group & job.plain.holders) - frozenset().union(*holders)
    return [
        Left(widths.ring, group, x, layout, shift, readers)
        for (x, _), layout, shift, readers in zip(
            job.terms, widths.layouts, widths.shifts, holders, strict=True
        )
    ]


def to_encrypt(wanted: Sequence[Left]) -> list[Left]:
    """The left sides that some reader does not have yet, each once for all who need it."""
    missing: dict[tuple[int, tuple[Any, ...]], Left] = {}
    for left in wanted:
        if not left.readers <= left.cached_by:
            place = id(left.matrix), left.key
            others = missing.get(place, left).readers | left.cached_by
            missing[place] = left._replace(readers=left.readers | others)
    return list(missing.values())


def goes_ahead(job: Job, widths: Widths, group: Group) -> bool:
    """Whether a product's second halves travel beside the encryption of its left sides.

    A right side that is encoded in every product is encoded twice for it: not where that is much of its work.
    All members of the group need the coordinator's part of the right sides.
    """
    much = any(
        streamed_right(widths.ring, layout) and layout.right_polys > _MOST_ENCODED * layout.out_polys
        for layout in widths.layouts
    )
    shown = all(y.carrier is None or group <= y.shown for _, y in job.terms)
    return job.ahead and job.plain is None and shown and not much


@dataclass(eq=False)
class Course:
    """One product on its way."""

    job: Job
    widths: Widths
    group: Group
    step: int
    ahead: bool = False
    """Whether its second halves travel beside the encryption of its left sides."""
    zero: bytes | None = field(default=None, repr=False)
    """The seed of the encryption of zero in both halves, which are made at different times."""
    carried: Carried | None = None
    """Of who is sent it, the masked total, truncated."""
    given: list[int] | None = None
    """Fingerprints of what this provider gave to its masked total."""
    blind: list[int] | None = field(default=None, repr=False)
    """What hides them until the total is out."""

    @property
    def ring(self) -> Ring:
        """The ring of the product."""
        return self.widths.ring

    @property
    def readers(self) -> Group:
        """Who is sent its second halves."""
        return self.group

    @property
    def entries(self) -> int:
        """The number of entries of the result."""
        return self.widths.layouts[0].rows * self.widths.layouts[0].cols

    def left(self, index: int) -> Left:
        """A term's left side."""
        return lefts(self.job, self.widths, self.group)[index]

    def give(self, residues: list[int]) -> None:
        """Fingerprints of one more message that enters the total."""
        before = self.given or [0] * len(residues)
        self.given = [a + b for a, b in zip(before, residues, strict=True)]


# ---- local steps ----


class Total(NamedTuple):
    """A masked result: its fingerprints, the sum of blinds, its digest, and what truncation leaves of it."""

    residues: list[int]
    blind: list[int]
    digest: bytes
    share: Integers


def cleared(checks: Checks, widths: Widths, body: Buffer, blind: bytes, entries: int) -> Total:
    """What a provider makes of a masked total; one that is wider than its masks ends the run."""
    digest, residues = seen(checks, widths.ring, body, entries)
    share = go.clear_total(widths.ring, widths.layouts[0], body, widths.clearing)
    return Total(residues, blinds.residues(widths.ring, blind), digest_of(digest, blind), share)


def fingerprint(checks: Checks, ring: Ring, body: Buffer, count: int) -> list[int]:
    """The fingerprints of a message, as a step with a name of its own in transcripts."""
    return checks.fingerprint(ring, body, count)


def seen(checks: Checks, ring: Ring, body: Buffer, count: int) -> tuple[bytes, list[int]]:
    """The digest of a large message, and its fingerprints."""
    return digest(body), checks.fingerprint(ring, body, count)


def encode_right(ring: Ring, y: Shared, share: Integers, layout: Layout) -> go.Right:
    """A right side, for this and later products."""
    limit = y.fraction + y.bits if y.known else 64 * share.shape[2]
    return go.Right(ring, share, limit, layout)


def multiply(
    key: go.PublicKey,
    pairs: Sequence[tuple[Ciphertext, go.Right]],
    plain: Integers | None,
    limit: int,
    seed: bytes,
    domain: bytes,
) -> memoryview:
    """The sum of products, re-randomised."""
    return go.multiply(key, pairs, plain=plain, limit=limit, seed=seed, domain=domain)


def second_half(
    key: go.PublicKey, pairs: Sequence[tuple[Ciphertext, go.Right]], seed: bytes, domain: bytes
) -> memoryview:
    """The second half of a sum of products, re-randomised."""
    return go.second_half(key, pairs, seed=seed, domain=domain)


def read_ciphertext(ring: Ring, layout: Layout, body: Buffer | None, common: bytes) -> Ciphertext:
    """A ciphertext, from its first halves (None: they are not here yet) and the common seed."""
    return Ciphertext(ring, layout, body, common)


def aligned(
    plain: Integers, fraction: int, widths: Widths, terms: Sequence[tuple[Shared, Shared]]
) -> Integers:
    """The plain summand at the scale of the product."""
    x, y = terms[0]
    up = x.fraction + y.fraction + widths.shifts[0] - fraction
    return go.from_ints(go.to_ints(plain) << up, widths.clearing.value_bits // 64 + 1)


def for_step(message: Any, step: int) -> memoryview:
    """A message's body, if it is for this step."""
    check_step(message.step, step)
    body: memoryview = message.body
    return body
