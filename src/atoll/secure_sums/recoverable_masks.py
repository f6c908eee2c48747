"""Secure sum by pairwise masks of which some contributors may leave.

After Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning (2017), with its
consistency check among survivors.

Symbols: b_u -> self mask seed, t -> threshold, U -> survivors; the others as in ``masks``.
Each contributor also adds a mask of its own, and gives Shamir shares of its key and of that mask to its
neighbours: for a contributor that left they open the key, for one that stayed the mask, never both. Only
shares leave: nobody sends its own mask.

Whoever gets both secrets of one contributor opens its input, and a receiver that tells two contributors
different lists asks for just that. So a contributor answers one list a block, which
* names nobody but members of the round, itself among them, and no fewer than the study lets stay;
* is the same in every later block: sums over two sets of islands differ by single islands;
* the neighbours were told as well: they compare members and survivors among themselves
  (``Network.agree``) before anything is unmasked. Who leaves meanwhile is missed, but the threshold of
  neighbours must have said the same.

Two lists of one block are found out before anything is opened, unless each of them leaves out all honest
contributors who were told the other. For that, and for both secrets of one contributor, the receiver needs
the help of at least p - 2 dropouts contributors, where each has p neighbours (all others). On a sparse graph
equal lists spread along the honest: ``graph`` bounds the chance that two lists find a place to part.

Deviation: a block has keys of its own, because a key opened in a later one would open what its owner sent in
an earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from atoll import randomness
from atoll.codec import Message, encode
from atoll.crypto import shamir
from atoll.errors import MessageError, ParameterError, PartyLeft
from atoll.fixedpoint import Accumulator, Limbs
from atoll.network import Compared
from atoll.secure_sums.base import Cost, check_block, check_round, count_blocks
from atoll.secure_sums.drawn_graph import GraphCommitment, GraphCommitments, GraphNonce, GraphNonces
from atoll.secure_sums.masks import (
    TYPICAL_BLOCK,
    MaskedInput,
    MaskKey,
    Masks,
    degree,
    draw_cost,
    gen_masked,
    pair_seed,
    public_key,
    size,
    stream,
    threshold,
    vector_bytes,
)
from atoll.study.address import Address


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


class Survivors(Message, frozen=True):
    """Receiver -> survivors: U, whose inputs arrived."""

    block: str
    members: tuple[int, ...]


class Unmasking(Message, frozen=True):
    """Survivor -> receiver: shares of the self masks of U and of the keys of those who left."""

    block: str
    self_shares: dict[str, bytes]
    key_shares: dict[str, bytes]


class RecoverableMasks(Masks):
    """A session of pairwise masks that goes on without contributors who leave."""

    to_contributors: ClassVar[tuple[type[Message], ...]] = (MaskKey, MaskBackup, Members, Survivors, Compared)
    to_receivers: ClassVar[tuple[type[Message], ...]] = (BackedUp, MaskedInput, Unmasking)
    contributors_see = (
        "public keys and shares of masks, which say nothing alone; which islands stayed, and whether the "
        "others were told the same"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._threshold = threshold(len(self.contributors), self.options)
        self._stayed: tuple[int, ...] | None = None
        """Who is in what was opened so far, as a contributor was told."""
        if len(self.receivers) != 1:
            raise ParameterError("masks with dropouts have one receiver")

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        del receivers
        due, blocks = degree(contributors, options), count_blocks(lengths)
        peers = due.neighbours
        name, key, share = TYPICAL_BLOCK, bytes(32), bytes(shamir.SHARE_BYTES)
        everyone = tuple(range(contributors))
        to_neighbour = (MaskKey(name, key), MaskBackup(name, share, share), _comparison(name, key))
        to_receiver = (BackedUp(name), Unmasking(name, {str(v): share for v in range(peers)}, {}))
        sent = peers * sum(map(size, to_neighbour)) + sum(map(size, to_receiver))
        told = size(Members(name, everyone)) + size(Survivors(name, everyone))
        per_contributor = blocks * sent + vector_bytes(lengths, key)
        # With the receiver: backed up, members, input, survivors, unmasking.
        messages = contributors * blocks * (len(to_neighbour) * peers + 5)
        # A contributor begins the next block before the receiver has opened this one.
        rounds = 6 * blocks + len(lengths)
        total = contributors * (per_contributor + blocks * told)
        if not due.sparse:
            return Cost(messages, per_contributor, total, rounds)
        drawn, compared = draw_cost(contributors), peers * size(Compared("the graph", key, b""))
        return Cost(
            messages + drawn.messages + contributors * peers,
            per_contributor + drawn.bytes_per_contributor + compared,
            total + drawn.bytes_total + contributors * compared,
            rounds + drawn.rounds + 1,
        )

    async def open(self) -> None:
        await self._draw_graph()  # every block has keys of its own
        if self._order is not None and self.net.me in self._index:
            # Before anybody may leave again: all neighbours believe in the same order, or the run ends.
            known = [self.contributors[v] for v in self._neighbours() if v in self._order.present]
            await self.net.agree("the graph", self._order.name, [*known, self.net.me])

    # ---- contributors ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        me, receiver = self._index[self.net.me], self.receivers[0]
        seeds = await self._exchange_keys(name, set())
        own = self.record(f"{self.session}/masks/self/{name}", randomness.fresh_seed)
        await self._send_backups(name, own, seeds)
        members = await self._receive_members(name, seeds)
        backups = await self._receive_backups(name, members)
        partners = {v: seeds[v] for v in backups}
        body = await self.net.compute(gen_masked, values, me, partners, own, f"{self.session}/{name}")
        await self.net.send(receiver, MaskedInput(name, public_key(self._private), body))
        survivors = await self._receive_survivors(name, members)
        await self._compare(name, members, survivors)
        await self.net.send(receiver, self._answer(name, survivors, backups))
        self._stayed = survivors
        self.present = frozenset(self.contributors[u] for u in survivors)

    async def _send_backups(self, name: str, own: bytes, seeds: Mapping[int, bytes]) -> None:
        """Shares of both secrets to every neighbour."""
        root = self.record(f"{self.session}/masks/shamir/{name}", randomness.fresh_seed)
        points = [v + 1 for v in seeds]
        keys = shamir.split(self._private, self._threshold, points, randomness.derive(root, "key"))
        selves = shamir.split(own, self._threshold, points, randomness.derive(root, "self"))
        for v in seeds:
            await self.net.send(self.contributors[v], MaskBackup(name, keys[v + 1], selves[v + 1]))
        # Whoever the receiver counts as a member must be recoverable, even if it dies now.
        await self.net.settled(self.contributors[v] for v in seeds)
        await self.net.send(self.receivers[0], BackedUp(name))

    async def _receive_members(self, name: str, seeds: Mapping[int, bytes]) -> tuple[int, ...]:
        message = await self.net.receive(Members, self.receivers[0])
        check_round(name, message.epoch, self.receivers[0])
        among = self._stayed if self._stayed is not None else self._taking_part()
        members = self._checked("members", message.members, among)
        for v in self._neighbours():
            if v in members and v not in seeds:
                raise PartyLeft(f"{self.contributors[v]} is to be part of {name}, but its key never came")
        self._check_partners(members)
        return members

    def _check_partners(self, members: tuple[int, ...]) -> None:
        """Enough neighbours take part to mask an input: who has sent one without them cannot take it back."""
        peers = self._neighbours()
        staying = sum(v in members for v in peers)
        if staying < self._threshold:
            raise MessageError(
                f"{self.receivers[0]} sent {self.net.me} a list of members that leaves it {staying} of "
                f"{len(peers)} neighbours where {self._threshold} must stay",
                hint="nothing was sent: start a new run",
            )

    def _taking_part(self) -> Collection[int]:
        return range(len(self.contributors)) if self._order is None else self._order.present

    async def _receive_backups(self, name: str, members: tuple[int, ...]) -> dict[int, MaskBackup]:
        peers = [self.contributors[v] for v in self._neighbours() if v in members]
        arrived = await self.net.gather(MaskBackup, peers)
        for peer, message in arrived.items():
            check_round(name, message.epoch, peer)
        return {self._index[peer]: message for peer, message in arrived.items()}

    async def _receive_survivors(self, name: str, members: tuple[int, ...]) -> tuple[int, ...]:
        message = await self.net.receive(Survivors, self.receivers[0])
        check_round(name, message.block, self.receivers[0])
        return self._checked("survivors", message.members, members)

    def _checked(self, what: str, listed: tuple[int, ...], among: Collection[int]) -> tuple[int, ...]:
        """A list from the receiver as it may be: nothing is unmasked on the strength of another."""
        least = len(self.contributors) - self.options.dropouts
        if self._stayed is not None:  # a sum over them was opened: a second over fewer shows the difference
            least = len(self._stayed)
        wrong = None
        if list(listed) != sorted(set(listed)):
            wrong = "names somebody twice or out of order"
        elif not set(listed) <= set(among):
            wrong = "names somebody who is not part of the round"
        elif self._index[self.net.me] not in listed:
            wrong = "leaves it out"
        elif len(listed) < least:
            wrong = f"names {len(listed)} of {len(self.contributors)} contributors where {least} must stay"
        if wrong is not None:
            raise MessageError(
                f"{self.receivers[0]} sent {self.net.me} a list of {what} that {wrong}",
                hint="it would open single inputs; nothing was unmasked: ask the receiver why",
            )
        return listed

    async def _compare(self, name: str, members: tuple[int, ...], survivors: tuple[int, ...]) -> None:
        """Go on only if the neighbours were told the same."""
        digest = hashlib.sha256(encode((self.session, name, members, survivors))).digest()
        message, peers = _comparison(name, digest), [v for v in self._neighbours() if v in members]
        # One that is said to have left may have been told that it stayed: it finds out.
        await self.net.broadcast([self.contributors[v] for v in peers if v not in survivors], message)
        staying = [self.contributors[v] for v in sorted((*peers, self._index[self.net.me])) if v in survivors]
        agreed = await self.net.agree(message.topic, digest, staying, absent=set())
        if len(agreed) - 1 < self._threshold:
            raise PartyLeft(f"too few are left to compare who stayed in {name}", hint="start a new run")

    def _answer(self, name: str, survivors: tuple[int, ...], backups: Mapping[int, MaskBackup]) -> Unmasking:
        """For each neighbour one share: of its mask if it stayed, of its key if it left."""
        return Unmasking(
            name,
            {str(v): backup.self_share for v, backup in backups.items() if v in survivors},
            {str(v): backup.key_share for v, backup in backups.items() if v not in survivors},
        )

    # ---- receiver ----

    async def total_block(self, name: str, n: int) -> Limbs:
        absent: set[Address] = set()
        present = [self.contributors[u] for u in self._taking_part()]
        backed_up = await self.net.gather(BackedUp, present, absent=absent)
        for peer, said in backed_up.items():
            check_round(name, said.epoch, peer)
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
        gone = [v for v in members if v not in public_keys]
        for peer, message in arrived.items():
            check_round(name, message.block, peer)
            self._check_answer(peer, message, public_keys, gone)
        answers = {self._index[peer]: message for peer, message in arrived.items()}
        await self.net.compute(self._unmask, total, f"{self.session}/{name}", n, public_keys, gone, answers)
        self.present = frozenset(survivors)
        self.require(self.present)  # contributors answer for no other set of islands any more
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

    def _check_answer(
        self, peer: Address, answer: Unmasking, staying: Collection[int], gone: Collection[int]
    ) -> None:
        """Neither more nor less than was asked for: both shares of one contributor would open its input."""
        peers = self._neighbours_of(self._index[peer])
        due = ({str(v) for v in peers if v in staying}, {str(v) for v in peers if v in gone})
        if (set(answer.self_shares), set(answer.key_shares)) != due:
            raise MessageError(f"{peer} sent shares of other masks and keys than it was asked for")

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
            own = self._recover(u, {v: answer.self_shares.get(str(u)) for v, answer in answers.items()})
            total.subtract(stream(own, block, n))
        for v in gone:
            private = self._recover(v, {u: answer.key_shares.get(str(v)) for u, answer in answers.items()})
            for u in self._neighbours_of(v):
                if u in public_keys:
                    mask = stream(pair_seed(private, public_keys[u]), block, n)
                    (total.subtract if v > u else total.add)(mask)

    def _recover(self, owner: int, shares: Mapping[int, bytes | None]) -> bytes:
        found = {u + 1: share for u, share in shares.items() if share is not None}
        if len(found) < self._threshold:
            raise PartyLeft(f"too few are left to unmask {self.contributors[owner]}")
        return shamir.recover(dict(list(found.items())[: self._threshold]))


def _comparison(name: str, digest: bytes) -> Compared:
    return Compared(f"who stayed in {name}", digest, b"")


class DrawnRecoverableMasks(RecoverableMasks):
    """The same where the graph may have to be drawn."""

    to_contributors = (*RecoverableMasks.to_contributors, GraphCommitments, GraphNonces)
    to_receivers = (*RecoverableMasks.to_receivers, GraphCommitment, GraphNonce)
