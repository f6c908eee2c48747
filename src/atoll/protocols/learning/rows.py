"""Learning on tables whose rows are split: islands add what a model needs at a point, the server moves on.

The scheme is that of Mehnaz, Bellala and Bertino, A Secure Sum Protocol and Its Application to
Privacy-preserving Multi-party Analytics (2017), Algorithm 1, with any secure sum in the place of theirs and
with steps that need few sums: one for least squares, one for each Newton step.

Adversary: passive; the server colludes with no provider. Providers compare every point that they are told:
a server that told two of them different points could make all but one add nothing.
Learns: the server, in every round, the joint sums of the task (for a regression the score and information
matrix of all rows together); providers the points, the number of all rows and common units of the columns;
nobody the sums of one island.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Array, Message
from atoll.data.island import Matrix
from atoll.errors import DataError, MessageError, ParameterError, RunError, StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols import checked, fields
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import Disclosure, Expectation, Learned, Output, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.fields import AgreedFields, FieldParameters, Fields
from atoll.protocols.learning.design import (
    REASONS,
    Design,
    Survey,
    Units,
    check_units,
    measured_terms,
    units,
)
from atoll.protocols.learning.task import Found, Setting, Task
from atoll.protocols.own import Own
from atoll.study.address import Address
from atoll.study.model import Study

PROVIDER, SERVER, CONSUMER = "provider", "server", "consumer"
_EVERYONE = (PROVIDER, SERVER, CONSUMER)

SURVEY_ROUND = "survey"
MAX_SUM = 1 << 26
"""The most numbers in one sum: about 5,700 columns that all meet each other."""


class RowsParameters(FieldParameters, frozen=True):
    """``max_iter``: how many steps a fit takes at the most."""

    max_iter: int = 100


class Point(Message, frozen=True):
    """Server -> provider: where the sums are to be taken; None: there are no more."""

    step: int
    values: np.ndarray[Any, Any] | None


class Model(Message, frozen=True):
    """Server -> provider, consumer: the model."""

    values: dict[str, Any]


class Fit(Message, frozen=True):
    """Server -> provider, consumer: how well the model fits, and how sure its numbers are."""

    values: dict[str, Any]


class Count(Message, frozen=True):
    """Server -> provider, consumer: rows used and left out (for each reason), and whose they are."""

    n_samples: int
    dropped: dict[str, int]
    islands: tuple[str, ...]


MODEL_WORDS = "the model: its coefficients, or the centres of its clusters"

OUTPUTS = {
    "model": Output(("model",), _EVERYONE, MODEL_WORDS),
    "fit": Output(
        ("fit",), _EVERYONE, "how well the model fits, in every step, and how sure its numbers are"
    ),
    "n_samples": Output(
        ("n_samples", "n_dropped", "dropped", "islands"),
        _EVERYONE,
        "the number of rows used and left out (for each reason) over all islands, and which islands they are",
    ),
}


@dataclass(frozen=True)
class Kind:
    """One kind of task, as a protocol of its own."""

    name: str
    title: str
    analysis: str
    parameters: type[RowsParameters]
    task: Callable[[Setting, Survey | None], Task]
    opened: str
    """What the server learns in every round, in words."""
    points: Callable[[Any], int]
    """From parameters: how many points to expect."""
    classifies: bool = False
    needs_target: bool = True
    intercept: Callable[[Any], bool] = lambda p: bool(p.fit_intercept)
    """Whether the design has a column of ones."""
    recentres: Callable[[Any], bool] = lambda p: bool(p.fit_intercept)
    """Whether columns may be measured from another centre than zero."""
    goes_on: bool = True
    """Whether the number of points is known only afterwards."""
    check: Callable[[Study], None] = lambda _: None
    says: tuple[str, str] = "", ""
    """What follows from the numbers of the model, and of the fit, for whoever has them."""


def protocol(kind: Kind) -> Protocol:
    """The protocol of one kind of task."""
    return Protocol(
        name=kind.name,
        title=kind.title,
        analysis=kind.analysis,
        roles={
            PROVIDER: lambda net, study, own, record: _provider(kind, net, study, own, record),
            SERVER: lambda net, study, own, record: _server(kind, net, study, own, record),
            CONSUMER: _consumer,
        },
        data_roles=frozenset({PROVIDER}),
        single_roles=frozenset({SERVER}),
        apart=((PROVIDER, SERVER),),
        messages=(Fields, AgreedFields, Units, Point, Model, Fit, Count, Compared),
        parameters=kind.parameters,
        outputs=OUTPUTS,
        learns=lambda study: _learns(kind, study),
        adversary="Everyone follows the protocol but keeps what they see; "
        "the server colludes with no provider.",
        expect=lambda study, d: _expect(kind, study, d),
        steps=(lambda study, d: _steps(kind, study, d)) if kind.goes_on else None,
        further=(lambda study, d: _further(kind, study, d)) if kind.goes_on else None,
        check=lambda study: _check(kind, study),
    )


# ---- roles ----


async def _provider(kind: Kind, net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, server, islands = study.read_parameters(kind.parameters), study.the(SERVER), study.who(PROVIDER)
    with Booking(study, own, record, None) as booked:
        agreed = await _announce(kind, net, study, own, p)
        design = Design(own.table, agreed, p, classes=kind.classifies, intercept=kind.intercept(p))
        survey = await net.compute(design.survey)
        sums = _session(net, study, record, _longest(kind, p, agreed, design.terms))
        await sums.open()
        await booked.settle_exact(net, design.read)
        await sums.contribute(SURVEY_ROUND, encoded(survey, len(islands), SURVEY_ROUND))
        told = await net.receive(Units, server)
        check_units(told, len(design.terms) + 1, round(survey[0]), server)
        task = kind.task(_setting(kind, p, agreed, design.terms, told), None)
        _refuse_few_rows(told.n, task.coefficients, own.table.name)
        await compare(net, "the number of rows and the units", (told.n, told.centre, told.unit), islands)
        await net.compute(design.measure, told)
        await net.compute(_check_responses, task, design)
        await _follow(net, study, task, design, sums)
        await sums.close()
    return await _released(net, study)


async def _follow(net: Network, study: Study, task: Task, design: Design, sums: Any) -> None:
    """Add what the task needs at every point, until there are no more."""
    p, server, islands = task.setting.parameters, study.the(SERVER), study.who(PROVIDER)
    for step in range(_most_points(p) + 1):
        point = await net.receive(Point, server)
        if point.step != step:
            raise MessageError(f"{server} is at point {point.step} where {step} was due")
        await compare(net, f"point {step}", (point.step, point.values), islands)
        if point.values is None:
            return
        if step == _most_points(p):
            raise checked.refuse(server, "more points than the study allows")
        checked.check_floats(point.values, (task.point_length,), "a point", server)
        if not task.is_point(point.values):
            raise checked.refuse(server, "a point that cannot be one of this task")
        total = await net.compute(_local_sums, task, design, point.values)
        await sums.contribute(f"point {step}", encoded(total, len(islands), f"point {step}"))


async def _server(kind: Kind, net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, islands = study.read_parameters(kind.parameters), study.who(PROVIDER)
    told = await net.gather(Fields, islands)
    agreed = fields.agree({address.party: message for address, message in told.items()}, p)
    await net.broadcast(islands, agreed)
    terms = fields.terms(agreed, p.categorical)
    sums = _session(net, study, record, _longest(kind, p, agreed, terms))
    await sums.open()
    values = fixedpoint.decode(await sums.total(SURVEY_ROUND, Survey.length(len(terms))))
    survey = Survey.of(values)
    measured = np.append(measured_terms(agreed, p), not kind.classifies)
    common = units(survey, measured, kind.recentres(p))
    task = kind.task(_setting(kind, p, agreed, terms, common), survey)
    _refuse_few_rows(survey.n, task.coefficients, "the islands together")
    await net.broadcast(islands, common)
    await _lead(net, study, record, task, sums)
    found = record.kept("model", task.found())
    dropped = dict(zip(REASONS, survey.left_out, strict=True))
    count = Count(survey.n, dropped, tuple(address.party for address in islands))
    await _release(net, study, found, count)
    known = {"model": found.model, "fit": found.fit, **_counted(count)}
    return learned(study, net.me, OUTPUTS, known)


def _counted(count: Count) -> dict[str, Any]:
    rest = {"dropped": count.dropped, "n_dropped": sum(count.dropped.values()), "islands": count.islands}
    return {"n_samples": count.n_samples, **rest}


async def _lead(net: Network, study: Study, record: Record, task: Task, sums: Any) -> None:
    """From point to point, until the task has settled."""
    islands, step = study.who(PROVIDER), 0
    point: Matrix | None = task.start()
    while point is not None:
        if step == _most_points(task.setting.parameters):
            raise RunError(
                f"the fit did not settle within {step} sums, which is all that providers answer",
                hint="a larger max_iter; or rescale the columns",
            )
        await net.broadcast(islands, Point(step, point))
        total = fixedpoint.decode(await sums.total(f"point {step}", task.longest))
        step += 1
        point = record.kept(f"point {step}", await net.compute(task.advance, total), Array | None)
    await net.broadcast(islands, Point(step, None))


async def _consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    return await _released(net, study)


async def _release(net: Network, study: Study, found: Found, count: Count) -> None:
    for address in (*study.who(PROVIDER), *study.who(CONSUMER)):
        if study.releases("model", address):
            await net.send(address, Model(found.model))
        if study.releases("fit", address):
            await net.send(address, Fit(found.fit))
        if study.releases("n_samples", address):
            await net.send(address, count)


async def _released(net: Network, study: Study) -> Learned:
    server, known = study.the(SERVER), dict[str, Any]()
    if study.releases("model", net.me):
        known["model"] = checked_values(await net.receive(Model, server), "a model", server)
    if study.releases("fit", net.me):
        known["fit"] = checked_values(await net.receive(Fit, server), "a fit", server)
    if study.releases("n_samples", net.me):
        count = await net.receive(Count, server)
        checked.check_islands(count.islands, study.who(PROVIDER), len(study.who(PROVIDER)), server)
        rows = (count.n_samples - 1, *count.dropped.values())
        if tuple(count.dropped) != REASONS or not all(0 <= n < checked.MAX_ROWS for n in rows):
            raise checked.refuse(server, "numbers of rows that cannot be")
        known |= _counted(count)
    return learned(study, net.me, OUTPUTS, known)


def checked_values(message: Model | Fit, what: str, server: Address) -> dict[str, Any]:
    """Finite numbers, whatever they are called: a reader of results never meets NaN."""
    for value in message.values.values():
        if isinstance(value, np.ndarray):
            checked.check_floats(value, value.shape, what, server)
        elif isinstance(value, float):
            checked.check_number(value, what, server)
    return message.values


# ---- what the roles share ----


async def _announce(kind: Kind, net: Network, study: Study, own: Own, p: Any) -> AgreedFields:
    server = study.the(SERVER)
    mine = fields.own_fields(own.table, p, kind.classifies)
    await net.send(server, mine)
    agreed = await net.receive(AgreedFields, server)
    fields.check_agreed(agreed, mine, p, own.table.name, server)
    await compare(net, "the columns", (agreed.names, agreed.named, agreed.levels), study.who(PROVIDER))
    return agreed


def _setting(kind: Kind, p: Any, agreed: AgreedFields, terms: tuple[str, ...], common: Units) -> Setting:
    classes = agreed.levels.get(p.target, ()) if p.target else ()
    return Setting(p, terms, classes, common, kind.intercept(p))


def _longest(kind: Kind, p: Any, agreed: AgreedFields, terms: tuple[str, ...]) -> int:
    task = _blank(kind, p, agreed, terms)
    longest = max(Survey.length(len(terms)), task.longest)
    if longest > MAX_SUM:
        raise DataError(
            f"{len(terms)} columns would need sums of {longest:,} numbers; {MAX_SUM:,} are the most",
            hint="use fewer columns, or join levels and classes",
        )
    return longest


def _blank(kind: Kind, p: Any, agreed: AgreedFields, terms: tuple[str, ...]) -> Task:
    """The task before anything is known of the rows: it says how long points and sums are."""
    units = Units(1, np.zeros(len(terms) + 1), np.ones(len(terms) + 1))
    return kind.task(_setting(kind, p, agreed, terms, units), None)


def _session(net: Network, study: Study, record: Record, longest: int) -> secure_sums.SecureSum:
    return secure_sums.between(net, study, record, PROVIDER, SERVER, longest)


def encoded(values: Matrix, contributors: int, what: str) -> fixedpoint.Limbs:
    """Numbers on the grid of a sum, where they are numbers."""
    if not np.isfinite(values).all():
        raise DataError(f"the sums of {what} exceed a double's range", hint="rescale the columns")
    return fixedpoint.encode(values, contributors=contributors)


def _check_responses(task: Task, design: Design) -> None:
    name = design.island.name
    for _ in design.each(lambda rows: task.check_rows(rows, name)):
        pass


def _local_sums(task: Task, design: Design, point: Matrix) -> Matrix:
    return design.add_up(lambda rows: task.local(rows, point), task.longest)


def _most_points(p: RowsParameters) -> int:
    """Points that a provider answers: steps, and shorter ones where a step went too far."""
    return 3 * p.max_iter + 10


def _refuse_few_rows(n: int, parameters: int, whose: str) -> None:
    if n <= parameters:
        raise DataError(
            f"{whose}: {n} rows for {parameters} coefficients; sums over so few say what single rows hold",
            hint="use fewer columns, classes or clusters, or more islands",
        )


def _learns(kind: Kind, study: Study) -> list[Disclosure]:
    method, p = secure_sums.chosen(study), study.read_parameters(kind.parameters)
    levels = ", and the levels of columns with categories" if p.categorical or kind.classifies else ""
    said = [
        Disclosure(PROVIDER, f"the columns of all islands{levels}", (AgreedFields,)),
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(
            PROVIDER,
            "the number of rows of all islands together, each column's joint mean to a sixteenth of its "
            "deviation, and its deviation to a factor of two",
            (Units,),
            ("n_samples",),
        ),
        # The last point is the model.
        Disclosure(PROVIDER, "the model of every step, the last included", (Point,), ("model",))
        if kind.goes_on
        else Disclosure(PROVIDER, "when the sum is due", (Point,)),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(SERVER, f"each island's column names{levels.replace(', and', ', with')}", (Fields,)),
        Disclosure(
            SERVER,
            f"over all islands together, exactly: {kind.opened}",
            method.to_receivers,
            tuple(value for output in OUTPUTS.values() for value in output.values),
        ),
    ]
    for output, kind_of, words in (
        ("model", Model, MODEL_WORDS + kind.says[0]),
        ("fit", Fit, OUTPUTS["fit"].words + kind.says[1]),
        (
            "n_samples",
            Count,
            "the number of rows used and left out (for each reason), and which islands they are",
        ),
    ):
        for role in (PROVIDER, CONSUMER):
            if any(address.role == role for address in study.receivers(output)):
                said.append(Disclosure(role, words, (kind_of,)))
    return said + _between_two(study)


def _between_two(study: Study) -> list[Disclosure]:
    """With two providers, whatever one knows of both is, less its own, about the other alone."""
    if len(study.who(PROVIDER)) != 2:
        return []
    said = [
        Disclosure(
            PROVIDER,
            "with two providers: each learns the other's number of rows, and from means and the model of "
            "every step, less its own rows, figures of the other's rows alone",
        )
    ]
    owners = {address.party for address in study.who(PROVIDER)}
    if any(address.party in owners for address in study.receivers("fit")):
        said.append(
            Disclosure(
                PROVIDER,
                "with two providers: from the released fit, less its own rows, the products of the other's "
                "columns",
            )
        )
    return said


def _expect(kind: Kind, study: Study, d: int, more: int = 0) -> Expectation:
    """Messages, bytes and rounds; how many steps a fit takes is known only afterwards, so a usual number."""
    p, M = study.read_parameters(kind.parameters), len(study.who(PROVIDER))
    points, task = kind.points(p) + more, _expected_task(kind, p, d)
    terms = len(task.setting.terms)
    cost = secure_sums.expected(study, M, [Survey.length(terms), *[task.longest] * points])
    told = (3 + points) * comparisons(M)  # columns, units, every point and the end
    released = sum(address.role != SERVER for output in OUTPUTS for address in study.receivers(output))
    names = 20 * d
    sent = M * (2 * names + 16 * terms + points * (8 * task.point_length + 40) + 40)
    return Expectation(
        messages=M * (4 + points) + cost.messages + told + released,
        bytes_per_provider=names + cost.bytes_per_contributor + told // M * COMPARISON_BYTES,
        bytes_total=cost.bytes_total + told * COMPARISON_BYTES + sent + released * 16 * d,
        memory_server=4 * fixedpoint.BYTES_PER_VALUE * task.longest,
        rounds=4 + 2 * points + cost.rounds + 1 + bool(released),
    )


def _expected_task(kind: Kind, p: Any, d: int) -> Task:
    """Of d columns; two levels and two classes, where the study does not say them."""
    two = ("0", "1")
    levels = {name: tuple(p.levels.get(name, two)) for name in p.categorical}
    names = tuple(p.columns or (*levels, *(f"column {i}" for i in range(d - len(levels)))))
    if kind.classifies and p.target:
        levels[p.target] = tuple(p.levels.get(p.target, two))
    agreed = AgreedFields(names, True, levels)
    return _blank(kind, p, agreed, fields.terms(agreed, p.categorical))


def _steps(kind: Kind, study: Study, d: int) -> int:
    del d
    return kind.points(study.read_parameters(kind.parameters))


def _further(kind: Kind, study: Study, d: int) -> Expectation:
    """What one step more costs."""
    usual, longer = _expect(kind, study, d), _expect(kind, study, d, 1)
    return Expectation(*(b - a for a, b in zip(usual, longer, strict=True)))


def _check(kind: Kind, study: Study) -> None:
    p = study.read_parameters(kind.parameters)
    fields.check_fields(p, kind.classifies)
    check_stays(study)
    if kind.needs_target and p.target is None:
        raise StudyError(
            f"{kind.name} needs a target: the column that is to be explained",
            hint='target = "..." in a study file; fit(islands, target="...") or fit(tables, targets)',
            path=("parameters", "target"),
        )
    if p.max_iter < 1:
        raise ParameterError(f"max_iter={p.max_iter} must be 1 or more", option="max_iter")
    tol = getattr(p, "tol", 0.0)
    if not (0.0 <= tol < 1.0):
        raise ParameterError(f"tol={tol!r} must be 0 or more, and below 1", option="tol")
    kind.check(study)


def check_stays(study: Study) -> None:
    """All sums are over the same rows: if an island left, two of them would differ by its own."""
    if secure_sums.may_leave(study):
        raise StudyError(
            f"{study.protocol} adds several times over the same rows: no island can leave in between",
            hint="dropouts = 0",
            path=("sum", "dropouts"),
        )


def refuse_offset(offset: str | None, instead: str) -> None:
    """An offset that a model would not use is no small matter: its coefficients mean something else."""
    if offset is not None:
        raise StudyError("this model has no offset", hint=instead, path=("parameters", "offset"))


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as messages carry them: arrays as they are, NumPy's numbers as Python's."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
