"""PPPCA with an epsilon: the same roles, but the server opens noisy sums only.

The exact sums of Algorithm 2 are replaced by the stages of ``private_release``: the private mean takes the
place of x_bar, the noisy second moments around it that of C. Projections are not released: they are
images of single rows, which no noise here protects.

Learns: the server noisy sums; providers the private centre; consumers what is released to them.
"""

from __future__ import annotations

from atoll import fixedpoint, secure_sums
from atoll.errors import ParameterError, StudyError
from atoll.network import Network, Record
from atoll.protocols import handshake
from atoll.protocols.base import Disclosure, Expectation, Learned, PrivacyTerms, learned
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own
from atoll.protocols.pca import private_pairs
from atoll.protocols.pca import private_release as private
from atoll.protocols.pca.decompose import check_components
from atoll.protocols.pca.released import (
    CONSUMER,
    OUTPUTS,
    PROVIDER,
    SERVER,
    Model,
    SampleCount,
    Variances,
    named,
    receive_released,
    send_released,
)
from atoll.protocols.private_options import Privacy
from atoll.study.model import Study


async def provider(
    net: Network,
    study: Study,
    own: Own,
    record: Record,
    asked: Privacy,
    columns: tuple[str, ...] | None,
    label: str | None,
    row_ids: str | None = None,
) -> Learned:
    with private.booking(study, asked, len(study.who(PROVIDER)), own, record) as booked:
        return await _provider(net, study, own, record, asked, columns, (label, row_ids), booked)


async def _provider(
    net: Network,
    study: Study,
    own: Own,
    record: Record,
    asked: Privacy,
    columns: tuple[str, ...] | None,
    beside: tuple[str | None, str | None],
    booked: Booking,
) -> Learned:
    providers, server = study.who(PROVIDER), study.the(SERVER)
    island = own.table
    agreed = await handshake.announce(net, island, server, columns, *beside)
    table = private.checked(island.chosen(agreed.names))
    plan = private.plan_of(study, asked, len(providers), len(agreed.names))
    capacity = private_pairs.checked_capacity(plan, island)
    sums = private.open_session(net, study, record, plan, providers, server)
    await sums.open()
    centre = await private.contribute(net, sums, plan, table, server, record, booked, capacity)
    known = private.centre_known(centre)
    return learned(study, net.me, OUTPUTS, known | await receive_released(net, study, server, agreed.names))


async def server(
    net: Network,
    study: Study,
    record: Record,
    asked: Privacy,
    columns: tuple[str, ...] | None,
    n_components: int | float | None,
) -> Learned:
    providers = study.who(PROVIDER)
    agreed = await handshake.check(net, providers, columns)
    check_components(n_components, None, len(agreed.names))
    plan = private.plan_of(study, asked, len(providers), len(agreed.names))
    sums = private.open_session(net, study, record, plan, providers, net.me)
    await sums.open()
    moments, centre = await private.receive(net, sums, plan, providers)
    names = agreed.names if agreed.named else None
    found = await net.compute(private.decompose_private, moments, centre, n_components, names)
    model, variances = record.kept("model", found, tuple[Model, Variances])
    n = max(1, round(moments.samples))
    here = [a for a in providers if a in sums.present]
    count = SampleCount(n, tuple(address.party for address in here))
    await send_released(net, study, (*here, *study.who(CONSUMER)), model, variances, count)
    known = named(model) | named(variances) | named(count) | {"noisy_moments": moments.matrix}
    return learned(study, net.me, OUTPUTS, known)


def learns(study: Study, asked: Privacy) -> list[Disclosure]:
    method = secure_sums.chosen(study)
    said = [
        Disclosure(PROVIDER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)),
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(SERVER, "each island's column names", (handshake.Columns,)),
        *private.disclosures(PROVIDER, SERVER, method, asked.centre),
    ]
    centre = "without a centre" if asked.centre == "pairs" else "and the private centre"
    for output, words, message in (
        ("components", f"the components {centre}", Model),
        ("explained_variance", f"explained and total variance{private.NOISY}", Variances),
        ("n_samples", "the number of rows, as private as the study's neighbours say", SampleCount),
    ):
        for role in (PROVIDER, CONSUMER):
            if any(a.role == role for a in study.receivers(output)):
                said.append(Disclosure(role, words, (message,)))
    return said


def terms(study: Study, asked: Privacy) -> PrivacyTerms:
    providers = len(study.who(PROVIDER))
    spent = private.costs(study, asked, providers)
    words = private.guarantee(study, asked, providers)
    colluders = private.plan_of(study, asked, providers, 2).crowd.colluders
    return PrivacyTerms(
        asked.epsilon, asked.delta, asked.neighbours, tuple(spent.values()), tuple(words), colluders
    )


def expect(study: Study, asked: Privacy, d: int) -> Expectation:
    providers = len(study.who(PROVIDER))
    lengths = private.stage_lengths(private.plan_of(study, asked, providers, d))
    cost = secure_sums.expected(study, providers, lengths)
    released = sum(a.role != SERVER for output in OUTPUTS for a in study.receivers(output))
    centres, names = providers * (len(lengths) - 1), 20 * d
    return Expectation(
        messages=2 * providers + cost.messages + centres + released,
        bytes_per_provider=names + cost.bytes_per_contributor,
        bytes_total=cost.bytes_total + 2 * providers * names + centres * (8 * d + 40) + released * 8 * d * d,
        memory_server=8 * fixedpoint.BYTES_PER_VALUE * max(lengths) + 4 * 8 * d * d,
        rounds=2 + cost.rounds + len(lengths) - 1 + bool(released),
    )


def check(study: Study, asked: Privacy, standardize: bool) -> None:
    """What a private PPPCA cannot do."""
    if standardize:
        raise ParameterError(
            "standardize needs every column's standard deviation, which the private release does not give",
            hint="divide columns by public numbers beforehand",
            option="standardize",
        )
    if study.receivers("scores"):
        raise StudyError(
            "projections are images of single rows and cannot be released with an epsilon",
            hint="leave scores out; whoever has the components can project rows of its own",
            path=("release", "scores"),
        )
    for output in study.release:
        if output not in OUTPUTS:
            raise StudyError(
                f"the output {output!r} has no private form",
                hint="leave it out, or the epsilon",
                path=("release", output),
            )
    private.check(study, asked, len(study.who(PROVIDER)))
