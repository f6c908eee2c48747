"""Joint categories, joint means of incomplete columns, and columns that are flat: two sides of one step.

The sums have the length that the number of terms gives them, whatever is missing where: what travels says
nothing that the totals do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.data.island import Island, Matrix
from atoll.data.prepared import PreparedTable, Survey, Term, terms
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, SchemaError
from atoll.network import Network, Record
from atoll.protocols import checked, fields
from atoll.protocols.agreement import compare
from atoll.protocols.booking import Booking
from atoll.protocols.fields import AgreedFields, FieldParameters, Fields
from atoll.protocols.own import Own
from atoll.protocols.preparation.messages import Flat, Means, PreparedTold, Wanted
from atoll.study.address import Address
from atoll.study.model import Study, TablePlan

_SAME = 1e-9
"""Values that differ by this part of their size count as one constant: means are rounded."""


class Prepared(NamedTuple):
    """How every table is prepared, once all have agreed."""

    terms: tuple[Term, ...]
    levels: dict[str, tuple[str, ...]]
    fill: dict[str, float]
    flat: tuple[str, ...]

    def told(self) -> PreparedTold:
        columns = tuple(dict.fromkeys(term.column for term in self.terms))
        return PreparedTold(columns, self.levels, self.fill, self.flat)


def plain(told: PreparedTold) -> dict[str, Any]:
    """As an output of the study."""
    return {name: getattr(told, name) for name in told.__struct_fields__}


def beside(study: Study) -> tuple[str, ...]:
    """Columns that go along and are no features."""
    named = (study.parameters.get(name) for name in ("label", "row_ids"))
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _fields(plan: TablePlan) -> FieldParameters:
    return FieldParameters(columns=plan.columns, categorical=plan.categorical, levels=plan.levels)


def own_columns(island: Island, study: Study) -> Fields:
    """What this island brings: columns that exist and hold what they must, and levels that nobody stated."""
    left_out = (*study.table.exclude, *beside(study))
    lacking = [name for name in beside(study) if name not in island.columns]
    if lacking:
        raise SchemaError(
            f"{island.name}: there is no column {lacking[0]!r}, which the study names",
            hint=f"its columns are {', '.join(map(repr, island.columns[:5]))}",
        )
    return fields.own_fields(island, _fields(study.table), classes=False, beside=left_out)


def table_of(island: Island, study: Study, made: Prepared) -> PreparedTable:
    return PreparedTable(
        island,
        made.terms,
        made.levels,
        beside=beside(study),
        drop=study.table.missing == "drop",
        fill=made.fill,
    )


def island_of(island: Island, table: PreparedTable) -> Island:
    """The owner's island with the prepared table; an island without rows left is refused."""
    if not table.n_rows:
        raise DataError(
            f"{island.name}: the table has no complete row", hint="leave the island out of the study"
        )
    return island.with_table(table)


def alone(own: Own, study: Study) -> Own:
    """Where the study says everything, nobody needs to be asked."""
    island = own.table
    mine = own_columns(island, study)
    levels = {name: study.table.levels[name] for name in study.table.categorical}
    made = Prepared(terms(mine.names, levels), levels, {}, ())
    return replace(own, island=island_of(island, table_of(island, study, made)))


# ---- an island's side ----


async def hold(
    net: Network, study: Study, own: Own, record: Record, leader: Address, islands: tuple[Address, ...]
) -> tuple[Own, Prepared]:
    """Agree on categories, means and flat columns; from there the table is read as prepared."""
    island, plan = own.table, study.table
    with Booking(study, own, record.under("preparation"), None) as booked:
        mine = own_columns(island, study)
        await net.send(leader, mine)
        agreed = await net.receive(AgreedFields, leader)
        fields.check_agreed(agreed, mine, _fields(plan), island.name, leader)
        told = (agreed.names, agreed.named, agreed.levels)
        await compare(net, "the columns and levels", told, islands)
        made = _unfilled(agreed, plan)
        if plan.adds:
            made = await _add(net, study, own, record, (leader, islands), made, booked)
    return replace(own, island=island_of(island, table_of(island, study, made))), made


def _unfilled(agreed: AgreedFields, plan: TablePlan) -> Prepared:
    levels = {name: agreed.levels[name] for name in plan.categorical}
    return Prepared(terms(agreed.names, levels), levels, {}, ())


async def _add(
    net: Network,
    study: Study,
    own: Own,
    record: Record,
    others: tuple[Address, tuple[Address, ...]],
    made: Prepared,
    booked: Booking,
) -> Prepared:
    (leader, islands), plan, island = others, study.table, own.table
    table = table_of(island, study, made)
    rows = island.with_table(table).chosen([term.name for term in made.terms])
    if plan.missing == "refuse":
        await net.compute(raise_for_missing, rows)
    survey = await net.compute(table.survey, plan.missing == "allele frequency")
    sums = _session(net, study, record, leader, islands, len(made.terms))
    await sums.open()
    await booked.settle_exact(net, rows)
    counts = np.concatenate([[survey.rows], survey.present, survey.varies])
    await sums.contribute("counts", _encoded(counts, islands))
    wanted = await net.receive(Wanted, leader)
    _check_wanted(wanted, survey, plan, leader)
    await compare(net, "the columns whose means are due", (wanted.fill, wanted.flat), islands)
    due = [*wanted.fill, *wanted.flat]
    values = np.zeros(len(made.terms))
    values[due] = survey.total[due]
    await sums.contribute("values", _encoded(values, islands))
    means = (await net.receive(Means, leader)).values
    checked.check_floats(means, (len(due),), "joint means", leader)
    await compare(net, "the joint means", means, islands)
    flat: tuple[int, ...] = ()
    if plan.flat != "ignore":
        differs = np.zeros(len(made.terms))
        constant = survey.first[list(wanted.flat)]
        differs[list(wanted.flat)] = _differ(constant, means[len(wanted.fill) :])
        await sums.contribute("differs", _encoded(differs, islands))
        flat = (await net.receive(Flat, leader)).terms
        _check_flat(flat, wanted, survey, differs, leader)
        await compare(net, "the columns that are flat", flat, islands)
    await sums.close()
    return _settled(made, plan, wanted, means, flat)


def _differ(values: Matrix, means: Matrix) -> Matrix:
    """Whether this island's constant is another than the joint one; an island without a value has none."""
    far = np.abs(values - means) > _SAME * np.maximum(np.abs(values), np.abs(means))
    return np.where(np.isnan(values), 0.0, far.astype(float))


def _check_wanted(wanted: Wanted, survey: Survey, plan: TablePlan, leader: Address) -> None:
    """Terms that exist, each once; none that this island knows not to be constant."""
    width = len(survey.present)
    for places in (wanted.fill, wanted.flat):
        if list(places) != sorted(set(places)) or any(not 0 <= place < width for place in places):
            raise checked.refuse(leader, "places of columns that cannot be")
    if (wanted.fill and not plan.fills) or (wanted.flat and plan.flat == "ignore"):
        raise checked.refuse(leader, "a wish for means that the study does not give")
    if any(survey.varies[place] for place in wanted.flat):
        raise checked.refuse(leader, "a column as constant that is not constant here")
    incomplete = np.flatnonzero((survey.present < survey.rows) & (survey.present > 0))
    if plan.fills and not set(incomplete.tolist()) <= set(wanted.fill):
        raise checked.refuse(leader, "no wish for the mean of a column that is incomplete here")


def _check_flat(
    flat: Sequence[int], wanted: Wanted, survey: Survey, differs: Matrix, leader: Address
) -> None:
    empty = set(np.flatnonzero(survey.present == 0).tolist())
    if list(flat) != sorted(set(flat)) or not set(flat) <= set(wanted.flat) | empty:
        raise checked.refuse(leader, "columns as flat that are not")
    if any(differs[place] for place in flat):
        raise checked.refuse(leader, "a column as constant that has another value here")


def _settled(made: Prepared, plan: TablePlan, wanted: Wanted, means: Matrix, flat: Sequence[int]) -> Prepared:
    """What all agreed on: terms, means, and what becomes of flat columns."""
    names = [term.name for term in made.terms]
    fill = dict(zip((names[place] for place in wanted.fill), means.tolist(), strict=False))
    left = [term for place, term in enumerate(made.terms) if plan.flat != "drop" or place not in flat]
    if not left:
        raise SchemaError("every column is flat: none is left", hint="flat = 'zeros' keeps them")
    kept = {term.name for term in left}
    fill = {name: mean for name, mean in fill.items() if name in kept}
    if plan.flat == "zeros" and plan.fills:
        fill |= {names[place]: 0.0 for place in flat if place not in wanted.flat}
    return Prepared(tuple(left), made.levels, fill, tuple(names[place] for place in flat))


# ---- the leading role's side ----


async def lead(net: Network, study: Study, record: Record, islands: tuple[Address, ...]) -> Prepared:
    """Put together what islands tell and add up."""
    plan, p = study.table, _fields(study.table)
    told = await net.gather(Fields, islands)
    agreed = fields.agree({address.party: message for address, message in told.items()}, p)
    await net.broadcast(islands, agreed)
    made = _unfilled(agreed, plan)
    return await _total(net, study, record, islands, made) if plan.adds else made


async def _total(
    net: Network, study: Study, record: Record, islands: tuple[Address, ...], made: Prepared
) -> Prepared:
    plan, width = study.table, len(made.terms)
    sums = _session(net, study, record, net.me, islands, width)
    await sums.open()
    counts = fixedpoint.decode(await sums.total("counts", 1 + 2 * width))
    n, present, varies = round(counts[0]), np.round(counts[1 : 1 + width]), np.round(counts[1 + width :])
    empty = np.flatnonzero(present == 0)
    if len(empty) and plan.flat == "ignore":
        names = ", ".join(repr(made.terms[place].name) for place in empty[:5])
        raise SchemaError(
            f"there is no value on any island in {names}",
            hint="flat = 'zeros' keeps such columns as zeros, flat = 'drop' drops them; or exclude = [...]",
        )
    fill = (present < n) & (present > 0) & plan.fills
    flat = (varies == 0) & (present > 0) & (plan.flat != "ignore")
    wanted = Wanted(*(tuple(map(int, np.flatnonzero(one))) for one in (fill, flat)))
    await net.broadcast(islands, wanted)
    values = fixedpoint.decode(await sums.total("values", width))
    due = [*wanted.fill, *wanted.flat]
    means = np.asarray(values[due] / np.maximum(present[due], 1.0))
    await net.broadcast(islands, Means(means))
    found: tuple[int, ...] = ()
    if plan.flat != "ignore":
        differs = np.round(fixedpoint.decode(await sums.total("differs", width)))
        found = tuple(sorted({*(i for i in wanted.flat if differs[i] == 0), *map(int, empty)}))
        await net.broadcast(islands, Flat(found))
    return _settled(made, plan, wanted, means, found)


# ---- what both share ----


def sum_lengths(plan: TablePlan, width: int) -> list[int]:
    """Of the sums, for so many terms."""
    if not plan.adds:
        return []
    return [1 + 2 * width, width, *([width] if plan.flat != "ignore" else [])]


def _session(
    net: Network, study: Study, record: Record, leader: Address, islands: tuple[Address, ...], width: int
) -> secure_sums.SecureSum:
    return secure_sums.session(
        study,
        net,
        record.under("preparation"),
        contributors=islands,
        receivers=(leader,),
        longest=max(sum_lengths(study.table, width)),
        name="preparation",
    )


def _encoded(values: Matrix, islands: Sequence[Address]) -> fixedpoint.Limbs:
    if not np.isfinite(values).all():
        raise DataError("the sum of a column exceeds a double's range", hint="rescale the column, everywhere")
    return fixedpoint.encode(values, contributors=len(islands))
