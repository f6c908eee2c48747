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

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll import secure_sums
from atoll.data.island import Island, Matrix
from atoll.errors import CertificateRefused, MessageError
from atoll.network import Address, Network, Record
from atoll.privacy.dp_moments import deflate
from atoll.protocols import handshake
from atoll.protocols.base import Learned, Output, Outputs, Protocol, learned
from atoll.protocols.decompose import deterministic_signs
from atoll.protocols.private_release import PublicCentre
from atoll.protocols.released import CONSUMER, PROVIDER, SampleCount, Variances, named
from atoll.protocols.sfpca import kept, messages, openings, parties, private, ranges, schema
from atoll.protocols.sfpca.certificate import Certificate
from atoll.protocols.sfpca.columns import Deviations, Split, own_columns
from atoll.protocols.sfpca.covariance import POLICIES
from atoll.protocols.sfpca.direct import DATA_FRACTION, Found, Inputs, direct
from atoll.protocols.sfpca.disclosure import learns
from atoll.protocols.sfpca.forecast import forecast
from atoll.protocols.sfpca.messages import Certified, DataRange, Names, RowCount, RowCounts
from atoll.protocols.sfpca.moments import (
    Moments,
    Rows,
    exact_moments,
    on_grid,
    quick_moments,
    row_moments,
    total_moments,
)
from atoll.protocols.sfpca.parameters import (
    COORDINATOR,
    VERTICAL,
    SFPCAParameters,
    attempts,
    check,
    components_for,
)
from atoll.protocols.sfpca.planner import expect
from atoll.protocols.sfpca.private import Noisy, Prepared, private_direct
from atoll.protocols.sfpca.ranges import LEVELS, Declared, Range
from atoll.protocols.sfpca.rows import prefers_rows
from atoll.protocols.sfpca.scores import SCORE_ROWS, for_rows, row_fraction, score_job, score_owners
from atoll.protocols.sfpca.shared import Floats
from atoll.protocols.sfpca.strict import strict
from atoll.protocols.sfpca.vertical import score_jobs
from atoll.randomness import fresh_seed
from atoll.study.model import Study

_EVERYONE = (PROVIDER, COORDINATOR, CONSUMER)
OUTPUTS = {
    "components": Output(
        ("components", "offset", "columns"),
        _EVERYONE,
        PROVIDER,
        "the principal components, and (unless columns are standardised) the offset, components times mean, "
        "that projects new rows",
    ),
    "explained_variance": Output(
        ("explained_variance", "total_variance", "noise_variance"),
        _EVERYONE,
        COORDINATOR,
        "how much variance each component explains, and the total",
    ),
    "n_samples": Output(
        ("n_samples", "islands", "rows"), _EVERYONE, COORDINATOR, "the number of rows of each island"
    ),
    "scores": Output(
        ("scores",),
        (PROVIDER,),
        PROVIDER,
        "every row's projection, to the row's owner only; where islands hold columns, to those named",
    ),
    "certificate": Output(
        ("certificate",), _EVERYONE, COORDINATOR, "a bound on the error of the components, and its parts"
    ),
    # No value: a share is its holder's alone, never part of a result that may hold those of several roles.
    "encrypted": Output(
        (),
        (PROVIDER, COORDINATOR),
        PROVIDER,
        "components and offset as one share for each provider and the coordinator, for a later step",
    ),
}


# Exact sums are added up as Python integers, once for each piece.
_EXACT_ROWS, _QUICK_ROWS = 4096, 512


class Public(NamedTuple):
    """What every role knows before the first encryption."""

    columns: tuple[str, ...]
    named: bool
    rows: tuple[int, ...]
    range: Range
    k: int
    widths: tuple[int, ...] = ()
    """Where islands hold columns: how many each of them has."""
    noisy: Noisy | None = None
    """With an epsilon: what the noise did to the covariance."""

    @property
    def n(self) -> int:
        return schema.joint_rows(self.rows, self.widths)


class Held(NamedTuple):
    """What a provider has formed of its own table; the last only where islands hold columns."""

    moments: Moments
    deviations: Deviations | None = None


# ---- steps ----


def own_sums(X: Matrix, public: Public, own: slice, exact: bool) -> Held:
    """A provider's own sums, on the public grid."""
    if not public.widths:
        keep_rows = not exact and prefers_rows(public.rows, len(public.columns))
        return Held(own_moments(X, public.range, exact, keep_rows))
    A = on_grid(X - public.range.centre[own], public.range.exponent, DATA_FRACTION)
    return Held(*own_columns(A, own.start, len(public.columns)))


def own_moments(X: Matrix, range_: Range, exact: bool, keep_rows: bool = False) -> Moments:
    """A provider's sums, on the public grid, piece by piece so that temporaries stay small."""
    of_piece, step = (exact_moments, _EXACT_ROWS) if exact else (quick_moments, _QUICK_ROWS)
    if keep_rows:
        of_piece = row_moments
    parts = [
        of_piece(on_grid(X[start : start + step] - range_.centre, range_.exponent, DATA_FRACTION))
        for start in range(0, len(X), step)
    ]
    rows = Rows(X, range_.centre, range_.exponent) if keep_rows else None
    return total_moments(parts)._replace(rows=rows)


def variances(found: Found, public: Public) -> Variances:
    """Variances of the original columns, with scikit-learn's divisor."""
    unit = 4.0**public.range.exponent * public.n / (public.n - 1)
    sigma = 0.0 if public.noisy is None else public.noisy.sigma
    values = deflate(found.values, len(public.columns), sigma) * unit
    explained = values[: public.k]
    total = max(found.total_variance * unit, float(explained.sum()))
    rest = min(public.n, len(public.columns)) - public.k
    return Variances(explained, total, max(0.0, total - float(explained.sum())) / rest if rest else 0.0)


def certified(recipe: str, certificate: Certificate) -> Certified:
    return Certified(recipe, certificate.bound, certificate.tau)


def model(components: Floats, offset: Floats | None, unit: float, centre: Matrix, names: Names) -> Outputs:
    """Components with deterministic signs, and the offset of the original columns."""
    signed = deterministic_signs(components)
    whole = None if offset is None else signs(components) * offset[:, 0] * unit + signed @ centre
    return {"components": signed, "offset": whole, "columns": names.columns if names.named else None}


def signs(components: Floats) -> Floats:
    """What turns the components into those with deterministic signs."""
    return np.where((deterministic_signs(components) * components).sum(axis=1) < 0, -1.0, 1.0)


def project(X: Matrix, known: Outputs) -> Matrix:
    """Z = X W^T - offset."""
    return np.asarray(X @ known["components"].T - known["offset"])


# ---- roles ----


async def provider(net: Network, study: Study, island: Island, record: Record) -> Learned:
    p, hub = study.read_parameters(SFPCAParameters), study.the(COORDINATOR)
    spending = private.debits(study, island, record)  # refuses before anything leaves
    agreed, names = await schema.announce(net, study, island, p.columns)
    X = island.features(names)
    await net.compute(ranges.check_table, X, island, names)
    bounds, own = ranges.declared(p.bounds, agreed.names), schema.own_place(study, net.me, agreed.widths)
    if bounds is not None and spending is None:  # with an epsilon, rows beyond are cut
        bounds.of(own).check(X, island, names)
    await net.send(hub, RowCount(len(X)))
    rows = (await net.receive(RowCounts, hub)).n
    m = len(agreed.names)
    k = components_for(p, schema.joint_rows(rows, agreed.widths), m)
    exact = p.standardize or attempts(p, k, m) == ("direct",)
    if spending is None:
        opened = () if bounds else await _agree_range(net, study, record, X, island, by_column=p.standardize)
        X = ranges.units(bounds, opened).applied(X) if p.standardize else X
        ready = Prepared(_range_for(p, bounds, opened, m), None, None)
    else:
        ready = await private.provide(net, study, record, spending, X, agreed.names, sum(rows))
    public = Public(agreed.names, agreed.named, rows, ready.range, k, agreed.widths, ready.noisy)
    noisy = ready.moments
    held = Held(noisy) if noisy is not None else await net.compute(own_sums, X, public, own, exact)
    recipe, machine, found = await _find(net, study, record, public, parties.Provider, held)
    model_, turned = await release_model(study, machine, public, found)
    known = _opened(study, public, found, recipe) | model_
    if agreed.widths:
        known |= await _common_scores(study, machine, public, found, held, turned)
    else:
        known |= await own_scores(study, machine, public, found, X)
        if study.releases("scores", net.me) and study.releases("components", net.me):
            known["scores"] = {island.name: await net.compute(project, X, known)}
    known |= kept.keep(study, net.me, machine.session, (public.columns, public.named), ready.range, found)
    return learned(study, net.me, OUTPUTS, known)


async def coordinator(net: Network, study: Study, island: Island | None, record: Record) -> Learned:
    p, providers = study.read_parameters(SFPCAParameters), study.who(PROVIDER)
    agreed = await schema.check(net, study, p.columns)
    counts = await net.gather(RowCount, providers)
    rows = tuple(counts[a].n for a in providers)
    if agreed.widths:
        schema.check_common_rows(providers, rows)
    k = components_for(p, schema.joint_rows(rows, agreed.widths), len(agreed.names))
    attempts(p, k, len(agreed.names))  # refuses before keys are made
    await net.broadcast(providers, RowCounts(rows))
    bounds = ranges.declared(p.bounds, agreed.names)
    if p.epsilon is None:
        levels = len(agreed.names) if p.standardize else 1
        opened = () if bounds else await _open_range(net, study, record, levels)
        ready = Prepared(_range_for(p, bounds, opened, len(agreed.names)), None, None)
    else:
        ready = await private.coordinate(net, study, record, agreed.names, sum(rows))
    public = Public(agreed.names, agreed.named, rows, ready.range, k, agreed.widths, ready.noisy)
    recipe, machine, found = await _find(net, study, record, public, parties.Coordinator, None)
    names = _names(public, found)
    for address in study.who(CONSUMER):
        await _send_public(net, study, address, public, found, recipe, names)
    model_, turned = await release_model(study, machine, public, found)
    known = _opened(study, public, found, recipe) | model_
    if agreed.widths:
        await _common_scores(study, machine, public, found, None, turned)
    else:
        await own_scores(study, machine, public, found, None)
    known |= kept.keep(study, net.me, machine.session, (public.columns, public.named), ready.range, found)
    return learned(study, net.me, OUTPUTS, known)


async def consumer(net: Network, study: Study, island: Island | None, record: Record) -> Learned:
    p, hub = study.read_parameters(SFPCAParameters), study.the(COORDINATOR)
    known: Outputs = {}
    if study.releases("explained_variance", net.me):
        known |= named(await net.receive(Variances, hub))
    if study.releases("n_samples", net.me):
        known |= named(await net.receive(SampleCount, hub))
        known["rows"] = _by_party(study, (await net.receive(RowCounts, hub)).n)
    if study.releases("certificate", net.me):
        known["certificate"] = named(await net.receive(Certified, hub))
    if study.releases("components", net.me):
        names = await net.receive(Names, hub)
        bounds = ranges.declared(p.bounds, names.columns)
        centre = bounds.range().centre if bounds else np.zeros(len(names.columns))
        holders = (hub, *study.who(PROVIDER))
        components = await openings.collected(net, holders)
        offset = None if p.standardize else await openings.collected(net, holders)
        known |= model(components, offset, names.offset_unit, centre, names)
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


def _range_for(p: SFPCAParameters, bounds: Declared | None, opened: Sequence[int], m: int) -> Range:
    """Of all columns together; those to be standardised are in units of their own."""
    if p.standardize:
        return Range(0, np.zeros(m))
    return bounds.range() if bounds else Range(opened[0], np.zeros(m))


async def _agree_range(
    net: Network, study: Study, record: Record, X: Matrix, island: Island, *, by_column: bool = False
) -> tuple[int, ...]:
    """The power of two that no value exceeds, of all columns or of each."""
    levels = ranges.exceeded(X, island, record("range", fresh_seed), by_column=by_column)
    columns = X.shape[1] if by_column else 1
    sums = _range_session(net, study, record, columns)
    await sums.open()
    await sums.contribute("range", levels)
    exponents = (await net.receive(DataRange, study.the(COORDINATOR))).exponents
    if len(exponents) != columns:
        raise MessageError("the opened range is not that of the agreed columns")
    return exponents


async def _open_range(net: Network, study: Study, record: Record, columns: int = 1) -> tuple[int, ...]:
    sums = _range_session(net, study, record, columns)
    await sums.open()
    exponents = ranges.smallest_covers(await sums.total("range", columns * len(LEVELS)))
    await net.broadcast(study.who(PROVIDER), DataRange(exponents))
    return exponents


def _range_session(net: Network, study: Study, record: Record, columns: int) -> secure_sums.SecureSum:
    return secure_sums.session(
        study,
        net,
        record,
        contributors=study.who(PROVIDER),
        receivers=study.who(COORDINATOR),
        longest=columns * len(LEVELS),
        name="range",
    )


_Role = type[parties.Provider] | type[parties.Coordinator]
_AnyMachine = parties.Provider | parties.Coordinator


async def _find(
    net: Network, study: Study, record: Record, public: Public, role: _Role, held: Held | None
) -> tuple[str, _AnyMachine, Found]:
    """Run the recipe; where its certificate refuses and the study allows, once more with new keys."""
    p, m = study.read_parameters(SFPCAParameters), len(public.columns)
    planned = attempts(p, public.k, m)
    for i, recipe in enumerate(planned):
        own = _under(record, f"session {i}")
        hub, providers = study.the(COORDINATOR), study.who(PROVIDER)
        machine = role(net, own, f"{study.digest}/{i}", hub, providers, study.who(CONSUMER))
        await machine.set_up()
        seed = own("rotation", fresh_seed) if held is not None else None
        names = tuple(str(a) for a in providers)
        moments, split = None if held is None else held.moments, _split(study, net.me, public, held)
        inputs = Inputs(
            public.n, m, names, str(net.me), moments, seed, public.rows, split, standardize=p.standardize
        )
        try:
            if public.noisy is not None:
                return recipe, machine, await private_direct(machine, inputs, public.k, public.noisy)
            if recipe == "direct":
                return recipe, machine, await direct(machine, inputs, public.k)
            return recipe, machine, await strict(machine, inputs, public.k, POLICIES[recipe])
        except CertificateRefused:
            if recipe == planned[-1]:
                raise
    raise AssertionError("a study plans at least one attempt")


def _split(study: Study, me: Address, public: Public, held: Held | None) -> Split | None:
    """Whose columns stand where, with those of this role."""
    if not public.widths:
        return None
    owners = tuple(str(a) for a in study.who(PROVIDER))
    own = {str(me): held.deviations} if held is not None and held.deviations is not None else {}
    return Split(public.n, owners, public.widths, DATA_FRACTION, own)


def _under(record: Record, name: str) -> Record:
    def named_record(tag: str, draw: Callable[[], bytes]) -> bytes:
        return record(f"{name} {tag}", draw)

    return named_record


def _opened(study: Study, public: Public, found: Found, recipe: str) -> Outputs:
    """What every holder of shares has seen by now."""
    seen = named(variances(found, public))
    unit = 4.0**public.range.exponent * public.n / (public.n - 1)
    seen |= {"n_samples": public.n, "islands": tuple(a.party for a in study.who(PROVIDER))}
    seen |= {"rows": _by_party(study, public.rows)}
    return seen | {
        "certificate": named(certified(recipe, found.certificate)),
        "spectrum": found.values * unit,
    }


def _by_party(study: Study, rows: Sequence[int]) -> dict[str, int]:
    return {a.party: n for a, n in zip(study.who(PROVIDER), rows, strict=True)}


def _names(public: Public, found: Found) -> Names:
    return Names(public.columns, public.named, found.offset_factor * 2.0**public.range.exponent)


async def release_model(
    study: Study, machine: _AnyMachine, public: Public, found: Found
) -> tuple[Outputs, Floats]:
    """Components and offset, for whom the study names, and the signs that were given to them."""
    receivers = frozenset(str(a) for a in study.receivers("components"))
    components = await machine.released(found.components, receivers)
    offset = None if found.offset is None else await machine.released(found.offset, receivers)
    if components is None:
        return {}, np.ones(public.k)
    names = _names(public, found)
    return model(components, offset, names.offset_unit, public.range.centre, names), signs(components)


async def _send_public(
    net: Network, study: Study, to: Address, public: Public, found: Found, recipe: str, names: Names
) -> None:
    if study.releases("explained_variance", to):
        await net.send(to, variances(found, public))
    if study.releases("n_samples", to):
        islands = tuple(address.party for address in study.who(PROVIDER))
        await net.send(to, SampleCount(public.n, islands))
        await net.send(to, RowCounts(public.rows))
    if study.releases("certificate", to):
        await net.send(to, certified(recipe, found.certificate))
    if study.releases("components", to):
        await net.send(to, names)


# ---- scores ----


async def _common_scores(
    study: Study, machine: _AnyMachine, public: Public, found: Found, held: Held | None, turned: Floats
) -> Outputs:
    """W X^T of the rows that all islands have in common, released to whom the study names."""
    receivers = frozenset(str(a) for a in study.receivers("scores"))
    split = _split(study, machine.net.me, public, held)
    mine = []
    for job in score_jobs(machine, found.components, split) if receivers and split else ():
        (made,) = await machine.products([job])
        block = await machine.released(made, receivers)
        if block is not None:
            mine.append(block.T)
    unit = 2.0**public.range.exponent * turned
    return {"scores": {machine.net.me.party: np.vstack(mine) * unit}} if mine else {}


async def own_scores(
    study: Study, machine: _AnyMachine, public: Public, found: Found, X: Matrix | None
) -> Outputs:
    """Each owner's W X_i^T - offset, under encryption, released to that owner only."""
    rows = dict(zip(study.who(PROVIDER), public.rows, strict=True))
    owners = [(address, rows[address]) for address in score_owners(study)]
    mine: list[Floats] = []
    m = len(public.columns)
    unit = 2.0**public.range.exponent
    if owners and found.standardised is not None:
        # Secret scales are those of sums over the next power of two.
        found, unit = await for_rows(machine, found), 1 / found.offset_factor
    for start in range(0, max((n for _, n in owners), default=0), SCORE_ROWS):
        due = [(a, min(n - start, SCORE_ROWS)) for a, n in owners if n > start]
        own = None if X is None else _rows(X[start : start + SCORE_ROWS], public, found)
        jobs = [
            score_job(machine, found, m, str(a), count, own if a == machine.net.me else None)
            for a, count in due
        ]
        for (address, _), made in zip(due, await machine.products(jobs), strict=True):
            block = await machine.released(made, frozenset({str(address)}))
            if block is not None:
                mine.append(block.T * unit)
    return {"scores": {machine.net.me.party: np.vstack(mine)}} if mine else {}


def _rows(X: Matrix, public: Public, found: Found) -> Any:
    centred = X - public.range.centre
    return np.ascontiguousarray(on_grid(centred, public.range.exponent, row_fraction(found)).T)


def _check(study: Study) -> None:
    check(study)
    private.check(study)


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
    ),
    parameters=SFPCAParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; the coordinator may collude with all "
    "providers but one.",
    partitions=("horizontal", VERTICAL),
    expect=expect,
    forecast=forecast,
    check=_check,
    privacy=private.terms,
)
