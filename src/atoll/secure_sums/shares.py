"""Secure sum by n-out-of-n additive shares over Z_2^192.

Liu et al., Privacy Preserving PCA for Multiparty Modeling (2020), "Secret Sharing" and Algorithm 2.

Symbols: M -> len(contributors), s -> values, r_j -> share of j, <v_i> -> share sum of i, l -> 192.
Adversary: passive. The receiver together with up to M-2 contributors learns no more than the sum of
the others; a receiver that colludes with nobody sees share sums only.
Deviation: the M-1 random shares come from a PRG, so one 32-byte seed per pair and session stands for
all of them and only the share sums travel in full: a contributor sends one vector, not M.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from atoll import fixedpoint, randomness
from atoll.codec import Message
from atoll.errors import MessageError
from atoll.fixedpoint import Accumulator, Limbs
from atoll.secure_sums.base import Cost, SecureSum, check_block, check_round, count_blocks
from atoll.study.address import Address

_DOMAIN = "atoll/shares/v1"


class ShareSeed(Message, frozen=True):
    """Contributor i -> j: the seed of all shares <s_i>_j of this session."""

    seed: bytes


class ShareSum(Message, frozen=True):
    """Contributor i -> receiver: <v_i>, the sum of the shares that i holds."""

    block: str
    body: np.ndarray[Any, Any]


def share(seed: bytes, block: str, n: int) -> Limbs:
    """r_j: one uniform share, expanded from its seed."""
    words = randomness.expand_words(seed, fixedpoint.LIMBS * n, _DOMAIN, block)
    return words.reshape(fixedpoint.LIMBS, n)


def last_share(values: Limbs, seeds: Sequence[bytes], block: str) -> Limbs:
    """r_M = s - sum of the other shares mod 2^l: the share its owner keeps."""
    n = values.shape[1]
    kept = Accumulator(n)
    kept.add(values)
    for seed in seeds:
        kept.subtract(share(seed, block, n))
    return kept.total()


def share_sum(kept: Limbs, received: Sequence[bytes], block: str) -> Limbs:
    """<v_i> = sum over j of <s_j>_i mod 2^l."""
    n = kept.shape[1]
    total = Accumulator(n)
    total.add(kept)
    for seed in received:
        total.add(share(seed, block, n))
    return total.total()


def gen_share_sum(values: Limbs, sent: Sequence[bytes], received: Sequence[bytes], block: str) -> Limbs:
    """What contributor i sends: its own kept share plus those the others gave it."""
    return share_sum(last_share(values, sent, block), received, block)


def reconstruct(share_sums: Iterable[Limbs], n: int) -> Limbs:
    """sum of <v_i> mod 2^l."""
    total = Accumulator(n)
    for part in share_sums:
        total.add(part)
    return total.total()


class Shares(SecureSum):
    """A session of additive shares."""

    to_contributors = (ShareSeed,)
    to_receivers = (ShareSum,)
    contributors_see = "random numbers (seeds of shares), which say nothing alone"
    hides = "what an island sends are random numbers, which say nothing alone"

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        hidden = cls.hidden_from("receiver", contributors - 2, contributors)
        return f"{hidden}; all islands must stay to the end."

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        peers, blocks = contributors - 1, count_blocks(lengths)
        sent = 50 * peers + receivers * (fixedpoint.BYTES_PER_VALUE * sum(lengths) + 60 * blocks)
        return Cost(
            messages=contributors * (peers + receivers * blocks),
            bytes_per_contributor=sent,
            bytes_total=contributors * sent,
            rounds=1 + len(lengths),
        )

    async def open(self) -> None:
        if self.net.me not in self.contributors:
            return
        peers = [peer for peer in self.contributors if peer != self.net.me]
        root = self.record(f"{self.session}/shares", randomness.fresh_seed)
        self._sent = [randomness.derive(root, _DOMAIN, "seed", str(peer)) for peer in peers]
        for peer, seed in zip(peers, self._sent, strict=True):
            await self.net.send(peer, ShareSeed(seed))
        received = await self.net.gather(ShareSeed, peers)
        self._received = [_checked_seed(peer, message) for peer, message in received.items()]

    async def contribute_block(self, name: str, values: Limbs) -> None:
        # The session's name keeps two sessions of one study apart.
        block = f"{self.session}/{name}"
        body = await self.net.compute(gen_share_sum, values, self._sent, self._received, block)
        await self.net.broadcast(self.receivers, ShareSum(name, body))

    async def total_block(self, name: str, n: int) -> Limbs:
        total = Accumulator(n)

        def combine(sender: Address, message: ShareSum) -> None:
            check_round(name, message.block, sender)
            total.add(check_block(message.body, n, sender))

        await self.net.fold(ShareSum, self.contributors, combine)
        return total.total()


def _checked_seed(peer: Address, message: ShareSeed) -> bytes:
    if len(message.seed) != randomness.SEED_BYTES:
        raise MessageError(f"{peer} sent a share seed of {len(message.seed)} bytes")
    return message.seed
