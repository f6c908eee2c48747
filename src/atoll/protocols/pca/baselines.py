"""What the papers compare with: merged local decompositions, and every island for itself.

``meta``: Liang, Balcan, Kanchanapally, Woodruff: Improved Distributed Principal Component Analysis
(2014): each island sends its leading singular values and vectors; the server stacks and decomposes
them. Symbols: P_i -> local, Sigma_t V_t^T -> weighted, k -> n_components.
``separate``: each island its own PCA, and projections from it.

Adversary (meta): passive. Learns: the server each island's row count, mean and leading components, in
the clear. These are baselines to compare with, not protection.
Islands of ``meta`` centre their rows on their own mean, and what sets the means apart is lost, as in the
meta-analyses that SF-PCA is compared with. Ours (``between_means``): the server adds the spread between the
means as one more row per island, so that the merge is exact when nothing is truncated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from atoll.codec import Array, Message
from atoll.data.island import Matrix
from atoll.data.statistics import Moments, moments
from atoll.errors import ParameterError
from atoll.network import Network, Record
from atoll.protocols import checked, handshake
from atoll.protocols.base import Disclosure, Learned, Output, Outputs, Protocol, learned
from atoll.protocols.booking import Booking
from atoll.protocols.own import Own
from atoll.protocols.pca import released
from atoll.protocols.pca.decompose import Decomposition, decompose, standard_scale
from atoll.protocols.pca.pppca.parameters import PPPCAParameters, check, check_parameters
from atoll.protocols.pca.released import (
    CONSUMER,
    MODEL_VALUES,
    OUTPUTS,
    PROVIDER,
    SERVER,
    Model,
    SampleCount,
    Variances,
    receive_released,
    send_released,
)
from atoll.study.address import Address
from atoll.study.model import Study


class MetaParameters(PPPCAParameters, frozen=True):
    """Those of PPPCA, and ``between_means``: whether the spread between the islands' means counts."""

    between_means: bool = False


class LocalComponents(Message, frozen=True):
    """Provider -> server: n_i, the island's mean and Sigma_t V_t^T."""

    n: int
    mean: np.ndarray[Any, Any]
    weighted: np.ndarray[Any, Any]


# ---- steps ----


def covariance_of(local: Moments) -> Matrix:
    """An island's own covariance."""
    return local.scatter / max(local.n - 1, 1)


def local_components(local: Moments, k: int | float | None) -> LocalComponents:
    """Sigma_t V_t^T of the rows, centred on the island's mean, truncated to k."""
    keep = k if isinstance(k, int) else None
    rank = max(1, min(local.n, len(local.mean)))
    T = decompose(covariance_of(local), rank, min(keep, rank) if keep else None)
    return LocalComponents(
        local.n, local.mean, np.sqrt(T.explained_variance * max(local.n - 1, 1))[:, None] * T.components
    )


def merge(
    parts: list[LocalComponents], k: int | float | None, *, between_means: bool
) -> tuple[Decomposition, Matrix, int]:
    """The components of the stacked local ones, with the spread between the means or without it."""
    n = sum(part.n for part in parts)
    mean = np.sum([part.n * part.mean for part in parts], axis=0) / n
    stacked = [part.weighted for part in parts]
    if between_means:
        stacked += [np.sqrt(part.n) * (part.mean - mean)[None, :] for part in parts]
    rows = np.vstack(stacked)
    return decompose(rows.T @ rows / (n - 1), n, k), mean, n


def own_pca(local: Moments, p: PPPCAParameters, island: str) -> tuple[Decomposition, Matrix | None]:
    """One island's PCA."""
    if isinstance(p.n_components, int) and p.n_components > min(local.n, len(local.mean)):
        raise ParameterError(
            f"{island} has {local.n} rows and {len(local.mean)} columns: too few for "
            f"n_components={p.n_components} on its own",
            hint="fewer components, or a protocol that joins the islands",
        )
    C = covariance_of(local)
    if not p.standardize:
        return decompose(C, local.n, p.n_components), None
    scale = standard_scale(np.diag(C), local.mean, local.n)
    return decompose(C / np.outer(scale, scale), local.n, p.n_components), scale


# ---- roles ----


async def meta_provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    with Booking(study, own, record, None) as booked:
        return await _meta_provider(net, study, own, booked)


async def _meta_provider(net: Network, study: Study, own: Own, booked: Booking) -> Learned:
    p, server = study.read_parameters(MetaParameters), study.the(SERVER)
    island = own.table
    agreed = await handshake.announce(net, island, server, p.columns, None)
    table = island.chosen(agreed.names)
    local = await net.compute(moments, table)
    part = await net.compute(local_components, local, p.n_components)
    await booked.settle_exact(net, table)
    await net.send(server, part)
    known = await receive_released(net, study, server, agreed.names)
    return learned(study, net.me, META_OUTPUTS, known)


async def meta_server(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, providers = study.read_parameters(MetaParameters), study.who(PROVIDER)
    agreed = await handshake.check(net, providers, p.columns)
    parts = await net.gather(LocalComponents, providers)
    for address, part in parts.items():
        _check_part(part, len(agreed.names), address)
    merged = partial(merge, between_means=p.between_means)
    found = await net.compute(merged, list(parts.values()), p.n_components)
    T, mean, n = record.kept("T", found, tuple[Decomposition, Array, int])
    model = Model(T.components, mean, None, agreed.names if agreed.named else None)
    variances = Variances(T.explained_variance, T.total_variance, T.noise_variance)
    count = SampleCount(n, tuple(address.party for address in providers))
    await send_released(net, study, (*providers, *study.who(CONSUMER)), model, variances, count)
    return learned(
        study, net.me, META_OUTPUTS, released.named(model) | released.named(variances) | released.named(count)
    )


def _check_part(part: LocalComponents, d: int, sender: Address) -> None:
    checked.check_number(part.n, "a number of rows", sender, least=1)
    checked.check_floats(part.mean, (d,), "a mean", sender)
    rows = min(len(part.weighted), d) if part.weighted.ndim else 0
    checked.check_floats(part.weighted, (rows, d), "components", sender)


async def meta_consumer(net: Network, study: Study, own: Own, record: Record) -> Learned:
    known = await receive_released(net, study, study.the(SERVER))
    return learned(study, net.me, META_OUTPUTS, known)


async def separate_provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    p, island = study.read_parameters(PPPCAParameters), own.table
    columns = handshake.describe(island, p.columns, p.label)
    local = await net.compute(moments, island.chosen(columns.names))
    T, scale = await net.compute(own_pca, local, p, island.name)
    mine: Outputs = {"components": T.components, "mean": local.mean, "scale": scale}
    mine |= {"columns": columns.names if columns.named else None, "explained_variance": T.explained_variance}
    mine |= {"total_variance": T.total_variance, "noise_variance": T.noise_variance, "n_samples": local.n}
    return learned(study, net.me, SEPARATE_OUTPUTS, {"models": {island.name: mine}})


# ---- who learns what ----

META_OUTPUTS = {output: OUTPUTS[output] for output in ("components", "explained_variance", "n_samples")}
SEPARATE_OUTPUTS = {
    "models": Output(("models",), (PROVIDER,), "each island's own components, of its own rows only")
}


def meta_learns(study: Study) -> list[Disclosure]:
    said = [
        Disclosure(PROVIDER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)),
        Disclosure(SERVER, "each island's column names", (handshake.Columns,)),
        Disclosure(
            SERVER,
            "each island's number of rows, mean and leading components, in the clear",
            (LocalComponents,),
            MODEL_VALUES,
        ),
        Disclosure(SERVER, "an island of a few rows is disclosed by these, one of a single row entirely"),
    ]
    for output, words, message in (
        ("components", "the merged components and the mean of each column", Model),
        ("explained_variance", "explained and total variance", Variances),
        ("n_samples", "the number of rows over all islands", SampleCount),
    ):
        for role in (PROVIDER, CONSUMER):
            if any(a.role == role for a in study.receivers(output)):
                said.append(Disclosure(role, words, (message,)))
    return said


def separate_learns(study: Study) -> list[Disclosure]:
    return [Disclosure(PROVIDER, "nothing but its own components; no message is sent", (), ("models",))]


def check_meta(study: Study) -> None:
    """Merged decompositions have no joint variances to standardise by."""
    p = study.read_parameters(MetaParameters)
    check_parameters(study, p)
    if p.standardize:
        raise ParameterError(
            "meta cannot standardise: islands would divide by different deviations",
            hint="standardise the islands beforehand, or use protocol='pppca'",
            option="standardize",
        )


META = Protocol(
    name="meta",
    version=2,
    title="Merged local decompositions (baseline)",
    roles={PROVIDER: meta_provider, SERVER: meta_server, CONSUMER: meta_consumer},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset({SERVER}),
    messages=(*handshake.MESSAGES, LocalComponents, Model, Variances, SampleCount),
    parameters=MetaParameters,
    outputs=META_OUTPUTS,
    learns=meta_learns,
    adversary="A baseline: the server sees each island's own statistics in the clear.",
    uses_sum=False,
    check=check_meta,
)

SEPARATE = Protocol(
    name="separate",
    title="Every island for itself (baseline)",
    roles={PROVIDER: separate_provider},
    data_roles=frozenset({PROVIDER}),
    single_roles=frozenset(),
    messages=(),
    parameters=PPPCAParameters,
    outputs=SEPARATE_OUTPUTS,
    learns=separate_learns,
    adversary="A baseline: nothing is joined, so nothing is disclosed.",
    uses_sum=False,
    check=check,
)
