"""Components that stay shared after a run, and later steps on them.

A study that releases ``encrypted`` ends with every provider and the coordinator keeping its share of
components and offset: the providers' are random without the last of them, the coordinator's holds nothing.
The session's keys are thrown away.
A later step is a protocol of its own among the same roles, each of which is handed the share that it kept:
it makes new keys and encrypts the same shares under them (to project rows), or adds the shares up (to open).
Shares are never refreshed in between, so a second opening sends the same bytes as the first.

Where a threshold of the providers is enough, the study of a later step names those who take part, and their
places, before anybody sends anything. An opening needs a threshold of them, whoever leaves meanwhile;
products (to project rows) need all that the study names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs

from atoll import codec
from atoll.crypto import shamir
from atoll.data.island import Chosen, Island
from atoll.errors import MessageError, RunError, SchemaError
from atoll.network import Compared, Network, Record
from atoll.protocols.agreement import compare
from atoll.protocols.base import Disclosure, Learned, Outputs, Protocol, learned
from atoll.protocols.checked import check_counts
from atoll.protocols.own import Own
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca import messages, protocol
from atoll.protocols.pca.sfpca.disclosure import set_up
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.messages import RowCount, RowCounts
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, LATER
from atoll.protocols.pca.sfpca.prepared import Public
from atoll.protocols.pca.sfpca.ranges import Range, check_table
from atoll.protocols.pca.sfpca.recipes.certificate import Certificate
from atoll.protocols.pca.sfpca.recipes.direct import Found
from atoll.protocols.pca.sfpca.recipes.moments import on_grid
from atoll.protocols.pca.sfpca.releases import own_scores, release_model
from atoll.protocols.pca.sfpca.scores import ROW_FRACTION
from atoll.secret_matrices import messages as machines
from atoll.secret_matrices import roles, threshold
from atoll.secret_matrices.machine import Precision, Shared
from atoll.secret_matrices.threshold import Held
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study


class LaterParameters(Parameters, frozen=True):
    """``session``: the session whose shares are used, in hexadecimal digits; ``points``: the places of the
    providers' shares, in their order, where a threshold of all is enough."""

    session: str
    points: tuple[int, ...] | None = None


def later_study(
    study: Study,
    session: bytes,
    release: Mapping[str, tuple[str, ...]],
    points: Mapping[str, int] | None = None,
) -> Study:
    """The study of a later step: the holders of shares, and what they do with them.

    ``points``: of the providers who take part, where a threshold of all is enough, by name.
    """
    if points is not None:
        away = {a.party for a in study.who(PROVIDER)} - set(points)
        study = _without(study, away)
    holders = (
        Party(
            party.name,
            tuple(role for role in party.roles if role in (PROVIDER, COORDINATOR)),
            party.fingerprint,
        )
        for party in study.parties
    )
    return Study(
        name=f"{study.name}, later",
        protocol=LATER,
        parties=tuple(party for party in holders if party.roles),
        parameters={"session": session.hex()}
        | ({} if points is None else {"points": [points[a.party] for a in study.who(PROVIDER)]}),
        release=dict(release),
    )


def _without(study: Study, away: set[str]) -> Study:
    """The study without these providers; what other roles they have stays."""
    parties = (
        structs.replace(party, roles=tuple(r for r in party.roles if r != PROVIDER))
        if party.name in away
        else party
        for party in study.parties
    )
    return structs.replace(study, parties=tuple(party for party in parties if party.roles))


OUTPUTS = {name: protocol.OUTPUTS[name] for name in ("components", "scores")}


# ---- roles ----


async def provider(net: Network, study: Study, own: Own, record: Record) -> Learned:
    kept, coordinator_ = own_share(own, study, net.me), study.the(COORDINATOR)
    table = checked_rows(own.table, kept) if study.releases("scores", net.me) else None
    machine = roles.Provider(net, record, study.digest, coordinator_, study.who(PROVIDER))
    rows: tuple[int, ...] = ()
    own_rows = 0 if table is None else table.n_rows
    if study.receivers("scores"):
        await net.send(coordinator_, RowCount(own_rows))
        rows, providers = (await net.receive(RowCounts, coordinator_)).n, study.who(PROVIDER)
        check_counts(rows, providers.index(net.me), own_rows, providers, coordinator_)
        await compare(net, "the rows to be projected", rows, providers)
        await machine.set_up([Precision.HIGH])
    return await _steps(study, machine, kept, rows, table)


async def coordinator(net: Network, study: Study, own: Own, record: Record) -> Learned:
    kept, providers = own_share(own, study, net.me), study.who(PROVIDER)
    machine = roles.Coordinator(net, record, study.digest, net.me, providers)
    rows: tuple[int, ...] = ()
    if study.receivers("scores"):
        counts = await net.gather(RowCount, providers)
        rows = tuple(counts[a].n for a in providers)
        await net.broadcast(providers, RowCounts(rows))
        await machine.set_up([Precision.HIGH])
    return await _steps(study, machine, kept, rows, None)


async def _steps(
    study: Study,
    machine: roles.Provider | roles.Coordinator,
    kept: Kept,
    rows: tuple[int, ...],
    table: Chosen | None,
) -> Learned:
    range_ = Range(kept.exponent, np.array(kept.centre))
    public = Public(kept.columns, kept.named, rows, range_, kept.components.shape[0])
    points = study.read_parameters(LaterParameters).points or ()
    found = restored(kept, machine.all_providers, points)
    known: Outputs = {}
    if study.receivers("components"):
        known |= (await release_model(study, machine, public, found))[0]
    if study.receivers("scores"):
        found = await _summands(study, machine, found)
        known |= await own_scores(study, machine, public, found, table)
    await machine.check(last=True)
    return learned(study, machine.net.me, OUTPUTS, known)


async def _summands(study: Study, machine: roles.Provider | roles.Coordinator, found: Found) -> Found:
    """For products: shares that add up, where those that were kept do not."""
    assert found.offset is not None, "a study keeps no components of standardised columns"
    if found.components.dealt is None:
        return found
    points = study.read_parameters(LaterParameters).points or ()
    components = await threshold.summands(machine, found.components, points)
    return found._replace(
        components=components, offset=await threshold.summands(machine, found.offset, points)
    )


# ---- steps ----


def own_share(own: Own, study: Study, me: Address) -> Kept:
    """This role's share, which must be one of the session that the study names."""
    if me.role not in own.kept:
        raise RunError(
            f"{me} has no share", hint="every role brings the share that it kept of the fitted run"
        )
    kept: Kept = codec.decode(own.kept[me.role], Kept)
    if kept.session.hex() != study.read_parameters(LaterParameters).session or kept.holder != str(me):
        raise MessageError("a kept share belongs to another session or another role")
    _check_places(kept, study, me)
    return kept


def _check_places(kept: Kept, study: Study, me: Address) -> None:
    """The study must name those who have the shares, enough of them, and each one's at its place.

    Shares are weighted by the places of all: a share that is weighted otherwise may say itself, because the
    masks of a later step are made for the matrix, and not for a share.
    """
    points, members = study.read_parameters(LaterParameters).points or (), study.who(PROVIDER)
    if not kept.threshold:
        if {str(a) for a in members} != set(kept.members):
            raise MessageError("the later step is not one of all providers with a share, and of no others")
        return
    if len(set(points)) != len(points) or len(points) != len(members) or len(points) < kept.threshold:
        raise MessageError(
            f"the later step names {len(set(points))} shares of {len(members)} providers, where "
            f"{kept.threshold} are needed"
        )
    if me in members and points[members.index(me)] != kept.point:
        raise MessageError(f"the later step takes the share of {me} for another one")
    due = dict(enumerate(kept.members, 1))
    for member, point in zip(members, points, strict=True):
        if due.get(point) != str(member):
            raise MessageError(f"the later step takes a number of {member} for the share of place {point}")


def checked_rows(island: Island, kept: Kept) -> Chosen:
    """An island's rows for the kept components, refused where they exceed the run's range."""
    if len(island.columns) != len(kept.columns) or (kept.named and set(island.columns) != set(kept.columns)):
        raise SchemaError(
            f"{island.name}: the columns are not those of the components",
            hint=f"{len(kept.columns)} columns, as in the islands that were fitted",
        )
    table = island.chosen(kept.columns if kept.named else island.columns)
    check_table(table)
    for X in table.blocks():
        on_grid(X - np.array(kept.centre), kept.exponent, ROW_FRACTION)
    return table


def restored(kept: Kept, providers: frozenset[str], points: tuple[int, ...] = ()) -> Found:
    """Components and offset as the machine knows them; of the rest of a run nothing is needed.

    ``points``: the places of the providers' shares, where a threshold of all is enough.
    """

    def shared(i: int, words: Any, fraction: int, bits: int) -> Shared:
        share = np.array(words)
        if not kept.threshold:
            return Shared(share.shape[:2], fraction, bits, share, providers)
        shape, values = share.shape[:2], None
        if kept.point:
            values = shamir.numbers_from_bytes(share.tobytes(), shape[0] * shape[1])
        of_deal = (kept.which[i], kept.nonces[i], kept.commitments[i])
        held = Held(kept.threshold, points, kept.point, values, (shape[0], shape[1]), fraction, *of_deal)
        return Shared(shape, fraction, bits, np.zeros((*shape, 1), np.uint64), providers, dealt=held)

    return Found(
        shared(0, kept.components, kept.components_fraction, kept.components_bits),
        shared(1, kept.offset, kept.offset_fraction, kept.offset_bits),
        kept.offset_factor,
        np.empty(0),
        0.0,
        Certificate(0.0, 0.0),
    )


# ---- who learns what ----


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    said = set_up() if study.receivers("scores") else []
    enough = study.read_parameters(LaterParameters).points is not None
    for output, words in (
        ("components", "the principal components, and their product with the mean of each column"),
        ("scores", "the projections of its own rows"),
    ):
        for role in dict.fromkeys(address.role for address in study.receivers(output)):
            some = enough and output == "components"
            share = machines.ReleasedPoint if some else machines.ReleasedShare
            said.append(Disclosure(role, words, (share,)))
    if enough and study.receivers("scores"):
        hidden = "shares of components and offset under masks, which say nothing, and seeds of such masks"
        said.append(Disclosure(PROVIDER, hidden, (machines.MaskedPoint, machines.PairSeed)))
    if study.receivers("scores"):
        solved = (
            "an island that projects more independent rows than columns can solve them for the components"
        )
        said.append(Disclosure(PROVIDER, solved))
    return said


PROTOCOL = Protocol(
    name=LATER,
    title="a later step on shared components (SF-PCA)",
    follows=protocol.PROTOCOL.name,
    roles={PROVIDER: provider, COORDINATOR: coordinator},
    data_roles=frozenset({PROVIDER}),
    reads_table=lambda study, address: study.releases("scores", address),
    single_roles=frozenset({COORDINATOR}),
    version=4,
    messages=(*messages.MESSAGES, Compared),
    parameters=LaterParameters,
    outputs=OUTPUTS,
    learns=learns,
    adversary=protocol.PROTOCOL.adversary,
    uses_sum=False,
)
