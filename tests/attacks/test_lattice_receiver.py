"""A receiver that deviates, under a collective lattice key: it is found out before anything is opened.

Each attack is run twice: against contributors that check what 0.1.0's did, where it works, and against
today's, where nothing leaves that would help it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import crc32c_reference
import numpy as np
import pytest
from msgspec.structs import replace
from tests.support.examples import Example, summation

from atoll import fixedpoint
from atoll.codec import Decoder, Message, decode, encode
from atoll.crypto import fingerprint
from atoll.crypto.hazmat import lattice
from atoll.errors import AtollError, MessageError
from atoll.network import Compared
from atoll.protocols import protocol_of, resolve
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums.encrypted import SumKey
from atoll.secure_sums.lattice import AddedInputs, EncryptedInput, KeyShare, Lattice, OpeningShare
from atoll.study.address import Address

HEADER, SEED, KEY_ID = 36, 32, 16
VICTIM = Address("island-2", "contributor")


class Wire(Observer):
    """How many messages of each kind left, and what everybody drew."""

    def __init__(self, decoder: Decoder[Message]) -> None:
        self.decoder = decoder
        self.sent_by_kind: dict[type, list[Any]] = defaultdict(list)
        self.records: dict[Address, MemoryRecord] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(data)
        self.sent_by_kind[type(message)].append(message)

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.records[address] = record


def run(example: Example) -> tuple[Wire, Any, AtollError | None]:
    """What travelled, the receiver's total, and how the run ended."""
    protocol = protocol_of("sum")
    wire = Wire(Decoder[Message](protocol.all_messages(example.study)))
    try:
        outcome = LocalEngine().run(protocol, example.study, example.own, observer=wire)
    except AtollError as problem:
        return wire, None, problem
    receiver = next(a for a in outcome.learned if a.role == "receiver")
    return wire, outcome.learned[receiver].outputs["total"], None


def values_of(example: Example, address: Address) -> np.ndarray:
    island = example.islands[address.party]
    return island.features(island.columns).ravel()


def mended(message: bytearray) -> bytes:
    crc32c_reference.mend(message)
    return bytes(message)


def with_count(ciphertext: bytes, count: int) -> bytes:
    changed = bytearray(ciphertext)
    changed[4:8] = count.to_bytes(4, "little")
    return mended(changed)


def with_flip(ciphertext: bytes, at: int) -> bytes:
    changed = bytearray(ciphertext)
    changed[at] ^= 128
    return mended(changed)


# ---- what is opened ----

Inputs = dict[Address, bytes]
Forgery = Callable[[Inputs], tuple[bytes, bytes]]


def added(bodies: list[bytes]) -> tuple[bytes, bytes]:
    with lattice.Adder() as adder:
        for body in bodies:
            adder.add(body)
        total = adder.finish()
        return total, adder.carries(total)


def one_input(inputs: Inputs) -> tuple[bytes, bytes]:
    """The victim's ciphertext with a header that says it is everybody's sum."""
    total, carries = added([inputs[VICTIM]])
    return with_count(total, len(inputs)), carries


def all_but_one(inputs: Inputs) -> tuple[bytes, bytes]:
    """A partial sum; subtracted from an honest one it is the victim's input."""
    total, carries = added([body for sender, body in inputs.items() if sender != VICTIM])
    return with_count(total, len(inputs)), carries


def one_twice(inputs: Inputs) -> tuple[bytes, bytes]:
    """One island's ciphertext in another's place."""
    bodies = list(inputs.values())
    return added([bodies[0], bodies[0], *bodies[2:]])


def top_bit_of_c1(inputs: Inputs) -> tuple[bytes, bytes]:
    """Half a turn on one coefficient: it would show parities of the secret key."""
    total, carries = added(list(inputs.values()))
    return with_flip(total, HEADER + lattice.coefficients(total)[1] - 1), carries


def top_bit_of_c0(inputs: Inputs) -> tuple[bytes, bytes]:
    total, carries = added(list(inputs.values()))
    return with_flip(total, len(total) - 1), carries


def other_carries(inputs: Inputs) -> tuple[bytes, bytes]:
    total, carries = added(list(inputs.values()))
    return total, bytes([carries[0] ^ 1]) + carries[1:]


FORGERIES: list[Forgery] = [one_input, all_but_one, one_twice, top_bit_of_c1, top_bit_of_c0, other_carries]


def deviating(forge: Forgery) -> Callable[..., Awaitable[fixedpoint.Limbs]]:
    async def total_block(self: Lattice, name: str, n: int) -> fixedpoint.Limbs:
        inputs = await self.net.gather(EncryptedInput, self.contributors)
        total, carries = forge({sender: message.body for sender, message in inputs.items()})
        await self.net.broadcast(self.contributors, AddedInputs(name, total, carries))
        shares = await self.net.gather(OpeningShare, self.contributors)
        return self._public.combine(total, [message.share for message in shares.values()])

    return total_block


async def check_of_0_1_0(
    self: Lattice, name: str, own: bytes, promise: bytes, total: AddedInputs, opened: bytes
) -> None:
    if lattice.inspect(total.body).count != len(self.contributors):
        raise MessageError("the receiver asks to open something else than the sum of all contributors")


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_receiver_that_asks_for_another_sum_gets_no_share(
    forge: Forgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lattice, "total_block", deviating(forge))
    wire, total, problem = run(summation("lattice"))
    assert total is None
    assert isinstance(problem, MessageError)
    assert "something else than the sum of all contributors" in str(problem)
    assert len(wire.sent_by_kind[EncryptedInput]) == 4
    assert not wire.sent_by_kind[OpeningShare]


def test_contributors_of_0_1_0_opened_one_islands_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lattice, "total_block", deviating(one_input))
    monkeypatch.setattr(Lattice, "_check_sum", check_of_0_1_0)
    example = summation("lattice")
    _, total, problem = run(example)
    assert problem is None
    np.testing.assert_array_equal(total, values_of(example, VICTIM))


def test_contributors_of_0_1_0_opened_a_partial_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lattice, "total_block", deviating(all_but_one))
    monkeypatch.setattr(Lattice, "_check_sum", check_of_0_1_0)
    example = summation("lattice")
    _, total, _ = run(example)
    others = [values_of(example, a) for a in example.study.who("contributor") if a != VICTIM]
    np.testing.assert_allclose(total, np.sum(others, axis=0), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_sum_that_says_it_is_not_everybodys_is_refused(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a true sum, if its header names another number of summands."""

    def relabelled(inputs: Inputs) -> tuple[bytes, bytes]:
        total, carries = added(list(inputs.values()))
        return with_count(total, count), carries

    monkeypatch.setattr(Lattice, "total_block", deviating(relabelled))
    wire, _, problem = run(summation("lattice"))
    assert "something else than the sum of all contributors" in str(problem)
    assert not wire.sent_by_kind[OpeningShare]


@pytest.mark.parametrize("deviation", ["two sums", "two carries"])
def test_a_receiver_that_sends_two_sums_is_found_out(deviation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def total_block(self: Lattice, name: str, n: int) -> fixedpoint.Limbs:
        inputs = await self.net.gather(EncryptedInput, self.contributors)
        bodies = {sender: message.body for sender, message in inputs.items()}
        total, carries = added(list(bodies.values()))
        other = one_input(bodies) if deviation == "two sums" else (total, bytes(len(carries)))
        for address in self.contributors:
            mine = other if address == VICTIM else (total, carries)
            await self.net.send(address, AddedInputs(name, *mine))
        await self.net.gather(OpeningShare, self.contributors)
        return np.zeros((3, n), np.uint64)

    monkeypatch.setattr(Lattice, "total_block", total_block)
    wire, _, problem = run(summation("lattice"))
    assert "was told something else than" in str(problem)
    assert "the sum of values#0" in str(problem)
    assert not wire.sent_by_kind[OpeningShare]


def test_the_point_of_the_check_depends_on_everybodys_coin_and_on_the_sum() -> None:
    """Nobody knows it when the sum is sent: two runs of one study have no point in common."""
    coins = []
    for _ in range(2):
        wire, _, problem = run(summation("lattice"))
        assert problem is None
        fingerprints = [m for m in wire.sent_by_kind[Compared] if m.topic.startswith("the fingerprints of")]
        assert len(fingerprints) == 12
        assert len({m.digest for m in fingerprints}) == 1
        coins.append(fingerprints[0].digest)
        nonces = {m.note for m in wire.sent_by_kind[Compared] if m.topic == "the sum of values#0"}
        assert len(nonces) == 4
        assert {len(note) for note in nonces} == {64}
        inputs = {hashlib.sha256(m.body).digest() for m in wire.sent_by_kind[EncryptedInput]}
        assert {note[32:] for note in nonces} == inputs
    assert coins[0] != coins[1]


def test_a_receiver_with_a_contributor_that_lies_is_not_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/explanation/threat-models.md says is not detected: a fingerprint is its owner's word."""
    seen: Inputs = {}
    liar = Address("island-1", "contributor")

    def one_input_and_tell(inputs: Inputs) -> tuple[bytes, bytes]:
        seen.update(inputs)
        return one_input(inputs)

    honest = Lattice._compare

    async def lying(self: Lattice, topic: str, digest: bytes, note: bytes) -> list[bytes]:
        if self.net.me == liar and topic.startswith("the fingerprints of"):
            at = fingerprint.points(digest)
            own = [fingerprint.evaluate(*lattice.coefficients(seen[a]), at) for a in seen]
            wanted = own[list(seen).index(VICTIM)]
            others = [pair for a, pair in zip(seen, own, strict=True) if a != liar]
            rest = fingerprint.plus(at, others)
            lie = [(w - r) % p.modulus for w, r, p in zip(wanted, rest, at, strict=True)]
            note = fingerprint.to_bytes([(lie[0], lie[1])])
        return await honest(self, topic, digest, note)

    monkeypatch.setattr(Lattice, "total_block", deviating(one_input_and_tell))
    monkeypatch.setattr(Lattice, "_compare", lying)
    example = summation("lattice")
    _, total, problem = run(example)
    assert problem is None
    np.testing.assert_array_equal(total, values_of(example, VICTIM))


# ---- the key ----


def with_id(public: bytearray) -> bytes:
    """The id of a changed key made right again: the receiver can do that."""
    facts = lattice.inspect(bytes(public))
    digest = hashlib.sha256(b"atoll/lattice/key/1" + bytes([1, public[1], public[2], public[3]]))
    digest.update(facts.count.to_bytes(8, "little") + bytes(public[HEADER:]))
    public[16:32] = digest.digest()[:16]
    return mended(public)


def own_key(shares: list[bytes]) -> tuple[bytes, list[lattice.SecretKey]]:
    """A key of as many members, all of whose shares the receiver made itself."""
    facts, reference = lattice.inspect(shares[0]), lattice.key_reference(shares[0])
    row = next(row for row in lattice.LATTICE_TABLE if row.id == facts.parameters_id)
    pairs = [lattice.key_share(reference, width=facts.width, parameters=row) for _ in shares]
    return lattice.aggregate([p.public for p in pairs]), [lattice.SecretKey(p.secret) for p in pairs]


def zero_key(shares: list[bytes]) -> bytes:
    """b = 0: what is encrypted under it stands in the ciphertext as it is."""
    public = bytearray(lattice.aggregate(shares))
    start = HEADER + SEED + KEY_ID * len(shares)
    public[start:] = bytes(len(public) - start)
    return with_id(public)


def one_residue_off(shares: list[bytes]) -> bytes:
    public = bytearray(lattice.aggregate(shares))
    public[HEADER + SEED + KEY_ID * len(shares)] ^= 1
    return with_id(public)


def of_others(shares: list[bytes]) -> bytes:
    return own_key(shares)[0]


def of_fewer(shares: list[bytes]) -> bytes:
    return lattice.aggregate(shares[1:])


def of_another_reference(shares: list[bytes]) -> bytes:
    public = bytearray(lattice.aggregate(shares))
    public[HEADER] ^= 1
    return with_id(public)


KEYS: list[Callable[[list[bytes]], bytes]] = [
    zero_key,
    one_residue_off,
    of_others,
    of_fewer,
    of_another_reference,
]


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
def test_nothing_is_encrypted_under_a_key_that_is_not_the_sum_of_all_shares(
    make: Callable[[list[bytes]], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def collect(self: Lattice) -> None:
        shares = await self.net.gather(KeyShare, self.contributors)
        public = make([message.share for message in shares.values()])
        self._public = lattice.PublicKey(public)  # well-formed, so that only the check of its content is left
        await self.net.broadcast(self.contributors, SumKey(public))

    monkeypatch.setattr(Lattice, "_collect_key", collect)
    wire, _, problem = run(summation("lattice"))
    assert isinstance(problem, MessageError)
    assert "key" in str(problem)
    assert not wire.sent_by_kind[EncryptedInput]


def test_under_0_1_0_a_receiver_opened_every_input_with_a_key_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No contributor checked the key: the inputs were read before any share was asked for."""
    opened: dict[Address, np.ndarray] = {}
    secrets: list[lattice.SecretKey] = []

    async def collect(self: Lattice) -> None:
        shares = await self.net.gather(KeyShare, self.contributors)
        public, own = own_key([message.share for message in shares.values()])
        secrets.extend(own)
        self._public = lattice.PublicKey(public)
        await self.net.broadcast(self.contributors, SumKey(public))

    async def total_block(self: Lattice, name: str, n: int) -> fixedpoint.Limbs:
        inputs = await self.net.gather(EncryptedInput, self.contributors)
        for sender, message in inputs.items():
            shares = [secret.decryption_share(self._public, message.body) for secret in secrets]
            opened[sender] = fixedpoint.decode(self._public.combine(message.body, shares))
        raise MessageError("the attack is over")

    async def no_check(self: Lattice, public: bytes, share: bytes, common: bytes) -> None:
        return

    monkeypatch.setattr(Lattice, "_collect_key", collect)
    monkeypatch.setattr(Lattice, "total_block", total_block)
    monkeypatch.setattr(Lattice, "_check_key", no_check)
    example = summation("lattice")
    run(example)
    assert len(opened) == 4
    for sender, values in opened.items():
        np.testing.assert_array_equal(values, values_of(example, sender))


def test_a_receiver_that_makes_two_keys_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def collect(self: Lattice) -> None:
        shares = await self.net.gather(KeyShare, self.contributors)
        bodies = [message.share for message in shares.values()]
        for address in self.contributors:
            public = of_others(bodies) if address == VICTIM else lattice.aggregate(bodies)
            await self.net.send(address, SumKey(public))

    monkeypatch.setattr(Lattice, "_collect_key", collect)
    wire, _, problem = run(summation("lattice"))
    assert "was told something else than" in str(problem)
    assert "the sum of key" in str(problem)
    assert not wire.sent_by_kind[EncryptedInput]


def test_a_share_other_than_the_promised_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that saw the others' shares could send one that cancels them; it has promised its own."""
    honest = Lattice._recorded_share
    rogue: list[bytes] = []

    def recorded(self: Lattice, common: bytes) -> bytes:
        made = honest(self, common)
        if self.net.me != VICTIM:
            return made
        width, row = self._plan.width, self._plan.parameters
        rogue.append(lattice.key_share(common, width=width, parameters=row).public)
        promised, send = decode(made, tuple[bytes, bytes]), self.net.send

        async def substituted(to: Address, message: Message) -> None:
            swap = isinstance(message, KeyShare)
            await send(to, KeyShare(rogue[0], message.commitments) if swap else message)  # type: ignore[attr-defined]

        monkeypatch.setattr(self.net, "send", substituted)
        return encode(promised)

    monkeypatch.setattr(Lattice, "_recorded_share", recorded)
    wire, _, problem = run(summation("lattice"))
    assert rogue
    assert "are not those that" in str(problem)
    assert not wire.sent_by_kind[SumKey]
    assert not wire.sent_by_kind[EncryptedInput]


def test_promises_are_made_before_any_share_leaves_and_name_every_share() -> None:
    wire, _, problem = run(summation("lattice"))
    assert problem is None
    promised = {m.note for m in wire.sent_by_kind[Compared] if m.topic == "the key's reference"}
    shares = wire.sent_by_kind[KeyShare]
    assert promised == {hashlib.sha256(message.share).digest() for message in shares}
    assert len({message.commitments for message in shares}) == 1
    assert {message.commitments for message in shares} == {
        b"".join(hashlib.sha256(message.share).digest() for message in in_order(wire, shares))
    }


def in_order(wire: Wire, shares: list[KeyShare]) -> list[KeyShare]:
    """Shares in the order of the contributors, found by what each of them drew."""
    by_share = {message.share: message for message in shares}
    drawn = []
    for i in range(4):
        record = wire.records[Address(f"island-{i}", "contributor")]
        key = next(data for tag, data in record.drawn.items() if tag.endswith("/key"))
        drawn.append(by_share[decode(key, tuple[bytes, bytes])[1]])
    return drawn


def test_the_keys_reference_is_made_of_everybodys_nonce() -> None:
    """And of the session; nobody is handed its own nonce by somebody else."""
    example = summation("lattice")
    wire, _, problem = run(example)
    assert problem is None
    nonces = []
    for i in range(4):
        record = wire.records[Address(f"island-{i}", "contributor")]
        nonces.append(next(data for tag, data in record.drawn.items() if tag.endswith("sum/nonce")))
    digest = hashlib.sha256()
    for part in (f"{resolve(example.study).digest}/sum".encode(), b"reference", *nonces):
        digest.update(len(part).to_bytes(8, "little") + part)
    references = {lattice.key_reference(message.share) for message in wire.sent_by_kind[KeyShare]}
    references |= {lattice.key_reference(message.key) for message in wire.sent_by_kind[SumKey]}
    assert references == {digest.digest()}


def test_a_contributor_that_tells_two_nonces_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Lattice._share_key

    async def share_key(self: Lattice) -> None:
        if self.net.me == VICTIM:
            send = self.net.send

            async def two_faced(to: Iterable[Address], message: Message) -> None:
                for i, address in enumerate(to):
                    first = isinstance(message, Compared) and message.topic == "the key's session" and i == 0
                    await send(address, replace(message, note=bytes(32)) if first else message)

            monkeypatch.setattr(self.net, "broadcast", two_faced)
        await honest(self)

    monkeypatch.setattr(Lattice, "_share_key", share_key)
    wire, _, problem = run(summation("lattice"))
    assert "was told something else than" in str(problem)
    assert not wire.sent_by_kind[KeyShare]
