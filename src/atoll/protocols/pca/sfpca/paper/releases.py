"""Step 8 and the releases: what is opened at the end, for whom, and the checks that come before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from atoll.data.island import Matrix as Table
from atoll.errors import CertificateRefused
from atoll.network import Network
from atoll.protocols.base import Outputs
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.messages import Names
from atoll.protocols.pca.sfpca.paper import noise
from atoll.protocols.pca.sfpca.paper.algorithm1 import Found, Own, Plan, given, pieces_of, projected
from atoll.protocols.pca.sfpca.paper.certificate import (
    Checked,
    bound_of,
    examined,
    refuse_above,
    total_variance,
)
from atoll.protocols.pca.sfpca.paper.messages import VarianceUnit
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, VERTICAL
from atoll.protocols.pca.sfpca.releases import model, signs
from atoll.protocols.pca.sfpca.scores import score_owners
from atoll.secret_matrices.slots import roles
from atoll.secret_matrices.slots.dealing import Output, deal
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector
from atoll.secret_matrices.slots.party import Party
from atoll.secret_matrices.slots.products import dot, dots, repeated, unit
from atoll.secret_matrices.threshold import collected, places_of, release
from atoll.study.address import Address
from atoll.study.model import Study


class Facts(NamedTuple):
    """Public numbers that turn what is opened into the table's own units."""

    names: Names
    centre: Table
    spreading: Table | None
    variances: VarianceUnit


class Released(NamedTuple):
    """What one role was given in the clear; None where the study does not name it."""

    tau: float | None = None
    variances: Table | None = None
    """Of the components, then the total."""
    components: Table | None = None
    offset: Table | None = None


Step = tuple[str, tuple[int, ...], frozenset[str]]


def openings(study: Study, columns: int) -> list[Step]:
    """What is opened, in order: by name, the lengths of its rows, and for whom."""
    psi = study.read_parameters(PaperParameters).n_components
    by_all = {str(a) for a in study.addresses() if a.role in (PROVIDER, COORDINATOR)}
    said: list[Step] = [("tau", (1,), frozenset(by_all | _named(study, "certificate")))]
    if _named(study, "explained_variance"):
        said.append(("variances", (psi + 1,), frozenset(_named(study, "explained_variance"))))
    if _named(study, "components"):
        lengths = (*(columns,) * psi, psi)
        said.append(("components", lengths, frozenset(_named(study, "components"))))
    return said


def _named(study: Study, output: str) -> set[str]:
    return {str(a) for a in study.receivers(output)}


# ---- with a machine ----


async def opened_by_all(
    study: Study,
    m: Party,
    plan: Plan,
    found: Found,
    own: Own | None,
    facts: Facts,
    me: Address,
) -> Outputs:
    """Everything that the study releases, once the components are known to hold."""
    p = study.read_parameters(PaperParameters)
    checked = await examined(m, plan, found)
    (_, lengths, receivers), *steps = openings(study, plan.shape.columns)
    released = taken(Released(), "tau", await m.opened([checked.tau], lengths, receivers))
    assert released.tau is not None, "all that have a machine learn whether the components hold"
    refuse_above(p.paper.tolerance, released.tau)
    rows = {}
    left = await listed(study, m, plan.shape.columns)
    for name, lengths, receivers in steps:
        rows[name] = await rows_of(name, m, plan, found, checked, own)
        if p.paper.noise is not None:
            rows[name] = noise.added(m, rows[name], lengths, left)
        if p.threshold is None:
            released = taken(released, name, await m.opened(rows[name], lengths, receivers))
    if p.threshold is not None:
        released = await _dealt(m, steps, rows, released, p.threshold)
    known = known_of(study, released, facts)
    scores = None
    if hidden_scores(study):
        scores = await scored(m, plan, found, checked.W, own)
    elif common := common_receivers(study):
        scores = await scored_in_common(m, plan, found, checked.W, common)
        if scores is not None and released.components is not None:
            scores = scores * signs(study, in_columns(released.components, facts))
    if scores is not None:
        known |= {"scores": {me.party: scores * facts.names.offset_unit}}
    return known


def hidden_scores(study: Study) -> list[Address]:
    """Providers whose scores are products under encryption, of rows that they alone have."""
    return [] if study.partition == VERTICAL else score_owners(study)


def common_receivers(study: Study) -> frozenset[str]:
    """Who receives the scores of the rows that all islands have in common."""
    return frozenset(_named(study, "scores")) if study.partition == VERTICAL else frozenset()


def drawn(study: Study, columns: int) -> int:
    """Numbers of noise that a run takes: tau is opened without."""
    return sum(sum(lengths) for _, lengths, _ in openings(study, columns)[1:])


async def listed(study: Study, m: Slots, columns: int) -> Iterator[Vector]:
    """The shuffled list (the paper's D.3); empty where the study asks for no noise."""
    asked = study.read_parameters(PaperParameters).paper.noise
    count = drawn(study, columns)
    return iter(() if asked is None or not count else await m.shuffled(noise.list_of(asked, count)))


async def rows_of(name: str, m: Slots, plan: Plan, found: Found, checked: Checked, own: Own | None) -> Matrix:
    """The encrypted rows of an output of :func:`openings`."""
    if name == "variances":
        return [await _packed_variances(m, plan, checked.variances, found.mean, own)]
    return [*checked.W, packed(m, dots(m, checked.W, found.mean, plan.shape.columns))]


async def _dealt(
    m: Party, steps: Sequence[Step], rows: Mapping[str, Matrix], released: Released, threshold: int
) -> Released:
    """The outputs dealt among the providers, of whom a threshold is enough from then on (the paper's D.4)."""
    outputs = [
        Output(part, length) for name, lengths, _ in steps for part, length in matrices(rows[name], lengths)
    ]
    if not outputs:
        return released
    held = iter(await deal(m, outputs, threshold))
    for name, lengths, receivers in steps:
        found = [await release(m, next(held), receivers) for _ in matrices(rows[name], lengths)]
        released = taken(released, name, _values(found))
    return released


def matrices(rows: Matrix, lengths: Sequence[int]) -> list[tuple[Matrix, int]]:
    """An output's rows, those of one length together: components, and their offsets."""
    found: list[tuple[Matrix, int]] = []
    if len(rows) > 1:
        found.append((rows[:-1], lengths[0]))
    return [*found, (rows[-1:], lengths[-1])]


def _values(found: Sequence[Table | None]) -> list[Table] | None:
    """Rows, as an opening gives them."""
    return None if found[0] is None else [row for part in found if part is not None for row in part]


def packed(m: Slots, numbers: Matrix) -> Vector:
    """Numbers that each stand in every slot, side by side in one row."""
    k = len(numbers)
    return m.inner([(x, unit(i, k, m.slots)) for i, x in enumerate(numbers)])


async def _packed_variances(m: Slots, plan: Plan, variances: Matrix, mean: Vector, own: Own | None) -> Vector:
    """The components' variances, and the total: sums of squares less those of the mean."""
    mine = total_variance(plan, own)
    rows = None if mine is None else [repeated(row, m.slots) for row in mine]
    (squares,) = await m.encrypted_total(rows, 1)
    total = squares
    if not plan.shape.vertical:
        total = m.subtract(squares, dot(m, mean, mean, plan.shape.columns))
    return packed(m, await m.room([*variances, total], 1))


async def scored(m: Slots, plan: Plan, found: Found, W: Matrix, own: Own | None) -> Table | None:
    """Step 8: A'_i = W A_i^T - W o^T 1^T, each provider's for itself alone."""
    pieces = found.factors.pieces
    if not pieces or plan.course.qr == "dqr":  # there they are in other units
        pieces = pieces_of(m, plan.shape, None if own is None else own.table)
    W, (o,) = await given(m, W), await given(m, [found.mean])
    made = projected(m, found.factors._replace(pieces=pieces), W, o, plan.shape.columns)
    blocks = []
    for rows, piece in zip(made, pieces, strict=True):
        block = await m.opened_own(rows, [piece.length] * len(rows))
        if block is not None and piece.own_rows is not None:
            blocks.append(np.array(block)[:, : piece.own_rows].T)
    return np.vstack(blocks) if blocks else None


async def scored_in_common(
    m: Slots, plan: Plan, found: Found, W: Matrix, receivers: frozenset[str]
) -> Table | None:
    """Where islands hold columns: Xi(W_i A_i^T), of rows about their means, for whom the study names."""
    blocks = []
    for rows, piece in zip(
        projected(m, found.factors, await given(m, W), None, plan.shape.columns),
        found.factors.pieces,
        strict=True,
    ):
        block = await m.opened(await m.total(rows), [piece.length] * len(rows), receivers)
        if block is not None:
            blocks.append(np.array(block).T)
    return np.vstack(blocks) if blocks else None


def taken(released: Released, name: str, values: Sequence[Table] | None) -> Released:
    """What was opened, for a role that receives it."""
    if values is None:
        return released
    if name == "tau":
        return released._replace(tau=float(values[0][0]))
    if name == "variances":
        return released._replace(variances=np.array(values[0]))
    return released._replace(components=np.array(values[:-1]), offset=np.array(values[-1]))


# ---- without one ----


async def received(net: Network, study: Study, receiver: roles.Receiver, columns: int) -> Released:
    """A consumer's side of the openings that name it."""
    released = Released()
    enough, members = study.read_parameters(PaperParameters).threshold, places_of(study.who(PROVIDER))
    for name, lengths, receivers in openings(study, columns):
        if str(net.me) in receivers:
            if enough is None or name == "tau":
                values = await receiver.opened(lengths, receivers)
            else:
                parts = 1 if name == "variances" else 2
                found = [await collected(net, members, enough) for _ in range(parts)]
                values = [row for part in found for row in part]
            released = taken(released, name, values)
            if name == "tau" and released.tau is not None:
                refuse_above(study.read_parameters(PaperParameters).paper.tolerance, released.tau)
    return released


# ---- what is made of it ----


def known_of(study: Study, released: Released, facts: Facts) -> Outputs:
    """Outputs in the table's own units, checked against each other."""
    paper = study.read_parameters(PaperParameters).paper
    tolerance = paper.tolerance if paper.noise is None else inf  # noise breaks what is checked of outputs
    known: Outputs = {}
    if released.tau is not None:
        known["certificate"] = {"recipe": "paper", "bound": bound_of(released.tau), "tau": released.tau}
    if released.variances is not None:
        known |= _variances(released.variances, facts.variances, tolerance)
    if released.components is not None:
        _check_orthonormal(released.components, tolerance)
        assert released.offset is not None, "components and offset are opened together"
        W = in_columns(released.components, facts)
        flips = signs(study, W)
        known |= model(
            W,
            released.offset[:, None],
            facts.names.offset_unit,
            facts.centre,
            facts.names,
            flips,
        )
    return known


def in_columns(W: Table, facts: Facts) -> Table:
    """Components as opened, on the table's own columns."""
    return W if facts.spreading is None else np.asarray(W @ facts.spreading)


def _variances(opened: Table, unit: VarianceUnit, tolerance: float) -> Outputs:
    """In falling order, no more than the total together, and none left out that is larger than the last."""
    values, total = opened[:-1], float(opened[-1])
    slack = tolerance * max(abs(total), float(np.abs(values).max()))
    rest = total - float(values.sum())
    falling = bool((np.diff(values) <= slack).all()) and bool((values >= -slack).all())
    if not falling or not -slack <= rest <= unit.further * values[-1] + slack:
        raise CertificateRefused(
            "the opened variances cannot be the largest of this total: the components do not hold",
            hint="more iterations (p, w), or wider intervals (margin)",
        )
    values = np.maximum(values, 0.0)
    return {
        "explained_variance": values * unit.value,
        "total_variance": max(total, float(values.sum())) * unit.value,
        "noise_variance": max(0.0, rest) / unit.further * unit.value if unit.further else 0.0,
    }


def _check_orthonormal(components: Table, tolerance: float) -> None:
    off = float(np.abs(components @ components.T - np.eye(len(components))).max())
    if not off <= tolerance:
        raise CertificateRefused(
            f"the components that were opened are orthonormal to {off:.2g} only",
            hint="wider intervals (margin), or more iterations (p, w)",
        )
