"""Secure sum by pairwise masks.

After Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning (2017), and
for many contributors the sparser graph of Bell et al. (2020), made deterministic.

Symbols: x_u -> values, s_uv -> pair seed.
Every pair of neighbours agrees on a seed (X25519); the one adds its stream, the other subtracts it, so
the streams vanish in the sum. The form that survives contributors who leave is in ``recoverable_masks``.

Adversary: passive receiver with colluding contributors, fewer than the neighbours each one has: all
but two when everyone is everyone's neighbour (up to 100 contributors); with more, each has 100 (so any
99 colluders still leave the honest connected). With dropouts: fewer than the threshold as well.
Deviation: keys travel directly between neighbours (engines authenticate links), not by the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from atoll import fixedpoint, randomness
from atoll.codec import Message, encode
from atoll.errors import MessageError, ParameterError
from atoll.fixedpoint import Accumulator, Limbs
from atoll.secure_sums.base import Cost, SecureSum, SumOptions, check_block, check_round, count_blocks
from atoll.secure_sums.graph import MAX_NEIGHBOURS, neighbours
from atoll.study.address import Address

_DOMAIN = "atoll/masks/v1"
TYPICAL_BLOCK = "scatter#0"
"""A block's name, for the forecast of bytes."""


class MaskOptions(SumOptions, frozen=True):
    """``dropouts``: how many contributors may leave during a round without spoiling it."""

    dropouts: int = 0


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


def threshold(contributors: int, dropouts: int) -> int:
    """How many neighbours' shares open a backup: all that are left when as many as may have left."""
    return min(contributors - 1, MAX_NEIGHBOURS) - dropouts


class Masks(SecureSum):
    """A session of pairwise masks."""

    to_contributors: ClassVar[tuple[type[Message], ...]] = (MaskKey,)
    to_receivers: ClassVar[tuple[type[Message], ...]] = (MaskedInput,)
    options_type = MaskOptions
    contributors_see = "public keys of other islands"
    hides = "what an island sends is uniformly random"
    estimator_options = ("dropouts",)
    measured = ({}, {"dropouts": 1})

    @classmethod
    def chosen(cls, options: Any) -> type[SecureSum]:
        from atoll.secure_sums.recoverable_masks import RecoverableMasks  # which derives from this class

        return RecoverableMasks if options.dropouts else cls

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        most = cls.withstands(contributors, options, adder_apart=False)
        safe = cls.hidden_from("receiver", most, contributors)
        if not options.dropouts:
            return f"{safe}."
        return f"{safe}; up to {options.dropouts} islands may leave during the first sum, none later."

    @classmethod
    def may_leave(cls, options: Any) -> int:
        return int(options.dropouts)

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        del adder_apart
        most = min(contributors - 2, MAX_NEIGHBOURS - 1)
        return min(most, threshold(contributors, options.dropouts) - 1) if options.dropouts else most

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._index = {address: number for number, address in enumerate(self.contributors)}

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        # More than half of the neighbours must be needed to open a backup, and never one alone.
        peers = min(contributors - 1, MAX_NEIGHBOURS)
        most = max(0, min((peers - 1) // 2, peers - 2))
        if not 0 <= options.dropouts <= most:
            raise ParameterError(
                f"{contributors} contributors cannot lose {options.dropouts} and keep their masks safe",
                hint=f"dropouts may be at most {most} here",
                option="dropouts",
            )

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        peers, blocks = min(contributors - 1, MAX_NEIGHBOURS), count_blocks(lengths)
        sent = peers * size(MaskKey("session", bytes(32))) + receivers * vector_bytes(lengths, b"")
        messages = contributors * (peers + receivers * blocks)
        return Cost(messages, sent, contributors * sent, 1 + len(lengths))

    def _neighbours(self) -> list[int]:
        return neighbours(self._index[self.net.me], len(self.contributors))

    async def open(self) -> None:
        if self.net.me in self._index:
            self._seeds = await self._exchange_keys("session")

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


def size(message: Message) -> int:
    """Bytes of a message like this one."""
    return len(encode(message))


def vector_bytes(lengths: Sequence[int], key: bytes) -> int:
    """Bytes of the masked inputs of one contributor, block by block."""
    empty = size(MaskedInput(TYPICAL_BLOCK, key, np.empty((fixedpoint.LIMBS, 0), np.uint64)))
    return sum(lengths) * fixedpoint.BYTES_PER_VALUE + count_blocks(lengths) * empty
