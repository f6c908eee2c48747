"""Secure sum by mixing: segments under layers of encryption, which every contributor strips and shuffles.

Mehnaz, Bellala, Bertino: A Secure Sum Protocol and Its Application to Privacy-preserving Multi-party
Analytics (2017), sections 4 and 5.

Symbols: N -> contributors, P_i -> contributor, M -> mediator, S_i -> values, s -> segments, Psi -> batch,
S_G -> total. ssp_v1 -> one order for all values; ssp_v2 -> ``parallel``: as many rotated orders as there are
contributors, each for a part of the values (section 4.5).

Adversary: passive; the mediator with up to N-2 contributors learns the sum of the others and no more. N-1
contributors without the mediator learn nothing: the innermost layer is the mediator's.
Learns: the mediator and the receivers the sum.

Deviations: values are first blinded with pairwise masks, which cancel in the sum, and cut into segments that
are uniform modulo 2^192. The paper's segments hide who sent them, not what they say: whoever sees them all
can find those that belong together. So the blinding gives confidentiality; the mix adds that nobody can tell
whose ciphertext is whose. ``blind = false`` is the letter of the paper, to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from atoll import fixedpoint, randomness
from atoll.codec import Message
from atoll.errors import MessageError, ParameterError
from atoll.fixedpoint import Accumulator, Limbs
from atoll.network import Network, Record
from atoll.secure_sums.base import (
    BLOCK_VALUES,
    Cost,
    Helper,
    SecureSum,
    SumOptions,
    check_block,
    check_round,
)
from atoll.secure_sums.masks import gen_masked, pair_seeds, public_key
from atoll.secure_sums.mix.elgamal import ElGamal
from atoll.secure_sums.mix.form import Batch, Form, Hop, Wrapped, check_batch
from atoll.secure_sums.mix.layers import Onions, mark
from atoll.secure_sums.mix.segments import Cut, cut
from atoll.study.address import Address
from atoll.study.model import Study

MEDIATOR = "mediator"
MAX_SEGMENTS = 100
FORMS: Mapping[str, type[Form]] = {"onion": Onions, "elgamal": ElGamal}

NOTHING: Mapping[Address, Any] = MappingProxyType({})

Order = tuple[int, ...]
"""The contributors by number, in the order in which layers are put on; the last one strips first."""


class MixOptions(SumOptions, frozen=True):
    """``form``: "onion" (envelopes in envelopes; needs no Go library) or "elgamal" (the paper's, in
    Ristretto255); ``segments``: s, how many parts a value is cut into; ``parallel``: rotated orders (ssp_v2);
    ``blind``: masks that cancel in the sum, with uniform segments. Without them ``cut`` says how the paper
    cuts: "fractions", or "random" from integers of ``spread_bits`` bits."""

    form: Literal["onion", "elgamal"] = "onion"
    segments: int = 2
    parallel: bool = False
    blind: bool = True
    cut: Cut = "uniform"
    spread_bits: int = 150


class ForMediator(Message, frozen=True):
    """What starts a mediator's next step."""


class MixKeys(ForMediator, frozen=True):
    """Contributor or mediator -> the others: the key to put a layer on with, and the one for masks; for which
    session, and who receives its sums."""

    session: str
    receivers: tuple[str, ...]
    layer: bytes
    mask: bytes


class MixInput(ForMediator, frozen=True):
    """Contributor -> mediator: its segments under all layers, order by order."""

    block: str
    n: int
    items: tuple[tuple[bytes, ...], ...]


class MixOver(ForMediator, frozen=True):
    """First contributor -> mediator of its own: there are no more sums."""


class MixBatch(Message, frozen=True):
    """Mediator or contributor -> next contributor: everybody's segments, one layer fewer at every hop."""

    block: str
    order: int
    items: tuple[bytes, ...]


class MixedBatch(Message, frozen=True):
    """Last contributor -> mediator: everybody's segments under the mediator's layer alone."""

    block: str
    order: int
    items: tuple[bytes, ...]


class MixTotal(Message, frozen=True):
    """Mediator -> receiver: the sum."""

    block: str
    body: np.ndarray[Any, Any]


# ---- steps ----


def orders(contributors: int, n: int, parallel: bool) -> list[Order]:
    """One order, or all rotations of it where there are as many values as contributors."""  # section 4.5
    first = tuple(range(contributors))
    if not parallel or n < contributors:
        return [first]
    return [first[k:] + first[:k] for k in range(contributors)]


def parts(n: int, count: int) -> list[slice]:
    """Which values go by which order: nearly equal parts."""
    ends = [n * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def added_up(segments: Sequence[Limbs], n: int) -> Limbs:
    """S_G, the sum of all segments."""  # section 4.2, (III) (b)
    total = Accumulator(n)
    for segment in segments:
        total.add(segment)
    return total.total()


# ---- the session ----


class Mix(SecureSum):
    """A session of layered, shuffled segments."""

    to_contributors: ClassVar[tuple[type[Message], ...]] = (MixKeys, MixBatch)
    to_receivers: ClassVar[tuple[type[Message], ...]] = (MixKeys, MixInput, MixedBatch)
    options_type = MixOptions
    contributors_see = "public keys, and shuffled ciphertexts that only the mediator can read"
    hides = "what an island sends is blinded, encrypted in layers, and shuffled by every island"
    estimator_options = ("mix",)
    mediator_receives: ClassVar[bool] = True

    @classmethod
    def from_estimator(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given["mix"] or {})

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        if not options.blind:
            return (
                "Not blinded: the mediator sees every segment, can often tell which belong together, and so "
                "what single islands added. Only a segment's sender is hidden. For comparison, not for use."
            )
        return (
            f"{cls.hidden_from('mediator', contributors - 2, contributors)}. All islands together, without "
            "the mediator, learn nothing. Blinding hides the numbers; mixing adds that nobody can tell which "
            "encrypted number is whose."
        )

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        del adder_apart
        return contributors - 2 if options.blind else 0

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        del contributors
        if not 2 <= options.segments <= MAX_SEGMENTS:
            raise ParameterError(
                f"values cannot be cut into {options.segments} segments",
                hint=f"2 to {MAX_SEGMENTS}",
                option="segments",
            )
        if options.blind != (options.cut == "uniform"):
            raise ParameterError(
                f"cut = {options.cut!r} does not go with blind = {str(options.blind).lower()}",
                hint="blinded values are cut uniformly; without blinding: cut = 'fractions' or 'random'",
                option="cut",
            )
        if not 64 < options.spread_bits <= fixedpoint.WIDTH_BITS - 8:
            raise ParameterError(
                f"spread_bits = {options.spread_bits} is not possible", hint="65 to 184", option="spread_bits"
            )

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        form, N, s = FORMS[options.form](), contributors, options.segments
        size = _block_values(N, s)
        blocks = [min(size, n - start) for n in lengths for start in range(0, n, size)]
        sent, total, messages = N * 90, N * (N + 1) * 90, N * (N + 1)
        for n in blocks:
            chains = orders(N, n, options.parallel)
            items = [form.size(part.stop - part.start, N + 1) + 5 for part in parts(n, len(chains))]
            sent += s * sum(items) + s * N * sum(items)
            total += s * N * sum(items) * (N + 2)
            messages += N + len(chains) * (N + 1)
        told = receivers - 1 if cls.mediator_receives else receivers
        over = 0 if cls.mediator_receives else 1  # it answers the first keys, and is told of the end
        return Cost(
            messages + len(blocks) * told + over,
            sent,
            total + sum(fixedpoint.BYTES_PER_VALUE * n for n in blocks) * told,
            1 + over + len(blocks) * (N + 2 + (1 if told else 0)),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._mediator = self.helped_by.get(MEDIATOR, self.receivers[0])
        if self._mediator in self.contributors:
            raise ParameterError(
                "the mediator of a mix cannot be a contributor",
                hint=f"give a party of its own the role {MEDIATOR!r}",
            )
        self._form = FORMS[self.options.form]()
        self._number = {address: k for k, address in enumerate(self.contributors)}

    @classmethod
    def helped(cls, roles: frozenset[str]) -> type[SecureSum]:
        return MediatedMix if MEDIATOR in roles else cls

    @property
    def block_values(self) -> int:
        return _block_values(len(self.contributors), self.options.segments)

    # ---- keys ----

    async def open(self) -> None:
        if self.net.me in (*self.contributors, self._mediator):
            await self.exchange_keys({})

    async def exchange_keys(self, arrived: dict[Address, MixKeys]) -> None:
        """Give the own keys, and take those of the others, as far as they have not ``arrived``."""
        me, members = self.net.me, (*self.contributors, self._mediator)
        root = self.record(f"{self.session}/mix/keys", randomness.fresh_seed)
        self._private = self._form.private_key(randomness.derive(root, "layer"), self._key_context(me))
        mask = randomness.derive(root, "mask")
        layer, told = self._form.public_key(self._private), tuple(str(a) for a in self.receivers)
        others = [a for a in members if a != me]
        await self.net.broadcast(others, MixKeys(self.session, told, layer, public_key(mask)))
        arrived |= await self.net.gather(MixKeys, [a for a in others if a not in arrived])
        for sender, message in arrived.items():
            if message.session != self.session or message.receivers != told:
                raise MessageError(f"{sender} is in another session, or sums for other receivers")
            self._form.check_key(message.layer, self._key_context(sender))
        self._keys = {me: layer} | {sender: message.layer for sender, message in arrived.items()}
        masking = {a: message.mask for a, message in arrived.items() if {a, me} <= self._number.keys()}
        self._seeds = {self._number[a]: seed for a, seed in pair_seeds(mask, masking, me).items()}

    def _key_context(self, owner: Address) -> str:
        return f"{self.session}/{owner}"

    def _layer_keys(self, order: Order) -> list[bytes]:
        """The mediator's key first, then the contributors' in the order in which layers are put on."""
        return [self._keys[self._mediator], *(self._keys[self.contributors[k]] for k in order)]

    # ---- (I) input preparation ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        seed = self.record(f"{self.session}/{name}/mix", randomness.fresh_seed)
        n = values.shape[1]
        chains = orders(len(self.contributors), n, self.options.parallel)
        wrapped = await self.net.compute(self._prepare, name, values, chains, seed)
        await self.net.send(self._mediator, MixInput(name, n, tuple(part.items for part in wrapped)))
        await self._anonymise(name, n, chains, wrapped, seed)

    def _prepare(self, name: str, values: Limbs, chains: Sequence[Order], seed: bytes) -> list[Wrapped]:
        """Blind, cut, and put the layers on."""  # section 4.2, (I)
        options = self.options
        if options.blind:
            me = self._number[self.net.me]
            values = gen_masked(values, me, self._seeds, None, f"{self.session}/{name}")
        segments = cut(
            values, options.segments, options.cut, options.spread_bits, randomness.derive(seed, "cut")
        )
        return [
            self._form.wrap(
                [segment[:, columns] for segment in segments],
                self._layer_keys(order),
                Hop(self.session, name, number, 0),
                randomness.derive(seed, "wrap", number),
            )
            for number, (order, columns) in enumerate(
                zip(chains, parts(values.shape[1], len(chains)), strict=True)
            )
        ]

    async def close(self) -> None:
        """The mediator's work ends with the session: a study that uses one has one session of sums."""
        if MEDIATOR in self.helped_by and self.net.me == self.contributors[0]:
            await self.net.send(self._mediator, MixOver())

    # ---- (II) anonymisation ----

    async def _anonymise(
        self, name: str, n: int, chains: Sequence[Order], wrapped: Sequence[Wrapped], seed: bytes
    ) -> None:
        """Take every order's batch in turn, strip a layer, shuffle, pass it on."""
        me, waiting = self._number[self.net.me], set(range(len(chains)))
        places = [order.index(me) + 1 for order in chains]
        before = {number: self._previous(chains[number], places[number]) for number in waiting}
        while waiting:
            arrived = await self.net.next(MixBatch, {before[number] for number in waiting})
            assert arrived is not None
            sender, message = arrived
            check_round(name, message.block, sender)
            number = message.order
            if number not in waiting or before[number] != sender:
                raise MessageError(f"{sender} sent a batch of order {number}, which is not due from it")
            waiting.remove(number)
            batch = await self.net.compute(
                self._stripped, message.items, n, chains, number, wrapped[number], name, seed
            )
            await self._pass_on(name, chains[number], places[number], number, batch)

    def _previous(self, order: Order, place: int) -> Address:
        return self._mediator if place == len(order) else self.contributors[order[place]]

    def _stripped(
        self,
        items: Batch,
        n: int,
        chains: Sequence[Order],
        number: int,
        own: Wrapped,
        name: str,
        seed: bytes,
    ) -> Batch:
        """The checks of a hop, and the hop."""  # section 4.2, (II) (b) and (c)
        order, columns = chains[number], parts(n, len(chains))[number]
        place = order.index(self._number[self.net.me]) + 1
        try:
            count = len(self.contributors) * self.options.segments
            check_batch(items, count, self._form.size(columns.stop - columns.start, place + 1))
            if own.marks and not own.marks[place] <= {mark(item) for item in items}:
                raise MessageError("its own segments are not in the batch")
            hop, below = Hop(self.session, name, number, place), self._layer_keys(order)[:place]
            return self._form.strip(
                items, self._private, below, hop, randomness.derive(seed, "shuffle", number)
            )
        except MessageError as error:
            raise MessageError(
                f"hop {len(order) - place + 1} of {len(order)} ({self.net.me}): {error.message}"
            ) from None

    async def _pass_on(self, name: str, order: Order, place: int, number: int, batch: Batch) -> None:
        if place == 1:
            await self.net.send(self._mediator, MixedBatch(name, number, batch))
        else:
            await self.net.send(self.contributors[order[place - 2]], MixBatch(name, number, batch))

    # ---- (III) sum computation ----

    async def total_block(self, name: str, n: int) -> Limbs:
        if self.net.me == self._mediator:
            return await self.mediate(name, n)
        message = await self.net.receive(MixTotal, self._mediator)
        check_round(name, message.block, self._mediator)
        return check_block(message.body, n, self._mediator)

    async def mediate(self, name: str, n: int, arrived: Mapping[Address, MixInput] = NOTHING) -> Limbs:
        """Collect the inputs, send every order on its way, add up what comes back, and tell the receivers."""
        chains = orders(len(self.contributors), n, self.options.parallel)
        inputs = {
            **arrived,
            **await self.net.gather(MixInput, [a for a in self.contributors if a not in arrived]),
        }
        for sender, message in inputs.items():
            check_round(name, message.block, sender)
            self._check_input(sender, message, n, chains)
        for number, order in enumerate(chains):
            items = tuple(item for message in inputs.values() for item in message.items[number])
            await self.net.send(self.contributors[order[-1]], MixBatch(name, number, items))
        lasts = [self.contributors[order[0]] for order in chains]
        mixed = await self.net.gather(MixedBatch, lasts)
        total = np.empty((fixedpoint.LIMBS, n), np.uint64)
        for number, (sender, columns) in enumerate(zip(lasts, parts(n, len(chains)), strict=True)):
            check_round(name, mixed[sender].block, sender)
            total[:, columns] = await self.net.compute(
                self._read, name, number, sender, mixed[sender], columns
            )
        await self.net.broadcast([a for a in self.receivers if a != self.net.me], MixTotal(name, total))
        return total

    def _check_input(self, sender: Address, message: MixInput, n: int, chains: Sequence[Order]) -> None:
        N, s = len(self.contributors), self.options.segments
        sizes = [self._form.size(part.stop - part.start, N + 1) for part in parts(n, len(chains))]
        if message.n != n or [[len(item) for item in items] for items in message.items] != [
            [size] * s for size in sizes
        ]:
            raise MessageError(f"{sender} sent an input of another shape than {n} values in {s} segments")

    def _read(self, name: str, number: int, sender: Address, message: MixedBatch, columns: slice) -> Limbs:
        n = columns.stop - columns.start
        try:
            if message.order != number:
                raise MessageError(f"a batch of order {message.order} came where {number} was due")
            check_batch(message.items, len(self.contributors) * self.options.segments, self._form.size(n, 1))
            hop = Hop(self.session, name, number, 0)
            return added_up(self._form.read(message.items, self._private, hop, n), n)
        except MessageError as error:
            raise MessageError(f"after the last hop ({sender}): {error.message}") from None


def _block_values(contributors: int, segments: int) -> int:
    """A batch holds everybody's segments, so a block is as much shorter: a quarter of a gigabyte a batch."""
    return max(1, min(BLOCK_VALUES, (1 << 28) // (fixedpoint.BYTES_PER_VALUE * contributors * segments)))


class MediatedMix(Mix):
    """The same, with a mediator of its own: the receivers are told the sum."""

    to_receivers = (MixTotal,)
    mediator_receives = False


async def serve(net: Network, study: Study, record: Record, contributors: tuple[Address, ...]) -> None:
    """The mediator's role: every sum of a study, until the first contributor says that there are no more."""
    first = contributors[0]
    session: Mix | None = None
    while not isinstance(due := await net.receive(ForMediator, first), MixOver):
        if isinstance(due, MixKeys):
            session = _session_for(net, study, record, contributors, due)
            await session.exchange_keys({first: due})
        elif isinstance(due, MixInput) and session is not None:
            await session.mediate(due.block, due.n, {first: due})
        else:
            raise MessageError(f"{first} sent values before keys")


def _session_for(
    net: Network, study: Study, record: Record, contributors: tuple[Address, ...], told: MixKeys
) -> Mix:
    """The session that the first contributor opens; the others must say the same."""
    receivers = tuple(a for a in study.addresses() if str(a) in told.receivers)
    if not told.session.startswith(f"{study.digest}/") or len(receivers) != len(told.receivers):
        raise MessageError(f"{contributors[0]} opens a session that is not of this study")
    return MediatedMix(
        net,
        record,
        contributors=contributors,
        receivers=receivers,
        session=told.session,
        longest=1,
        options=study.sum_options,
        helpers={MEDIATOR: net.me},
    )


HELPER = Helper(
    serve,
    "the sum, and shuffled segments of which nothing else can be read",
    (MixKeys, MixInput, MixedBatch, MixOver),
)
Mix.helpers = {MEDIATOR: HELPER}
