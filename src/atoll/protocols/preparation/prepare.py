"""A protocol with the study's ``[table]`` before it: roles, messages, who learns what, what it costs.

A protocol that can do so says ``prepare=prepared_by(role)``: this role leads. Its own roles then start on
prepared tables, and know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from atoll import secure_sums
from atoll.errors import StudyError
from atoll.network import Compared, Network, Record
from atoll.protocols.agreement import COMPARISON_BYTES, comparisons
from atoll.protocols.base import (
    Circumstances,
    Disclosure,
    Expectation,
    Forecast,
    Learned,
    Output,
    Protocol,
    Role,
    learned,
)
from atoll.protocols.fields import AgreedFields, Fields
from atoll.protocols.own import Own
from atoll.protocols.preparation import joint
from atoll.protocols.preparation.messages import MESSAGES, Flat, Means, PreparedTold, Wanted
from atoll.study.address import Address
from atoll.study.model import Study, TablePlan

TABLE = "table"
"""The output that says how tables were prepared."""


def prepared_by(leader: str, *told: str) -> Callable[[Protocol, Study], Protocol]:
    """``told``: further roles that may learn how tables were prepared."""

    def prepare(protocol: Protocol, study: Study) -> Protocol:
        if study.table == TablePlan():
            return protocol
        check(protocol, study)
        if not study.table.exchanges:
            alone = {role: _alone(inner) for role, inner in _of_tables(protocol).items()}
            return replace(_counted(protocol), roles={**protocol.roles, **alone}, prepare=_once)
        return _with_exchange(protocol, leader, told)

    return prepare


def _once(protocol: Protocol, study: Study) -> Protocol:
    del study
    return protocol


def _of_tables(protocol: Protocol) -> dict[str, Role]:
    return {role: inner for role, inner in protocol.roles.items() if role in protocol.data_roles}


# ---- roles ----


def _alone(inner: Role) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        return await inner(net, study, await net.compute(joint.alone, own, study), record)

    return role


def _with_exchange(protocol: Protocol, leader: str, told: tuple[str, ...]) -> Protocol:
    holder = next(iter(protocol.data_roles))
    output = Output(
        (TABLE,),
        (holder, leader, *told),
        "how tables were prepared: columns, levels, filled-in means, and columns that are flat",
    )
    roles = dict(protocol.roles)
    roles[holder] = _holder(roles[holder], holder, leader)
    roles[leader] = _leader(roles[leader], holder, told)
    for name in told:
        roles[name] = _told(roles[name], leader)
    return replace(
        _counted(protocol, holder, told),
        roles=roles,
        messages=tuple(dict.fromkeys((*protocol.messages, *MESSAGES))),
        outputs={**protocol.outputs, TABLE: output},
        learns=lambda study: [*protocol.learns(study), *_learns(study, holder, leader, told)],
        prepare=_once,
    )


def _and(study: Study, me: Address, what: PreparedTold, done: Learned) -> Learned:
    """What the protocol's own role learned, and how tables were prepared."""
    known = learned(study, me, {TABLE: Output((TABLE,), ())}, {TABLE: joint.plain(what)})
    return Learned({**done.outputs, **known.outputs}, {**done.inherent, **known.inherent})


def _holder(inner: Role, holder: str, leader: str) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        islands = study.who(holder)
        own, made = await joint.hold(net, study, own, record, study.the(leader), islands)
        return _and(study, net.me, made.told(), await inner(net, study, own, record))

    return role


def _leader(inner: Role, holder: str, told: tuple[str, ...]) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        made = await joint.lead(net, study, record, study.who(holder))
        for address in _listeners(study, told):
            await net.send(address, made.told())
        return _and(study, net.me, made.told(), await inner(net, study, own, record))

    return role


def _told(inner: Role, leader: str) -> Role:
    async def role(net: Network, study: Study, own: Own, record: Record) -> Learned:
        if not study.releases(TABLE, net.me):
            return await inner(net, study, own, record)
        what = await net.receive(PreparedTold, study.the(leader))
        return _and(study, net.me, what, await inner(net, study, own, record))

    return role


def _listeners(study: Study, told: tuple[str, ...]) -> list[Address]:
    return [address for role in told for address in study.who(role) if study.releases(TABLE, address)]


# ---- who learns what, and what it costs ----


def _learns(study: Study, holder: str, leader: str, told: tuple[str, ...]) -> list[Disclosure]:
    plan, method = study.table, secure_sums.chosen(study)
    names = ", and the names of all levels of " + ", ".join(plan.categorical) if plan.categorical else ""
    said = [
        Disclosure(holder, f"the columns of all islands{names}", (AgreedFields,), (TABLE,)),
        Disclosure(leader, f"each island's column names{names.replace('all', 'its')}", (Fields,), (TABLE,)),
        Disclosure(holder, "whether the other islands were told the same", (Compared,)),
    ]
    if plan.adds:
        which = " or ".join(
            (["incomplete"] if plan.fills else []) + (["constant"] if plan.flat != "ignore" else [])
        )
        said += [
            Disclosure(holder, method.contributors_see, (*method.to_contributors, *method.to_adder)),
            Disclosure(
                leader,
                "over all islands together, exactly: the number of rows, how many values each column has, "
                f"on how many islands it varies, and the means of columns that are {which}",
                method.to_receivers,
            ),
            Disclosure(holder, f"which columns are {which} on all islands together", (Wanted,)),
            Disclosure(holder, "the joint means of these columns, exactly", (Means,)),
        ]
    if plan.flat != "ignore":
        said.append(Disclosure(holder, "which columns are flat on all islands together", (Flat,)))
    for role in told:
        if any(address.role == role for address in study.receivers(TABLE)):
            said.append(Disclosure(role, "how tables were prepared, joint means included", (PreparedTold,)))
    if plan.fills and len(study.who(holder)) == 2:
        words = "with two islands: from joint means, less its own part, figures of the other's columns"
        said.append(Disclosure(holder, words))
    return said


def width(plan: TablePlan, d: int) -> int:
    """How many terms d columns make; of levels that nobody knows yet, two each."""
    levels = [len(plan.levels.get(name, ("", ""))) for name in plan.categorical]
    return max(1, d - len(levels) + sum(levels))


def _counted(protocol: Protocol, holder: str = "", told: tuple[str, ...] = ()) -> Protocol:
    """The protocol's own figures, for as many columns as there are terms, and those of the preparation."""
    expect, forecast, determines = protocol.expect, protocol.forecast, protocol.determines

    def expected(study: Study, d: int) -> Expectation:
        assert expect is not None
        inner = expect(study, width(study.table, d))
        return _more(inner, study, d, holder, told) if holder else inner

    def foreseen(study: Study, known: Circumstances) -> tuple[Expectation, Forecast]:
        assert forecast is not None
        inner, seen = forecast(study, known._replace(columns=width(study.table, known.columns)))
        return (_more(inner, study, known.columns, holder, told) if holder else inner), seen

    def determined(study: Study, known: Circumstances) -> tuple[str, ...]:
        return determines(study, known._replace(columns=width(study.table, known.columns)))

    return replace(
        protocol,
        expect=expected if expect is not None else None,
        forecast=foreseen if forecast is not None else None,
        determines=determined,
    )


def _more(inner: Expectation, study: Study, d: int, holder: str, told: tuple[str, ...]) -> Expectation:
    """What the exchange adds."""
    plan, M = study.table, len(study.who(holder))
    terms = width(plan, d)
    answers = (1 if not plan.adds else 3) + (plan.flat != "ignore")
    compared = answers * comparisons(M)
    lengths = joint.sum_lengths(plan, terms)
    cost = secure_sums.expected(study, M, lengths) if lengths else secure_sums.Cost(0, 0, 0, 0)
    listeners = len(_listeners(study, told))
    names = 20 * terms
    return Expectation(
        messages=inner.messages + M * (1 + answers) + compared + cost.messages + listeners,
        bytes_per_provider=inner.bytes_per_provider
        + names
        + cost.bytes_per_contributor
        + compared // M * COMPARISON_BYTES,
        bytes_total=inner.bytes_total
        + (2 * M + listeners) * names
        + cost.bytes_total
        + compared * COMPARISON_BYTES
        + 16 * M * terms,
        memory_server=inner.memory_server,
        rounds=inner.rounds + 1 + 2 * answers + cost.rounds,
    )


# ---- what a study cannot ask for ----


def check(protocol: Protocol, study: Study) -> None:
    """Refuse a ``[table]`` that says what cannot be, or more than the protocol can keep private."""
    plan = study.table
    _check_names(study, plan)
    if study.partition != "horizontal":
        raise StudyError("[table] is for islands that hold rows", path=("table",))
    if study.parameters.get("epsilon") is not None:
        _check_private(plan)
    if not plan.exchanges:
        return
    if secure_sums.may_leave(study):
        raise StudyError(
            "no island can leave while tables are prepared together",
            hint="dropouts = 0; or name all levels, and missing = 'drop'",
            path=("sum", "dropouts"),
        )
    if secure_sums.helpers(study):
        raise StudyError(
            f"tables cannot be prepared together where the secure sum {study.secure_sum!r} has helpers",
            hint="leave the helpers out; or name all levels, and missing = 'drop'",
            path=("table",),
        )


def _check_names(study: Study, plan: TablePlan) -> None:
    beside = joint.beside(study)
    columns = plan.columns
    for name, wrong, why in (
        ("columns", study.parameters.get("columns") is not None, "columns stand in [table], not under"),
        ("columns", columns is not None and not columns, "columns must name at least one column"),
        ("columns", len(set(columns or ())) < len(columns or ()), "columns names a column twice"),
        ("columns", bool({*beside} & {*(columns or ())}), "columns names the label or the row ids"),
        ("exclude", columns is not None and bool(plan.exclude), "exclude is for a study without columns"),
        (
            "categorical",
            len(set(plan.categorical)) < len(plan.categorical),
            "categorical names a column twice",
        ),
        (
            "categorical",
            bool({*beside, *plan.exclude} & {*plan.categorical})
            or (columns is not None and not {*plan.categorical} <= {*columns}),
            "categorical names a column that is not used",
        ),
        ("levels", not set(plan.levels) <= set(plan.categorical), "levels names a column without categories"),
        (
            "levels",
            any(not levels or len(set(levels)) < len(levels) for levels in plan.levels.values()),
            "levels must name at least one level, and none twice",
        ),
    ):
        if wrong:
            raise StudyError(why + (" [parameters]" if why.endswith("under") else ""), path=("table", name))


def _check_private(plan: TablePlan) -> None:
    if not plan.exchanges:
        return
    if plan.adds:
        name, what = ("missing", "joint means") if plan.fills else ("flat", "looking for flat columns")
        hint = "missing = 'drop'" if plan.fills else "leave it out"
        raise StudyError(
            f"{what} would be exact, and no noise of the study's epsilon covers them",
            hint=f"{hint}; or fill in public numbers before the study starts",
            path=("table", name),
        )
    raise StudyError(
        "with an epsilon the study itself must name the levels: which occur is learned from the rows",
        hint="[table.levels] with one list for each categorical column",
        path=("table", "levels"),
    )


def table_words(plan: TablePlan) -> tuple[str, ...]:
    """What is done to tables, for whoever reviews the study."""
    if plan == TablePlan():
        return ()
    said = []
    if plan.columns is not None:
        said.append(f"the columns {', '.join(plan.columns)} are used, and no others")
    if plan.exclude:
        said.append(f"the columns {', '.join(plan.exclude)} are left out")
    for name in plan.categorical:
        told = "level that occurs on any island; the names of these levels are told to all islands"
        levels = f"of the study's levels ({', '.join(plan.levels[name])})" if name in plan.levels else told
        said.append(f"{name} becomes one column of zeros and ones for each {levels}")
    if plan.missing == "drop":
        said.append("rows with a missing value are left out")
    if plan.fills:
        what = "twice its joint allele frequency" if plan.missing == "allele frequency" else "its joint mean"
        said.append(f"a missing value of a column becomes {what}, which all islands learn exactly")
    if plan.flat != "ignore":
        done = "kept, empty ones as zeros" if plan.flat == "zeros" else "dropped"
        said.append(f"columns that are constant or empty on all islands together are named and {done}")
    return tuple(said)
