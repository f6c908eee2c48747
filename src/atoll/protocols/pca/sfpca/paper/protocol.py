"""SF-PCA as the paper has it: its roles, around :mod:`algorithm1`.

Froelicher, Cho, Edupalli, Sousa, Bossuat, Pyrgelis, Troncoso-Pastoriza, Berger, Hubaux: Scalable and
Privacy-Preserving Federated Principal Component Analysis (2023), Algorithm 1.

Symbols: :mod:`algorithm1` has them; pk, evks -> ``machine.set_up``, W -> components, A'_i -> scores.

Adversary: passive; the coordinator with all providers but one. It holds no key: it relays, adds, and runs
QR^T and Eigen on what is encrypted.
Learns: everybody n_i, the intervals that one provider's simulation gives, and one number that says whether
the components hold; who the study names, the outputs (:mod:`disclosure` says it exactly).

Deviations: those of :mod:`algorithm1`, :mod:`intervals` and :mod:`certificate`; ciphertexts that a provider
made with its own numbers are re-randomised before they leave, which the paper does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Chosen, Matrix
from atoll.network import Compared, Network, Record
from atoll.protocols import handshake
from atoll.protocols.agreement import compare
from atoll.protocols.base import Learned, Outputs, Protocol, learned
from atoll.protocols.checked import check_number, refuse
from atoll.protocols.handshake import JoinedColumns
from atoll.protocols.own import Own
from atoll.protocols.pca.released import CONSUMER, PROVIDER, SampleCount, check_released, named
from atoll.protocols.pca.sfpca import opened_range, ranges, schema
from atoll.protocols.pca.sfpca.messages import Finished, Names, RowCount, RowCounts
from atoll.protocols.pca.sfpca.paper import algorithm1, messages
from atoll.protocols.pca.sfpca.paper.algorithm1 import Plan, Shape
from atoll.protocols.pca.sfpca.paper.counts import operations
from atoll.protocols.pca.sfpca.paper.determined import check_outputs, determines
from atoll.protocols.pca.sfpca.paper.disclosure import OUTPUTS, learns, protection
from atoll.protocols.pca.sfpca.paper.forecast import forecast
from atoll.protocols.pca.sfpca.paper.intervals import FLOOR, Agreed, Intervals, simulated, simulating, taken
from atoll.protocols.pca.sfpca.paper.messages import Estimates, VarianceUnit
from atoll.protocols.pca.sfpca.paper.noise import list_of
from atoll.protocols.pca.sfpca.paper.parameters import (
    DEALER,
    INSECURE,
    Course,
    PaperParameters,
    check,
    decide,
    may_leave,
)
from atoll.protocols.pca.sfpca.paper.planner import expect, unforeseen
from atoll.protocols.pca.sfpca.paper.releases import Facts, drawn, known_of, opened_by_all, received
from atoll.protocols.pca.sfpca.paper.shared import OnShares, parties_of
from atoll.protocols.pca.sfpca.paper.sketch import public_seed, sketch_of, spreading
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, VERTICAL
from atoll.protocols.pca.sfpca.ranges import Range
from atoll.protocols.pca.sfpca.releases import by_party, project
from atoll.protocols.preparation.prepare import prepared_by
from atoll.secret_matrices.slots import roles
from atoll.secret_matrices.slots.approximations import Approximations, agreed
from atoll.secret_numbers.machine import Parties
from atoll.secret_numbers.supplies import deal
from atoll.study.address import Address
from atoll.study.model import Study

# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, coordinator_ = study.read_parameters(PaperParameters), study.the(COORDINATOR)
    columns, names = await schema.announce(net, study, own.table, p.columns)
    table = own.table.chosen(names)
    await net.compute(ranges.check_table, table)
    bounds, place = ranges.declared(p.bounds, columns.names), schema.own_place(study, net.me, columns.widths)
    if bounds is not None:
        bounds.of(place).check(table)
    await net.send(coordinator_, RowCount(table.n_rows))
    rows = await schema.receive_counts(net, study, table.n_rows, columns)
    opened = () if bounds is not None else await opened_range.agree(net, study, record, table)
    public = _public(study, columns, rows, opened)  # refuses before keys are made
    X = await net.compute(_in_units, table, public.range, place, _spreading(study, public.shape.columns))
    intervals = await _intervals(net, study, public, X)
    mine = _own(study, net.me, public.shape, X * 2.0**intervals.scale)
    machine = roles.Provider(
        net, record.under("slots"), study.digest, *_addresses(study), **_set(study), verify=p.paper.verify
    )
    await machine.set_up()  # Step 1: pk, evks = DKeyGen(sk_i)
    parties = parties_of(net, record.under("on shares"), study) if p.paper.nonlinear != "chebyshev" else None
    plan, facts = _plan(study, public, intervals, parties), _facts(study, public, intervals)
    found = await algorithm1.principal(machine, plan, mine)  # Steps 2 to 7
    if parties is not None:
        await parties.close()
    known = _counts(study, public.shape)
    known |= await opened_by_all(study, machine, plan, found, mine, facts, net.me)  # Step 8
    both = study.releases("scores", net.me) and study.releases("components", net.me)
    if both and not public.shape.vertical:
        known["scores"] = {own.table.name: await net.compute(project, table, known)}
    if p.threshold is None:  # after outputs are dealt, providers may have left: it was compared before
        await machine.check(last=True)
    await _finish(net, study)
    return learned(study, net.me, OUTPUTS, known)


async def coordinator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, providers = study.read_parameters(PaperParameters), study.who(PROVIDER)
    columns = await schema.check(net, study, p.columns)
    counts = await net.gather(RowCount, providers)
    rows = tuple(counts[a].n for a in providers)
    for address, n in zip(providers, rows, strict=True):
        check_number(n, "a number of rows", address, least=1)
    if columns.widths:
        schema.check_common_rows(providers, rows)
    await net.broadcast(providers, RowCounts(rows))
    opened = () if p.bounds is not None else await opened_range.open_(net, study, record)
    public = _public(study, columns, rows, opened)  # refuses before keys are made
    intervals = await _intervals(net, study, public, None)
    machine = roles.Coordinator(
        net, record.under("slots"), study.digest, *_addresses(study), **_set(study), verify=p.paper.verify
    )
    await machine.set_up()
    plan, facts = _plan(study, public, intervals), _facts(study, public, intervals)
    for address in study.who(CONSUMER):
        await _tell(net, study, public, facts, address)
    found = await algorithm1.principal(machine, plan, None)
    known = _counts(study, public.shape)
    known |= await opened_by_all(study, machine, plan, found, None, facts, net.me)
    if p.threshold is not None:  # it says who has left, as long as anybody may wait for a share
        await net.gather(Finished, [*providers, *study.who(CONSUMER)], absent=set())
    return learned(study, net.me, OUTPUTS, known)


async def dealer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    """The paper's third party: it makes triples, and sees no data (appendix D.1)."""
    await deal(net, record, study.who(PROVIDER))
    return Learned()


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, coordinator_ = study.read_parameters(PaperParameters), study.the(COORDINATOR)
    known: Outputs = {}
    if study.releases("n_samples", net.me):
        count = await net.receive(SampleCount, coordinator_)
        check_released(count, study, coordinator_)
        rows = (await net.receive(RowCounts, coordinator_)).n
        if len(rows) != len(study.who(PROVIDER)) or count.n_samples not in (sum(rows), *rows[:1]):
            raise refuse(coordinator_, f"numbers of rows that do not make {count.n_samples}")
        known |= named(count) | {"rows": by_party(study, rows)}
    unit, names, centre = VarianceUnit(1.0, 0), Names((), False, 1.0), np.zeros(0)
    if study.releases("explained_variance", net.me):
        unit = await net.receive(VarianceUnit, coordinator_)
        check_number(unit.value, "a unit of variances", coordinator_, least=0.0)
        check_number(unit.further, "a number of variances", coordinator_, least=0)
    if study.releases("components", net.me):
        names = await net.receive(Names, coordinator_)
        if p.columns is not None and set(names.columns) != set(p.columns):
            raise refuse(coordinator_, "components of other columns than the study's")
        check_number(names.offset_unit, "a unit of the offset", coordinator_, least=0.0)
        centre = _range(study, names.columns, ()).centre
    receiver = roles.Receiver(net, record.under("slots"), study.digest, *_addresses(study), **_set(study))
    released = await received(net, study, receiver, len(names.columns))
    known |= known_of(study, released, Facts(names, centre, _spreading(study, len(names.columns)), unit))
    await _finish(net, study)
    return learned(study, net.me, OUTPUTS, known)


async def _finish(net: Network, study: Study) -> None:
    """Let the coordinator end, where providers may leave."""
    if study.read_parameters(PaperParameters).threshold is not None:
        await net.send(study.the(COORDINATOR), Finished())


# ---- what the roles share ----


class Public(NamedTuple):
    """What every role knows before the first encryption."""

    columns: tuple[str, ...]
    named: bool
    shape: Shape
    course: Course
    range: Range


def _public(study: Study, columns: JoinedColumns, rows: tuple[int, ...], opened: Sequence[int]) -> Public:
    p, m = study.read_parameters(PaperParameters), len(columns.names)
    course = decide(study, rows, m)
    shape = Shape(rows, m, p.n_components, p.sketched, study.partition == VERTICAL)
    public = Public(columns.names, columns.named, shape, course, _range(study, columns.names, opened))
    check_outputs(study, shape, columns.widths, public.range)
    if p.paper.noise is not None:
        list_of(p.paper.noise, drawn(study, m))  # long enough for what is drawn
    return public


def _range(study: Study, columns: Sequence[str], opened: Sequence[int]) -> Range:
    bounds = ranges.declared(study.read_parameters(PaperParameters).bounds, columns)
    return bounds.range() if bounds else Range(opened[0] if opened else 0, np.zeros(len(columns)))


async def _intervals(net: Network, study: Study, public: Public, X: Matrix | None) -> Intervals:
    """The study's, or those that the simulating provider tells everybody; providers compare what they got."""
    p, providers = study.read_parameters(PaperParameters), study.who(PROVIDER)
    if p.paper.intervals is not None:
        stated = p.paper.intervals
        return Intervals(stated.scale, stated.variances, Agreed(stated.stretches), stated.places)
    who = providers[simulating(public.shape.rows)]
    if net.me == who:
        assert X is not None, "the simulating provider has rows"
        told = await net.compute(simulated, X, public.shape, public.course, p.paper, public_seed(study))
        others = [a for a in (study.the(COORDINATOR), *providers) if a != net.me]
        await net.broadcast(others, told)
    else:
        told = await net.receive(Estimates, who)
    if net.me in providers:
        await compare(net, "the intervals", told, providers)
    return taken(told, p.sketched, who)


def _in_units(table: Chosen, range_: Range, place: slice, spreading: Matrix | None) -> Matrix:
    """The rows in units of the data's range, between -1 and 1, on the spread columns."""
    X = np.ldexp(table.whole() - range_.centre[place], -range_.exponent)
    return X if spreading is None else np.asarray(X @ spreading[:, place].T)


def _own(study: Study, me: Address, shape: Shape, X: Matrix) -> algorithm1.Own:
    """A provider's rows; where islands hold columns, what its own make of all rows, about their means."""
    sketch = sketch_of(public_seed(study), shape.rho, shape.n)
    if shape.vertical:
        means = X.mean(axis=0)
        return algorithm1.Own(X - means, sketch.times(X - means, 0), means)
    index = study.who(PROVIDER).index(me)
    return algorithm1.Own(X, sketch.centred(X, sum(shape.rows[:index])), place=index)


def _spreading(study: Study, columns: int) -> Matrix | None:
    return spreading(public_seed(study), columns)


def _plan(study: Study, public: Public, intervals: Intervals, parties: Parties | None = None) -> Plan:
    p = study.read_parameters(PaperParameters)
    if p.paper.nonlinear == "chebyshev":
        use: Approximations = agreed(intervals.of, p.paper.degree, FLOOR)
    else:
        use = OnShares(parties=parties)
    return Plan(public.shape, public.course, p.paper, use, intervals.variances, intervals.stretches)


def _facts(study: Study, public: Public, intervals: Intervals) -> Facts:
    shape, unit = public.shape, 2.0 ** (public.range.exponent - intervals.scale)
    further = min(shape.n, shape.columns) - shape.psi
    names = Names(public.columns, public.named, unit)
    variances = VarianceUnit(unit**2 * shape.n / (shape.n - 1), further)
    return Facts(names, public.range.centre, _spreading(study, shape.columns), variances)


async def _tell(net: Network, study: Study, public: Public, facts: Facts, to: Address) -> None:
    """What a consumer needs to read what it is given."""
    if study.releases("n_samples", to):
        islands = tuple(address.party for address in study.who(PROVIDER))
        await net.send(to, SampleCount(public.shape.n, islands))
        await net.send(to, RowCounts(public.shape.rows))
    if study.releases("explained_variance", to):
        await net.send(to, facts.variances)
    if study.releases("components", to):
        await net.send(to, facts.names)


def _addresses(study: Study) -> tuple[Address, tuple[Address, ...], tuple[Address, ...]]:
    return study.the(COORDINATOR), study.who(PROVIDER), study.who(CONSUMER)


def _set(study: Study) -> dict[str, Any]:
    name = study.read_parameters(PaperParameters).paper.parameters
    return {"set_name": name, "for_tests": name in INSECURE}


def _counts(study: Study, shape: Shape) -> Outputs:
    islands = tuple(a.party for a in study.who(PROVIDER))
    return {"n_samples": shape.n, "islands": islands, "rows": by_party(study, shape.rows)}


PROTOCOL = Protocol(
    name="sfpca-paper",
    title="PCA on encrypted data, with the paper's own routines (SF-PCA)",
    roles={PROVIDER: provider, COORDINATOR: coordinator, CONSUMER: consumer, DEALER: dealer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({COORDINATOR}),
    messages=(
        *handshake.MESSAGES,
        JoinedColumns,
        *messages.MESSAGES,
        SampleCount,
        Compared,
    ),
    parameters=PaperParameters,
    outputs=OUTPUTS,
    learns=learns,
    protection=protection,
    adversary="Everyone follows the protocol but keeps what they see; the coordinator may collude with all "
    "providers but one.",
    partitions=("horizontal", VERTICAL),
    check=check,
    determines=determines,
    may_leave=may_leave,
    expect=expect,
    forecast=forecast,
    unforeseen=unforeseen,
    operations=operations,
    prepare=prepared_by(COORDINATOR, CONSUMER),
)
