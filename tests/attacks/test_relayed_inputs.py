"""The receiver of an encrypted sum holds the key and may carry the messages: it still opens no input."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from tests.support.examples import summation

from atoll import fixedpoint
from atoll.codec import Decoder, Message, decode
from atoll.crypto import envelope
from atoll.crypto.hazmat import ciphertexts, lattice
from atoll.crypto.hazmat.paillier import SecretKey
from atoll.errors import AtollError, KeyMismatch, MessageError
from atoll.protocols import protocol_of
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums.encrypted import CipherSum, SealedInput
from atoll.secure_sums.lattice import AddedInputs, EncryptedInput, OpeningShare
from atoll.study.address import Address


class Wire(Observer):
    """Everything that travels, as a relay sees it, and everyone's secrets at the end."""

    def __init__(self) -> None:
        self.messages: list[tuple[Address, Address, Message]] = []
        self.records: dict[Address, MemoryRecord] = {}
        self.decoder: Decoder[Message]

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.messages.append((sender, receiver, self.decoder.decode(data)))

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.records[address] = record

    def of(self, kind: type[Message]) -> dict[Address, Any]:
        return {sender: message for sender, _, message in self.messages if isinstance(message, kind)}


def wire(method: str, options: dict[str, Any]) -> tuple[Wire, dict[str, np.ndarray]]:
    example = summation(method, options)
    protocol, tap = protocol_of("sum"), Wire()
    tap.decoder = Decoder[Message](protocol.all_messages(example.study))
    LocalEngine().run(protocol, example.study, example.own, observer=tap)
    values = {name: island.features(island.columns).ravel() for name, island in example.islands.items()}
    return tap, values


def receiver_key(tap: Wire) -> bytes:
    """What the receiver drew: the secret key that opens sums."""
    receiver = next(address for address in tap.records if address.role == "receiver")
    return next(data for tag, data in tap.records[receiver].drawn.items() if tag.endswith("/key"))


def opener(method: str, key: bytes) -> Any:
    if method == "paillier":
        secret = SecretKey.from_bytes(key)
        return lambda data: ciphertexts.decrypt(secret, data)
    private, _ = decode(key, tuple[bytes, bytes])
    return lattice.SecretKey(private).decrypt


@pytest.mark.parametrize(("method", "options"), [("paillier", {}), ("lattice", {"key": "server"})])
def test_the_key_holder_cannot_open_what_it_relays(method: str, options: dict[str, Any]) -> None:
    tap, values = wire(method, options)
    open_ciphertext = opener(method, receiver_key(tap))
    sealed = tap.of(SealedInput)
    assert len(sealed) == 3
    for sender, message in sealed.items():
        with pytest.raises(AtollError):
            open_ciphertext(message.body)
        # The attack is a real one: out of its envelope, the same ciphertext opens.
        adder = next(a for a in tap.records if a.party == "island-0")
        drawn = tap.records[adder].drawn
        private = next(data for tag, data in drawn.items() if tag.endswith("/adder"))
        session = next(tag for tag in drawn if tag.endswith("/adder")).removesuffix("/adder")
        inside = envelope.unseal(private, message.body, f"{session}/{message.block}/{sender}")
        np.testing.assert_array_equal(fixedpoint.decode(open_ciphertext(inside)), values[sender.party])


def test_an_envelope_opens_only_for_its_reader_and_purpose() -> None:
    mine, other = bytes(range(32)), bytes(range(1, 33))
    sealed = envelope.seal(envelope.public_key(mine), b"content", "round 1", bytes(32))
    assert envelope.unseal(mine, sealed, "round 1") == b"content"
    for private, data, context in (
        (other, sealed, "round 1"),
        (mine, sealed, "round 2"),
        (mine, sealed[:-1], "round 1"),
        (mine, b"\x02" + sealed[1:], "round 1"),
        (mine, b"", "round 1"),
        (mine, sealed[:1] + bytes(32) + sealed[33:], "round 1"),
    ):
        with pytest.raises(MessageError, match="cannot be opened"):
            envelope.unseal(private, data, context)


def test_an_envelopes_key_follows_from_its_seed_alone() -> None:
    """A carrier knows reader and purpose; were the seed not in the key, it could make the same key."""
    reader = envelope.public_key(bytes(range(32)))
    sealed = [envelope.seal(reader, b"content", "round 1", bytes([i]) * 32) for i in range(3)]
    assert len({one[1:33] for one in sealed}) == 3
    assert len({one[33:] for one in sealed}) == 3
    assert envelope.seal(reader, b"content", "round 1", bytes(32)) == sealed[0]
    assert envelope.seal(reader, b"content", "round 2", bytes(32))[1:33] != sealed[0][1:33]


def test_under_a_collective_key_all_but_one_open_nothing() -> None:
    """The receiver and all contributors but one, with everything they hold, fail on the last one's input
    and, without its share, on the sum."""
    tap, _ = wire("lattice", {"key": "collective"})
    target = next(a for a in tap.records if a.party == "island-3")
    coalition = {a: r for a, r in tap.records.items() if a != target and a.role == "contributor"}
    public = next(m.key for _, _, m in tap.messages if type(m).__name__ == "SumKey")
    key = lattice.PublicKey(public)
    inputs, shares, sums = tap.of(EncryptedInput), tap.of(OpeningShare), tap.of(AddedInputs)
    (total,) = sums.values()
    with pytest.raises(AtollError):
        key.combine(total.body, [shares[a].share for a in coalition])
    partial = []
    for record in coalition.values():
        drawn = next(data for tag, data in record.drawn.items() if tag.endswith("/key"))
        secret = lattice.SecretKey(decode(drawn, tuple[bytes, bytes])[0])
        partial.append(secret.decryption_share(key, inputs[target].body))
        with pytest.raises(AtollError):
            secret.decrypt(inputs[target].body)
    with pytest.raises(AtollError):
        key.combine(inputs[target].body, partial)
    # A share of another ciphertext does not stand in for the missing one.
    with pytest.raises(AtollError):
        key.combine(inputs[target].body, [*partial, shares[target].share])


def test_a_foreign_key_is_refused_by_its_id() -> None:
    first, _ = wire("lattice", {"key": "server"})
    second, _ = wire("lattice", {"key": "server"})
    ours = opener("lattice", receiver_key(first))
    (theirs,) = second.of(CipherSum).values()
    with pytest.raises(KeyMismatch):
        ours(theirs.body)
    records: dict[str, list[bytes]] = defaultdict(list)
    for tap in (first, second):
        records["keys"].append(receiver_key(tap))
    assert len(set(records["keys"])) == 2
