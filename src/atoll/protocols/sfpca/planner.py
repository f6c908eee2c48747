"""What a run will cost: the recipes run on shapes alone, every message counted.

Messages and rounds do not depend on the data and come out exactly, as long as the first certificate
holds; those of projections follow from the number of rows. Bytes depend a little on the data's scale. Where
nobody states them beforehand, typical ones are assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

from atoll import secure_sums
from atoll.crypto.hazmat import product as go
from atoll.privacy.dp_moments import Centre
from atoll.protocols.base import Expectation
from atoll.protocols.private_release import stage_lengths
from atoll.protocols.released import CONSUMER, PROVIDER
from atoll.protocols.sfpca import private
from atoll.protocols.sfpca.bounds import Widths, plan_for
from atoll.protocols.sfpca.columns import evenly_split
from atoll.protocols.sfpca.costing import Costing, Held
from atoll.protocols.sfpca.covariance import POLICIES
from atoll.protocols.sfpca.direct import Inputs, direct
from atoll.protocols.sfpca.parameters import VERTICAL, SFPCAParameters, attempts, components_for
from atoll.protocols.sfpca.parties import FAMILIES
from atoll.protocols.sfpca.private import Noisy, private_direct
from atoll.protocols.sfpca.ranges import LEVELS
from atoll.protocols.sfpca.rates import shipped
from atoll.protocols.sfpca.rows import prefers_rows
from atoll.protocols.sfpca.scores import SCORE_ROWS, for_rows, score_job, score_owners
from atoll.protocols.sfpca.shared import Coefficient, Floats, Group, Job, Machine, Shared, concerned
from atoll.protocols.sfpca.strict import OVERSAMPLING, strict
from atoll.protocols.sfpca.timing import Effort
from atoll.protocols.sfpca.vertical import score_jobs
from atoll.study.model import Study

_FRAME = 40
"""Bytes of a message beside its body."""
_HUB = "coordinator"
_ROWS, _VALUES = 1 << 14, 1 << 24
"""Rows that an island is assumed to have, unless its table would have more values than that."""


class Counted(Machine):
    """Shapes and message sizes of all roles; the ``share`` of a matrix is its number of words."""

    def __init__(self, providers: Sequence[str], total: float = 0.5, costing: Costing | None = None) -> None:
        self.costing = costing or Costing(shipped(), Effort(len(providers)))
        self.lines = self.costing.effort.timelines
        self.providers = tuple(providers)
        self.parties = len(providers)
        self.everybody = frozenset({_HUB, *providers})
        self.messages = self.hub_bytes = 0
        self.sent = dict.fromkeys(self.providers, 0)
        self.keys: set[tuple[go.Ring, Group]] = set()
        # The longest chain of messages that ends at the coordinator, and at each provider.
        self.hub_depth, self.depths = 0, dict.fromkeys(self.providers, 0)
        self._opened_numbers = [total, 0.0]  # total variance; tau

    # ---- messages ----

    @property
    def provider_bytes(self) -> int:
        """What the busiest provider sends."""
        return max(self.sent.values())

    def gathered(self, size: int, senders: Iterable[str] | None = None) -> None:
        """A message of every provider (or some) to the coordinator."""
        names = list(self.providers if senders is None else senders)
        self.messages += len(names)
        for name in names:
            self.sent[name] += size + _FRAME
        self.hub_depth = max(self.hub_depth, *(self.depths[name] + 1 for name in names))
        self.costing.gathered(size + _FRAME, self._indices(names))

    def broadcast(self, size: int, receivers: Iterable[str] | None = None) -> None:
        """A message of the coordinator to every provider, or to some."""
        names = list(self.providers if receivers is None else receivers)
        self.messages += len(names)
        self.hub_bytes += len(names) * (size + _FRAME)
        self.deepen(names, self.hub_depth + 1)
        self.costing.broadcast(size + _FRAME, self._indices(names))

    @property
    def depth(self) -> int:
        """The longest chain of messages so far."""
        return max(self.hub_depth, *self.depths.values())

    def deepen(self, names: Iterable[str], depth: int) -> None:
        """A chain of this length reached some providers."""
        self.depths.update((name, max(self.depths[name], depth)) for name in names)

    def _indices(self, names: Iterable[str]) -> list[int]:
        wanted = set(names)
        return [i for i, name in enumerate(self.providers) if name in wanted]

    # ---- the machine ----

    def private(
        self,
        owner: str | None,
        values: Any,  # noqa: ARG002  nothing is known here
        shape: tuple[int, int],
        fraction: int,
        bits: int,
        norm_bits: int | None = None,
    ) -> Shared:
        holders = frozenset({owner}) if owner else self.everybody - {_HUB}
        self.costing.own(shape[0] * shape[1], fraction + bits, self._indices(holders))
        return Shared(shape, fraction, bits, (fraction + bits) // 64 + 1, holders, norm_bits, known=True)

    async def products(self, jobs: Sequence[Job]) -> list[Shared]:
        groups = [concerned(frozenset(self.providers), job) for job in jobs]
        plans = [plan_for(len(group), job) for job, group in zip(jobs, groups, strict=True)]
        self._agree_keys(plans, groups)
        self._encrypt(jobs, plans, groups)
        sums = []
        for job, plan, group in zip(jobs, plans, groups, strict=True):
            sums.append(self._multiply(job, plan, group))
        for plan, group in zip(plans, groups, strict=True):
            self.broadcast(plan.layouts[0].out_polys * plan.ring.poly_size, group)
        for plan, group in zip(plans, groups, strict=True):
            y = plan.layouts[0]
            self.costing.refresh(plan, self._indices(group))
            self.gathered(plan.ring.residues_size(y.rows * y.cols), group)
            self.costing.clear(plan, len(group))
        del sums  # the coordinator's, held until here
        return [
            Shared(
                (p.layouts[0].rows, p.layouts[0].cols),
                j.fraction,
                j.bits,
                p.clearing.share_words,
                group | {_HUB},
            )
            for j, p, group in zip(jobs, plans, groups, strict=True)
        ]

    def _agree_keys(self, plans: Sequence[Widths], groups: Sequence[Group]) -> None:
        """The keys of all providers are there from the start; those of some are sent when needed."""
        for plan, group in zip(plans, groups, strict=True):
            if len(group) < self.parties and (plan.ring, group) not in self.keys:
                self.keys.add((plan.ring, group))
                # Nobody waits for it: it travels while left sides are encrypted.
                self.messages += len(group)
                self.hub_bytes += len(group) * (plan.ring.poly_size + _FRAME)
                self.costing.group_key(self._indices(group))

    def _encrypt(self, jobs: Sequence[Job], plans: Sequence[Widths], groups: Sequence[Group]) -> None:
        wanted = []
        for job, plan, group in zip(jobs, plans, groups, strict=True):
            for (x, _), y, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True):
                key = _left_key(plan, group, y, shift)
                if key not in x.kept:
                    x.kept[key] = []  # of those who will read it
                    wanted.append((x, plan.ring, y, group))
        for _, ring, y, group in wanted:
            self.costing.encrypt(ring, y, self._indices(group))
            self.gathered(y.left_polys * ring.poly_size, group)
        for x, ring, y, group in wanted:
            self.costing.assemble(ring, y, len(group), _HUB in x.holders)
            self.broadcast(y.left_polys * ring.poly_size, group)

    def _multiply(self, job: Job, plan: Widths, group: Group) -> Held:
        """Everybody's products, and their sum at the coordinator."""
        y, ring, plain = plan.layouts[0], plan.ring, job.plain
        for (x, right), layout, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True):
            who, hub = self._indices(right.holders), _HUB in right.holders
            readers = x.kept[_left_key(plan, group, layout, shift)]
            if not readers:
                readers.extend(self.costing.read(ring, layout, who, hub))
            key = ("right", ring.name, layout)
            if key not in right.kept:
                right.kept[key] = self.costing.encode(ring, layout, who, hub)
            self.costing.multiply(ring, layout, who, hub)
        if plain is not None:
            self.costing.align(y.rows * y.cols, self._indices(plain.holders), _HUB in plain.holders)
        senders = self._senders(job)
        hub = any(_HUB in right.holders for _, right in job.terms)
        self.costing.randomise(plan, self._indices(senders), hub)
        self.gathered(ring.residues_size(y.rows * y.cols) + y.out_polys * ring.poly_size, senders)
        return self.costing.sum_products(plan, len(senders) + hub)

    def _senders(self, job: Job) -> list[str]:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return [p for p in self.providers if any(p in y.holders for y in matrices)]

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
        holders = frozenset().union(*(x.holders for _, x in terms), {_HUB} if identity else ())
        words = min(go.MAX_WORDS, max(x.share for _, x in terms) + 1)
        known = all(x.known for _, x in terms)
        out = first.fraction if fraction is None else fraction
        return Shared(first.shape, out, bits, words, holders, known=known)

    def turned(self, x: Shared) -> Shared:
        return Shared(x.shape[::-1], x.fraction, x.bits, x.share, x.holders, x.norm_bits, x.known)

    def beside(self, matrices: Sequence[Shared]) -> Shared:
        shape = (matrices[0].shape[0], sum(x.shape[1] for x in matrices))
        holders = frozenset().union(*(x.holders for x in matrices))
        words, bits = max(x.share for x in matrices), max(x.bits for x in matrices)
        known = all(x.known for x in matrices)
        return Shared(shape, matrices[0].fraction, bits, words, holders, known=known)

    def part(self, x: Shared, rows: slice, cols: slice) -> Shared:
        shape = (len(range(x.shape[0])[rows]), len(range(x.shape[1])[cols]))
        return Shared(shape, x.fraction, x.bits, x.share, x.holders, x.norm_bits, x.known)

    def times_public(self, weights: Floats, x: Shared, *, fraction: int, bits: int) -> Shared:
        self.costing.times_public(len(weights), *x.shape)
        return Shared((len(weights), x.shape[1]), fraction, bits, x.share, x.holders, known=x.known)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:  # noqa: ARG002
        self.costing.weighted(x.shape[0] * x.shape[1])
        return Shared(x.shape, fraction, bits, min(go.MAX_WORDS, x.share + 1), x.holders, known=x.known)

    def plus_public(self, x: Shared, values: Floats) -> Shared:  # noqa: ARG002
        self.costing.plus_public(x.shape[0] * x.shape[1])
        return Shared(x.shape, x.fraction, x.bits + 1, x.share, x.holders | {_HUB}, known=x.known)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        return Shared(shape, x.fraction, x.bits, x.share, x.holders, None, x.known)

    def trace(self, x: Shared, *, bits: int) -> Shared:
        self.costing.trace(x.shape[0] * x.shape[1])
        return Shared((1, 1), x.fraction, bits, x.share + 1, x.holders, known=x.known)

    def diagonal(self, x: Shared) -> Shared:
        return Shared((x.shape[0], 1), x.fraction, x.bits, x.share, x.holders, known=x.known)

    def spread(self, x: Shared) -> Shared:
        return Shared((x.shape[0], x.shape[0]), x.fraction, x.bits, x.share, x.holders, known=x.known)

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:  # noqa: ARG002
        entries = x.shape[0] * x.shape[1]
        self.costing.smudge(entries)
        self.gathered(8 * x.share * entries)
        self.costing.added_up(entries, self.parties + 1, at_provider=False)
        self.broadcast(8 * (x.share + 1) * entries)
        self.costing.as_floats(entries)
        if x.shape == (1, 1):
            return np.array([[self._opened_numbers.pop(0)]])
        return np.diag(0.25 * 0.8 ** np.arange(x.shape[0]))

    async def same(self, values: Floats) -> Floats:
        self.broadcast(8 * values.size)
        return values

    def smudged(self, x: Shared, *, smudge_bits: int) -> Shared:  # noqa: ARG002  noise costs nothing
        return x

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        size = 8 * x.share * x.shape[0] * x.shape[1] + _FRAME
        to = [name for name in self.providers if name in receivers]
        hub, guests = _HUB in receivers, len(receivers) - len(to) - (_HUB in receivers)
        outside = guests + hub
        self.messages += (outside + len(to)) * (self.parties + 1) - len(to) - hub
        for name in self.providers:
            self.sent[name] += size * (outside + len(to) - (name in to))
        self.hub_bytes += size * (guests + len(to))
        latest = self.depth + 1
        self.deepen(to, latest)
        if hub:
            self.hub_depth = latest
        for line in self.lines:
            line.exchanged(size * max(1, len(receivers)))
        if to:
            self.costing.added_up(x.shape[0] * x.shape[1], self.parties + 1, at_provider=True)
        return None


class Plan(NamedTuple):
    """One course of a run, counted to its end."""

    machine: Counted
    rounds: int

    @property
    def bytes_total(self) -> int:
        """What everybody sends."""
        return sum(self.machine.sent.values()) + self.machine.hub_bytes

    @property
    def expected(self) -> Expectation:
        """Messages, bytes, the coordinator's memory, and rounds."""
        machine = self.machine
        memory = machine.costing.hub_memory.most
        return Expectation(machine.messages, machine.provider_bytes, self.bytes_total, memory, self.rounds)


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes, memory and rounds of a run over d columns."""
    p = study.read_parameters(SFPCAParameters)
    rows = (assumed_rows(d),) * len(study.who(PROVIDER))
    k = components_for(p, None, d)
    return planned(study, attempts(p, k, d)[0], Shape(rows, d, k)).expected


class Shape(NamedTuple):
    """The tables, and how many components of them."""

    rows: Sequence[int]
    columns: int
    k: int


def planned(study: Study, recipe: str, shape: Shape, costing: Costing | None = None) -> Plan:
    """The whole run with one recipe, on shapes."""
    p, providers = study.read_parameters(SFPCAParameters), study.who(PROVIDER)
    rows, d, k = shape
    # Strict opens the total variance in units of the columns' range: an eighth of it for each, say.
    total = 0.5 if recipe == "direct" else max(0.5, d / 8)
    if p.standardize:
        total = d / 2.0 ** ceil(log2(d))  # no column is constant
    machine = Counted([str(a) for a in providers], total, costing)
    names = 20 * d
    machine.gathered(names)
    machine.broadcast(names)
    machine.gathered(2)
    machine.broadcast(4 * len(providers))
    noisy = _count_centre(study, machine, d, sum(rows)) if p.epsilon is not None else None
    if noisy is None and p.bounds is None:
        _count_range(study, machine, d if p.standardize else 1)
    exact = p.standardize or (recipe == "direct" and noisy is None and study.partition != VERTICAL)
    keep_rows = study.partition == VERTICAL or (recipe != "direct" and not exact and prefers_rows(rows, d))
    machine.costing.moments(rows, own_columns(study, d), exact=exact, keep_rows=keep_rows)
    _count_keys(machine)
    found = asyncio.run(_run(machine, recipe, k, _inputs(study, machine, d, tuple(rows)), noisy))
    return Plan(machine, _count_outputs(study, machine, found, shape))


def joint_rows(study: Study, rows: Sequence[int]) -> int:
    """n: the islands' rows together, or the rows that they have in common."""
    return rows[0] if study.partition == VERTICAL else sum(rows)


def own_columns(study: Study, d: int) -> int:
    """Columns of one island's table."""
    return -(-d // len(study.who(PROVIDER))) if study.partition == VERTICAL else d


def assumed_rows(d: int) -> int:
    """Rows of an island, where nobody says."""
    return max(1, min(_ROWS, _VALUES // d))


def _inputs(study: Study, machine: Counted, d: int, rows: tuple[int, ...]) -> Inputs:
    """What everybody knows beforehand."""
    if study.partition == VERTICAL:
        split = evenly_split(machine.providers, d, rows[0])
        return Inputs(rows[0], d, machine.providers, "nobody", None, None, split=split)
    standardize = study.read_parameters(SFPCAParameters).standardize
    return Inputs(sum(rows), d, machine.providers, "nobody", None, None, rows, standardize=standardize)


async def _run(machine: Counted, recipe: str, k: int, inputs: Inputs, noisy: Noisy | None) -> Any:
    d = inputs.columns
    if noisy is not None:
        machine.costing.rotation(d)
        return await private_direct(machine, inputs, k, noisy)
    if recipe == "direct":
        machine.costing.rotation(d)
        return await direct(machine, inputs, k)
    rho = min(k + OVERSAMPLING, d)
    machine.costing.gaussians(rho * d)
    machine.costing.rotation(rho)
    return await strict(machine, inputs, k, POLICIES[recipe])


def _count_range(study: Study, machine: Counted, columns: int) -> None:
    _count_sums(study, machine, [columns * len(LEVELS)], 2 * columns)


def _count_sums(study: Study, machine: Counted, lengths: list[int], answer: int) -> None:
    """Secure sums in one session, each answered by the coordinator."""
    cost = secure_sums.expected(study, machine.parties, lengths)
    machine.messages += cost.messages
    for name in machine.sent:
        machine.sent[name] += cost.bytes_per_contributor
    # Seeds go from provider to provider, sums to the coordinator.
    machine.deepen(machine.providers, max(machine.depths.values()) + 1)
    for _ in lengths:
        machine.hub_depth = max(machine.depths.values()) + 1
        machine.broadcast(answer)


def _count_centre(study: Study, machine: Counted, d: int, n: int) -> Noisy:
    """The stages of the private centre, and the matrix that they lead to."""
    p = study.read_parameters(SFPCAParameters)
    named = p.columns or (tuple(p.bounds) if isinstance(p.bounds, dict) else tuple(map(str, range(d))))
    plan, _ = private.plan_of(study, named)
    _count_sums(study, machine, stage_lengths(plan)[:-1], 8 * d + 30)
    return private.noisy_matrix(plan, Centre(np.zeros(d), n, plan.row_norm), n)


def _count_keys(machine: Counted) -> None:
    keys = sum(go.family(name)[-1].poly_size for name in FAMILIES)
    machine.gathered(32)
    machine.broadcast(34 * machine.parties)
    machine.costing.keys()
    machine.gathered(keys)
    machine.broadcast(keys)


def _count_outputs(study: Study, machine: Counted, found: Any, shape: Shape) -> int:
    """Released shares and the coordinator's messages to consumers; returns the rounds of the whole run."""
    consumers = study.who(CONSUMER)
    sizes = {"explained_variance": 120, "n_samples": 60, "certificate": 60, "components": 20 * shape.columns}
    sent = {output: sum(study.releases(output, a) for a in consumers) for output in sizes}
    machine.messages += sum(sent.values()) + sent["n_samples"]
    machine.hub_bytes += sum(sizes[output] * count for output, count in sent.items())
    deepest = machine.depth
    if any(sent.values()):
        deepest = max(deepest, machine.hub_depth + 1)
    receivers = frozenset(_name(a) for a in study.receivers("components"))
    for x in (found.components, found.offset):
        if x is not None:
            deepest = max(deepest, machine.depth + 1 if receivers else 0)
            asyncio.run(machine.released(x, receivers))
    asyncio.run(_count_scores(study, machine, found, shape))
    return max(deepest, machine.depth)


async def _count_scores(study: Study, machine: Counted, found: Any, shape: Shape) -> None:
    """Projections, one block of rows after the other."""
    if study.partition == VERTICAL:
        await _count_common_scores(study, machine, found, shape)
        return
    rows = dict(zip(study.who(PROVIDER), shape.rows, strict=True))
    owners = [(str(a), rows[a]) for a in score_owners(study)]
    if owners:
        found = await for_rows(machine, found)
    for start in range(0, max((n for _, n in owners), default=0), SCORE_ROWS):
        due = [(owner, min(n - start, SCORE_ROWS)) for owner, n in owners if n > start]
        jobs = [score_job(machine, found, shape.columns, owner, count, None) for owner, count in due]
        for (owner, _), made in zip(due, await machine.products(jobs), strict=True):
            await machine.released(made, frozenset({owner}))


async def _count_common_scores(study: Study, machine: Counted, found: Any, shape: Shape) -> None:
    receivers = frozenset(_name(a) for a in study.receivers("scores"))
    split = evenly_split(machine.providers, shape.columns, shape.rows[0])
    for job in score_jobs(machine, found.components, split) if receivers else ():
        (made,) = await machine.products([job])
        await machine.released(made, receivers)


def _name(address: Any) -> str:
    return _HUB if address.role == _HUB else str(address)


def _left_key(plan: Widths, group: Group, y: go.Layout, shift: int) -> tuple[Any, ...]:
    return (plan.ring, group, y.block_rows, y.block_inner, y.block_cols, shift)
