"""Secure sums under a key that the receiver holds: an adder adds ciphertexts, the receiver opens.

Liu et al., Privacy Preserving PCA for Multiparty Modeling (2020), Algorithm 1.

Symbols: party p -> adder (the first contributor, unless the protocol has a party for it), [S_i] ->
ciphertext, [x_bar] -> ciphertext sum.
Adversary: passive. The receiver and the adder together open every input; apart, the adder sees
ciphertexts that it cannot open and the receiver sees the sum.
Deviation: what travels to the adder is sealed for it. The paper's receiver holds the key and may also
carry the messages; a carrier that could open single inputs would make the sum pointless.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from atoll import randomness
from atoll.codec import Message
from atoll.crypto import envelope
from atoll.errors import ParameterError
from atoll.fixedpoint import Limbs
from atoll.secure_sums.base import Cost, SecureSum, check_round
from atoll.study.address import Address


class SumKey(Message, frozen=True):
    """Receiver -> contributors: the public key to encrypt under."""

    key: bytes


class AdderKey(Message, frozen=True):
    """Adder p -> contributors: the key to seal for."""

    key: bytes


class SealedInput(Message, frozen=True):
    """Contributor -> adder p: [S_i], in an envelope for p."""

    block: str
    body: bytes


class CipherSum(Message, frozen=True):
    """Adder p -> receiver: the sum of all [S_i]."""

    block: str
    body: bytes


class EncryptedSum(SecureSum):
    """A session under the receiver's key; derived classes bring the encryption."""

    to_contributors = (SumKey, AdderKey)
    to_adder = (SumKey, SealedInput)
    to_receivers = (CipherSum,)
    contributors_see = "the receiver's public key; the first island also ciphertexts that it cannot open"
    hides = "what an island sends is encrypted, and sealed for whoever adds"
    has_adder = True
    wraps = False
    key_steps = frozenset({"recorded_key"})

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        return (
            "What a single island adds stays hidden while the receiver, who holds the key, and whoever adds "
            "the encrypted numbers (the first island, or the proxy of a protocol that has one) do not work "
            "together: together they can read what every island added."
        )

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        return contributors - 2 if adder_apart else 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(self.receivers) != 1:
            raise ParameterError("a sum under the receiver's key has one receiver")
        self._receiver = self.receivers[0]
        self._adder = self.adder or self.contributors[0]
        self._encryptors = tuple(dict.fromkeys((*self.contributors, self._adder)))

    # ---- what an encryption brings ----

    @abstractmethod
    def make_key(self) -> bytes:
        """A fresh secret key."""

    @abstractmethod
    def use_secret(self, secret: bytes) -> bytes:
        """Get ready to decrypt; the public key."""

    @abstractmethod
    def use_public(self, public: bytes) -> None:
        """Get ready to encrypt and add."""

    @abstractmethod
    def encrypt(self, values: Limbs, seed: bytes) -> bytes: ...

    @abstractmethod
    def adding(self) -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
        """A running sum of ciphertexts: how to add one, and how to get the sum."""

    @abstractmethod
    def decrypt(self, ciphertext: bytes, n: int) -> Limbs: ...

    # ---- Algorithm 1, l.1: keys ----

    async def open(self) -> None:
        if self.net.me == self._receiver:
            secret = await self.net.compute(self._recorded_key)
            public = await self.net.compute(self.use_secret, secret)
            await self.net.broadcast(self._encryptors, SumKey(public))
        if self.net.me == self._adder:
            self._private = self.record(f"{self.session}/adder", randomness.fresh_seed)
            others = [a for a in self.contributors if a != self._adder]
            await self.net.broadcast(others, AdderKey(envelope.public_key(self._private)))
        if self.net.me in self._encryptors:
            message = await self.net.receive(SumKey, self._receiver)
            await self.net.compute(self.use_public, message.key)
        if self.net.me in self.contributors and self.net.me != self._adder:
            self._adder_key = (await self.net.receive(AdderKey, self._adder)).key

    def _recorded_key(self) -> bytes:
        return self.record(f"{self.session}/key", self.make_key)

    # ---- l.2-3 and 6-7: encrypt, add, hand over ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        seed = self.record(f"{self.session}/{name}", randomness.fresh_seed)
        ciphertext = await self.net.compute(self.encrypt, values, randomness.derive(seed, "encrypt"))
        if self.net.me == self._adder:
            await self._add_all(name, ciphertext)
            return
        sealed = await self.net.compute(
            envelope.seal, self._adder_key, ciphertext, self._context(name, self.net.me), seed
        )
        await self.net.send(self._adder, SealedInput(name, sealed))

    async def add_block(self, name: str) -> None:
        await self._add_all(name, None)

    async def _add_all(self, name: str, own: bytes | None) -> None:
        add, finish = self.adding()
        if own is not None:
            add(own)

        def combine(sender: Address, message: SealedInput) -> None:
            check_round(name, message.block, sender)
            add(envelope.unseal(self._private, message.body, self._context(name, sender)))

        await self.net.fold(SealedInput, [a for a in self.contributors if a != self._adder], combine)
        await self.net.send(self._receiver, CipherSum(name, finish()))

    def _context(self, name: str, sender: Address) -> str:
        return f"{self.session}/{name}/{sender}"

    # ---- l.4 and 8: open the sum ----

    async def total_block(self, name: str, n: int) -> Limbs:
        message = await self.net.receive(CipherSum, self._adder)
        check_round(name, message.block, self._adder)
        return await self.net.compute(self.decrypt, message.body, n)


def one_key_cost(contributors: int, public_bytes: int, ciphertext_bytes: Sequence[int]) -> Cost:
    """What a session under the receiver's key costs, given the sizes of its key and ciphertexts."""
    rounds = len(ciphertext_bytes)
    sent = sum(ciphertext_bytes) + 150 * rounds
    return Cost(
        messages=2 * contributors - 1 + contributors * rounds,
        bytes_per_contributor=sent,
        bytes_total=contributors * (sent + public_bytes + 50),
        rounds=1 + 2 * rounds,
    )
