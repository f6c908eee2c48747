"""Gradient descent with rows or columns split, as one protocol.

Adversary: passive; with rows split the server colludes with no provider, and who else may is said by the
secure sum.
Learns: with rows split the server every step's summed cost and gradient, the providers every model; with
columns split everybody every step's summed scores, which is what :mod:`~atoll.protocols.learning.columns`
says of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.data.island import Island, Matrix
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, ParameterError, StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols import checked, handshake
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import Circumstances, Expectation, Learned, Output, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.learning.columns import released, table
from atoll.protocols.learning.columns.consent import check_columns, check_consent
from atoll.protocols.learning.columns.released import EVERYONE, OFFSETS, CommonRows, OwnPart, Rest
from atoll.protocols.learning.columns.table import Held, Joint
from atoll.protocols.learning.descent import algorithm1, algorithm2, disclosed
from atoll.protocols.learning.descent.algorithm1 import AllRows
from atoll.protocols.learning.descent.pairs import HERE, pair_of
from atoll.protocols.learning.descent.scenarios import (
    CONSUMER,
    PROVIDER,
    SERVER,
    InTheClear,
    WholeTable,
    session,
)
from atoll.protocols.learning.descent.settings import (
    Convergence,
    DescentParameters,
    batch_rows,
    common_batch,
)
from atoll.protocols.learning.design import INTERCEPT
from atoll.protocols.learning.rows import Fit, Model, check_stays, checked_values, encoded
from atoll.protocols.own import Own
from atoll.study.model import Study

VERTICAL = "vertical"
_USUAL = 100

OUTPUTS = released.OUTPUTS | {"fit": Output(("fit",), EVERYONE, "the cost of every step")}


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p = study.read_parameters(DescentParameters)
    with Booking(study, own, record, None) as booked:
        if study.partition == VERTICAL:
            return await _with_columns(net, study, p, own.table, record, booked)
        return await _with_rows(net, study, p, own.table, record, booked)


async def _with_rows(
    net: Network, study: Study, p: DescentParameters, island: Island, record: Record, booked: Booking
) -> Learned:
    group, server_ = study.who(PROVIDER), study.the(SERVER)
    agreed = await handshake.announce(net, island, server_, p.columns, p.target)
    await compare(net, "the columns", (agreed.names, agreed.named), group)
    chosen = island.chosen(agreed.names)
    X, y = _design(chosen.whole(), p), _target(island, p)
    raise_for_missing(chosen)
    await booked.settle_exact(net, chosen)
    known: dict[str, Any] = {}
    if p.scenario == "CT":
        await net.send(server_, WholeTable(X, y))
    else:
        sums = session(net, study, record, p.scenario, X.shape[1] + 2)
        await sums.open()
        await sums.contribute("rows", encoded(np.array([float(len(X))]), len(group), "rows"))
        n = (await net.receive(AllRows, server_)).n
        await compare(net, "the number of rows", n, group)
        if not len(X) <= n < checked.MAX_ROWS:
            raise checked.refuse(server_, f"{n} as the number of all rows to one who has {len(X)}")
        if n <= X.shape[1]:
            raise DataError(
                f"{n} rows on all islands for {X.shape[1]} coefficients: a model would say what rows hold",
                hint="use fewer columns, or more rows",
            )
        theta = await algorithm1.party(net, study, p, pair_of(p.cost), (X, y, n), sums)
        await sums.close()
        known = {"model": _model(p, agreed.names, theta), "n_samples": n}
        known["islands"] = tuple(a.party for a in group)
    return await _told_by_server(net, study, known)


async def _with_columns(
    net: Network, study: Study, p: DescentParameters, island: Island, record: Record, booked: Booking
) -> Learned:
    group, server_ = study.who(PROVIDER), study.the(SERVER)
    joint, chosen = await table.announce(net, island, p, server_, group, False)
    y = await table.response(net, island, p, joint, group, False)
    assert y is not None, "the target is known to all"
    pair_of(p.cost).check_target(y, island.name, str(p.target))
    X, _ = await net.compute(lambda: table.read(chosen, centred=False))
    table.refuse_few_rows(joint, len(joint.names) + p.fit_intercept)
    first = net.me == group[0]
    X = _design(X, p) if first else X
    await booked.settle_exact(net, chosen)
    if p.scenario == "CT":
        await net.send(server_, WholeTable(X, y))
        return await _told_by_server(net, study, released.common(study, joint))
    sums = session(net, study, record, p.scenario, max(2, batch_rows(p, joint.rows)))
    await sums.open()
    columns = (X, y, _own_start(p, joint, group.index(net.me)))
    theta, convergence = await algorithm2.party(net, study, p, pair_of(p.cost), columns, sums)
    lead = int(first and p.fit_intercept)
    w, offset = theta[None, lead:], np.array([theta[0] if lead else 0.0])
    if study.receivers("model"):
        await sums.contribute(OFFSETS, encoded(offset, len(group), OFFSETS))
    await sums.close()
    known = released.own_part(net, study, joint, w, offset) | {"fit": _fit(convergence)}
    await released.tell_part(net, study, known)
    if first:
        await net.broadcast([a for a in study.receivers("fit") if a.role != PROVIDER], Fit(known["fit"]))
    if study.releases("model", net.me):
        mine = known["part"][net.me.party]
        parts = {net.me: OwnPart(mine["names"], mine["coefficients"])}
        known["model"] = await released.whole(net, study, _made(p), parts)
    return learned(study, net.me, OUTPUTS, known)


async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own
    p, group = study.read_parameters(DescentParameters), study.who(PROVIDER)
    if study.partition == VERTICAL:
        return await _serve_columns(net, study, p, record)
    agreed = await handshake.check(net, group, p.columns)
    width = len(agreed.names) + p.fit_intercept
    theta, convergence = _start(p, width), Convergence(p)
    if p.scenario == "CT":
        tables = (await net.gather(WholeTable, group)).values()
        X, y = np.vstack([t.X for t in tables]), np.concatenate([t.y for t in tables])
        theta, n = await net.compute(_pooled, p, X, y, theta, convergence), len(y)
    else:
        sums = session(net, study, record, p.scenario, width + 2)
        await sums.open()
        n = round(float(fixedpoint.decode(await sums.total("rows", 1))[0]))
        await net.broadcast(group, AllRows(n))
        theta = await algorithm1.mediator(net, study, p, theta, sums, convergence)
    known = {"model": _model(p, agreed.names, theta), "fit": _fit(convergence), "n_samples": n}
    known["islands"] = tuple(a.party for a in group)
    await _release(net, study, known)
    return learned(study, net.me, OUTPUTS, known)


async def _serve_columns(net: Network, study: Study, p: DescentParameters, record: Record) -> Learned:
    group = study.who(PROVIDER)
    joint = await table.join(net, p, group, False)
    known = released.common(study, joint)
    if p.scenario == "CT":
        told = await net.gather(WholeTable, group)
        X = np.hstack([told[a].X for a in group])
        convergence = Convergence(p)
        y, start = told[group[0]].y, _start(p, X.shape[1])
        theta = await net.compute(_pooled, p, X, y, start, convergence)
        known |= {"model": _model(p, joint.names, theta), "fit": _fit(convergence)}
        await _release(net, study, known)
        return learned(study, net.me, OUTPUTS, known)
    sums = session(net, study, record, p.scenario, max(2, batch_rows(p, joint.rows)))
    await sums.open()
    await algorithm2.mediator(net, study, p, joint.rows, sums)
    intercept = np.zeros(1)
    if study.receivers("model"):
        intercept = fixedpoint.decode(await sums.total(OFFSETS, 1))
    await released.tell_rest(net, study, joint, intercept)
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, _made(p), {}, (intercept, ()))
    if study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, group[0]), "a fit", group[0])
    return learned(study, net.me, OUTPUTS, known)


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    del own, record
    p = study.read_parameters(DescentParameters)
    if study.partition != VERTICAL or p.scenario == "CT":
        return await _told_by_server(net, study, {})
    known = await released.counted_rows(net, study) if study.releases("n_samples", net.me) else {}
    if study.releases("model", net.me):
        known["model"] = await released.whole(net, study, _made(p), {})
    if study.releases("fit", net.me):
        first = study.who(PROVIDER)[0]
        known["fit"] = checked_values(await net.receive(Fit, first), "a fit", first)
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


def _pooled(p: DescentParameters, X: Matrix, y: Matrix, theta: Matrix, convergence: Convergence) -> Matrix:
    """The same descent on one table (CT)."""
    pair = pair_of(p.cost)
    while not convergence.over:
        chosen = common_batch(p, len(convergence.curve), len(X))
        J, G = pair.local(theta, X[chosen], y[chosen])
        rows = len(y[chosen]) if p.convergence == "mean" else 1
        theta = theta - p.learning_rate * G / rows
        convergence.take(J / rows)
    return theta


async def _release(net: Network, study: Study, known: dict[str, Any]) -> None:
    for address in study.addresses():
        if address == net.me:
            continue
        if study.releases("model", address):
            await net.send(address, Model(known["model"]))
        if study.releases("fit", address):
            await net.send(address, Fit(known["fit"]))
        if study.releases("n_samples", address) and address.role == CONSUMER:
            await net.send(address, CommonRows(known["n_samples"], known["islands"]))


async def _told_by_server(net: Network, study: Study, known: dict[str, Any]) -> Learned:
    server_ = study.the(SERVER)
    if study.releases("model", net.me):
        known["model"] = checked_values(await net.receive(Model, server_), "a model", server_)
    if study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, server_), "a fit", server_)
    if study.releases("n_samples", net.me) and net.me.role == CONSUMER:
        known |= await released.counted_rows(net, study)
    return learned(study, net.me, OUTPUTS, known)


def _design(X: Matrix, p: DescentParameters) -> Matrix:
    """With a first feature that is one, where there is an intercept."""
    return np.column_stack([np.ones(len(X)), X]) if p.fit_intercept else X


def _target(island: Island, p: DescentParameters) -> Matrix:
    assert p.target is not None, "the study names a target"
    island.check_numbers([p.target])
    chosen = island.chosen([p.target])
    raise_for_missing(chosen)
    y = np.asarray(chosen.whole()[:, 0])
    pair_of(p.cost).check_target(y, island.name, p.target)
    return y


def _start(p: DescentParameters, width: int) -> Matrix:
    if p.start is None:
        return np.zeros(width)
    if pair_of(p.cost).of == "scores" and len(p.start) != width:
        raise StudyError(
            f"start has {len(p.start)} numbers where the model has {width}", path=("parameters", "start")
        )
    return np.array(p.start)


def _own_start(p: DescentParameters, joint: Joint, place: int) -> Matrix:
    """An owner's part of the first model; the intercept is the first owner's."""
    whole = _start(p, len(joint.names) + p.fit_intercept)
    begin = sum(joint.widths[:place]) + (p.fit_intercept if place else 0)
    return whole[begin : begin + joint.widths[place] + (p.fit_intercept if place == 0 else 0)]


def _model(p: DescentParameters, names: tuple[str, ...], theta: Matrix) -> dict[str, Any]:
    named = ((INTERCEPT,) if p.fit_intercept else ()) + names
    if len(named) != len(theta):
        named = tuple(f"theta{i}" for i in range(len(theta)))
    return {"names": named, "coefficients": theta}


def _made(p: DescentParameters) -> released.Made:
    def made(joint: Joint, W: Matrix, intercept: Matrix) -> dict[str, Any]:
        theta = np.concatenate([intercept, W[0]]) if p.fit_intercept else W[0]
        return _model(p, joint.names, theta)

    return made


def _fit(convergence: Convergence) -> dict[str, Any]:
    return {
        "objective": convergence.curve[-1],
        "iterations": len(convergence.curve),
        "converged": convergence.settled,
        "loss_curve": np.array(convergence.curve),
    }


# ---- what it costs ----


def counted(study: Study, at: Circumstances, more: int = 0) -> Expectation:
    """Messages, bytes and rounds; how many steps a descent takes is known only afterwards."""
    p, M = study.read_parameters(DescentParameters), len(study.who(PROVIDER))
    steps = max(1, usual(study, at.columns) + more)
    columns, rows = at.columns + p.fit_intercept, sum(at.rows[:1])
    vertical = study.partition == VERTICAL
    length = batch_rows(p, rows) if vertical else columns + 2
    first = [] if vertical else [1]
    last = [1] if vertical and study.receivers("model") else []
    lengths = [*first, *[length] * steps, *last]
    cost = secure_sums.expected(study, M, lengths)
    messages, sent, rounds = cost.messages, cost.bytes_total, cost.rounds
    if p.scenario != "DU":
        messages = M * len(lengths) if p.scenario == "DT" else M
        sent = M * (8 * sum(lengths) + 60 * len(lengths)) if p.scenario == "DT" else 8 * rows * (columns + M)
        rounds = len(lengths) if p.scenario == "DT" else 1
    turns = 0 if p.scenario == "CT" else steps + (not vertical)
    told = 0 if p.scenario == "CT" else turns * M * (8 * length + 40) + (0 if vertical else M * 30)
    compared = comparisons(M) * (1 + (vertical or p.scenario != "CT") + turns)
    more_messages = 2 * M + turns * M + (M if not vertical and p.scenario != "CT" else 0)
    more_messages += turns * M if vertical else 0  # whether a provider goes on
    out = _released_messages(study, p, vertical)
    names = 20 * at.columns
    return Expectation(
        messages=messages + compared + more_messages + out,
        bytes_per_provider=sent // M + compared // M * COMPARISON_BYTES + names,
        bytes_total=sent + compared * COMPARISON_BYTES + told + (M + 1) * names + out * 60,
        memory_server=4 * 24 * length,
        rounds=_rounds(p, vertical, rounds, steps, out),
    )


def _rounds(p: DescentParameters, vertical: bool, summing: int, steps: int, out: int) -> int:
    if p.scenario == "CT":
        return 3 + vertical + summing + bool(out)
    if vertical:
        return 4 + summing + 2 * steps + 1
    return 6 + summing + 2 * steps


def _released_messages(study: Study, p: DescentParameters, vertical: bool) -> int:
    models, fits = study.receivers("model"), study.receivers("fit")
    counts = sum(a.role == CONSUMER for a in study.receivers("n_samples"))
    if not vertical or p.scenario == "CT":
        return sum(a.role != SERVER for a in (*models, *fits)) + counts
    parts = sum(a != owner for a in models for owner in study.who(PROVIDER))
    return parts + sum(a.role != SERVER for a in models) + sum(a.role != PROVIDER for a in fits) + counts


def usual(study: Study, d: int) -> int:
    """How many steps to expect."""
    del d
    return min(_USUAL, study.read_parameters(DescentParameters).max_iter)


def _further(study: Study, d: int) -> Expectation:
    fewer, longer = (counted(study, Circumstances(d), more) for more in (0, 1))
    return Expectation(*(b - a for a, b in zip(fewer, longer, strict=True)))


def _check(study: Study) -> None:
    p, group = study.read_parameters(DescentParameters), study.who(PROVIDER)
    check_columns(p, group, needs_target=True)
    check_stays(study)
    for name, value, wrong in (
        ("learning_rate", p.learning_rate, not (0.0 < p.learning_rate < np.inf)),
        ("tol", p.tol, not (0.0 <= p.tol < np.inf)),
        ("max_iter", p.max_iter, p.max_iter < 1),
        ("batch", p.batch, p.batch is not None and p.batch < 1),
    ):
        if wrong:
            raise ParameterError(f"{name}={value!r} must be above 0", option=name)
    if p.y_holder is not None:
        raise ParameterError(
            "the paper's descent needs a target that all islands have",
            option="y_holder",
            hint="LogisticRegression and the others with partition='vertical' take a y_holder",
        )
    vertical, pair = study.partition == VERTICAL, pair_of(p.cost)
    if vertical and pair.of == "model":
        raise ParameterError(
            "with columns split, cost and gradient are of the scores: cost(scores, y)", option="cost"
        )
    if pair.of == "model" and p.start is None:
        raise ParameterError("a cost of the model needs start: the first model", option="start")
    if study.between_machines and (p.scenario != "DU" or p.cost.startswith(HERE)):
        which = f"scenario = {p.scenario!r}" if p.scenario != "DU" else f"cost = {p.cost!r}"
        raise StudyError(
            f"{which} is for one process only, not between machines",
            hint='scenario = "DU", and a cost by the name that installed packages give it',
            path=("parameters",),
        )
    if vertical and p.scenario == "DU":
        check_consent(p, group, "the summed score of every row", disclosed.INSTEAD)


PROTOCOL = Protocol(
    name="gradient-descent",
    title="Secure gradient descent",
    analysis="regression",
    roles={PROVIDER: provider, SERVER: server, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    apart=((PROVIDER, SERVER),),
    messages=(
        *(*handshake.MESSAGES, Held, Joint, AllRows, algorithm1.Theta, algorithm2.Scores, algorithm2.Over),
        *(InTheClear, WholeTable, Model, Fit, OwnPart, Rest, CommonRows, Compared),
    ),
    parameters=DescentParameters,
    outputs=OUTPUTS,
    learns=disclosed.learns,
    protection=disclosed.protection,
    adversary="Everyone follows the protocol but keeps what they see; with rows split, the server colludes "
    "with no provider.",
    partitions=("horizontal", VERTICAL),
    expect=lambda study, d: counted(study, Circumstances(d)),
    counted=counted,
    steps=usual,
    further=_further,
    check=_check,
)
