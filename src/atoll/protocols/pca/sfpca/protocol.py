"""SF-PCA: PCA on encrypted data, in which nothing but the agreed output is opened.

Froelicher, Cho, Edupalli, Sousa, Bossuat, Pyrgelis, Troncoso-Pastoriza, Berger, Hubaux: Scalable and
Privacy-Preserving Federated Principal Component Analysis (2023), Algorithm 1.

Symbols: DP_i -> provider, A_i -> X, n_i -> rows, m -> columns, k -> n_components, P -> sketch,
rho (paper: alpha) -> sketch rows, q (paper: p) -> power iterations, W -> components.

Adversary: passive; the coordinator with all providers but one. It holds no key and relays, adds and
evaluates on ciphertexts.
Learns: everybody n_i, the total variance and the spectrum that the recipe opens (:mod:`disclosure` says
it exactly); who the study names, components and offset; a provider its own scores.

Deviations (docs/protocols/sfpca.md gives the reasons): the sketch is Gaussian; matrices are encoded in
coefficients, so there are no rotation or relinearisation keys; bootstrapping is a refresh by masked
shares; QR is a matrix polynomial; the small eigenproblem is solved in the clear after a secret rotation
(the paper's step 6 stays encrypted). Where islands hold columns (the paper's D.2, :mod:`vertical`), there
are the same roles and steps, and each party subtracts its own means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atoll.errors import CertificateRefused, PartyLeft
from atoll.network import Compared, Network, Record
from atoll.protocols import handshake
from atoll.protocols.base import Learned, Output, Outputs, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.checked import check_number, refuse
from atoll.protocols.own import Own
from atoll.protocols.pca.private_release import PublicCentre
from atoll.protocols.pca.released import CONSUMER, PROVIDER, SampleCount, Variances, check_released, named
from atoll.protocols.pca.sfpca import digits, kept, messages, opened_range, private, ranges, schema, steps
from atoll.protocols.pca.sfpca.disclosure import learns, protection
from atoll.protocols.pca.sfpca.forecast import forecast
from atoll.protocols.pca.sfpca.messages import Certified, Finished, Names, RowCount, RowCounts
from atoll.protocols.pca.sfpca.parameters import (
    COORDINATOR,
    VERTICAL,
    SFPCAParameters,
    check,
    decide,
    may_leave,
    on_the_covariance,
    precisions_of,
)
from atoll.protocols.pca.sfpca.planner import expect
from atoll.protocols.pca.sfpca.prepared import OwnSums, Public, own_sums, split_of
from atoll.protocols.pca.sfpca.private import Prepared
from atoll.protocols.pca.sfpca.ranges import Declared, Range
from atoll.protocols.pca.sfpca.recipes.correlation import roots_for
from atoll.protocols.pca.sfpca.recipes.direct import Found, Inputs
from atoll.protocols.pca.sfpca.releases import (
    AnyMachine,
    all_opened,
    by_party,
    common_scores,
    model,
    names_of,
    own_scores,
    project,
    release_model,
    send_public,
    signs,
)
from atoll.protocols.pca.sfpca.settled import settle
from atoll.protocols.pca.sfpca.timed import timed
from atoll.protocols.preparation.prepare import prepared_by
from atoll.randomness import fresh_seed
from atoll.secret_matrices import openings, roles, threshold
from atoll.secret_matrices.machine import Floats
from atoll.study.model import Study

_EVERYONE = (PROVIDER, COORDINATOR, CONSUMER)
OUTPUTS = {
    "components": Output(
        ("components", "offset", "columns"),
        _EVERYONE,
        "the principal components, and (unless columns are standardised) the offset, components times mean, "
        "that projects new rows",
    ),
    "explained_variance": Output(
        ("explained_variance", "total_variance", "noise_variance", "noise"),
        _EVERYONE,
        "how much variance each component explains, and the total",
    ),
    "n_samples": Output(("n_samples", "islands", "rows"), _EVERYONE, "the number of rows of each island"),
    "scores": Output(
        ("scores",),
        (PROVIDER,),
        "every row's projection, to the row's owner only; where islands hold columns, to those named (signs "
        "are random in every run, the same for all islands, unless components are released too)",
    ),
    "certificate": Output(
        ("certificate",), _EVERYONE, "a bound on the error of the components, and its parts"
    ),
    # No value: a share is its holder's alone, never part of a result that may hold those of several roles.
    "encrypted": Output(
        (),
        (PROVIDER, COORDINATOR),
        "components and offset as one share for each provider and the coordinator, for a later step",
    ),
}


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    with private.booking(study, own, record) as booked:  # refuses before anything leaves
        return await _provider(net, study, own, record, booked)


async def _provider(net: Network, study: Study, own: Own, record: Record, booked: Booking) -> Learned:
    p, coordinator_ = study.read_parameters(SFPCAParameters), study.the(COORDINATOR)
    island, spending = own.table, None if booked.exact else booked
    agreed, names = await schema.announce(net, study, island, p.columns)
    table = island.chosen(names)
    await net.compute(ranges.check_table, table)
    bounds, place = ranges.declared(p.bounds, agreed.names), schema.own_place(study, net.me, agreed.widths)
    if bounds is not None and spending is None:  # with an epsilon, rows beyond are cut
        bounds.of(place).check(table)
    await booked.settle_exact(net, table)
    await net.send(coordinator_, RowCount(table.n_rows))
    rows = await schema.receive_counts(net, study, table.n_rows, agreed)
    m = len(agreed.names)
    decided = decide(p, schema.joint_rows(rows, agreed.widths), m)
    exact = p.standardize or on_the_covariance(decided.recipes[0], decided.k, m)
    if spending is None:
        opened: tuple[int, ...] = ()
        if bounds is None:
            opened = await opened_range.agree(net, study, record, table, by_column=p.standardize)
        if p.standardize:
            table = table._replace(units=ranges.units(bounds, opened).applied)
        ready = Prepared(_range_for(p, bounds, opened, m), None, None)
    else:
        ready = await private.provide(net, study, record, spending, table, agreed.names, sum(rows))
    public = Public(agreed.names, agreed.named, rows, ready.range, *decided, agreed.widths, ready.noisy)
    digits.check_outputs(study, public)  # refuses before keys are made
    noisy = ready.moments
    sums = OwnSums(noisy) if noisy is not None else await net.compute(own_sums, table, public, place, exact)
    recipe, machine, found = await _find(net, study, record, public, roles.Provider, sums)
    model_, flips = await release_model(study, machine, public, found)
    known = all_opened(study, public, found, recipe) | model_
    if agreed.widths:
        known |= await common_scores(study, machine, public, found, sums, flips)
    else:
        mine = table if study.releases("scores", net.me) else None
        known |= await own_scores(study, machine, public, found, mine)  # Alg 1, l.8
        if mine is not None and study.releases("components", net.me):
            known["scores"] = {island.name: await net.compute(project, mine, known)}
    known |= await kept.keep(study, machine, (public.columns, public.named), ready.range, found)
    await machine.check(last=True)
    await _finish(net, study)
    return learned(study, net.me, OUTPUTS, known)


async def coordinator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, providers = study.read_parameters(SFPCAParameters), study.who(PROVIDER)
    agreed = await schema.check(net, study, p.columns)
    counts = await net.gather(RowCount, providers)
    rows = tuple(counts[a].n for a in providers)
    for address, n in zip(providers, rows, strict=True):
        check_number(n, "a number of rows", address, least=1)
    if agreed.widths:
        schema.check_common_rows(providers, rows)
    decided = decide(p, schema.joint_rows(rows, agreed.widths), len(agreed.names))
    await net.broadcast(providers, RowCounts(rows))
    bounds = ranges.declared(p.bounds, agreed.names)
    if p.epsilon is None:
        levels = len(agreed.names) if p.standardize else 1
        opened = () if bounds else await opened_range.open_(net, study, record, levels)
        ready = Prepared(_range_for(p, bounds, opened, len(agreed.names)), None, None)
    else:
        ready = await private.coordinate(net, study, record, agreed.names, sum(rows))
    public = Public(agreed.names, agreed.named, rows, ready.range, *decided, agreed.widths, ready.noisy)
    digits.check_outputs(study, public)  # refuses before keys are made
    recipe, machine, found = await _find(net, study, record, public, roles.Coordinator, None)
    names = names_of(public, found)
    for address in study.who(CONSUMER):
        await send_public(net, study, address, public, found, recipe, names)
    model_, flips = await release_model(study, machine, public, found)
    known = all_opened(study, public, found, recipe) | model_
    if agreed.widths:
        await common_scores(study, machine, public, found, None, flips)
    else:
        await own_scores(study, machine, public, found, None)
    known |= await kept.keep(study, machine, (public.columns, public.named), ready.range, found)
    if p.threshold is not None:
        waiting = [*study.who(PROVIDER), *study.who(CONSUMER)]
        await net.gather(Finished, waiting, absent=set())
    return learned(study, net.me, OUTPUTS, known)


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, coordinator_ = study.read_parameters(SFPCAParameters), study.the(COORDINATOR)
    known: Outputs = {}
    if study.releases("explained_variance", net.me):
        variances = await net.receive(Variances, coordinator_)
        check_released(variances, study, coordinator_)
        known |= named(variances)
    if study.releases("n_samples", net.me):
        count = await net.receive(SampleCount, coordinator_)
        check_released(count, study, coordinator_)
        rows = (await net.receive(RowCounts, coordinator_)).n
        if len(rows) != len(study.who(PROVIDER)) or count.n_samples not in (sum(rows), *rows[:1]):
            raise refuse(coordinator_, f"numbers of rows that do not make {count.n_samples}")
        known |= named(count) | {"rows": by_party(study, rows)}
    if study.releases("certificate", net.me):
        certificate = await net.receive(Certified, coordinator_)
        check_number(certificate.bound, "a certificate's bound", coordinator_, least=0.0)
        known["certificate"] = named(certificate)
    if study.releases("components", net.me):
        names = await net.receive(Names, coordinator_)
        if p.columns is not None and set(names.columns) != set(p.columns):
            raise refuse(coordinator_, "components of other columns than the study's")
        check_number(names.offset_unit, "a unit of the offset", coordinator_, least=0.0)
        bounds = ranges.declared(p.bounds, names.columns)
        centre = bounds.range().centre if bounds else np.zeros(len(names.columns))
        components = await _collected(net, study, p.threshold)
        offset = None if p.standardize else await _collected(net, study, p.threshold)
        known |= model(components, offset, names.offset_unit, centre, names, signs(study, components))
    await _finish(net, study)
    return learned(study, net.me, OUTPUTS, known)


async def _finish(net: Network, study: Study) -> None:
    """Let the coordinator end, which says who has left as long as anybody may wait for a share."""
    if study.read_parameters(SFPCAParameters).threshold is not None:
        await net.send(study.the(COORDINATOR), Finished())


async def _collected(net: Network, study: Study, enough: int | None) -> Floats:
    """An output from the providers' shares: from all, or from as many as are enough."""
    if enough is None:
        return await openings.collected(net, study.who(PROVIDER))
    return await threshold.collected(net, threshold.places_of(study.who(PROVIDER)), enough)


# ---- what the roles share ----


def _range_for(p: SFPCAParameters, bounds: Declared | None, opened: Sequence[int], m: int) -> Range:
    """Of all columns together; those to be standardised are in units of their own."""
    if p.standardize:
        return Range(0, np.zeros(m))
    return bounds.range() if bounds else Range(opened[0], np.zeros(m))


_Role = type[roles.Provider] | type[roles.Coordinator]


async def _find(
    net: Network, study: Study, record: Record, public: Public, role: _Role, sums: OwnSums | None
) -> tuple[str, AnyMachine, Found]:
    """Run the recipe; where its certificate refuses and the study allows, once more with new keys."""
    p, m = study.read_parameters(SFPCAParameters), len(public.columns)
    bounds = ranges.declared(p.bounds, public.columns)
    for i, recipe in enumerate(public.recipes):
        scoped = record.under(f"session {i}")
        coordinator_, providers = study.the(COORDINATOR), study.who(PROVIDER)
        machine = role(net, scoped, f"{study.digest}/{i}", coordinator_, providers, study.who(CONSUMER))
        await machine.set_up(precisions_of(recipe, study.partition, public.k, m))  # Alg 1, l.1
        seed = scoped("rotation", fresh_seed) if sums is not None else None
        names = tuple(str(a) for a in providers)
        moments, split = None if sums is None else sums.moments, split_of(study, net.me, public, sums)
        inputs = Inputs(
            public.n, m, names, str(net.me), moments, seed, public.rows, split, standardize=p.standardize
        )._replace(roots=roots_for(p.least_deviation))
        if bounds is not None and p.hides_spectrum:
            inputs = inputs._replace(most_variance=bounds.most_variance())
        try:
            found = await steps.find(machine, inputs, public.k, recipe, public.noisy)  # Alg 1, l.2-7
            digits.check_spectrum(study, public, found)
            found = digits.smudged(machine, p, found)
            return recipe, machine, await steps.deal(machine, found, p.threshold)
        except PartyLeft as error:
            error.hint = _after_a_loss(p, opened=machine.has_opened or (bounds is None and p.epsilon is None))
            raise
        except CertificateRefused:
            # What was opened said so: was it what everybody's shares make?
            await machine.check(last=True)
            if recipe == public.recipes[-1]:
                raise
    raise AssertionError("a study plans at least one attempt")


def _after_a_loss(p: SFPCAParameters, *, opened: bool) -> str:
    """What may follow where a provider left too early: no role begins again by itself."""
    if p.epsilon is not None:
        return "the noisy centre was opened and is booked: a new run is paid for again"
    if opened:
        return (
            "numbers on the way were opened: run again with the same islands, or not at all, because a run "
            "without one would show its part"
        )
    return "nothing was opened: start a new run, or another study without who left"


def _check(study: Study) -> None:
    check(study)
    private.check(study)
    digits.check(study)


PROTOCOL = Protocol(
    name="sfpca",
    title="PCA on encrypted data (SF-PCA)",
    roles={PROVIDER: provider, COORDINATOR: coordinator, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({COORDINATOR}),
    messages=(
        *handshake.MESSAGES,
        handshake.JoinedColumns,
        *messages.MESSAGES,
        PublicCentre,
        Variances,
        SampleCount,
        Compared,
    ),
    parameters=SFPCAParameters,
    outputs=OUTPUTS,
    learns=learns,
    protection=protection,
    adversary="Everyone follows the protocol but keeps what they see; the coordinator may collude with all "
    "providers but one.",
    partitions=("horizontal", VERTICAL),
    judge=COORDINATOR,
    may_leave=may_leave,
    expect=expect,
    forecast=forecast,
    check=_check,
    settle=settle,
    version=5,
    privacy=private.terms,
    determines=digits.determines,
    timed=timed,
    prepare=prepared_by(COORDINATOR, CONSUMER),
)
