"""What a run will cost: the recipes run on shapes alone, every message counted.

Messages and rounds do not depend on the data and come out exactly, as long as the first certificate
holds. Bytes depend a little on the data's scale and the number of rows, which nobody states beforehand;
typical ones are assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from atoll import secure_sums
from atoll.crypto.hazmat import product as go
from atoll.privacy.dp_moments import Centre
from atoll.protocols.base import Expectation
from atoll.protocols.private_release import stage_lengths
from atoll.protocols.released import CONSUMER, PROVIDER
from atoll.protocols.sfpca import private
from atoll.protocols.sfpca.bounds import Widths, plan_for
from atoll.protocols.sfpca.covariance import POLICIES
from atoll.protocols.sfpca.direct import Inputs, direct
from atoll.protocols.sfpca.parameters import SFPCAParameters, attempts
from atoll.protocols.sfpca.parties import FAMILIES
from atoll.protocols.sfpca.private import Noisy, private_direct
from atoll.protocols.sfpca.ranges import LEVELS
from atoll.protocols.sfpca.scores import SCORE_ROWS, score_job, score_owners
from atoll.protocols.sfpca.shared import Coefficient, Floats, Job, Machine, Shared
from atoll.protocols.sfpca.strict import strict
from atoll.study.model import Study

_FRAME = 40
"""Bytes of a message beside its body."""
_HUB = "coordinator"
_ROWS = 1 << 14
"""Rows that an island is assumed to have."""


class Counted(Machine):
    """Shapes and message sizes of all roles; the ``share`` of a matrix is its number of words."""

    def __init__(self, providers: Sequence[str], total: float = 0.5) -> None:
        self.providers = tuple(providers)
        self.parties = len(providers)
        self.everybody = frozenset({_HUB, *providers})
        self.messages = self.provider_bytes = self.hub_bytes = self.memory = 0
        # The longest chain of messages that ends at the coordinator, and at a provider.
        self.hub_depth = self.provider_depth = 0
        self._opened_numbers = [total, 1e9, 0.0]  # total variance; lengths of the basis; tau

    # ---- messages ----

    def gathered(self, size: int, senders: int | None = None) -> None:
        """A message of every provider (or some) to the coordinator; sizes are the largest provider's."""
        self.messages += self.parties if senders is None else senders
        self.provider_bytes += size + _FRAME
        self.hub_depth = max(self.hub_depth, self.provider_depth + 1)

    def broadcast(self, size: int) -> None:
        """A message of the coordinator to every provider."""
        self.messages += self.parties
        self.hub_bytes += self.parties * (size + _FRAME)
        self.provider_depth = max(self.provider_depth, self.hub_depth + 1)

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
        return Shared(shape, fraction, bits, (fraction + bits) // 64 + 1, holders, norm_bits, known=True)

    async def products(self, jobs: Sequence[Job]) -> list[Shared]:
        plans = [plan_for(self.parties, job) for job in jobs]
        self._encrypt(jobs, plans)
        senders = [self._senders(job) for job in jobs]
        for plan, count in zip(plans, senders, strict=True):
            y, ring = plan.layouts[0], plan.ring
            useful = ring.residues_size(y.rows * y.cols)
            self.gathered(useful + y.out_polys * ring.poly_size, count)
        for plan in plans:
            self.broadcast(plan.layouts[0].out_polys * plan.ring.poly_size)
        for plan in plans:
            y = plan.layouts[0]
            self.gathered(plan.ring.residues_size(y.rows * y.cols))
        return [
            Shared(
                (p.layouts[0].rows, p.layouts[0].cols),
                j.fraction,
                j.bits,
                p.clearing.share_words,
                self.everybody,
            )
            for j, p in zip(jobs, plans, strict=True)
        ]

    def _encrypt(self, jobs: Sequence[Job], plans: Sequence[Widths]) -> None:
        sizes = []
        for job, plan in zip(jobs, plans, strict=True):
            for (x, _), y, shift in zip(job.terms, plan.layouts, plan.shifts, strict=True):
                key = (plan.ring, y.block_rows, y.block_inner, y.block_cols, shift)
                words = 8 * plan.ring.degree * plan.ring.limbs
                held = 2 * (y.left_polys + y.out_polys) + self.parties * (y.left_polys + y.out_polys)
                self.memory = max(self.memory, words * held)
                if key not in x.kept:
                    x.kept[key] = True
                    sizes.append(y.left_polys * plan.ring.poly_size)
        for size in sizes:
            self.gathered(size)
        for size in sizes:
            self.broadcast(size)

    def _senders(self, job: Job) -> int:
        matrices = [y for _, y in job.terms] + ([job.plain] if job.plain is not None else [])
        return sum(any(p in y.holders for y in matrices) for p in self.providers)

    def combine(
        self,
        terms: Sequence[tuple[Coefficient, Shared]],
        *,
        identity: Coefficient = 0.0,
        bits: int,
        fraction: int | None = None,
    ) -> Shared:
        first = terms[0][1]
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
        return Shared((len(weights), x.shape[1]), fraction, bits, x.share, x.holders, known=x.known)

    def weighted(self, x: Shared, weights: Floats, *, fraction: int, bits: int) -> Shared:  # noqa: ARG002
        return Shared(x.shape, fraction, bits, min(go.MAX_WORDS, x.share + 1), x.holders, known=x.known)

    def plus_public(self, x: Shared, values: Floats) -> Shared:  # noqa: ARG002
        return Shared(x.shape, x.fraction, x.bits + 1, x.share, x.holders | {_HUB}, known=x.known)

    def reshaped(self, x: Shared, shape: tuple[int, int]) -> Shared:
        return Shared(shape, x.fraction, x.bits, x.share, x.holders, None, x.known)

    def trace(self, x: Shared, *, bits: int) -> Shared:
        return Shared((1, 1), x.fraction, bits, x.share + 1, x.holders, known=x.known)

    async def opened(self, x: Shared, *, smudge_bits: int) -> Floats:  # noqa: ARG002
        self.gathered(8 * x.share * x.shape[0] * x.shape[1])
        self.broadcast(8 * (x.share + 1) * x.shape[0] * x.shape[1])
        if x.shape == (1, 1):
            return np.array([[self._opened_numbers.pop(0)]])
        return np.diag(0.25 * 0.8 ** np.arange(x.shape[0]))

    async def same(self, values: Floats) -> Floats:
        self.broadcast(8 * values.size)
        return values

    async def released(self, x: Shared, receivers: frozenset[str]) -> Floats | None:
        size = 8 * x.share * x.shape[0] * x.shape[1] + _FRAME
        to = [name for name in self.providers if name in receivers]
        hub, guests = _HUB in receivers, len(receivers) - len(to) - (_HUB in receivers)
        outside = guests + hub
        self.messages += (outside + len(to)) * (self.parties + 1) - len(to) - hub
        self.provider_bytes += size * (outside + len(to) - (len(to) == self.parties))
        self.hub_bytes += size * (guests + len(to))
        latest = max(self.hub_depth, self.provider_depth) + 1
        if to:
            self.provider_depth = latest
        if hub:
            self.hub_depth = max(self.hub_depth, self.provider_depth)
        return None


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes, memory and rounds of a run over d columns."""
    p, providers = study.read_parameters(SFPCAParameters), study.who(PROVIDER)
    k = min(p.n_components or d, d)
    recipe = attempts(p, k, d)[0]
    # Strict opens the total variance in units of the columns' range: an eighth of it for each, say.
    total = 0.5 if recipe == "direct" else max(0.5, d / 8)
    machine = Counted([str(a) for a in providers], total)
    names = 20 * d
    machine.gathered(names)
    machine.broadcast(names)
    machine.gathered(2)
    machine.broadcast(4 * len(providers))
    if p.epsilon is not None:
        noisy = _count_centre(study, machine, d)
    else:
        noisy = None
        if p.bounds is None:
            _count_range(study, machine)
    _count_keys(machine)
    found = asyncio.run(_run(machine, recipe, k, d, noisy))
    rounds = _count_outputs(study, machine, found, d)
    total = machine.provider_bytes * len(providers) + machine.hub_bytes
    return Expectation(machine.messages, machine.provider_bytes, total, machine.memory, rounds)


async def _run(machine: Counted, recipe: str, k: int, d: int, noisy: Noisy | None) -> Any:
    inputs = Inputs(_ROWS * machine.parties, d, machine.providers, "nobody", None, None)
    if noisy is not None:
        return await private_direct(machine, inputs, k, noisy)
    if recipe == "direct":
        return await direct(machine, inputs, k)
    return await strict(machine, inputs, k, POLICIES[recipe])


def _count_range(study: Study, machine: Counted) -> None:
    cost = secure_sums.expected(study, machine.parties, [len(LEVELS)])
    machine.messages += cost.messages
    machine.provider_bytes += cost.bytes_per_contributor
    # Seeds go from provider to provider, sums to the coordinator.
    machine.provider_depth += 1
    machine.hub_depth = machine.provider_depth + 1
    machine.broadcast(2)


def _count_centre(study: Study, machine: Counted, d: int) -> Noisy:
    """The stages of the private centre, and the matrix that they lead to."""
    p, n = study.read_parameters(SFPCAParameters), _ROWS * machine.parties
    named = p.columns or (tuple(p.bounds) if isinstance(p.bounds, dict) else tuple(map(str, range(d))))
    plan, _ = private.plan_of(study, named)
    lengths = stage_lengths(plan)[:-1]
    cost = secure_sums.expected(study, machine.parties, lengths)
    machine.messages += cost.messages
    machine.provider_bytes += cost.bytes_per_contributor
    machine.provider_depth += 1
    for _ in lengths:
        machine.hub_depth = machine.provider_depth + 1
        machine.broadcast(8 * d + 30)
    return private.noisy_matrix(plan, Centre(np.zeros(d), n, plan.row_norm), n)


def _count_keys(machine: Counted) -> None:
    keys = sum(go.family(name)[-1].poly_size for name in FAMILIES)
    machine.gathered(32)
    machine.broadcast(34 * machine.parties)
    machine.gathered(keys)
    machine.broadcast(keys)


def _count_outputs(study: Study, machine: Counted, found: Any, d: int) -> int:
    """Released shares and the coordinator's messages to consumers; returns the rounds of the whole run."""
    consumers = study.who(CONSUMER)
    sizes = {"explained_variance": 120, "n_samples": 60, "certificate": 60, "components": 20 * d}
    sent = {output: sum(study.releases(output, a) for a in consumers) for output in sizes}
    machine.messages += sum(sent.values()) + sent["n_samples"]
    machine.hub_bytes += sum(sizes[output] * count for output, count in sent.items())
    deepest = max(machine.hub_depth, machine.provider_depth)
    if any(sent.values()):
        deepest = max(deepest, machine.hub_depth + 1)
    receivers = frozenset(_name(a) for a in study.receivers("components"))
    released = [
        (found.components, receivers),
        (found.offset, receivers),
        *_count_scores(study, machine, found, d),
    ]
    for x, to in released:
        before = max(machine.hub_depth, machine.provider_depth)
        asyncio.run(machine.released(x, to))
        deepest = max(deepest, before + 1 if to else 0)
    return max(deepest, machine.hub_depth, machine.provider_depth)


def _count_scores(study: Study, machine: Counted, found: Any, d: int) -> list[tuple[Shared, frozenset[str]]]:
    """One block of rows for every owner; further blocks cost as much again."""
    owners = [str(a) for a in score_owners(study)]
    if not owners:
        return []
    jobs = [score_job(machine, found, d, owner, SCORE_ROWS, None) for owner in owners]
    made = asyncio.run(machine.products(jobs))
    return [(x, frozenset({owner})) for x, owner in zip(made, owners, strict=True)]


def _name(address: Any) -> str:
    return _HUB if address.role == _HUB else str(address)
