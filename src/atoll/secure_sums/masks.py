"""Secure sum by pairwise masks, with recovery when a contributor leaves.

After Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning (2017), and
for many contributors the sparser graph of Bell et al. (2020), made deterministic.

Symbols: x_u -> values, s_uv -> pair seed, b_u -> self mask seed, t -> threshold, U -> survivors.
Every pair of neighbours agrees on a seed (X25519); the one adds its stream, the other subtracts it, so
the streams vanish in the sum. With ``dropouts`` > 0 each contributor also adds a mask of its own, and
gives Shamir shares of its key and of that mask to its neighbours: for a contributor that left they
open the key, for one that stayed the mask, never both.

Adversary: passive receiver with colluding contributors, fewer than the neighbours each one has: all
but two when everyone is everyone's neighbour (up to 100 contributors); with more, each has 100 (so any
99 colluders still leave the honest connected). With dropouts: fewer than the threshold as well.
Deviations: keys travel directly between neighbours (engines authenticate links), not by the server;
a round that can lose contributors has keys of its own, because a key opened in a later round would
open what its owner sent in an earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from atoll import fixedpoint, randomness
from atoll.codec import Message
from atoll.crypto import shamir
from atoll.errors import MessageError, ParameterError, PartyLeft
from atoll.fixedpoint import Accumulator, Limbs
from atoll.network import Address
from atoll.secure_sums.base import Cost, SecureSum, SumOptions, check_block, check_round

MAX_NEIGHBOURS = 100

_DOMAIN = "atoll/masks/v1"


class MaskOptions(SumOptions, frozen=True):
    """``dropouts``: how many contributors may leave during a round without spoiling it."""

    dropouts: int = 0


class MaskKey(Message, frozen=True):
    """Contributor u -> neighbour v: u's public key."""

    epoch: str
    key: bytes


class MaskBackup(Message, frozen=True):
    """Contributor u -> neighbour v: v's shares of u's private key and self mask."""

    epoch: str
    key_share: bytes
    self_share: bytes


class BackedUp(Message, frozen=True):
    """Contributor -> receiver: all its backups are on their way."""

    epoch: str


class Members(Message, frozen=True):
    """Receiver -> contributors: whose streams are in this round; whoever left earlier is not among them."""

    epoch: str
    members: tuple[int, ...]


class MaskedInput(Message, frozen=True):
    """Contributor u -> receiver: y_u and, where some may leave, u's public key."""

    block: str
    key: bytes
    body: np.ndarray[Any, Any]


class Survivors(Message, frozen=True):
    """Receiver -> survivors: U, whose inputs arrived."""

    block: str
    members: tuple[int, ...]


class Unmasking(Message, frozen=True):
    """Survivor -> receiver: shares of the self masks of U and of the keys of those who left."""

    block: str
    self_shares: dict[str, bytes]
    key_shares: dict[str, bytes]


def neighbours(index: int, n: int) -> list[int]:
    """A circulant graph in which each of n has up to 100 neighbours: no 99 of them disconnect it."""
    reach = MAX_NEIGHBOURS // 2
    if n - 1 <= MAX_NEIGHBOURS:
        return [other for other in range(n) if other != index]
    return sorted((index + step) % n for step in range(-reach, reach + 1) if step)


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


def _threshold(contributors: int, dropouts: int) -> int:
    """How many neighbours' shares open a backup: all that are left when as many as may have left."""
    return min(contributors - 1, MAX_NEIGHBOURS) - dropouts


class Masks(SecureSum):
    """A session of pairwise masks."""

    to_contributors: ClassVar[tuple[type[Message], ...]] = (MaskKey,)
    to_receivers: ClassVar[tuple[type[Message], ...]] = (MaskedInput,)
    options_type = MaskOptions
    contributors_see = "public keys of other islands"
    hides = "what an island sends is uniformly random"

    @classmethod
    def chosen(cls, options: Any) -> type[SecureSum]:
        return RecoverableMasks if options.dropouts else cls

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        most = cls.withstands(contributors, options, adder_apart=False)
        safe = f"The sum is safe against the receiver together with up to {most} of {contributors} islands"
        if not options.dropouts:
            return f"{safe}."
        return f"{safe}; up to {options.dropouts} islands may leave during the first sum, none later."

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        del adder_apart
        most = min(contributors - 2, MAX_NEIGHBOURS - 1)
        return min(most, _threshold(contributors, options.dropouts) - 1) if options.dropouts else most

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keys: dict[str, bytes] = {}
        self._index = {address: number for number, address in enumerate(self.contributors)}
        self._answered: set[str] = set()
        self._threshold = _threshold(len(self.contributors), self.options.dropouts)
        if self.options.dropouts and len(self.receivers) != 1:
            raise ParameterError("masks with dropouts have one receiver")

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        # More than half of the neighbours must be needed to open a backup, and never one alone.
        peers = min(contributors - 1, MAX_NEIGHBOURS)
        most = max(0, min((peers - 1) // 2, peers - 2))
        if not 0 <= options.dropouts <= most:
            raise ParameterError(
                f"{contributors} contributors cannot lose {options.dropouts} and keep their masks safe",
                hint=f"dropouts may be at most {most} here",
            )

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        peers, rounds = min(contributors - 1, MAX_NEIGHBOURS), len(lengths)
        vectors = sum(fixedpoint.BYTES_PER_VALUE * n + 120 for n in lengths)
        if not options.dropouts:
            sent = 80 * peers + receivers * vectors
            messages = contributors * (peers + receivers * rounds)
            return Cost(messages, sent, contributors * sent, 1 + rounds)
        sent = rounds * 330 * peers + vectors
        # To neighbours: key, backup. With the receiver: backed up, members, input, survivors, unmasking.
        messages = contributors * rounds * (2 * peers + 5)
        return Cost(messages, sent, contributors * (sent + 200 * rounds), 6 * rounds)

    def _neighbours(self) -> list[int]:
        return neighbours(self._index[self.net.me], len(self.contributors))

    async def open(self) -> None:
        if self.net.me in self._index and not self.options.dropouts:
            self._seeds = await self._agree("session", None)

    async def _agree(self, epoch: str, absent: set[Address] | None) -> dict[int, bytes]:
        """Fresh keys with every neighbour, and so the pair seeds."""
        private = self.record(f"{self.session}/masks/key/{epoch}", randomness.fresh_seed)
        self._private = private
        peers = [self.contributors[v] for v in self._neighbours()]
        await self.net.broadcast(peers, MaskKey(epoch, public_key(private)))
        arrived = await self.net.gather(MaskKey, peers, absent=absent)
        for peer, message in arrived.items():
            check_round(epoch, message.epoch, peer)
        return {self._index[peer]: pair_seed(private, message.key) for peer, message in arrived.items()}

    # ---- nobody may leave: one message a block ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        if self.options.dropouts:
            await self._contribute_recoverable(name, values)
            return
        me, block = self._index[self.net.me], f"{self.session}/{name}"
        body = await self.net.compute(gen_masked, values, me, self._seeds, None, block)
        await self.net.broadcast(self.receivers, MaskedInput(name, b"", body))

    async def total_block(self, name: str, n: int) -> Limbs:
        if self.options.dropouts:
            return await self._total_recoverable(name, n)
        total = Accumulator(n)

        def combine(sender: Address, message: MaskedInput) -> None:
            check_round(name, message.block, sender)
            total.add(check_block(message.body, n, sender))

        await self.net.fold(MaskedInput, self.contributors, combine)
        return total.total()

    # ---- some may leave: self masks, backups, unmasking ----

    async def _contribute_recoverable(self, name: str, values: Limbs) -> None:
        me, receiver = self._index[self.net.me], self.receivers[0]
        seeds = await self._agree(name, set())
        own = self.record(f"{self.session}/masks/self/{name}", randomness.fresh_seed)
        backups = await self._exchange_backups(name, own, seeds)
        partners = {v: seeds[v] for v in backups}
        body = await self.net.compute(gen_masked, values, me, partners, own, f"{self.session}/{name}")
        await self.net.send(receiver, MaskedInput(name, public_key(self._private), body))
        survivors = await self.net.receive(Survivors, receiver)
        await self.net.send(receiver, self._answer(name, survivors, backups, own))

    async def _exchange_backups(
        self, name: str, own: bytes, seeds: Mapping[int, bytes]
    ) -> dict[int, MaskBackup]:
        """Give shares of both secrets to every neighbour; keep those of the round's members."""
        root = self.record(f"{self.session}/masks/shamir/{name}", randomness.fresh_seed)
        points = [v + 1 for v in seeds]
        keys = shamir.split(self._private, self._threshold, points, randomness.derive(root, "key"))
        selves = shamir.split(own, self._threshold, points, randomness.derive(root, "self"))
        for v in seeds:
            await self.net.send(self.contributors[v], MaskBackup(name, keys[v + 1], selves[v + 1]))
        await self.net.send(self.receivers[0], BackedUp(name))
        members = await self.net.receive(Members, self.receivers[0])
        check_round(name, members.epoch, self.receivers[0])
        peers = [self.contributors[v] for v in seeds if v in set(members.members)]
        arrived = await self.net.gather(MaskBackup, peers)
        for peer, message in arrived.items():
            check_round(name, message.epoch, peer)
        return {self._index[peer]: message for peer, message in arrived.items()}

    def _answer(
        self, name: str, survivors: Survivors, backups: Mapping[int, MaskBackup], own: bytes
    ) -> Unmasking:
        """Answered once a block: two survivor sets of one block would open a single input."""
        check_round(name, survivors.block, self.receivers[0])
        me, staying = self._index[self.net.me], set(survivors.members)
        enough = len(self.contributors) - self.options.dropouts
        if name in self._answered or len(staying) < enough or me not in staying:
            raise MessageError("the receiver asks to unmask what it may not see")
        self._answered.add(name)
        self_shares = {str(v): backup.self_share for v, backup in backups.items() if v in staying}
        key_shares = {str(v): backup.key_share for v, backup in backups.items() if v not in staying}
        return Unmasking(name, self_shares | {str(me): own}, key_shares)

    async def _total_recoverable(self, name: str, n: int) -> Limbs:
        absent: set[Address] = set()
        backed_up = await self.net.gather(BackedUp, self.contributors, absent=absent)
        members = [self._index[address] for address in backed_up]
        self._check_enough(members)
        await self.net.broadcast(backed_up, Members(name, tuple(members)))
        total = Accumulator(n)
        public_keys: dict[int, bytes] = {}

        def combine(sender: Address, message: MaskedInput) -> None:
            check_round(name, message.block, sender)
            total.add(check_block(message.body, n, sender))
            public_keys[self._index[sender]] = message.key

        await self.net.fold(MaskedInput, backed_up, combine, absent=absent)
        self._check_enough(public_keys)
        survivors = [self.contributors[u] for u in sorted(public_keys)]
        await self.net.broadcast(survivors, Survivors(name, tuple(sorted(public_keys))))
        arrived = await self.net.gather(Unmasking, survivors, absent=absent)
        answers = {self._index[peer]: message for peer, message in arrived.items()}
        gone = [v for v in members if v not in public_keys]
        await self.net.compute(self._unmask, total, f"{self.session}/{name}", n, public_keys, gone, answers)
        self.present = frozenset(survivors)
        return total.total()

    def _check_enough(self, staying: Collection[int]) -> None:
        missed = [a.party for a in self._required if self._index[a] not in staying]
        if missed:
            raise PartyLeft(
                f"{', '.join(sorted(missed))} left after an earlier sum was opened",
                hint="run again with the same islands, or not at all: a run without it would show its part",
            )
        gone = [str(address) for address, u in self._index.items() if u not in staying]
        if len(gone) > self.options.dropouts:
            raise PartyLeft(
                f"{len(gone)} contributors left ({', '.join(gone[:5])}), "
                f"the study allows {self.options.dropouts}",
                hint="start a new run; this one's masks are spent",
            )

    def _unmask(
        self,
        total: Accumulator,
        block: str,
        n: int,
        public_keys: Mapping[int, bytes],
        gone: list[int],
        answers: Mapping[int, Unmasking],
    ) -> None:
        """Take away the self masks of those who stayed and the pair streams with those who left."""
        for u in public_keys:
            total.subtract(stream(self._self_mask(u, answers), block, n))
        for v in gone:
            private = self._recover(v, {u: answer.key_shares.get(str(v)) for u, answer in answers.items()})
            for u in neighbours(v, len(self.contributors)):
                if u in public_keys:
                    mask = stream(pair_seed(private, public_keys[u]), block, n)
                    (total.subtract if v > u else total.add)(mask)

    def _self_mask(self, u: int, answers: Mapping[int, Unmasking]) -> bytes:
        if u in answers:
            own = answers[u].self_shares.get(str(u), b"")
            if len(own) != randomness.SEED_BYTES:
                raise MessageError(f"{self.contributors[u]} did not send its own mask")
            return own
        return self._recover(u, {v: answer.self_shares.get(str(u)) for v, answer in answers.items()})

    def _recover(self, owner: int, shares: Mapping[int, bytes | None]) -> bytes:
        found = {u + 1: share for u, share in shares.items() if share is not None}
        if len(found) < self._threshold:
            raise PartyLeft(f"too few are left to unmask {self.contributors[owner]}")
        return shamir.recover(dict(list(found.items())[: self._threshold]))


class RecoverableMasks(Masks):
    """Masks of which some contributors may leave: the same session, with the messages that takes."""

    to_contributors = (MaskKey, MaskBackup, Members, Survivors)
    to_receivers = (BackedUp, MaskedInput, Unmasking)
    contributors_see = "public keys and shares of masks, which say nothing alone; and which islands stayed"
