"""The staged private release around a secure sum: what DPDPCA and a private PPPCA share.

Owners add noise shares to integer statistics and contribute them to the study's secure sum; one receiver
opens only noisy sums and sends the public centre back for the next stage (``privacy.dp_moments`` says
what the stages are). With ``centre="pairs"`` there is one stage and no centre (``private_pairs``). Nobody
knows the total noise: of n owners, c may pool their shares with whoever sees the sums, t may be missing,
and what is left still carries the stated epsilon.

All stages are reserved in an owner's ledger before anything at all leaves it, and each is settled before its
noisy value does (``booking``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from atoll import fixedpoint, randomness, secure_sums
from atoll.codec import Message
from atoll.data.island import Chosen, Matrix
from atoll.data.statistics import raise_for_missing
from atoll.errors import ParameterError
from atoll.fixedpoint import Limbs
from atoll.network import Network, Record
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid, noise_statement, pairs
from atoll.privacy.mechanisms import Cost
from atoll.protocols.base import Disclosure
from atoll.protocols.booking import Booking, refuse_few_colluders
from atoll.protocols.noise_shares import check_sum, crowd_of, noise_words, promise
from atoll.protocols.own import Own
from atoll.protocols.pca import private_pairs
from atoll.protocols.pca.decompose import choose_k, deterministic_signs
from atoll.protocols.pca.released import MODEL_VALUES, Model, Variances
from atoll.protocols.private_options import Privacy
from atoll.secure_sums import SecureSum
from atoll.study.address import Address
from atoll.study.model import Study

RECORDED_NOISE = "privacy/noise"
NOISY = ", noisy, and how much of the components is noise"
"""What the review says of variances."""


class PublicCentre(Message, frozen=True):
    """Receiver -> owner: where rows are centred, how many there are, how far they may reach; all noisy."""

    point: np.ndarray[Any, Any]
    count: float
    radius: float


# ---- the plan: a function of the study and the number of columns ----


def plan_of(study: Study, asked: Privacy, owners: int, features: int) -> dp.Plan:
    """Stages, noise and costs of the study."""
    return dp.Plan(
        features=features,
        row_norm=_row_norm(asked),
        epsilon=asked.epsilon,
        delta=asked.delta,
        neighbours=asked.neighbours,
        rows=asked.rows,
        crowd=crowd_of(study, asked, owners),
        assume_centered=asked.assume_centered,
        centre=asked.centre,
        padded=asked.padded,
    )


def _row_norm(asked: Privacy) -> float:
    if asked.centre == "pairs":
        if asked.row_norm is not None:
            raise ParameterError(
                "row_norm cannot be used with centre='pairs', whose differences have length one",
                hint="leave it out",
                option="row_norm",
            )
        return 1.0
    if asked.row_norm is None:
        raise ParameterError(
            "a private PCA needs row_norm, a public bound on the Euclidean norm of a row",
            hint="set it from what is known of the columns, never from the rows; longer rows are cut to it",
            option="row_norm",
        )
    return asked.row_norm


def check(study: Study, asked: Privacy, owners: int, *, adder_apart: bool = False) -> None:
    """Refuse what cannot be private, before anybody approves the study."""
    plan = plan_of(study, asked, owners, features=2)
    for stage in plan.stages:
        _ = stage.noise.size  # a stage whose noise the grid cannot hold refuses here
    check_sum(study, plan.crowd, adder_apart=adder_apart)


def costs(study: Study, asked: Privacy, owners: int) -> dict[str, Cost]:
    """What the ledger is debited for each stage; the number of columns does not matter."""
    return {stage.name: stage.cost for stage in plan_of(study, asked, owners, features=2).stages}


def booking(study: Study, asked: Privacy, owners: int, own: Own, record: Record) -> Booking:
    """The owner's ledger during this run; refuses what the owner does not allow."""
    refuse_few_colluders(own, crowd_of(study, asked, owners).colluders)
    return Booking(study, own, record, costs(study, asked, owners), asked.neighbours)


# ---- steps: owners ----


def gen_contribution(plan: dp.Plan, stage: str, X: Matrix, centre: dp.Centre | None) -> dp.Integers:
    """An owner's exact integers for one stage."""
    if stage == plan.first_mean.name:
        return dp.first_mean_contribution(plan, X)
    assert centre is not None  # every later stage follows a public centre
    if stage == plan.second_mean.name:
        return dp.second_mean_contribution(plan, X, centre)
    if stage == plan.radius.name:
        return dp.radius_contribution(plan, X, centre)
    return dp.moments_contribution(plan, X, centre)


def _contribution(X: Matrix, plan: dp.Plan, stage: str, centre: dp.Centre | None) -> dp.Integers:
    return gen_contribution(plan, stage, X, centre)


def gen_noisy(plan: dp.Plan, stage: dp.Stage, table: Chosen, centre: dp.Centre | None, seed: bytes) -> Limbs:
    """Contribution and noise share together, for a secure sum."""
    noisy = noisy_integers(plan, stage, table, centre, seed)
    return fixedpoint.from_int64(noisy, contributors=plan.crowd.owners)


def noisy_integers(
    plan: dp.Plan, stage: dp.Stage, table: Chosen, centre: dp.Centre | None, seed: bytes
) -> dp.Integers:
    """Contribution and noise share together: the only form in which an owner's numbers are handed on."""
    # Integers on a grid: the sum over blocks is that over all rows, to the last bit. What may travel to a
    # cluster has no seed.
    work = partial(_contribution, plan=plan, stage=stage.name, centre=centre)
    exact = reduce(np.add, table.mapped(work))
    return np.asarray(exact + stage.draw_share(seed))


# ---- steps: receiver ----


def finish(plan: dp.Plan, stage: str, centre: dp.Centre | None, total: Limbs, present: int) -> dp.Centre:
    """The public centre after a stage that is not the last."""
    sums = np.array(fixedpoint.to_integers(total), dtype=object)
    if stage == plan.first_mean.name:
        first = dp.finish_first_mean(plan, sums, present)
        return dp.starting_centre(plan, first) if plan.assume_centered else first
    assert centre is not None
    if stage == plan.second_mean.name:
        return dp.finish_second_mean(plan, centre, sums, present)
    return dp.finish_radius(plan, centre, sums)


def decompose_private(
    moments: dp.PrivateMoments,
    centre: dp.Centre | None,
    n_components: int | float | None,
    names: tuple[str, ...] | None,
) -> tuple[Model, Variances]:
    """Components, variances without the noise's inflation (of normalised or cut rows), how much is noise."""
    found = dp.spectrum(moments)
    k = choose_k(found.eigenvalues, n_components)
    rest = found.eigenvalues[k:]
    # The trace is unbiased; it must only not fall below what the components are said to explain.
    total = max(float(np.trace(moments.matrix)) / moments.count, float(found.eigenvalues[:k].sum()))
    point = None if centre is None else centre.point  # pairs have none
    components = deterministic_signs(found.components[:k])
    released = np.linalg.eigvalsh(moments.matrix)[::-1].astype(np.float64)
    rows = "pairs" if centre is None else moments.rows
    noise = noise_statement.state(released, moments.sigma, k, rows, centre, components)
    return (
        Model(components, point, None, names),
        Variances(found.eigenvalues[:k].copy(), total, float(rest.mean()) if len(rest) else 0.0, noise),
    )


# ---- what the roles do ----


async def contribute(
    net: Network,
    sums: SecureSum,
    plan: dp.Plan,
    table: Chosen,
    receiver: Address,
    record: Record,
    booked: Booking,
    capacity: int,
) -> dp.Centre | None:
    """An owner's part of every stage; the last public centre, if there is one."""
    await booked.made_from(net, table)
    seed = record(RECORDED_NOISE, randomness.fresh_seed)
    centre = None
    if plan.centre == "pairs":
        places = record(private_pairs.RECORDED_PLACES, randomness.fresh_seed)
        noisy = await net.compute(private_pairs.gen_noisy, plan, table.whole(), places, capacity, seed)
    else:
        centre = await contribute_centre(net, sums, plan, table, receiver, seed, booked)
        noisy = await net.compute(gen_noisy, plan, plan.moments, table, centre, seed)
    booked.settle(plan.moments.name)
    await sums.contribute(plan.moments.name, noisy)
    await sums.close()
    return centre


async def contribute_centre(
    net: Network,
    sums: SecureSum,
    plan: dp.Plan,
    table: Chosen,
    receiver: Address,
    seed: bytes,
    booked: Booking,
) -> dp.Centre:
    """An owner's part of every stage before the last."""
    centre: dp.Centre | None = None
    for stage in plan.stages[:-1]:
        noisy = await net.compute(gen_noisy, plan, stage, table, centre, seed)
        booked.settle(stage.name)
        await sums.contribute(stage.name, noisy)
        message = await net.receive(PublicCentre, receiver)
        told = dp.Centre(np.array(message.point), message.count, message.radius)
        dp.check_centre(plan, stage.name, centre, told)
        centre = _with_noise(plan, stage.name, centre, told)
    assert centre is not None
    return centre


def _with_noise(plan: dp.Plan, stage: str, before: dp.Centre | None, told: dp.Centre) -> dp.Centre:
    """A centre that was told, with what an owner knows of its noise."""
    if before is None:
        return told
    if stage == plan.second_mean.name:
        return dp.after_second_mean(plan, before, told)
    return replace(told, noise=before.noise, step=before.step)


async def receive(
    net: Network, sums: SecureSum, plan: dp.Plan, owners: Sequence[Address]
) -> tuple[dp.PrivateMoments, dp.Centre | None]:
    """The receiver's part of every stage: it opens noisy sums and nothing else."""
    if plan.centre == "pairs":
        total = await sums.total(plan.moments.name, plan.moments.noise.size)
        integers = np.array(fixedpoint.to_integers(total), dtype=object)
        return pairs.finish_pairs(plan, integers, len(sums.present)), None
    centre, present = await receive_centre(net, sums, plan, owners)
    total = await sums.total(plan.moments.name, plan.moments.noise.size)
    moments = dp.finish_moments(
        plan, centre, np.array(fixedpoint.to_integers(total), dtype=object), len(present)
    )
    return moments, centre


async def receive_centre(
    net: Network, sums: SecureSum, plan: dp.Plan, owners: Sequence[Address]
) -> tuple[dp.Centre, frozenset[Address]]:
    """The receiver's part of every stage before the last: the public centre, and who was there."""
    centre: dp.Centre | None = None
    for stage in plan.stages[:-1]:
        total = await sums.total(stage.name, stage.noise.size)
        sums.require(sums.present)  # never are the sums of two sets of owners opened in one run
        centre = await net.compute(finish, plan, stage.name, centre, total, len(sums.present))
        message = PublicCentre(centre.point, centre.count, centre.radius)
        await net.broadcast([a for a in owners if a in sums.present], message)
    assert centre is not None
    return centre, sums.present


def centre_known(centre: dp.Centre | None) -> dict[str, Any]:
    """What an owner was told of the centre."""
    return {} if centre is None else {"private_centre": centre.point, "noisy_count": centre.count}


def stage_lengths(plan: dp.Plan) -> list[int]:
    return [stage.noise.size for stage in plan.stages]


def open_session(
    net: Network,
    study: Study,
    record: Record,
    plan: dp.Plan,
    owners: tuple[Address, ...],
    receiver: Address,
    adder: Address | None = None,
) -> SecureSum:
    return secure_sums.session(
        study,
        net,
        record,
        contributors=owners,
        receivers=(receiver,),
        longest=max(stage_lengths(plan)),
        adder=adder,
    )


def checked(table: Chosen) -> Chosen:
    """Whatever a release could refuse of a table, before it is paid for.

    Missing and infinite values, by their place, and more rows than the grid's sums hold. An empty table is
    fine: its noise still counts.
    """
    grid.check_size(table.n_rows, table.island.name)
    raise_for_missing(table, hint="impute or drop such rows before a private analysis")
    return table


# ---- in words ----


def guarantee(study: Study, asked: Privacy, owners: int, reach: str = "") -> list[str]:
    """What the noise promises, for the review; ``reach`` says where rows are cut, if not at the row norm."""
    plan = plan_of(study, asked, owners, features=2)
    return [
        *promise([stage.cost for stage in plan.stages], asked.delta, asked.neighbours),
        noise_words(asked, plan.crowd),
        *_rows_words(asked, reach),
        (
            "it presumes clean tables: one with a missing or infinite value, or with "
            f"{grid.MAX_ROWS:,} rows or more, is refused before anything is paid or released, "
            "and that alone tells the others that the island has such a table"
        ),
    ]


def _rows_words(asked: Privacy, reach: str) -> list[str]:
    if asked.centre == "pairs":
        return private_pairs.in_words(asked.neighbours, padded=asked.padded)
    reach = reach or f"rows longer than {asked.row_norm:g} are cut to it"
    centre = "assumed" if asked.assume_centered else "private"
    how = (
        "every row counts with length one"
        if asked.rows == "normalise"
        else "rows are cut at a privately chosen radius"
    )
    return [f"{reach}; around the {centre} centre {how}, and variances are of such rows"]


def disclosures(owner: str, receiver: str, method: type[SecureSum], centre: str) -> list[Disclosure]:
    if centre == "pairs":
        words = "one sum over all islands with noise in it: second moments of row differences, number of rows"
        return [Disclosure(receiver, words, method.to_receivers, MODEL_VALUES)]
    return [
        Disclosure(
            owner,
            "the private centre, noisy row count and radius after each stage",
            (PublicCentre,),
            ("mean",),
        ),
        Disclosure(
            receiver,
            "for each stage the sum over all islands with noise in it: number and sum of rows, second "
            "moments; nothing without noise",
            method.to_receivers,
            MODEL_VALUES,
        ),
    ]
