"""What a run will cost: the recipes run on shapes alone, every message counted.

Messages and rounds do not depend on the data and come out exactly, as long as the first certificate
holds; those of projections follow from the number of rows. Bytes depend a little on the data's scale. Where
nobody states them beforehand, typical ones are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.privacy.dp_moments import Centre
from atoll.protocols.base import Expectation
from atoll.protocols.pca.private_release import stage_lengths
from atoll.protocols.pca.released import CONSUMER, PROVIDER
from atoll.protocols.pca.sfpca import private, steps
from atoll.protocols.pca.sfpca.beforehand import (
    assumed_rows,
    count_announcement,
    count_range,
    count_sums,
    own_columns,
)
from atoll.protocols.pca.sfpca.parameters import (
    VERTICAL,
    SFPCAParameters,
    decide,
    on_the_covariance,
    precisions_of,
)
from atoll.protocols.pca.sfpca.private import Noisy
from atoll.protocols.pca.sfpca.ranges import declared
from atoll.protocols.pca.sfpca.recipes.columns import evenly_split
from atoll.protocols.pca.sfpca.recipes.correlation import roots_for
from atoll.protocols.pca.sfpca.recipes.covariance import OPENED_SKETCH
from atoll.protocols.pca.sfpca.recipes.direct import Inputs
from atoll.protocols.pca.sfpca.recipes.rows import prefers_rows
from atoll.protocols.pca.sfpca.recipes.strict import OVERSAMPLING
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS, sketches
from atoll.protocols.pca.sfpca.scores import for_rows, score_owners
from atoll.secret_matrices.costs.costing import Costing
from atoll.secret_matrices.costs.counted import Counted, at_once
from atoll.secret_matrices.costs.wires import COORDINATOR
from atoll.study.model import Study


class CountedRun(NamedTuple):
    """A whole run with one recipe, counted on shapes."""

    machine: Counted
    rounds: int

    @property
    def bytes_total(self) -> int:
        """What everybody sends."""
        return sum(self.machine.sent.values()) + self.machine.coordinator_bytes

    @property
    def expected(self) -> Expectation:
        """Messages, bytes, the coordinator's memory, and rounds."""
        machine = self.machine
        memory = machine.costing.coordinator_memory.most
        return Expectation(machine.messages, machine.provider_bytes, self.bytes_total, memory, self.rounds)


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes, memory and rounds of a run over d columns."""
    p = study.read_parameters(SFPCAParameters)
    rows = (assumed_rows(d),) * len(study.who(PROVIDER))
    k, recipes = decide(p, None, d)
    return planned(study, recipes[0], Shape(rows, d, k)).expected


class Shape(NamedTuple):
    """The tables, and how many components of them."""

    rows: Sequence[int]
    columns: int
    k: int


def planned(study: Study, recipe: str, shape: Shape, costing: Costing | None = None) -> CountedRun:
    """The whole run with one recipe, on shapes."""
    p, providers = study.read_parameters(SFPCAParameters), study.who(PROVIDER)
    rows, d, k = shape
    # Strict opens the total variance in units of the columns' range: an eighth of it for each, say.
    total = 0.5 if recipe == "direct" else max(0.5, d / 8)
    if recipe in EFFORTS:
        total = 1.0  # the bit: the components hold
    if p.standardize:
        total = float(d)  # no column is constant
    machine = Counted([str(a) for a in providers], total, costing)
    count_announcement(machine, d)
    noisy = _count_centre(study, machine, d, sum(rows)) if p.epsilon is not None else None
    if noisy is None and p.bounds is None:
        count_range(study, machine, d if p.standardize else 1)
    whole = on_the_covariance(recipe, k, d)
    exact = p.standardize or (whole and noisy is None and study.partition != VERTICAL)
    keep_rows = study.partition == VERTICAL or (not whole and not exact and prefers_rows(rows, d))
    machine.costing.moments(rows, own_columns(study, d), exact=exact, keep_rows=keep_rows)
    at_once(machine.set_up(precisions_of(recipe, study.partition, k, d)))
    _count_draws(machine, recipe, k, d)
    inputs = _inputs(study, machine, d, tuple(rows))
    found = at_once(steps.find(machine, inputs, k, recipe, noisy))
    found = at_once(steps.deal(machine, found, p.threshold))
    return CountedRun(machine, _count_outputs(study, machine, found, shape))


def joint_rows(study: Study, rows: Sequence[int]) -> int:
    """n: the islands' rows together, or the rows that they have in common."""
    return rows[0] if study.partition == VERTICAL else sum(rows)


def _inputs(study: Study, machine: Counted, d: int, rows: tuple[int, ...]) -> Inputs:
    """What everybody knows beforehand."""
    if study.partition == VERTICAL:
        split = evenly_split(machine.providers, d, rows[0])
        return Inputs(rows[0], d, machine.providers, "nobody", None, None, split=split)
    p = study.read_parameters(SFPCAParameters)
    inputs = Inputs(sum(rows), d, machine.providers, "nobody", None, None, rows, standardize=p.standardize)
    inputs = inputs._replace(roots=roots_for(p.least_deviation))
    return inputs._replace(most_variance=_most_variance(p, d))


def _most_variance(p: SFPCAParameters, d: int) -> float:
    """By the study's bounds; where they are of other columns than there will be, as if all were as wide."""
    names = p.columns or (tuple(p.bounds) if isinstance(p.bounds, dict) else tuple(map(str, range(d))))
    bounds = None
    if len(names) == d and (not isinstance(p.bounds, tuple) or len(p.bounds) in (1, d)):
        bounds = declared(p.bounds, names)
    return float(d) if bounds is None else bounds.most_variance()


def _count_draws(machine: Counted, recipe: str, k: int, d: int) -> None:
    """Secret rotations and sketches, which every provider draws for itself."""
    if recipe in EFFORTS:
        if sketches(k, d):
            machine.costing.gaussians((k + OVERSAMPLING) * d)
        return
    size = d if recipe == "direct" else min(k + OVERSAMPLING, d)
    if recipe != "direct":
        machine.costing.gaussians(size * d)
    for _ in range(2 if recipe == OPENED_SKETCH else 1):
        machine.costing.rotation(size)


def _count_centre(study: Study, machine: Counted, d: int, n: int) -> Noisy:
    """The stages of the private centre, and the matrix that they lead to."""
    p = study.read_parameters(SFPCAParameters)
    named = p.columns or (tuple(p.bounds) if isinstance(p.bounds, dict) else tuple(map(str, range(d))))
    plan, _ = private.plan_of(study, named)
    count_sums(study, machine, stage_lengths(plan)[:-1], 8 * d + 30)
    return private.noisy_matrix(plan, Centre(np.zeros(d), n, plan.row_norm), n)


def _count_outputs(study: Study, machine: Counted, found: Any, shape: Shape) -> int:
    """Released shares and the coordinator's messages to consumers; returns the rounds of the whole run."""
    consumers = study.who(CONSUMER)
    sizes = {"explained_variance": 120, "n_samples": 60, "certificate": 60, "components": 20 * shape.columns}
    sent = {output: sum(study.releases(output, a) for a in consumers) for output in sizes}
    machine.messages += sum(sent.values()) + sent["n_samples"]
    machine.coordinator_bytes += sum(sizes[output] * count for output, count in sent.items())
    if any(sent.values()):
        machine.deepest = max(machine.deepest, machine.coordinator_depth + 1)
    receivers = frozenset(_name(a) for a in study.receivers("components"))
    at_once(steps.release(machine, found, receivers))
    at_once(_count_scores(study, machine, found, shape))
    machine.check(last=True)
    if study.read_parameters(SFPCAParameters).threshold is not None:
        machine.gathered(1)
        machine.messages += len(consumers)
        machine.coordinator_depth = max(machine.coordinator_depth, machine.deepest + bool(consumers))
    return max(machine.deepest, machine.depth)


async def _count_scores(study: Study, machine: Counted, found: Any, shape: Shape) -> None:
    """Projections of the rows."""
    if study.partition == VERTICAL:
        split = evenly_split(machine.providers, shape.columns, shape.rows[0])
        receivers = frozenset(_name(a) for a in study.receivers("scores"))
        blocks = steps.project_common_rows(machine, found.components, split, receivers)
    else:
        rows = dict(zip(study.who(PROVIDER), shape.rows, strict=True))
        owners = [(str(a), rows[a]) for a in score_owners(study)]
        if owners:
            found = await for_rows(machine, found)
        blocks = steps.project_own_rows(machine, found, shape.columns, owners, lambda _owner, _rows: None)
    async for _ in blocks:
        raise AssertionError("a machine that counts releases nothing")


def _name(address: Any) -> str:
    return COORDINATOR if address.role == COORDINATOR else str(address)
