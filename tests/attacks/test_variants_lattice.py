"""Lattice sums, attacked again: a ciphertext that is chosen last, and a receiver's key of zeros."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import lattice_reference as reference
import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_lattice_receiver import HEADER, VICTIM, added, mended, values_of
from tests.support.example_tables import Example, table
from tests.support.examples import summation

from atoll import fixedpoint
from atoll.crypto import lattice
from atoll.crypto.hazmat import lattice as recipe
from atoll.data.island import as_islands
from atoll.protocols import protocol_of
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums.lattice import AddedInputs, EncryptedInput, Lattice, OpeningShare
from atoll.study.address import Address

HELPER = Address("island-1", "contributor")
VALUES, DIGITS = 64, 43
"""Of 3 x 64 coefficients that are opened, each says 43 coefficients of a secret of 8,192."""


def example() -> Example:
    small = summation("lattice", n=3)
    parameters = {**small.study.parameters, "length": VALUES}
    islands = as_islands([table(1, VALUES, seed) for seed in range(3)])
    return Example(structs.replace(small.study, parameters=parameters), islands)


def weights(first: reference.Message) -> list[int]:
    """A c1 whose product with a secret has a secret's coefficients as digits to the base of three."""
    slots, bits = 3 * VALUES, 8 * first.row.cipher_bytes
    chosen = [0] * first.row.degree
    for k in range(DIGITS):
        chosen[(slots * k) % first.row.degree] += (1 << bits) // 3 ** (k + 1)
    return chosen


def chosen_last(others: list[bytes]) -> bytes:
    """The ciphertext that makes c1 of the sum what the attacker wants."""
    parsed = [reference.parse(body) for body in others]
    row = parsed[0].row
    size, c1_bytes = row.cipher_bytes, row.degree * row.cipher_bytes
    parts = [reference.integers(message.body[:c1_bytes], size) for message in parsed]
    rest = [
        (w - sum(each)) % (1 << 8 * size)
        for w, each in zip(weights(parsed[0]), zip(*parts, strict=True), strict=True)
    ]
    message = bytearray(others[0])
    message[HEADER : HEADER + c1_bytes] = b"".join(value.to_bytes(size, "little") for value in rest)
    message[HEADER + c1_bytes :] = bytes(len(message) - HEADER - c1_bytes)
    return mended(message)


def secret_in(share: bytes, degree: int) -> list[int]:
    """A member's whole secret, from its decryption share of such a sum."""
    message = reference.parse(share)
    size, slots = message.row.share_bytes, 3 * VALUES
    found: list[int] = [0] * degree
    for j, part in enumerate(reference.integers(message.body[reference.DIGEST_BYTES :], size)):
        for k, digit in enumerate(digits(part, 8 * size)):
            place = j - slots * k
            found[place % degree] = digit if place >= 0 else -digit
    return found


def digits(part: int, bits: int) -> Iterator[int]:
    """Balanced digits to the base of three of a fraction of a turn."""
    rest = part - (1 << bits) if part >> (bits - 1) else part
    for _ in range(DIGITS):
        rest *= 3
        digit = (rest + (1 << (bits - 1))) >> bits
        yield digit
        rest -= digit << bits


def test_a_receiver_with_one_contributor_that_sends_last_reads_all_keys_and_no_check_sees_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody lies: the receiver shows one contributor what the others sent, and that one chooses its own.
    Every check passes, because the sum is the sum. The threat model says so."""
    inputs: dict[Address, bytes] = {}
    shares: dict[Address, bytes] = {}
    honest = Lattice.contribute_block

    async def waiting(self: Lattice, name: str, values: fixedpoint.Limbs) -> None:
        if self.net.me == HELPER:
            while len(inputs) < 2:
                await asyncio.sleep(0.001)
            body = chosen_last(list(inputs.values()))
            monkeypatch.setattr(self, "_encrypt", lambda *_: (body, lattice.digest_of(body)))
        await honest(self, name, values)

    async def showing(self: Lattice, name: str, n: int) -> fixedpoint.Limbs:
        others = [a for a in self.contributors if a != HELPER]
        for sender, message in (await self.net.gather(EncryptedInput, others)).items():
            inputs[sender] = message.body
        last = (await self.net.receive(EncryptedInput, HELPER)).body
        await self.net.broadcast(self.contributors, AddedInputs(name, *added([*inputs.values(), last])))
        opened = await self.net.gather(OpeningShare, self.contributors)
        shares.update({sender: message.share for sender, message in opened.items()})
        return np.zeros((fixedpoint.LIMBS, n), np.uint64)

    monkeypatch.setattr(Lattice, "contribute_block", waiting)
    monkeypatch.setattr(Lattice, "total_block", showing)
    study = example()
    LocalEngine().run(protocol_of("sum"), study.study, study.own)

    victims = reference.parse(inputs[VICTIM])
    secrets = [secret_in(share, victims.row.degree) for share in shares.values()]
    key = [sum(each) for each in zip(*secrets, strict=True)]
    assert opened_with(victims, key) == fixedpoint.to_integers(fixedpoint.encode(values_of(study, VICTIM)))


def opened_with(message: reference.Message, key: list[int]) -> list[int]:
    bits, c1_bytes = 8 * message.row.cipher_bytes, message.row.degree * message.row.cipher_bytes
    c1 = reference.integers(message.body[:c1_bytes], message.row.cipher_bytes)
    product: list[Any] = reference.negacyclic(c1, key, bits)
    phases = [c0 + c for c0, c in zip(reference.second_half(message), product, strict=False)]
    wholes, noise = reference.pieces(message, phases)
    assert max(map(abs, noise)) < 2.0**-20
    unsigned = reference.together(message.row, wholes)
    return [value - (1 << 192) if value >> 191 else value for value in unsigned]


# ---- a receiver that makes a key which masks nothing ----


def of_zeros(public: bytes) -> bytes:
    """The same key with a b of zeros: c0 is the values, their errors, and nothing over them."""
    key = bytearray(public)
    at = HEADER + 32
    key[at:] = bytes(len(key) - at)
    said = b"atoll/lattice/key/1" + bytes([1, *key[1:4]]) + bytes(8) + bytes(key[HEADER:])
    key[16:32] = hashlib.sha256(said).digest()[:16]
    return mended(key)


def test_a_key_of_zeros_says_nothing_of_how_summands_were_rounded() -> None:
    """Two islands: with one's vector guessed the other's follows, and so how both would be rounded. The
    right guess fitted 152 of 156 coefficients, where a wrong one fits two of three."""
    chosen = recipe.plan(78)
    assert chosen.parameters.name == "single-12"
    made = recipe.keygen(width=chosen.width, parameters=chosen.parameters, seed=bytes(32))
    draw = np.random.default_rng(0)
    vectors = [fixedpoint.encode(draw.normal(size=78), contributors=2) for _ in range(2)]
    with recipe.PublicKey(of_zeros(made.public)) as key:
        parts = [key.encrypt(v, summands=2, seed=bytes([i]) * 32) for i, v in enumerate(vectors)]
    total = reference.parse(recipe.add(parts))
    seen, true = reference.second_half(total), [fixedpoint.to_integers(v) for v in vectors]
    wholes = [reference.rounded(c, 96, total.row.moduli[j // 78])[0] for j, c in enumerate(seen)]
    sums = [a + b for a, b in zip(*true, strict=True)]
    assert reference.together(total.row, wholes) == [value % (1 << 192) for value in sums]
    away = []
    for k in (1, 2):
        modulus = total.row.moduli[k]
        for v in range(78):
            guessed = sum(((value[v] % modulus << 97) // modulus + 1) >> 1 for value in true)
            difference = (seen[78 * k + v] - guessed + (1 << 95)) % (1 << 96) - (1 << 95)
            away.append(difference)
    assert np.count_nonzero(np.abs(away) < 4) <= 2
    width = 2.0**21 * np.sqrt(2 / 12)  # of two uniform numbers of 2^20 on either side
    assert 0.8 < np.std(away) / width < 1.25
