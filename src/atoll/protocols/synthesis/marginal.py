"""Synthetic data by a tree of two-way tables over many owners.

The best one-site synthesizers select tables by an exponential mechanism that scores pooled residuals, which
does not distribute. Here selection looks at a noisy sum of all pairs, which costs a part of the budget
once, and the tables of the tree that it finds are measured again with the rest.

Course: (1) all moments (:mod:`moments`) with a part of the budget; the curator opens them, finds the tree
of largest dependence and tells it to the owners, who check that it is a tree and compare; (2) the second
moments of its pairs alone, so with far less noise; both are put together by their widths (:mod:`trees`).

Adversary, and who learns what: as in :mod:`protocol`; owners also learn the tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from atoll import fixedpoint
from atoll.codec import Message
from atoll.network import Compared, Network, Record
from atoll.privacy.dp_moments import Stage
from atoll.privacy.mechanisms import Crowd, GaussianCost, Part, PureCost
from atoll.protocols.agreement import compare
from atoll.protocols.base import Disclosure, Expectation, Learned, PrivacyTerms, Protocol, learned
from atoll.protocols.checked import refuse
from atoll.protocols.noise_shares import check_sum
from atoll.protocols.own import Own
from atoll.protocols.synthesis import models, moments, trees
from atoll.protocols.synthesis import release as shared
from atoll.protocols.synthesis.moments import UNITS, Codes, Integers, Moments, coded, staged
from atoll.protocols.synthesis.schema import check_schema
from atoll.study.model import Study

SELECTION_SHARE = 0.4
"""Of the budget, for all pairs; fixed for all tables."""
TABLES = "tables"


class MarginalParameters(shared.SynthesisParameters, frozen=True):
    """``decoder``: rows are drawn along the tree, or from latent classes fitted to everything released."""

    decoder: Literal["tree", "latent-classes"] = "tree"


class Tree(Message, frozen=True):
    """Curator -> owner: which pairs of columns are measured again, as (parent, child)."""

    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TreePlan:
    """The second release: the pairs of a tree that everybody knows by then."""

    sizes: tuple[int, ...]
    edges: trees.Edges
    epsilon: float
    delta: float | None
    crowd: Crowd
    share: float = 1.0 - SELECTION_SHARE

    @cached_property
    def stage(self) -> Stage:
        pairs = [(self.sizes[a], self.sizes[b]) for a, b in self.edges]
        squared = sum((1 - 1 / j) * (1 - 1 / k) for j, k in pairs)
        longest = sum(moments.one_norm(j) * moments.one_norm(k) for j, k in pairs)
        parts = tuple(
            Part(moments.dim(j) * moments.dim(k), moments.unit(j) * moments.unit(k)) for j, k in pairs
        )
        return staged(TABLES, self, math.sqrt(squared) * UNITS, longest * UNITS, parts)


# ---- steps ----


def first_plan(study: Study, p: MarginalParameters) -> moments.Plan:
    asked = p.privacy
    return moments.Plan(
        p.sizes, asked.epsilon, asked.delta, shared.crowd(study, asked), share=SELECTION_SHARE
    )


def tree_plan(plan: moments.Plan, edges: trees.Edges) -> TreePlan:
    return TreePlan(plan.sizes, edges, plan.epsilon, plan.delta, plan.crowd)


def contribution(plan: TreePlan, codes: Codes) -> Integers:
    """An owner's exact products of coded columns, edge by edge."""
    starts = np.concatenate([[0], np.cumsum([moments.dim(k) for k in plan.sizes])])
    rows = coded(codes, plan.sizes)
    found = [
        (rows[:, starts[a] : starts[a + 1]].T @ rows[:, starts[b] : starts[b + 1]]).ravel()
        for a, b in plan.edges
    ]
    return np.asarray(np.concatenate(found).astype(np.int64) * UNITS)


def joined(first: Moments, plan: TreePlan, total: Any, present: int) -> Moments:
    """Both releases together, each weighted by its noise."""
    values = np.asarray(total).astype(np.float64) / UNITS
    second, noise, at = first.second.copy(), first.second_noise.copy(), 0
    for number, (a, b) in enumerate(plan.edges):
        shape = moments.dim(plan.sizes[a]), moments.dim(plan.sizes[b])
        part = values[at : at + shape[0] * shape[1]].reshape(shape)
        at += part.size
        measured = moments.turn(plan.sizes[a]).T @ part @ moments.turn(plan.sizes[b]) / first.count
        width = plan.stage.noise.deviation_of_sum(number, present) / UNITS / first.count
        width /= moments.unit(plan.sizes[a]) * moments.unit(plan.sizes[b])
        weight = noise[a, b] ** 2 / (noise[a, b] ** 2 + width**2)
        block = np.ix_(first.owner == a, first.owner == b)
        second[block] = weight * measured + (1.0 - weight) * second[block]
        second[np.ix_(first.owner == b, first.owner == a)] = second[block].T
        noise[a, b] = noise[b, a] = width * math.sqrt(weight)
    return replace(first, second=second, second_noise=noise)


# ---- roles ----


async def owner(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners = study.read_parameters(MarginalParameters), study.who(shared.OWNER)
    plan, curator = first_plan(study, p), study.the(shared.CURATOR)
    codes = await shared.read_rows(net, study, own, p)
    with shared.booking(study, p.privacy, own, record, costs(plan)) as booked:
        sums = shared.session(net, study, record, plan.length)
        await sums.open()
        await booked.made_from(net, shared.Read(codes))
        seed = shared.noise_seed(record)
        exact = await net.compute(moments.contribution, plan, codes)
        noisy = await net.compute(shared.noisy, exact, plan.stage, seed, len(owners))
        booked.settle(plan.stage.name)
        await sums.contribute(plan.stage.name, noisy)
        told = await net.receive(Tree, curator)
        if not trees.is_tree(told.edges, len(p.schema)):
            raise refuse(curator, "pairs of columns that are no tree")
        await compare(net, "the tree", told.edges, owners)
        second = tree_plan(plan, told.edges)
        exact = await net.compute(contribution, second, codes)
        noisy = await net.compute(shared.noisy, exact, second.stage, seed, len(owners))
        booked.settle(second.stage.name)
        await sums.contribute(second.stage.name, noisy)
        await sums.close()
    return learned(study, net.me, shared.OUTPUTS, await shared.receive_released(net, study, p))


async def curator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, owners = study.read_parameters(MarginalParameters), study.who(shared.OWNER)
    plan = first_plan(study, p)
    sums = shared.session(net, study, record, plan.length)
    await sums.open()
    total = fixedpoint.to_integers(await sums.total(plan.stage.name, plan.length))
    first = await net.compute(moments.finish, plan, np.array(total, dtype=object), len(owners))
    edges = record.kept("tree", await net.compute(trees.selected, first), trees.Edges)
    await net.broadcast(owners, Tree(edges))
    second = tree_plan(plan, edges)
    total = fixedpoint.to_integers(await sums.total(second.stage.name, second.stage.noise.size))
    found = joined(first, second, np.array(total, dtype=object), len(owners))
    model = record.kept("model", await net.compute(models.of_tables, found, edges, p.decoder))
    known = {"model": model, "moments": found.plain()}
    await shared.release(net, study, known, sums.present)
    return learned(study, net.me, shared.OUTPUTS, known)


# ---- who learns what, and what it costs ----


def costs(plan: moments.Plan) -> dict[str, PureCost | GaussianCost]:
    """Of both releases; which tree it is does not matter."""
    blank = tree_plan(plan, tuple((a, a + 1) for a in range(len(plan.sizes) - 1)))
    return {plan.stage.name: plan.stage.cost, TABLES: blank.stage.cost}


def learns(study: Study) -> list[Disclosure]:
    opened = (
        "two sums over all islands with noise in them: number of rows, counts of every cell and second "
        "moments of every two columns; then those of the pairs in the tree; nothing without noise"
    )
    tree = Disclosure(
        shared.OWNER, "which pairs of columns depend on each other most, by the first noisy sum", (Tree,)
    )
    return [*shared.disclosures(study, opened), tree]


def terms(study: Study) -> PrivacyTerms:
    p = study.read_parameters(MarginalParameters)
    return shared.terms(study, p, list(costs(first_plan(study, p)).values()))


def expect(study: Study, d: int) -> Expectation:
    """Of the largest tables that a tree may have, at the most."""
    del d  # the schema says it
    p = study.read_parameters(MarginalParameters)
    dims = sorted(moments.dim(k) for k in p.sizes)
    return shared.expected(study, [first_plan(study, p).length, dims[-1] * sum(dims[:-1])], p, told=1)


def check(study: Study) -> None:
    p = study.read_parameters(MarginalParameters)
    check_schema(p.schema, p.bins)
    shared.check_stays(study)
    _ = costs(first_plan(study, p))  # noise that cannot be drawn is refused here
    check_sum(study, shared.crowd(study, p.privacy))


PROTOCOL = Protocol(
    name="marginal-synthesis",
    title="Synthetic data by a tree of two-way tables over many owners",
    analysis="synthesis",
    roles={shared.OWNER: owner, shared.CURATOR: curator},
    data_roles=frozenset({shared.OWNER}),
    single_roles=frozenset({shared.CURATOR}),
    apart=((shared.OWNER, shared.CURATOR),),
    messages=(shared.SyntheticModel, shared.NoisyMoments, Tree, Compared),
    parameters=MarginalParameters,
    outputs=shared.OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; the curator may pool it with as many "
    "owners as the noise is made for.",
    expect=expect,
    check=check,
    privacy=terms,
)
