"""A machine that only counts: shapes, messages and their sizes, work and memory of all roles."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from atoll.crypto import products as go
from atoll.crypto.shamir import SHARE_BYTES
from atoll.secret_matrices.blinds import blind_bytes
from atoll.secret_matrices.checks import Circle, note_bytes
from atoll.secret_matrices.costs.costing import Allocation, Costing, Total
from atoll.secret_matrices.costs.wires import COORDINATOR, FRAME, TOPIC, Wires
from atoll.secret_matrices.courses import Left, goes_ahead, lefts, to_encrypt
from atoll.secret_matrices.machine import (
    EVERY_PRECISION,
    Coefficient,
    Floats,
    Group,
    Job,
    Machine,
    Precision,
    Shared,
    concerned,
)
from atoll.secret_matrices.widths import Widths, rings_for, widths_for

_POINT = 150
"""Bytes of a share of a dealt output, beside its numbers and everybody's commitments."""
_SEED = 32

T = TypeVar("T")


class Counted(Wires, Machine):
    """Shapes and message sizes of all roles; the ``share`` of a matrix is its number of words."""

    def __init__(
        self,
        providers: Sequence[str],
        total: float = 0.5,
        costing: Costing | None = None,
        *,
        then: float = 0.0,
    ) -> None:
        super().__init__(providers, costing)
        self.everybody = frozenset({COORDINATOR, *providers})
        # What providers compare before the next opening: groups of products, and masked totals by carrier.
        self._circles: dict[Circle, None] = {}
        self._settled: list[Total] = []
        self._pending: list[Total] = []
        self._untaken: list[Total] = []
        self._news = False
        self._keys: dict[tuple[Any, Group], list[Allocation]] = {}
        self._opened_numbers = [total, then]  # total variance; tau

    # ---- comparisons ----

    def check(self, *, last: bool = False) -> None:
        """Counts the comparison of providers before a decryption share leaves, an opening or a release."""
        due = [total for total in self._pending if last or total.shown]
        if due:
            self._settled += due
            self._pending = [total for total in self._pending if total not in due]
            self._news = True
        if not self._news:
            return
        self._tell_accounts()
        self._read_totals()
        self.heard()

    def _tell_accounts(self) -> None:
        """Providers send each other their accounts, which carriers need their masked totals for."""
        self._news = False
        for total in self._settled:
            if not total.shown:
                self.deepen([total.carrier], total.depth)
        self._untaken += [total for total in self._settled if total.shown]
        self._settled = []
        most = max(sum(name in circle.group for circle in self._circles) for name in self.providers)
        self._circles = {}
        self.told(most * note_bytes() + TOPIC)

    def _read_totals(self) -> None:
        """All members of a group read its totals, before they compare."""
        for total in self._untaken:
            self.deepen(total.group, total.depth)
            self._account(total.size, total.group)
            self.costing.digest(total.size, self._indices(total.group))
        self._untaken = []

    def _begin(self, groups: Sequence[Group]) -> None:
        self._settled, self._pending, self._news = self._settled + self._pending, [], True
        self._reopen(groups)

    def _reopen(self, groups: Sequence[Group]) -> None:
        self._circles |= dict.fromkeys(Circle(group, group) for group in groups)

    def _tell_all(self) -> None:
        """All providers were told something that they compare."""
        everybody = frozenset(self.providers)
        self._circles[Circle(everybody, everybody)], self._news = None, True

    def _carrier(self, group: Group) -> str:
        return next(name for name in self.providers if name in group)

    # ---- the machine ----

    async def set_up(self, precisions: Sequence[Precision] = EVERY_PRECISION) -> None:
        """Seeds, commitments and key parts."""
        await super().set_up(precisions)
        keys = sum(rings_for(one)[-1].poly_size for one in precisions)
        self.gathered(_SEED)
        self.broadcast((_SEED + 2) * self.n_providers)
        self.costing.keys(keys)
        self.compared(2 * _SEED + TOPIC)
        self.gathered(keys)
        self.broadcast(keys * self.n_providers)

    def private(
        self,
        owner: str | None,
        values: Any,  # noqa: ARG002  nothing is known here
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        holders = frozenset({owner}) if owner else self.everybody - {COORDINATOR}
        self.costing.own(shape[0] * shape[1], fraction + bits, self._indices(holders))
        return Shared(shape, fraction, bits, (fraction + bits) // 64 + 1, holders, norm_bits, known=True)

    async def _one_round(self, jobs: Sequence[Job]) -> list[Shared]:
        groups = [concerned(frozenset(self.providers), job) for job in jobs]
        all_widths = [
            widths_for(len(group), job, precisions=self.precisions)
            for job, group in zip(jobs, groups, strict=True)
        ]
        ahead = [goes_ahead(*one) for one in zip(jobs, all_widths, groups, strict=True)]
        made = list(zip(jobs, all_widths, groups, ahead, strict=True))
        self._begin(groups)
        wanted = self._encrypt([one[:3] for one in made])
        sums = [self._multiply(*one[:3], ahead=True) for one in made if one[3]]
        self._assemble(wanted, all_ahead=all(ahead))
        for job, widths, group, early in made:
            if not early:
                sums.append(self._multiply(job, widths, group))
        self._tell_accounts()
        if all(ahead):
            self._take(wanted, all_ahead=True)
        for _, widths, group, _ in made:
            self._account(widths.layouts[0].out_polys * widths.ring.poly_size, group)
            self.broadcast(widths.layouts[0].out_polys * widths.ring.poly_size, group)
        self._read_totals()
        self.heard()
        self._reopen(groups)  # for their totals
        for job, widths, group, early in made:
            self._refresh(job, widths, group, ahead=early)
        del sums  # the coordinator's, in use until here
        return [
            Shared(
                (p.layouts[0].rows, p.layouts[0].cols),
                j.fraction,
                j.bits,
                p.clearing.share_words,
                group | {COORDINATOR},
                carrier=total.carrier,
                shown=group if total.shown else frozenset({total.carrier}),
                carried=total.depth,
            )
            for j, p, group, total in zip(jobs, all_widths, groups, self._pending, strict=True)
        ]

    def _refresh(self, job: Job, widths: Widths, group: Group, *, ahead: bool) -> None:
        """Masked shares to the coordinator, and the total to who is sent it."""
        y, ring = widths.layouts[0], widths.ring
        size, who = ring.residues_size(y.rows * y.cols), self._indices(group)
        self.costing.refresh(widths, who)
        if ahead:
            self._rest_of_product(job, widths, group)
        self._account(size, group)
        self.gathered(size + blind_bytes(ring), group)
        carrier = self._carrier(group)
        readers = [name for name in self.providers if name in (group if job.ahead else {carrier})]
        self.messages += len(readers)
        self.coordinator_bytes += len(readers) * (size + blind_bytes(ring) + FRAME)
        self._pending.append(Total(group, carrier, job.ahead, self.coordinator_depth + 1, size))
        self.costing.clear(widths, len(group), self._indices(readers))

    def _rest_of_product(self, job: Job, widths: Widths, group: Group) -> None:
        """First halves; of the coordinator's part of right sides all make second halves, its carrier both."""
        ring = widths.ring
        for (_, right), layout in zip(job.terms, widths.layouts, strict=True):
            self.costing.multiply(ring, layout, self._indices(right.holders))
            if right.carrier is None:
                continue
            who, key = self._indices(group), ("public right", ring.name, layout)
            if key not in right.cache:
                right.cache[key] = self.costing.encode(ring, layout, who)
            self.costing.multiply(ring, layout, who)
            self.costing.multiply(ring, layout, self._indices([right.carrier]))

    def _needed(self, x: Shared) -> None:
        """The carrier waits for the masked total, where it multiplies or opens it."""
        if x.carrier is not None and x.carried is not None:
            self.deepen([x.carrier], x.carried)

    def _account(self, size: int, who: Iterable[str]) -> None:
        self.costing.fingerprint(size, self._indices(who))

    def _encrypt(self, made: Sequence[tuple[Job, Widths, Group]]) -> list[Left]:
        wanted = to_encrypt([left for one in made for left in lefts(*one)])
        for left in wanted:
            left.matrix.cache[left.key] = []  # of those who will read it
            self._circles[Circle(left.group, left.readers)] = None
            self.costing.encrypt(left.ring, left.layout, self._indices(left.group))
            self.gathered(left.layout.left_polys * left.ring.poly_size, left.group)
            left.sent()
        return wanted

    def _assemble(self, wanted: Sequence[Left], *, all_ahead: bool) -> None:
        """Encrypted matrices, from everybody's parts; where all products go ahead, providers tell their
        accounts before they read them, and add the coordinator's part themselves if all know it."""
        for left in wanted:
            x, ring, y = left.matrix, left.ring, left.layout
            adds = COORDINATOR in x.holders and not (left.is_shown and all_ahead)
            self.costing.assemble(ring, y, len(left.group), adds, self._indices([x.carrier or ""]))
        if not all_ahead:
            self._take(wanted, all_ahead=False)
        for left in wanted:
            if not (left.is_shown and all_ahead):
                self._needed(left.matrix)
            self._account(left.layout.left_polys * left.ring.poly_size, left.group)

    def _take(self, wanted: Sequence[Left], *, all_ahead: bool) -> None:
        for left in wanted:
            size, who = left.layout.left_polys * left.ring.poly_size, self._indices(left.readers)
            self.broadcast(size, left.readers)
            self._account(size, left.readers)
            self.costing.digest(size, who)
            if left.is_shown and all_ahead:
                self.costing.add_public(left.ring, left.layout, who)

    def _multiply(self, job: Job, widths: Widths, group: Group, *, ahead: bool = False) -> Allocation:
        """Everybody's products (or their second halves, ``ahead``), and their sum at the coordinator."""
        y, ring, plain = widths.layouts[0], widths.ring, job.plain
        for (x, right), left in zip(job.terms, lefts(job, widths, group), strict=True):
            if not ahead:
                self._needed(right)
            who, layout = self._indices(right.holders), left.layout
            readers = x.cache[left.key]
            if not readers:
                readers.extend(self.costing.read(ring, layout, who))
            key = ("right", ring.name, layout)
            if key not in right.cache:
                right.cache[key] = self.costing.encode(ring, layout, who)
            self.costing.multiply(ring, layout, who)
        if plain is not None:
            self._needed(plain)
            self.costing.align(y.rows * y.cols, self._indices(plain.holders))
        senders = self._senders(job)
        if (ring, group) not in self._keys:
            self._keys[ring, group] = self.costing.public_key(ring, self._indices(senders))
        self.costing.randomise(widths, self._indices(senders))
        size = y.out_polys * ring.poly_size + (0 if ahead else ring.residues_size(y.rows * y.cols))
        self._account(size, senders)
        self.gathered(size, senders)
        return self.costing.sum_products(widths, len(senders))

    def _senders(self, job: Job) -> list[str]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(p in y.holders for y in matrices)]

    # ---- linear steps ----

    def _made(self, matrices: Sequence[Shared], constant: bool = False, **public: Any) -> Shared:
        """Holders and carrier of what a linear step makes; as with real shares."""
        holders = frozenset().union(*(x.holders for x in matrices))
        carrier = next((x.carrier for x in matrices if x.carrier), self.providers[0] if constant else None)
        if constant:
            holders |= {COORDINATOR, str(carrier)}
        depth = max((x.carried for x in matrices if x.carried is not None), default=None)
        shown = frozenset(self.providers).intersection(*(x.shown for x in matrices if x.carrier is not None))
        public.setdefault("shape", matrices[0].shape)
        public.setdefault("share", matrices[0].share)
        public["known"], public["shown"] = all(x.known for x in matrices), shown if carrier else frozenset()
        return Shared(holders=holders, carrier=carrier, carried=depth, **public)

    def combine(
        self,
        terms: Sequence[tuple[Coefficient, Shared]],
        *,
        identity: Coefficient = 0.0,
        bits: int,
        fraction: int | None = None,
    ) -> Shared:
        first = terms[0][1]
        self.costing.combine(first.shape[0] * first.shape[1], len(terms), bool(identity))
        words = min(go.limits().max_words, max(x.share for _, x in terms) + 1)
        out = first.fraction if fraction is None else fraction
        matrices = [x for _, x in terms]
        return self._made(matrices, bool(identity), fraction=out, bits=bits, share=words)

    def transpose(self, x: Shared) -> Shared:
        shape = x.shape[::-1]
        return self._made([x], shape=shape, fraction=x.fraction, bits=x.bits, norm_bits=x.norm_bits)

    def hstack(self, matrices: Sequence[Shared]) -> Shared:
        shape = (matrices[0].shape[0], sum(x.shape[1] for x in matrices))
        words, bits = max(x.share for x in matrices), max(x.bits for x in matrices)
        return self._made(matrices, shape=shape, fraction=matrices[0].fraction, bits=bits, share=words)

    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        shape = (len(range(x.shape[0])[rows]), len(range(x.shape[1])[cols]))
        return self._made([x], shape=shape, fraction=x.fraction, bits=x.bits, norm_bits=x.norm_bits)

    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        self.costing.times_public(len(weights), *x.shape)
        return self._made([x], shape=(len(weights), x.shape[1]), fraction=fraction, bits=bits)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:  # noqa: ARG002
        self.costing.weighted(x.shape[0] * x.shape[1])
        return self._made([x], fraction=fraction, bits=bits, share=min(go.limits().max_words, x.share + 1))

    def plus_public(self, x: Shared, values: Floats) -> Shared:  # noqa: ARG002
        self.costing.plus_public(x.shape[0] * x.shape[1])
        return self._made([x], True, fraction=x.fraction, bits=x.bits + 1)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        return self._made([x], shape=shape, fraction=x.fraction, bits=x.bits)

    def trace(self, x: Shared, *, bits: int) -> Shared:
        self.costing.trace(x.shape[0] * x.shape[1])
        return self._made([x], shape=(1, 1), fraction=x.fraction, bits=bits, share=x.share + 1)

    def diagonal(self, x: Shared) -> Shared:
        return self._made([x], shape=(x.shape[0], 1), fraction=x.fraction, bits=x.bits)

    def diag(self, x: Shared) -> Shared:
        return self._made([x], shape=(x.shape[0], x.shape[0]), fraction=x.fraction, bits=x.bits)

    def triangle(self, x: Shared) -> Shared:
        size = x.shape[0]
        return self._made([x], shape=(size * (size + 1) // 2, 1), fraction=x.fraction, bits=x.bits)

    # ---- openings ----

    def _before_opening(self, x: Shared, *, last: bool = False) -> None:
        self.check(last=last)
        self._needed(x)

    async def opened_symmetric(self, x: Shared, *, smudge_bits: int) -> Floats:
        await super().opened_symmetric(x, smudge_bits=smudge_bits)
        return np.diag(0.25 * 0.8 ** np.arange(x.shape[0]))

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:  # noqa: ARG002
        self._before_opening(x)
        entries = x.shape[0] * x.shape[1]
        self.costing.smudge(entries)
        self.gathered(8 * x.share * entries)
        self.costing.added_up(entries, self.n_providers, at_provider=False)
        self.broadcast(8 * (x.share + 1) * entries)
        self.costing.as_floats(entries)
        self._tell_all()
        if x.shape == (1, 1):
            return np.array([[self._opened_numbers.pop(0)]])
        return np.zeros(x.shape)

    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:  # noqa: ARG002  noise costs nothing
        return x

    async def same(self, values: Floats, *, recomputed: bool = True) -> Floats:  # noqa: ARG002
        self.broadcast(8 * values.size)
        self._tell_all()
        return values

    async def dealt(self, matrices: Sequence[Shared], threshold: int) -> list[Shared]:
        self.check(last=True)
        for x in matrices:
            self._needed(x)
        numbers = sum(x.shape[0] * x.shape[1] for x in matrices)
        self.costing.deal(numbers, threshold)
        self.compared(SHARE_BYTES * numbers)
        self.compared(32 * len(matrices) + TOPIC)
        return [replace(x, dealt=threshold) for x in matrices]

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        if x.dealt is None:
            self._before_opening(x, last=True)
        numbers = x.shape[0] * x.shape[1]
        size = 8 * x.share * numbers + FRAME
        if x.dealt is not None:  # with everybody's commitments
            size = SHARE_BYTES * numbers + 32 * self.n_providers + _POINT
        to = self.handed_out(size, receivers)
        if to:
            self.costing.added_up(x.shape[0] * x.shape[1], self.n_providers, at_provider=True)
        return None


def at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Steps on a machine that counts: they wait for nobody, so no event loop is needed. The caller may be in
    one, as a notebook and a node are."""
    try:
        steps.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a counted step waits for something")
