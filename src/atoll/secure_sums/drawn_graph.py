"""How contributors draw the order in which they stand on a sparse graph's ring, so that nobody chooses it.

A receiver that chose neighbours would put an island among colluders, and read it. So every contributor draws
a nonce and commits to it; the receiver relays all commitments, then all nonces; whoever receives them checks
that they are the ones that were committed to. The order follows from a hash of all.

A contributor reveals its nonce only when all commitments it counts are fixed. So whatever the receiver relays
to it, also if it relays something else to others, the order that this contributor believes in is uniform, and
the receiver's only other choice is to end the run. Nobody who has committed may leave before the order is
known: leaving would be a choice between two orders. And neighbours compare the order that they believe in
(:func:`Order.name`) before anything else: those who believe in one are all honest contributors, because
the honest stay connected in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from hmac import compare_digest
from typing import NamedTuple

from atoll import randomness
from atoll.codec import Message
from atoll.errors import MessageError, PartyLeft
from atoll.network import Network, Record
from atoll.study.address import Address

_DOMAIN = "atoll/masks/graph/v1"


class GraphCommitment(Message, frozen=True):
    """Contributor -> receiver: a commitment to its nonce."""

    commitment: bytes


class GraphCommitments(Message, frozen=True):
    """Receiver -> contributors: everybody's commitments in order; none of whoever is missing."""

    commitments: tuple[bytes, ...]


class GraphNonce(Message, frozen=True):
    """Contributor -> receiver: its nonce."""

    nonce: bytes


class GraphNonces(Message, frozen=True):
    """Receiver -> contributors: everybody's nonces in order."""

    nonces: tuple[bytes, ...]


class Order(NamedTuple):
    """The ring, as one participant believes it to be."""

    places: tuple[int, ...]
    name: bytes
    """Of everything that it was drawn from, for comparing."""
    present: tuple[int, ...]
    """Who took part in drawing it."""


def commitment(session: str, index: int, nonce: bytes) -> bytes:
    """What a contributor commits with; in another session, or as another's, it is worth nothing."""
    return randomness.derive(nonce, _DOMAIN, "commitment", session, index)


def order_of(session: str, commitments: Sequence[bytes], nonces: Sequence[bytes]) -> Order:
    """The order that follows; an error where a nonce is not what was committed to."""
    if len(nonces) != len(commitments):
        raise MessageError(f"{len(nonces)} nonces came for {len(commitments)} commitments")
    seed = hashlib.sha256(f"{_DOMAIN}/{session}".encode())
    for index, (said, nonce) in enumerate(zip(commitments, nonces, strict=True)):
        if bool(said) != bool(nonce) or len(nonce) not in (0, randomness.SEED_BYTES):
            raise MessageError(f"the nonce of contributor {index} does not fit its commitment")
        if nonce and not compare_digest(commitment(session, index, nonce), said):
            raise MessageError(f"the nonce of contributor {index} is not the one that was committed to")
        seed.update(index.to_bytes(4, "little") + said + nonce)
    name = seed.digest()
    keys = [randomness.derive(name, _DOMAIN, "place", index) for index in range(len(commitments))]
    places = tuple(sorted(range(len(commitments)), key=keys.__getitem__))
    return Order(places, name, tuple(index for index, said in enumerate(commitments) if said))


async def take_part(
    net: Network, record: Record, session: str, me: int, n: int, receiver: Address, *, dropouts: int
) -> Order:
    """A contributor's part of the draw."""
    nonce = record(f"{session}/masks/graph", randomness.fresh_seed)
    mine = commitment(session, me, nonce)
    await net.send(receiver, GraphCommitment(mine))
    said = (await net.receive(GraphCommitments, receiver)).commitments
    if len(said) != n or said[me] != mine or {len(one) for one in said} - {0, len(mine)}:
        raise MessageError(f"{receiver} did not relay the commitment of {net.me} as it was")
    if sum(map(bool, said)) < n - dropouts:
        raise MessageError(
            f"{receiver} relayed {sum(map(bool, said))} commitments where at least {n - dropouts} are due"
        )
    await net.send(receiver, GraphNonce(nonce))
    nonces = (await net.receive(GraphNonces, receiver)).nonces
    return order_of(session, said, nonces)


async def relay(net: Network, session: str, contributors: Sequence[Address], *, dropouts: int) -> Order:
    """The receiver's part of the draw."""
    absent: set[Address] = set()
    arrived = await net.gather(GraphCommitment, contributors, absent=absent if dropouts else None)
    if len(absent) > dropouts:
        raise PartyLeft(
            f"{len(absent)} contributors left before the graph was drawn, the study allows {dropouts}",
            hint="start a new run",
        )
    said = tuple(arrived[a].commitment if a in arrived else b"" for a in contributors)
    await net.broadcast(arrived, GraphCommitments(said))
    revealed = await net.gather(GraphNonce, list(arrived))
    nonces = tuple(revealed[a].nonce if a in revealed else b"" for a in contributors)
    order = order_of(session, said, nonces)
    await net.broadcast(arrived, GraphNonces(nonces))
    return order
