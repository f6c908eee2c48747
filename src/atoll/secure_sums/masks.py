"""Secure sum by pairwise masks.

After Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning (2017), and
for many contributors the sparse graph of Bell et al., Secure Single-Server Aggregation with
(Poly)Logarithmic Overhead (2020).

Symbols: x_u -> values, s_uv -> pair seed.
Every pair of neighbours agrees on a seed (X25519); the one adds its stream, the other subtracts it, so
the streams vanish in the sum. The form that survives contributors who leave is in ``recoverable_masks``.

Adversary: passive receiver with colluding contributors: all but two when everyone is everyone's neighbour
(up to 100 contributors). With more, a third, who are whoever they are before the graph is drawn, except with
probability 2^-40 (``graph`` has the bound, ``drawn_graph`` the draw). With dropouts: fewer than the threshold
as well.
Deviation: keys travel directly between neighbours (engines authenticate links), not by the server. Who leaves
may be chosen by the receiver, not at random. Nobody may leave while the graph is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log2
from typing import Any, ClassVar, Literal

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import UNSET, UnsetType

from atoll import fixedpoint, randomness
from atoll.codec import Message, encode
from atoll.errors import MessageError, ParameterError
from atoll.fixedpoint import Accumulator, Limbs
from atoll.secure_sums import drawn_graph
from atoll.secure_sums.base import Cost, SecureSum, SumOptions, check_block, check_round, count_blocks
from atoll.secure_sums.drawn_graph import GraphCommitment, GraphCommitments, GraphNonce, GraphNonces, Order
from atoll.secure_sums.graph import FULL_UP_TO, Degree, colluders_of, degree_of, failure, on_ring
from atoll.study.address import Address

_DOMAIN = "atoll/masks/v1"
TYPICAL_BLOCK = "scatter#0"
"""A block's name, for the forecast of bytes."""


class MaskOptions(SumOptions, frozen=True):
    """``dropouts``: how many contributors may leave during a round without spoiling it.

    ``graph``: who masks with whom. ``full``: everybody with everybody. ``sparse``: each with a few, drawn by
    all together. ``auto`` is full up to 100 contributors, and sparse beyond where that is enough.
    ``colluders``: how many a sparse graph withstands; a third, unless the study says otherwise.
    ``neighbours``: how many each has in a sparse graph; the fewest that are enough, unless the study says.
    """

    dropouts: int = 0
    graph: Literal["auto", "full", "sparse"] | UnsetType = UNSET
    colluders: int | UnsetType = UNSET
    neighbours: int | UnsetType = UNSET


class MaskKey(Message, frozen=True):
    """Contributor u -> neighbour v: u's public key."""

    epoch: str
    key: bytes


class MaskedInput(Message, frozen=True):
    """Contributor u -> receiver: y_u and, where some may leave, u's public key."""

    block: str
    key: bytes
    body: np.ndarray[Any, Any]


def public_key(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def pair_seed(private: bytes, public: bytes) -> bytes:
    """s_uv, the same for both ends."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        raise MessageError("a mask key is not a valid public key") from None


def pair_seeds(private: bytes, keys: Mapping[Address, bytes], me: Address) -> dict[Address, bytes]:
    """The seeds with all neighbours, of which no two may be the same."""
    seeds: dict[Address, bytes] = {}
    for peer, key in keys.items():
        seed = pair_seed(private, key)
        if seed in seeds.values():
            # Added for the one and subtracted for the other, its stream would vanish from what is sent.
            raise MessageError(f"{peer} sent {me} the mask key of another contributor")
        seeds[peer] = seed
    return seeds


def stream(seed: bytes, block: str, n: int) -> Limbs:
    """A mask: uniform mod 2^192, fresh for each block."""
    words = randomness.expand_words(seed, fixedpoint.LIMBS * n, _DOMAIN, block)
    return words.reshape(fixedpoint.LIMBS, n)


def gen_masked(values: Limbs, me: int, seeds: Mapping[int, bytes], own: bytes | None, block: str) -> Limbs:
    """y_u = x_u + b_u + sum over v > u of s_uv - sum over v < u of s_uv."""
    n = values.shape[1]
    masked = Accumulator(n)
    masked.add(values)
    if own is not None:
        masked.add(stream(own, block, n))
    for other, seed in seeds.items():
        (masked.add if other > me else masked.subtract)(stream(seed, block, n))
    return masked.total()


def degree(contributors: int, options: MaskOptions) -> Degree:
    """How many neighbours each has, as the options mean it."""
    colluders, asked = (None if o is UNSET else o for o in (options.colluders, options.neighbours))
    return degree_of(contributors, options.dropouts, options.graph or "auto", colluders, asked)


def threshold(contributors: int, options: MaskOptions) -> int:
    """How many neighbours' shares open a backup: all that are left when as many as may have left."""
    due = degree(contributors, options)
    return due.neighbours - due.missing


class Masks(SecureSum):
    """A session of pairwise masks."""

    to_contributors: ClassVar[tuple[type[Message], ...]] = (MaskKey,)
    to_receivers: ClassVar[tuple[type[Message], ...]] = (MaskedInput,)
    options_type = MaskOptions
    contributors_see = "public keys of other islands"
    hides = "what an island sends are random numbers, which say nothing alone"
    estimator_options = ("dropouts",)
    measured = ({}, {"dropouts": 1})

    @classmethod
    def chosen(cls, options: Any, most: int) -> type[SecureSum]:
        from atoll.secure_sums import recoverable_masks  # whose classes derive from this one

        if options.graph == "sparse" or (options.graph != "full" and most > FULL_UP_TO):
            return recoverable_masks.DrawnRecoverableMasks if options.dropouts else DrawnMasks
        return recoverable_masks.RecoverableMasks if options.dropouts else cls

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        most = cls.withstands(contributors, options, adder_apart=False)
        safe = cls.hidden_from("receiver", most, contributors) + _except(contributors, options)
        if not options.dropouts:
            return f"{safe}."
        return f"{safe}; up to {options.dropouts} islands may leave during the first sum, none later."

    @classmethod
    def may_leave(cls, options: Any) -> int:
        return int(options.dropouts)

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        del adder_apart
        due = degree(contributors, options)
        if due.sparse:
            return _colluders(contributors, options)
        most = contributors - 2
        return min(most, threshold(contributors, options) - 1) if options.dropouts else most

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._index = {address: number for number, address in enumerate(self.contributors)}
        self._degree = degree(len(self.contributors), self.options)
        self._order: Order | None = None
        """Of a sparse graph, once it is drawn."""
        self._ring: list[list[int]] = []

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        colluders = _colluders(contributors, options)
        if not 0 <= colluders <= contributors - 2:
            raise ParameterError(
                f"{colluders} of {contributors} contributors cannot collude and leave anything to hide",
                hint=f"colluders may be at most {contributors - 2} here",
                option="colluders",
            )
        if options.dropouts < 0 or not degree(contributors, options).sparse:
            _check_full(contributors, options)

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        due, blocks = degree(contributors, options), count_blocks(lengths)
        drawn = draw_cost(contributors) if due.sparse else Cost(0, 0, 0, 0)
        epoch = "session " + 64 * "0" if due.sparse else "session"
        sent = due.neighbours * size(MaskKey(epoch, bytes(32))) + receivers * vector_bytes(lengths, b"")
        messages = contributors * (due.neighbours + receivers * blocks)
        return Cost(
            drawn.messages + messages,
            drawn.bytes_per_contributor + sent,
            drawn.bytes_total + contributors * sent,
            drawn.rounds + 1 + len(lengths),
        )

    def _neighbours_of(self, index: int) -> list[int]:
        if self._degree.sparse:
            return self._ring[index]
        return [other for other in range(len(self.contributors)) if other != index]

    def _neighbours(self) -> list[int]:
        return self._neighbours_of(self._index[self.net.me])

    async def open(self) -> None:
        await self._draw_graph()
        if self.net.me in self._index:
            self._seeds = await self._exchange_keys(_epoch(self._order))

    async def _draw_graph(self) -> None:
        """Who masks with whom, where that is to be drawn. Receivers beyond the first need not know."""
        if not self._degree.sparse or self.net.me in self.receivers[1:]:
            return
        relay, n, dropouts = self.receivers[0], len(self.contributors), self.options.dropouts
        if self.net.me == relay:
            order = await drawn_graph.relay(self.net, self.session, self.contributors, dropouts=dropouts)
        else:
            me = self._index[self.net.me]
            order = await drawn_graph.take_part(
                self.net, self.record, self.session, me, n, relay, dropouts=dropouts
            )
        self._order = order
        self._ring = on_ring(order.places, self._degree.neighbours)

    async def _exchange_keys(self, epoch: str, absent: set[Address] | None = None) -> dict[int, bytes]:
        """Fresh keys with every neighbour, and so the pair seeds."""
        self._private = self.record(f"{self.session}/masks/key/{epoch}", randomness.fresh_seed)
        peers = [self.contributors[v] for v in self._neighbours()]
        await self.net.broadcast(peers, MaskKey(epoch, public_key(self._private)))
        arrived = await self.net.gather(MaskKey, peers, absent=absent)
        for peer, message in arrived.items():
            check_round(epoch, message.epoch, peer)
        keys = {peer: message.key for peer, message in arrived.items()}
        seeds = pair_seeds(self._private, keys, self.net.me)
        return {self._index[peer]: seed for peer, seed in seeds.items()}

    async def contribute_block(self, name: str, values: Limbs) -> None:
        # The session's name keeps two sessions of one study apart.
        me, block = self._index[self.net.me], f"{self.session}/{name}"
        body = await self.net.compute(gen_masked, values, me, self._seeds, None, block)
        await self.net.broadcast(self.receivers, MaskedInput(name, b"", body))

    async def total_block(self, name: str, n: int) -> Limbs:
        total = Accumulator(n)

        def combine(sender: Address, message: MaskedInput) -> None:
            check_round(name, message.block, sender)
            total.add(check_block(message.body, n, sender))

        await self.net.fold(MaskedInput, self.contributors, combine)
        return total.total()


class DrawnMasks(Masks):
    """The same where the graph may have to be drawn."""

    to_contributors = (*Masks.to_contributors, GraphCommitments, GraphNonces)
    to_receivers = (*Masks.to_receivers, GraphCommitment, GraphNonce)


def _epoch(order: Order | None) -> str:
    """The name of the exchange of keys: of one order of the ring, so that neighbours compare theirs."""
    return "session" if order is None else f"session {order.name.hex()}"


def _colluders(contributors: int, options: MaskOptions) -> int:
    return colluders_of(contributors, None if options.colluders is UNSET else options.colluders)


def _except(contributors: int, options: MaskOptions) -> str:
    """How likely a sparse graph fails, for the sentence on trust."""
    due = degree(contributors, options)
    if not due.sparse:
        return ""
    chance = failure(contributors, _colluders(contributors, options), options.dropouts, due.neighbours)
    words = f"each masks with {due.neighbours} others, whom all draw together"
    if chance:
        words += f"; so many, chosen before the draw, see more with a chance below 2^{ceil(log2(chance))}"
    return f" ({words})"


def _check_full(contributors: int, options: MaskOptions) -> None:
    # More than half of the neighbours must be needed to open a backup, and never one alone.
    peers = contributors - 1
    most = max(0, min((peers - 1) // 2, peers - 2))
    if not 0 <= options.dropouts <= most:
        raise ParameterError(
            f"{contributors} contributors cannot lose {options.dropouts} and keep their masks safe",
            hint=f"dropouts may be at most {most} here",
            option="dropouts",
        )


def draw_cost(contributors: int) -> Cost:
    """What drawing a sparse graph costs."""
    all_of = (bytes(32),) * contributors
    up = size(GraphCommitment(bytes(32))) + size(GraphNonce(bytes(32)))
    down = size(GraphCommitments(all_of)) + size(GraphNonces(all_of))
    return Cost(4 * contributors, up, contributors * (up + down), 4)


def size(message: Message) -> int:
    """Bytes of a message like this one."""
    return len(encode(message))


def vector_bytes(lengths: Sequence[int], key: bytes) -> int:
    """Bytes of the masked inputs of one contributor, block by block."""
    empty = size(MaskedInput(TYPICAL_BLOCK, key, np.empty((fixedpoint.LIMBS, 0), np.uint64)))
    return sum(lengths) * fixedpoint.BYTES_PER_VALUE + count_blocks(lengths) * empty
