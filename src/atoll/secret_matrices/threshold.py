"""Outputs of which any t of the providers can send enough, whoever of the others has left.

After appendix D.4 of the SF-PCA paper. There the secret key is shared t of N: a member's decryption share
then depends on who else is there, and two of one ciphertext, for two sets of members, say the key. Here the
key stays N of N, and each provider deals its share of an *output* by Shamir's scheme, once, when all products
are done. What a member holds then is one number for each of the output's, the same whoever else is there: it
has nothing else to send, to any receiver and in any later step.

Symbols: t -> threshold, x_i -> point (a member's place, from 1), f -> a polynomial of degree t - 1 whose
value at zero is a number of the output: the sum of one of every provider's.

1. Deal. Everybody sends everybody its polynomials' values at the receiver's point. All of them are needed: a
   member that has not heard from all has no share, and says so. Fewer than t members' shares do not depend on
   the output.
2. Commit. Members tell each other a hash of their shares. Who has left by now is missed no more, as long as
   t have committed.
3. Release. Everybody sends a receiver its share, which opens the hash, and the hashes that it was told. The
   receiver takes t or more, which then must lie on one polynomial. It takes a member's share at the member's
   own place only, and only one whose hash all others who send one were told: otherwise a member could choose
   its share when it has seen the others', in the place of one that committed to none. A provider that lied
   when it dealt or committed is noticed where more than t shares arrive; where exactly t do, unless its lie
   was made for these t: then numbers come out wrong by what it chose, as if it had invented rows.
4. For products of a later step (:func:`summands`), the members who take part make integer shares of the
   same numbers, and nobody opens them. The later step's study names these members, and they have approved
   it: nobody can tell two of them different sets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hmac import compare_digest
from math import prod
from typing import NamedTuple, Protocol

import numpy as np

from atoll import randomness
from atoll.codec import encode
from atoll.crypto import products as go
from atoll.crypto import shamir
from atoll.crypto.shamir import Numbers
from atoll.errors import MessageError, PartyLeft
from atoll.network import Network, Record
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.machine import Floats, Shared
from atoll.secret_matrices.messages import DealtShare, MaskedPoint, PairSeed, ReleasedPoint
from atoll.secret_matrices.openings import check_masked, check_step, floats
from atoll.study.address import Address

_WIDEST = 64
"""Bits before the point that no released number has: wrong shares give numbers all over the field."""
_HASH = 32
_UNHEARD = bytes(_HASH)
_NONE = b"\xff" * _HASH
"""In place of a hash: of a member that was not heard, and of one that said that it has no share."""


class Dealing(Protocol):
    """What dealing needs of a role's machine, of whichever kind."""

    net: Network
    record: Record
    session: bytes
    coordinator: Address
    providers: tuple[Address, ...]
    guests: tuple[Address, ...]
    me: str

    def next_step(self) -> int:
        """The number of a message, the same for all roles."""


class Part(NamedTuple):
    """A provider's summands of one matrix of outputs, integers / 2^fraction; None at the coordinator."""

    shape: tuple[int, int]
    fraction: int
    numbers: Numbers | None


@dataclass(frozen=True)
class Held:
    """What one role has of a dealt matrix; never printed."""

    threshold: int
    places: tuple[int, ...]
    """Of the machine's providers, in their order: where their shares lie, from 1."""
    point: int
    """The member's own place; 0 for a role that is no member."""
    values: Numbers | None
    """Its shares, row by row; None for a role that has none."""
    shape: tuple[int, int]
    fraction: int
    which: bytes = b""
    """The deal, and the matrix in it."""
    nonce: bytes = b""
    commitments: tuple[bytes, ...] = ()
    """What all members told of their shares, by place."""

    def __repr__(self) -> str:
        return f"Held(point {self.point}, {self.threshold} are enough)"

    def message(self) -> ReleasedPoint | None:
        """What it sends to a receiver: the same whenever, and to whom, it is sent; None if it is no member.

        A member without a share says so, by a message without numbers: nobody waits for it in vain.
        """
        if not self.point:
            return None
        body = b"" if self.values is None else shamir.numbers_to_bytes(self.values)
        commitments = b"".join(self.commitments)
        return ReleasedPoint(
            self.which, self.point, *self.shape, self.fraction, self.nonce, commitments, memoryview(body)
        )


# ---- dealing ----


async def deal(machine: LocalMachine, matrices: Sequence[Shared], threshold: int) -> list[Shared]:
    """The same matrices, of which any ``threshold`` of the providers release the rest of the way."""
    for x in matrices:
        check_masked(x)
    # What is dealt can be opened without us: everything that it was made from is compared first.
    await machine.check(last=True)
    parts = []
    for x in matrices:
        own = await machine.own_part(x)
        numbers = None if own is None else go.to_ints(own).ravel()
        parts.append(Part(x.shape, x.fraction, numbers))
    held = await dealt(machine, parts, threshold)
    return [replace(x, dealt=one) for x, one in zip(matrices, held, strict=True)]


async def dealt(machine: Dealing, parts: Sequence[Part], threshold: int) -> list[Held]:
    """What this role has of matrices whose summands everybody dealt; the coordinator has no share."""
    step, places = machine.next_step(), tuple(range(1, len(machine.providers) + 1))
    mine = [part.numbers for part in parts if part.numbers is not None]
    if not mine:
        return [Held(threshold, places, 0, None, part.shape, part.fraction) for part in parts]
    seed = machine.record(f"deal {step}", randomness.fresh_seed)
    point, sums = await _exchange(machine, step, np.concatenate(mine), threshold, seed)
    held: list[Held] = []
    start = 0
    for i, part in enumerate(parts):
        which = hashlib.sha256(encode((machine.session, step, i, part.shape, part.fraction))).digest()
        size = prod(part.shape)
        values = None if sums is None else sums[start : start + size]
        start += size
        nonce = randomness.derive(seed, "nonce", i)
        held.append(Held(threshold, places, point, values, part.shape, part.fraction, which, nonce))
    told = await _commit(machine, step, held)
    return [replace(one, commitments=commitments) for one, commitments in zip(held, told, strict=True)]


async def _exchange(
    machine: Dealing, step: int, values: Numbers, threshold: int, seed: bytes
) -> tuple[int, Numbers | None]:
    """This member's point, and its shares of the sums of all numbers; None if somebody's never came."""
    members = machine.providers
    point = members.index(machine.net.me) + 1
    dealt = await machine.net.compute(shamir.deal, values, threshold, range(1, len(members) + 1), seed)
    for i, member in enumerate(members, 1):
        if i != point:
            await machine.net.send(member, DealtShare(step, memoryview(shamir.numbers_to_bytes(dealt[i]))))
    total, others = dealt[point], [member for member in members if member != machine.net.me]
    absent: set[Address] = set()
    for message in (await machine.net.gather(DealtShare, others, absent=absent)).values():
        check_step(message.step, step)
        total = total + shamir.numbers_from_bytes(message.body, len(values))
    return point, None if absent else total % shamir.PRIME


async def _commit(machine: Dealing, step: int, held: Sequence[Held]) -> list[tuple[bytes, ...]]:
    """Everybody's hashes of what it holds, matrix by matrix."""
    own = b"".join(_commitment(one.which, one.point, one.nonce, one.values) for one in held)
    absent: set[Address] = set()
    topic = f"the shares dealt at step {step}"
    told = await machine.net.agree(topic, machine.session, machine.providers, own, absent=absent)
    for member, note in told.items():
        if len(note) != _HASH * len(held):
            raise MessageError(f"{member} sent {len(note)} bytes of hashes of its shares")
    hashes = [_hashes(told.get(member, _UNHEARD * len(held))) for member in machine.providers]
    staying = [one for one in hashes if _UNHEARD not in one and _NONE not in one]
    threshold = held[0].threshold
    if len(staying) < threshold:
        words = (
            f"{len(staying)} of {len(machine.providers)} providers have a share of the outputs, "
            f"{threshold} are needed: others left while shares were dealt"
        )
        raise _left(words, "no output was sent; start a new run", absent)
    return [tuple(of_member) for of_member in zip(*hashes, strict=True)]


def _hashes(note: bytes) -> list[bytes]:
    return [note[start : start + _HASH] for start in range(0, len(note), _HASH)]


def _commitment(which: bytes, point: int, nonce: bytes, values: Numbers | None) -> bytes:
    if values is None:
        return _NONE
    body = shamir.numbers_to_bytes(values)
    return hashlib.sha256(encode(("atoll/dealt/v1", which, point, nonce)) + body).digest()


# ---- releasing ----


async def release(machine: Dealing, held: Held, receivers: frozenset[str]) -> Floats | None:
    """Every member sends its share to every receiver, who needs a threshold of them."""
    own = held.message()
    if own is not None:
        for address in (machine.coordinator, *machine.providers, *machine.guests):
            if str(address) in receivers and address != machine.net.me:
                await machine.net.send(address, own)
    if machine.me not in receivers:
        return None
    places = dict(zip(machine.providers, held.places, strict=True))
    return await collected(machine.net, places, held.threshold, own)


async def collected(
    net: Network, places: Mapping[Address, int], threshold: int, own: ReleasedPoint | None = None
) -> Floats:
    """An output from the shares of those members who are still there; ``places``: of all of them."""
    absent: set[Address] = set()
    others = [member for member in places if member != net.me]
    arrived = await net.gather(ReleasedPoint, others, absent=absent)
    messages = dict(arrived) if own is None else arrived | {net.me: own}
    for member, message in messages.items():
        if message.point != places[member]:
            raise MessageError(f"{member} sent a share for place {message.point}, not for its own")
    messages = {member: message for member, message in messages.items() if message.body}
    if len(messages) < threshold:
        raise _left(
            f"{len(messages)} shares of an output came, {threshold} are needed",
            "more providers left than the study allows; others may have the output",
            absent,
        )
    return await net.compute(_opened, messages, threshold)


def places_of(members: Sequence[Address]) -> dict[Address, int]:
    """Where the shares of all members of a deal lie."""
    return {member: place for place, member in enumerate(members, 1)}


def _left(words: str, hint: str, absent: set[Address]) -> PartyLeft:
    error = PartyLeft(words, hint=hint)
    error.missing = tuple(sorted(address.party for address in absent))
    return error


def _opened(messages: Mapping[Address, ReleasedPoint], threshold: int) -> Floats:
    first = next(iter(messages.values()))
    shape, shares = (first.rows, first.cols), {}
    if min(shape) < 1:
        raise MessageError(f"{next(iter(messages))} sent a share of nothing")
    for sender, message in messages.items():
        if (message.which, message.rows, message.cols, message.fraction) != (
            first.which,
            *shape,
            first.fraction,
        ):
            raise MessageError(f"{sender} sent a share of another output")
        values = shamir.numbers_from_bytes(message.body, prod(shape))
        if _was_committed_to(sender, message, values, messages):
            shares[message.point] = values
    if len(shares) < threshold:
        raise MessageError(
            f"{len(shares)} members have shares of an output whose hash all others were told, {threshold} "
            "are needed",
            hint="no output was made; ask the members whom they have not heard, and why",
        )
    numbers = shamir.joined(shares, threshold)
    if max((abs(value) for value in numbers), default=0) >> (first.fraction + _WIDEST):
        raise MessageError("shares of an output do not belong together: one of them is wrong")
    words = (first.fraction + _WIDEST) // 64 + 1
    return floats(go.from_ints(numbers.reshape(shape), words), first.fraction)


def _was_committed_to(
    sender: Address, message: ReleasedPoint, values: Numbers, messages: Mapping[Address, ReleasedPoint]
) -> bool:
    """Whether all who send a share were told its hash; one who was told another one ends the run."""
    own = _commitment(message.which, message.point, message.nonce, values)
    place, heard = slice(_HASH * (message.point - 1), _HASH * message.point), True
    for teller, told in messages.items():
        said = bytes(told.commitments[place])
        if compare_digest(said, _UNHEARD):
            heard = False
        elif not compare_digest(said, own):
            raise MessageError(
                f"{sender} sent a share of an output that is not the one it committed to, as {teller} says",
                hint="no output was made of it; ask them why",
            )
    return heard


# ---- products with what was dealt ----


async def summands(machine: LocalMachine, x: Shared, points: Sequence[int]) -> Shared:
    """The matrix as integers that add up to it, one for each of the machine's providers.

    ``points`` are theirs, in order. Shares times weights add up to the matrix modulo the prime only. So
    everybody adds a mask that is 64 bits wider than the matrix, the first provider is told the sum, and who
    masked takes its mask off again. Alone, a share under such a mask would say the matrix (times a number of
    521 bits, which no mask of 130 hides), if others than these members help: so what is sent
    has another mask, from every pair of members, that only the sum of all is free of.
    """
    held: Held = x.dealt
    step, me, members = machine.next_step(), machine.net.me, machine.providers
    count, wide = prod(x.shape), x.fraction + x.bits + 1
    words = (wide + go.limits().mask_margin + len(members).bit_length()) // 64 + 1
    if me not in members:
        return replace(x, share=np.zeros((*x.shape, words), np.uint64), dealt=None)
    assert held.values is not None, "whoever has no share keeps none"
    own = dict(zip(members, shamir.weights(points), strict=True))[me] * held.values
    seed = machine.record(f"mask {step}", randomness.fresh_seed)
    mask = shamir.uniform(count, seed, "atoll/summands") >> (521 - wide - go.limits().mask_margin)
    masked = (own + mask + await _pairs(machine, step, count, seed)) % shamir.PRIME
    if me != members[0]:
        await machine.net.send(members[0], MaskedPoint(step, memoryview(shamir.numbers_to_bytes(masked))))
        numbers = -mask
    else:
        for message in (await machine.net.gather(MaskedPoint, members[1:])).values():
            check_step(message.step, step)
            masked = masked + shamir.numbers_from_bytes(message.body, count)
        numbers = shamir.centred(masked % shamir.PRIME)
        most = (len(members) << (wide + go.limits().mask_margin)) + (1 << wide)
        if max(abs(value) for value in numbers) > most:
            raise MessageError("shares of what was kept do not belong together: one of them is wrong")
        numbers = numbers - mask
    return replace(x, share=go.from_ints(numbers.reshape(x.shape), words), dealt=None, cache={})


async def _pairs(machine: LocalMachine, step: int, count: int, seed: bytes) -> Numbers:
    """Masks of the whole field from every pair of members, which add up to nothing."""
    members, me = machine.providers, machine.net.me
    place = members.index(me)
    total = np.zeros(count, dtype=object)
    for i, member in enumerate(members[place + 1 :], place + 1):
        shared = randomness.derive(seed, "pair", i)
        await machine.net.send(member, PairSeed(step, shared))
        total = total + shamir.uniform(count, shared, "atoll/pairs")
    for message in (await machine.net.gather(PairSeed, members[:place])).values():
        check_step(message.step, step)
        total = total - shamir.uniform(count, message.seed, "atoll/pairs")
    return total
