"""Secure sum by lattice encryption (exact, additive, on Lattigo's rings).

``key="collective"`` (the default): contributors share the key, the receiver adds ciphertexts, and only
with the decryption share of every contributor can anything be opened.
Adversary: passive; the receiver with all contributors but one learns no more than the sum tells.
Each contributor gives one decryption share per block and never a second one.

``key="server"``: the roles and the trust of :mod:`atoll.secure_sums.encrypted`.
docs/explanation/lattice-sums.md says how the encryption works and why it was chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

from atoll import codec, randomness
from atoll.codec import Message
from atoll.crypto.hazmat import lattice
from atoll.crypto.parameters import LATTICE_TABLE
from atoll.errors import MessageError, ParameterError
from atoll.fixedpoint import Limbs
from atoll.network import Address
from atoll.secure_sums.base import BLOCK_VALUES, Cost, SecureSum, SumOptions, check_round
from atoll.secure_sums.encrypted import CipherSum, EncryptedSum, SumKey, one_key_cost

MAX_MEMBERS = min(row.max_members for row in LATTICE_TABLE if row.collective and not row.insecure)
MAX_SUMMANDS = min(row.max_summands for row in LATTICE_TABLE if not row.insecure)


class LatticeOptions(SumOptions, frozen=True):
    """``key``: shared by all contributors, or held by the receiver."""

    key: Literal["collective", "server"] = "collective"


class KeyNonce(Message, frozen=True):
    """Contributor -> receiver: its part of the reference that all key shares refer to."""

    nonce: bytes


class KeyReference(Message, frozen=True):
    """Receiver -> contributors: all parts, in the study's order."""

    nonces: tuple[bytes, ...]


class KeyShare(Message, frozen=True):
    """Contributor -> receiver: its share of the public key."""

    share: bytes


class EncryptedInput(Message, frozen=True):
    """Contributor -> receiver: its values under the collective key."""

    block: str
    body: bytes


class OpeningShare(Message, frozen=True):
    """Contributor -> receiver: its smudged decryption share of the sum."""

    block: str
    share: bytes


class LatticeServerKey(EncryptedSum):
    """A session under the receiver's lattice key."""

    options_type = LatticeOptions
    trust = (
        "The sum is safe while the receiver, who holds the key, and the first contributor, who adds the "
        "ciphertexts, do not collude: together they open every input."
    )

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        chosen = lattice.plan(min(sum(lengths), BLOCK_VALUES))
        sizes = [lattice.ciphertext_bytes(chosen, n) for n in lengths]
        return one_key_cost(contributors, lattice.key_bytes(chosen), sizes)

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        if contributors > MAX_SUMMANDS:
            raise ParameterError(
                f"a lattice sum has at most {MAX_SUMMANDS} contributors, the study has {contributors}",
                hint="secure_sum='masks' has no such limit",
            )

    def make_key(self) -> bytes:
        chosen = lattice.plan(self.longest)
        pair = lattice.keygen(width=chosen.width, parameters=chosen.parameters, seed=randomness.fresh_seed())
        return codec.encode((pair.secret, pair.public))

    def use_secret(self, secret: bytes) -> bytes:
        private, public = codec.decode(secret, tuple[bytes, bytes])
        self._secret = lattice.SecretKey(private)
        return bytes(public)

    def use_public(self, public: bytes) -> None:
        self._public = lattice.PublicKey(public)

    def encrypt(self, values: Limbs, seed: bytes) -> bytes:
        return self._public.encrypt(values, summands=len(self.contributors), seed=seed)

    def adding(self) -> tuple[Callable[[bytes], None], Callable[[], bytes]]:
        adder = lattice.Adder()
        return adder.add, adder.finish

    def decrypt(self, ciphertext: bytes, n: int) -> Limbs:
        return _of_length(self._secret.decrypt(ciphertext), n)


class Lattice(SecureSum):
    """A session under a key that all contributors share; with key='server', :class:`LatticeServerKey`."""

    messages = (KeyNonce, KeyReference, KeyShare, SumKey, EncryptedInput, CipherSum, OpeningShare)
    contributors_see = "public keys, and ciphertexts that nobody opens alone"
    options_type = LatticeOptions
    trust = "An input is safe unless the receiver and all other contributors collude."

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(self.receivers) != 1:
            raise ParameterError("a sum under a collective key has one receiver")
        self._receiver = self.receivers[0]
        self._plan = lattice.plan(self.longest, collective=True)

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        if contributors > MAX_MEMBERS:
            raise ParameterError(
                f"a collective key has at most {MAX_MEMBERS} members, the study has {contributors}",
                hint="secure_sum='masks' has no such limit",
            )

    @classmethod
    def chosen(cls, options: Any) -> type[SecureSum]:
        return LatticeServerKey if options.key == "server" else cls

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        chosen = lattice.plan(min(sum(lengths), BLOCK_VALUES), collective=True)
        key, sums = lattice.key_bytes(chosen), sum(lattice.ciphertext_bytes(chosen, n) for n in lengths)
        shares = sum(lattice.share_bytes(chosen, n) for n in lengths)
        sent = key + sums + shares + _OVERHEAD * (2 + 2 * len(lengths))
        back = 34 * contributors + key + sums
        return Cost(
            messages=contributors * (4 + 3 * len(lengths)),
            bytes_per_contributor=sent,
            bytes_total=contributors * (sent + back),
            rounds=4 + 3 * len(lengths),
        )

    # ---- the key ----

    async def open(self) -> None:
        if self.net.me == self._receiver:
            await self._collect_key()
        if self.net.me in self.contributors:
            await self._share_key()

    async def _collect_key(self) -> None:
        nonces = await self.net.gather(KeyNonce, self.contributors)
        reference = KeyReference(tuple(message.nonce for message in nonces.values()))
        await self.net.broadcast(self.contributors, reference)
        shares = await self.net.gather(KeyShare, self.contributors)
        public = await self.net.compute(lattice.aggregate, [message.share for message in shares.values()])
        self._public = lattice.PublicKey(public)
        await self.net.broadcast(self.contributors, SumKey(public))

    async def _share_key(self) -> None:
        nonce = self.record(f"{self.session}/nonce", randomness.fresh_seed)
        await self.net.send(self._receiver, KeyNonce(nonce))
        reference = await self.net.receive(KeyReference, self._receiver)
        if reference.nonces[self.contributors.index(self.net.me)] != nonce:
            raise MessageError("the key's reference does not hold this contributor's part")
        secret, share = codec.decode(
            await self.net.compute(self._recorded_share, reference.nonces), tuple[bytes, bytes]
        )
        await self.net.send(self._receiver, KeyShare(share))
        self._secret = lattice.SecretKey(secret)
        self._public = lattice.PublicKey((await self.net.receive(SumKey, self._receiver)).key)

    def _recorded_share(self, nonces: Sequence[bytes]) -> bytes:
        """The secret and public share; the reference is nobody's choice alone, and fresh for this session."""
        common = hashlib.sha256(self.session.encode() + b"".join(nonces)).digest()

        def draw() -> bytes:
            width, parameters = self._plan.width, self._plan.parameters
            pair = lattice.key_share(common, width=width, parameters=parameters, seed=randomness.fresh_seed())
            return codec.encode((pair.secret, pair.public))

        return self.record(f"{self.session}/key", draw)

    # ---- a block: encrypt, add, open together ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        seed = self.record(f"{self.session}/{name}", randomness.fresh_seed)
        body = await self.net.compute(self._encrypt, values, seed)
        await self.net.send(self._receiver, EncryptedInput(name, body))
        total = await self.net.receive(CipherSum, self._receiver)
        check_round(name, total.block, self._receiver)
        if lattice.inspect(total.body).count != len(self.contributors):
            # An honest receiver never asks for less than everybody's sum; a share is given for nothing else.
            raise MessageError("the receiver asks to open something else than the sum of all contributors")
        share = await self.net.compute(self._secret.decryption_share, self._public, total.body)
        await self.net.send(self._receiver, OpeningShare(name, share))

    def _encrypt(self, values: Limbs, seed: bytes) -> bytes:
        return self._public.encrypt(values, summands=len(self.contributors), seed=seed)

    async def total_block(self, name: str, n: int) -> Limbs:
        adder = lattice.Adder()

        def combine(sender: Address, message: EncryptedInput) -> None:
            check_round(name, message.block, sender)
            adder.add(message.body)

        await self.net.fold(EncryptedInput, self.contributors, combine)
        total = adder.finish()
        await self.net.broadcast(self.contributors, CipherSum(name, total))
        shares = await self.net.gather(OpeningShare, self.contributors)
        for sender, message in shares.items():
            check_round(name, message.block, sender)
        opened = await self.net.compute(
            self._public.combine, total, [message.share for message in shares.values()]
        )
        return _of_length(opened, n)


_OVERHEAD = 100


def _of_length(values: Limbs, n: int) -> Limbs:
    if values.shape[1] != n:
        raise MessageError(f"a ciphertext of {values.shape[1]} values came where {n} were due")
    return values
