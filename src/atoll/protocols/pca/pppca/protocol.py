"""PPPCA: PCA on row-split tables by two secure sums.

Liu, Chen, Zheng, Wang, Zhou, Liu: Privacy Preserving PCA for Multiparty Modeling (2020), Algorithms 1
and 2 (they differ only in the secure sum: ``paillier`` or ``lattice`` for 1, ``shares`` for 2).

Symbols: M -> providers, X_i -> X, S_i -> column sums, x_bar -> mean, C -> covariance, T -> components
(transposed), k -> n_components, X'_i -> scores.

Adversary: passive; the server colludes with no provider. What the server learns is exact.
Learns: the server n, the mean and the covariance of the joint table; providers n, the mean and T; the
consumer the projections of every provider. With two providers each can subtract its own part from n
and from the mean, and so learns the other's.

Deviations: S_i is a sum, not a mean (means of islands do not add up to the joint mean), and n, which
the paper takes as known, is added in the same vector. C_i is a scatter, divided by n-1 after the sum.
Columns are agreed on first. Standardising is done by the server, on C.

With ``epsilon`` the two sums are replaced by the stages of ``private_release``: the server then opens
noisy sums only, and nothing that anybody learns is exact.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from atoll import fixedpoint, secure_sums
from atoll.codec import Array, Message
from atoll.data.island import Chosen, Matrix
from atoll.data.statistics import Moments, about, from_triangle, moments, triangle
from atoll.errors import ParameterError
from atoll.fixedpoint import Limbs
from atoll.network import Compared, Network, Record
from atoll.protocols import checked, handshake
from atoll.protocols.agreement import COMPARISON_BYTES, compare, comparisons
from atoll.protocols.base import (
    Circumstances,
    Disclosure,
    Expectation,
    Learned,
    Output,
    Outputs,
    PrivacyTerms,
    Protocol,
    learned,
)
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own
from atoll.protocols.pca.decompose import (
    Decomposition,
    check_components,
    decompose,
    standard_scale,
)
from atoll.protocols.pca.pppca import ellipses, grid, outputs, private
from atoll.protocols.pca.pppca.parameters import PPPCAParameters, check, settle
from atoll.protocols.pca.pppca.told import JointMean, Transfer, check_transfer, receive_mean
from atoll.protocols.pca.private_release import PublicCentre
from atoll.protocols.pca.released import (
    CONSUMER,
    MODEL_VALUES,
    PROVIDER,
    ROW_COUNT,
    SERVER,
    Model,
    Projection,
    SampleCount,
    Variances,
    check_released,
    joined_scores,
    labelled,
    named,
    receive_released,
    send_released,
)
from atoll.protocols.pca.released import OUTPUTS as PCA_OUTPUTS
from atoll.protocols.preparation.prepare import prepared_by
from atoll.secure_sums import may_leave
from atoll.study.address import Address
from atoll.study.model import Study

OUTPUTS: dict[str, Output] = {
    **PCA_OUTPUTS,
    ellipses.NAME: ellipses.OUTPUT,
}
"""Those that PCA protocols share, and those of PPPCA alone."""


# ---- messages ----


class Participants(Message, frozen=True):
    """Server -> consumer, where islands may leave: whose rows are in the result."""

    islands: tuple[str, ...]


# ---- steps ----


def gen_sums(local: Moments, contributors: int) -> Limbs:
    """n_i and S_i on the grid."""  # Alg 2, l.1
    return fixedpoint.encode(np.concatenate([[local.n], local.n * local.mean]), contributors=contributors)


def joint_mean(total: Limbs) -> tuple[int, Matrix]:
    """n and x_bar from their sums."""  # Alg 2, l.3
    values = fixedpoint.decode(total)
    n = round(values[0])
    return n, values[1:] / n


def gen_scatter(local: Moments, mean: Matrix, contributors: int) -> Limbs:
    """C_i, the scatter of the rows about the joint mean, and what the mean's rounding leaves of their sum."""
    residual, scatter = about(local, mean)  # Alg 2, l.4-5
    return fixedpoint.encode(np.concatenate([residual, triangle(scatter)]), contributors=contributors)


def covariance(total: Limbs, n: int, d: int) -> Matrix:
    """C = 1/(n-1) times the summed scatter, about the mean itself rather than its rounding."""
    values = fixedpoint.decode(total)  # Alg 2, l.7
    residual = values[:d]
    return (from_triangle(values[d:], d) - np.outer(residual / n, residual)) / (n - 1)


def transfer_matrix(
    C: Matrix, mean: Matrix, n: int, p: PPPCAParameters
) -> tuple[Decomposition, Matrix | None]:
    """T, from C or, standardised, from the correlations."""  # Alg 2, l.8
    if not p.standardize:
        return decompose(C, n, p.n_components), None
    scale = standard_scale(np.diag(C), mean, n)
    return decompose(C / np.outer(scale, scale), n, p.n_components), scale


def project(table: Chosen, mean: Matrix, components: Matrix, scale: Matrix | None) -> Matrix:
    """X'_i = X_i T, rows centred on the joint mean."""  # Alg 2, l.9
    weights = components if scale is None else components / scale
    return table.stacked(partial(_projected, mean=mean, weights=weights))


def _projected(X: Matrix, mean: Matrix, weights: Matrix) -> Matrix:
    return np.asarray((X - mean) @ weights.T)


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p = study.read_parameters(PPPCAParameters)
    if (asked := p.privacy) is not None:
        return await private.provider(net, study, own, record, asked, p.columns, p.label, p.row_ids)
    with Booking(study, own, record, None) as booked:
        return await _exact_provider(net, study, own, record, booked)


async def _exact_provider(net: Network, study: Study, own: Own, record: Record, booked: Booking) -> Learned:
    p, server, M = study.read_parameters(PPPCAParameters), study.the(SERVER), len(study.who(PROVIDER))
    island = own.table
    ellipses.check_rows(study, island.name, island.n_rows)
    agreed = await handshake.announce(net, island, server, p.columns, p.label, p.row_ids)
    if _score_receivers(study) and p.row_ids is not None:
        island.row_ids(p.row_ids)  # refused before anything else leaves
    if p.columns is None:  # else the study says them
        told = (agreed.names, agreed.named)
        await compare(net, "the columns", told, study.who(PROVIDER), may_leave=may_leave(study))
    table = island.chosen(agreed.names)
    local = await net.compute(moments, table)
    grid.check_own(local, island.name, agreed.names, M)
    sums = _session(net, study, record, len(agreed.names))
    await sums.open()
    await booked.settle_exact(net, table)
    await sums.contribute("sums", gen_sums(local, M))  # Alg 2, l.1-2
    joint = await receive_mean(net, study, local, sums.present)  # Alg 2, l.3
    outputs.check_outputs(study, p, joint.n, len(agreed.names))  # refuses before second moments leave
    with grid.named(island.name, agreed.names):
        C_i = await net.compute(gen_scatter, local, joint.mean, M)
    await sums.contribute("scatter", C_i)  # Alg 2, l.5-6
    await sums.close()
    islands = joint.islands or tuple(address.party for address in study.who(PROVIDER))
    known: Outputs = {"n_samples": joint.n, "islands": islands, "mean": joint.mean}
    if _needs_transfer(study, net.me):
        T = await net.receive(Transfer, server)  # Alg 2, l.8
        check_transfer(T, p.n_components, p.standardize, local, joint, server)
        columns = agreed.names if agreed.named else None
        known |= {"components": T.components, "scale": T.scale, "columns": columns}
        await _compare_directions(net, study, T, islands)
        if _projects(study):
            scores = await net.compute(project, table, joint.mean, T.components, T.scale)  # Alg 2, l.9
        for consumer_address in _score_receivers(study):
            await net.send(consumer_address, labelled(scores, island, p.label, p.row_ids))
        if ellipses.receivers(study):
            known |= await ellipses.exchange(net, study, scores, islands)
    if study.releases("explained_variance", net.me):
        variances = await net.receive(Variances, server)
        check_released(variances, study, server)
        known |= named(variances)
    return learned(study, net.me, OUTPUTS, known)


async def server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, providers = study.read_parameters(PPPCAParameters), study.who(PROVIDER)
    if (asked := p.privacy) is not None:
        return await private.server(net, study, record, asked, p.columns, p.n_components)
    agreed = await handshake.check(net, providers, p.columns)
    d = len(agreed.names)
    check_components(p.n_components, None, d)
    sums = _session(net, study, record, d)
    await sums.open()
    n, mean = joint_mean(await sums.total("sums", 1 + d))  # Alg 2, l.3
    _check_rows(n, p.n_components, d)
    outputs.check_outputs(study, p, n, d)
    present = sums.present
    staying = [address for address in providers if address in present]
    islands = tuple(address.party for address in staying)
    await net.broadcast(staying, JointMean(n, islands if may_leave(study) else None, mean))
    total = await sums.total("scatter", _scatter_length(d))
    C = await net.compute(covariance, total, n, d)  # Alg 2, l.7
    grid.check_grid(C, mean, n, agreed.names, p.standardize)
    found = await net.compute(transfer_matrix, C, mean, n, p)  # Alg 2, l.8
    T, scale = record.kept("T", found, tuple[Decomposition, Array | None])
    outputs.check_found(study, p, n, T)
    variances = Variances(T.explained_variance, T.total_variance, T.noise_variance)
    for address in staying:
        if _needs_transfer(study, address):
            await net.send(address, Transfer(T.components, scale))
        if study.releases("explained_variance", address):
            await net.send(address, variances)
    model = Model(T.components, mean, scale, agreed.names if agreed.named else None)
    await send_released(net, study, study.who(CONSUMER), model, variances, SampleCount(n, islands))
    if may_leave(study):
        await net.broadcast(_receivers_of_rows(study), Participants(islands))
    known = named(model) | named(variances) | {"n_samples": n, "islands": islands, "covariance": C}
    return learned(study, net.me, OUTPUTS, known)


async def consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    known = await receive_released(net, study, study.the(SERVER))
    providers = await _participants(net, study) if net.me in _receivers_of_rows(study) else []
    if study.releases(ellipses.NAME, net.me):
        known |= await ellipses.receive(net, study, providers)
    if study.releases("scores", net.me):
        arrived = await net.gather(Projection, providers)  # Alg 2, l.10
        known |= joined_scores({address.party: message for address, message in arrived.items()})
    return learned(study, net.me, OUTPUTS, known)


# ---- what the roles share ----


def _session(net: Network, study: Study, record: Record, d: int) -> secure_sums.SecureSum:
    return secure_sums.between(net, study, record, PROVIDER, SERVER, _scatter_length(d))


async def _participants(net: Network, study: Study) -> list[Address]:
    """Whose projections are due: whoever left during the first sum is not part of the result."""
    if not may_leave(study):
        return list(study.who(PROVIDER))
    server, providers = study.the(SERVER), study.who(PROVIDER)
    islands = (await net.receive(Participants, server)).islands
    checked.check_islands(islands, providers, len(providers) - may_leave(study), server)
    staying = set(islands)
    return [address for address in study.who(PROVIDER) if address.party in staying]


def _scatter_length(d: int) -> int:
    return d + d * (d + 1) // 2


def _needs_transfer(study: Study, provider_address: Address) -> bool:
    return study.releases("components", provider_address) or _projects(study)


def _projects(study: Study) -> bool:
    """Whether providers project their rows."""
    return bool(_score_receivers(study) or ellipses.receivers(study))


def _score_receivers(study: Study) -> tuple[Address, ...]:
    return tuple(address for address in study.who(CONSUMER) if study.releases("scores", address))


async def _compare_directions(net: Network, study: Study, T: Transfer, staying: tuple[str, ...]) -> None:
    """Before an ellipse leaves: along other directions, one island's would say what the server chose."""
    if ellipses.receivers(study):
        members = [address for address in study.who(PROVIDER) if address.party in staying]
        await compare(net, "the components", (T.components, T.scale), members)


def _receivers_of_rows(study: Study) -> list[Address]:
    """Consumers that hear from providers themselves."""
    told = {*_score_receivers(study), *ellipses.receivers(study)}
    return [address for address in study.who(CONSUMER) if address in told]


def _check_rows(n: int, n_components: int | float | None, d: int) -> None:
    if n < 2:
        raise ParameterError(
            f"the joint table has {n} sample(s) (shape=({n}, {d})) while a minimum of 2 is required"
        )
    check_components(n_components, n, d)


def determines(study: Study, known: Circumstances) -> tuple[str, ...]:
    """From how many components on others than the server know the covariance too."""
    return outputs.review_words(study, known, study.read_parameters(PPPCAParameters))


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    if (asked := study.read_parameters(PPPCAParameters).privacy) is not None:
        return private.learns(study, asked)
    method = secure_sums.chosen(study)
    said = [
        Disclosure(PROVIDER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)),
        Disclosure(
            PROVIDER,
            method.contributors_see,
            (*method.to_contributors, *method.to_adder),
        ),
        Disclosure(
            PROVIDER,
            "the number of rows n and the mean of each column over all islands",
            (JointMean,),
            (*ROW_COUNT, "mean"),
        ),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(SERVER, "each island's column names", (handshake.Columns,)),
        Disclosure(
            SERVER,
            "the number of rows n, the mean and the full covariance matrix over all islands, exactly",
            method.to_receivers,
            MODEL_VALUES,
        ),
    ]
    if any(_needs_transfer(study, address) for address in study.who(PROVIDER)):
        told = tuple(address.party for address in study.who(PROVIDER) if _needs_transfer(study, address))
        words = "the components" + _and_scale(study)
        said.append(Disclosure(PROVIDER, words, (Transfer,), ("components", "scale"), told))
    for role in (PROVIDER, CONSUMER):
        if any(a.role == role for a in study.receivers("explained_variance")):
            said.append(Disclosure(role, "explained and total variance", (Variances,)))
    for output, words, message in (
        ("components", "the components and the mean of each column" + _and_scale(study), Model),
        ("n_samples", "the number of rows n over all islands, and which islands those are", SampleCount),
        ("scores", "every row's projection" + _and_labels(study) + ", island by island", Projection),
    ):
        if any(a.role == CONSUMER for a in study.receivers(output)):
            said.append(Disclosure(CONSUMER, words, (message,)))
    return said + ellipses.learns(study) + _caveats(study)


def _and_scale(study: Study) -> str:
    return (
        " and each column's standard deviation" if study.read_parameters(PPPCAParameters).standardize else ""
    )


def _and_labels(study: Study) -> str:
    p = study.read_parameters(PPPCAParameters)
    label = f", with the label {p.label!r}" if p.label else ""
    return label + (f", with the row id {p.row_ids!r}" if p.row_ids else "")


def _caveats(study: Study) -> list[Disclosure]:
    said = []
    if len(study.who(PROVIDER)) == 2:
        said.append(
            Disclosure(
                PROVIDER,
                "with two providers: each can subtract its own part from what it is told, and so learns the "
                f"other's number of rows and mean{_two_learn(study)}",
            )
        )
    if _receivers_of_rows(study) and may_leave(study):
        said.append(Disclosure(CONSUMER, "which islands stayed", (Participants,)))
    if _score_receivers(study):
        receivers = tuple(address.party for address in _score_receivers(study))
        words = "projections also show how many rows each island has"
        said.append(Disclosure(CONSUMER, words, (), ROW_COUNT, receivers))
    if _score_receivers(study) and study.read_parameters(PPPCAParameters).row_ids:
        words = "row ids say whose each projection is, to everybody who knows the ids"
        said.append(Disclosure(CONSUMER, words))
    if _score_receivers(study) and study.receivers("components"):
        said.append(
            Disclosure(
                CONSUMER, "projections and components together give back each row up to the dropped part"
            )
        )
    return said


def _two_learn(study: Study) -> str:
    """What else one of two providers can subtract."""
    p, told = study.read_parameters(PPPCAParameters), study.receivers("explained_variance")
    more = ", its standard deviations" if p.standardize else ""
    if any(address.role == PROVIDER for address in told):
        more += ", its covariance as far as the released components reach"
    return more


def expect(study: Study, d: int) -> Expectation:
    """Messages, bytes and memory of a run over d columns (projections, 8k bytes a row, not counted)."""
    M = len(study.who(PROVIDER))
    if (asked := study.read_parameters(PPPCAParameters).privacy) is not None:
        return private.expect(study, asked, d)
    cost = secure_sums.expected(study, M, [1 + d, _scatter_length(d)])
    p = study.read_parameters(PPPCAParameters)
    k = p.n_components if isinstance(p.n_components, int) else d
    names = 20 * d
    transfers = sum(_needs_transfer(study, address) for address in study.who(PROVIDER))
    from_server = M * (names + 8 * d + 30) + transfers * 8 * (k * d + (d if p.standardize else 0))
    consumers = {o: sum(a.role == CONSUMER for a in study.receivers(o)) for o in OUTPUTS}
    models, counts = consumers["components"], consumers["n_samples"]
    from_providers = consumers["scores"] * M + ellipses.messages(study)
    from_providers += len(_receivers_of_rows(study)) * bool(may_leave(study))
    variances = sum(a.role != SERVER for a in study.receivers("explained_variance"))
    released_bytes = models * (8 * (k * d + 2 * d) + names) + variances * (8 * k + 80) + counts * 30
    released_bytes += ellipses.messages(study) * ellipses.BYTES
    released = models + variances + counts + from_providers
    # Columns, unless the study names them; the joint mean; directions of ellipses.
    compared = 1 + (p.columns is None) + bool(ellipses.receivers(study))
    told = compared * comparisons(M)
    return Expectation(
        messages=3 * M + cost.messages + told + transfers + released,
        bytes_per_provider=names + cost.bytes_per_contributor + told // M * COMPARISON_BYTES,
        bytes_total=cost.bytes_total + M * names + told * COMPARISON_BYTES + from_server + released_bytes,
        memory_server=8 * fixedpoint.BYTES_PER_VALUE * d * (d + 1) // 2 + 4 * 8 * d * d,
        rounds=3 + cost.rounds + compared + bool(transfers or released) + bool(from_providers),
    )


def terms(study: Study) -> PrivacyTerms | None:
    asked = study.read_parameters(PPPCAParameters).privacy
    return None if asked is None else private.terms(study, asked)


PROTOCOL = Protocol(
    name="pppca",
    title="PCA by secure sums (PPPCA)",
    version=2,  # projections may bring row ids
    roles={PROVIDER: provider, SERVER: server, CONSUMER: consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    judge=SERVER,
    apart=((PROVIDER, SERVER),),
    messages=(
        *(*handshake.MESSAGES, JointMean, Transfer, Participants, Compared),
        *(PublicCentre, Model, Variances, SampleCount, Projection, ellipses.Ellipse),
    ),
    parameters=PPPCAParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary="Everyone follows the protocol but keeps what they see; the server colludes with no provider.",
    expect=expect,
    check=check,
    settle=settle,
    privacy=terms,
    determines=determines,
    prepare=prepared_by(SERVER, CONSUMER),
)
