"""Step 8 and the releases: what is opened at the end, for whom, and the checks that come before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from atoll.data.island import Matrix as Table
from atoll.errors import CertificateRefused
from atoll.protocols.base import Outputs
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.messages import Names
from atoll.protocols.pca.sfpca.paper.algorithm1 import Found, Own, Plan, given, pieces_of, projected
from atoll.protocols.pca.sfpca.paper.certificate import bound_of, examined, refuse_above, total_variance
from atoll.protocols.pca.sfpca.paper.messages import VarianceUnit
from atoll.protocols.pca.sfpca.paper.parameters import PaperParameters
from atoll.protocols.pca.sfpca.parameters import COORDINATOR
from atoll.protocols.pca.sfpca.releases import model, signs
from atoll.protocols.pca.sfpca.scores import score_owners
from atoll.secret_matrices.slots import roles
from atoll.secret_matrices.slots.machine import Matrix, Slots, Vector
from atoll.secret_matrices.slots.products import dot, dots, repeated, unit
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
    m: Slots,
    plan: Plan,
    found: Found,
    own: Own | None,
    facts: Facts,
    me: Address,
) -> Outputs:
    """Everything that the study releases, once the components are known to hold."""
    p = study.read_parameters(PaperParameters)
    checked = await examined(m, plan, found)
    released = Released()
    for name, lengths, receivers in openings(study, plan.shape.columns):
        if name == "tau":
            rows = [checked.tau]
        elif name == "variances":
            rows = [await _packed_variances(m, plan, checked.variances, found.mean, own)]
        else:
            offsets = dots(m, checked.W, found.mean, plan.shape.columns)
            rows = [*checked.W, packed(m, offsets)]
        released = taken(released, name, await m.opened(rows, lengths, receivers))
        if name == "tau":
            assert released.tau is not None, "all that have a machine learn whether the components hold"
            refuse_above(p.paper.tolerance, released.tau)
    known = known_of(study, released, facts)
    if score_owners(study):
        known |= await _scores(m, plan, found, checked.W, own, facts, me)
    return known


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


async def _scores(
    m: Slots, plan: Plan, found: Found, W: Matrix, own: Own | None, facts: Facts, me: Address
) -> Outputs:
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
    return {"scores": {me.party: np.vstack(blocks) * facts.names.offset_unit}} if blocks else {}


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


async def received(study: Study, receiver: roles.Receiver, me: Address, columns: int) -> Released:
    """A consumer's side of the openings that name it."""
    released = Released()
    for name, lengths, receivers in openings(study, columns):
        if str(me) in receivers:
            released = taken(released, name, await receiver.opened(lengths, receivers))
            if name == "tau" and released.tau is not None:
                refuse_above(study.read_parameters(PaperParameters).paper.tolerance, released.tau)
    return released


# ---- what is made of it ----


def known_of(study: Study, released: Released, facts: Facts) -> Outputs:
    """Outputs in the table's own units, checked against each other."""
    paper = study.read_parameters(PaperParameters).paper
    known: Outputs = {}
    if released.tau is not None:
        known["certificate"] = {"recipe": "paper", "bound": bound_of(released.tau), "tau": released.tau}
    if released.variances is not None:
        known |= _variances(released.variances, facts.variances, paper.tolerance)
    if released.components is not None:
        _check_orthonormal(released.components, paper.tolerance)
        assert released.offset is not None, "components and offset are opened together"
        W = released.components if facts.spreading is None else released.components @ facts.spreading
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
