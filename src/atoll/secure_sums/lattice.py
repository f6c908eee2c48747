"""Secure sum by lattice encryption (exact, additive, on Lattigo's rings).

``key="collective"`` (the default): contributors share the key, the receiver adds ciphertexts, and only
with the decryption share of every contributor can anything be opened.
Adversary: passive; the receiver with all contributors but one learns no more than the sum tells.
Each contributor gives one decryption share per block and never a second one.
Beyond that, a receiver that deviates alone is found out: contributors promise their key shares by hash before
any is sent, check that the key is the sum of all shares and that what they open is the sum of all
ciphertexts (:mod:`atoll.crypto.fingerprint`), and compare what the receiver told each of them.

``key="server"``: the roles and the trust of :mod:`atoll.secure_sums.encrypted`.
docs/explanation/lattice-sums.md says how the encryption works and why it was chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from atoll import codec, randomness
from atoll.codec import Message
from atoll.crypto import fingerprint, lattice
from atoll.crypto.lattice import MAX_MEMBERS, MAX_SUMMANDS
from atoll.errors import MessageError, ParameterError
from atoll.fixedpoint import Limbs
from atoll.network import Compared
from atoll.secure_sums.base import BLOCK_VALUES, Cost, SecureSum, SumOptions, check_round, of_length
from atoll.secure_sums.encrypted import EncryptedSum, SumKey, one_key_cost
from atoll.study.address import Address


class LatticeOptions(SumOptions, frozen=True):
    """``key``: shared by all contributors, or held by the receiver."""

    key: Literal["collective", "server"] = "collective"


class KeyShare(Message, frozen=True):
    """Contributor -> receiver: its share of the public key, and what all had committed to before."""

    share: bytes
    commitments: bytes


class EncryptedInput(Message, frozen=True):
    """Contributor -> receiver: its values under the collective key."""

    block: str
    body: bytes


class AddedInputs(Message, frozen=True):
    """Receiver -> contributors: the sum of all inputs, and how often each coefficient wrapped."""

    block: str
    body: bytes
    carries: bytes


class OpeningShare(Message, frozen=True):
    """Contributor -> receiver: its smudged decryption share of the sum."""

    block: str
    share: bytes


class LatticeServerKey(EncryptedSum):
    """A session under the receiver's lattice key."""

    options_type = LatticeOptions

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
        return of_length(self._secret.decrypt(ciphertext), n)


class Lattice(SecureSum):
    """A session under a key that all contributors share; with key='server', :class:`LatticeServerKey`."""

    to_contributors = (Compared, SumKey, AddedInputs)
    to_receivers = (KeyShare, EncryptedInput, OpeningShare)
    options_type = LatticeOptions
    contributors_see = (
        "public keys, the others' digests and fingerprints, and ciphertexts that nobody opens alone"
    )
    hides = "what an island sends is encrypted under a key that all islands share"
    estimator_options = ("key",)
    wraps = False
    key_steps = frozenset({"recorded_share", "add_key_shares", "key_fingerprints"})
    measured = ({"key": "collective"}, {"key": "server"})

    @classmethod
    def trust(cls, contributors: int, options: Any) -> str:
        return (
            "What a single island adds stays hidden unless the receiver and all other "
            f"{contributors - 1} islands work together."
        )

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
    def chosen(cls, options: Any, most: int) -> type[SecureSum]:
        return LatticeServerKey if options.key == "server" else cls

    @classmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        chosen = lattice.plan(min(sum(lengths), BLOCK_VALUES), collective=True)
        key, sums = lattice.key_bytes(chosen), sum(lattice.ciphertext_bytes(chosen, n) for n in lengths)
        shares = sum(lattice.share_bytes(chosen, n) for n in lengths)
        carries = sum(lattice.carry_bytes(chosen, n) for n in lengths)
        compared = (contributors - 1) * _COMPARED * (4 + 2 * len(lengths))
        sent = key + sums + shares + compared + 32 * contributors + _OVERHEAD * (1 + 2 * len(lengths))
        back = key + 16 * contributors + sums + carries + _OVERHEAD * (1 + len(lengths))
        return Cost(
            messages=contributors * (2 + 3 * len(lengths) + (contributors - 1) * (4 + 2 * len(lengths))),
            bytes_per_contributor=sent,
            bytes_total=contributors * (sent + back),
            rounds=6 + 5 * len(lengths),
        )

    # ---- the key: a reference, commitments, shares, and a sum that everybody checks ----

    async def open(self) -> None:
        if self.net.me == self._receiver:
            await self._collect_key()
        if self.net.me in self.contributors:
            await self._share_key()

    async def _collect_key(self) -> None:
        shares = await self.net.gather(KeyShare, self.contributors)
        promised = b"".join(hashlib.sha256(message.share).digest() for message in shares.values())
        for sender, message in shares.items():
            if message.commitments != promised:
                raise MessageError(
                    f"the key shares that came are not those that {sender} was promised",
                    hint="a share chosen after seeing the others could cancel them; nothing was encrypted",
                )
        public = await self.net.compute(_add_key_shares, [message.share for message in shares.values()])
        self._public = lattice.PublicKey(public)
        await self.net.broadcast(self.contributors, SumKey(public))

    async def _share_key(self) -> None:
        nonce = self.record(f"{self.session}/nonce", randomness.fresh_seed)
        nonces = await self._compare("the key's session", b"", nonce)
        common = self._digest("reference", *_of_size(nonces, randomness.SEED_BYTES))
        made = await self.net.compute(self._recorded_share, common)
        secret, share = codec.decode(made, tuple[bytes, bytes])
        promised = await self._compare("the key's reference", common, hashlib.sha256(share).digest())
        commitments = b"".join(_of_size(promised, hashlib.sha256().digest_size))
        await self.net.send(self._receiver, KeyShare(share, commitments))
        public = (await self.net.receive(SumKey, self._receiver)).key
        await self._check_key(public, share, common)
        self._secret, self._public = lattice.SecretKey(secret), lattice.PublicKey(public)

    def _recorded_share(self, common: bytes) -> bytes:
        """The secret and public share; the reference is nobody's choice alone, and fresh for this session."""

        def draw() -> bytes:
            width, parameters = self._plan.width, self._plan.parameters
            pair = lattice.key_share(common, width=width, parameters=parameters, seed=randomness.fresh_seed())
            return codec.encode((pair.secret, pair.public))

        return self.record(f"{self.session}/key", draw)

    async def _check_key(self, public: bytes, share: bytes, common: bytes) -> None:
        """Nothing is encrypted unless the key is the sum of all shares, this contributor's among them."""
        coin = await self._toss("key", hashlib.sha256(public).digest(), b"")
        facts, ours = lattice.inspect(public), lattice.inspect(share)
        fits = (facts.kind, facts.count) == (lattice.PUBLIC_KEY, len(self.contributors))
        same = (facts.parameters_id, facts.width) == (ours.parameters_id, ours.width)
        if not (fits and same and facts.size == len(public) and lattice.key_reference(public) == common):
            raise MessageError("the key that the receiver made is not for this session", hint=_NO_KEY)
        own, whole = await self.net.compute(_key_fingerprints, (share, public), coin)
        told = await self._compare("the key's fingerprints", coin, fingerprint.to_bytes(own))
        parts = [fingerprint.from_bytes(note, len(own)) for note in told]
        for k, at in enumerate(_key_points(self._plan.parameters.primes, coin)):
            if fingerprint.plus(at, (part[k] for part in parts)) != whole[k]:
                raise MessageError("the receiver's key is not the sum of all key shares", hint=_NO_KEY)

    # ---- a block: encrypt, add, check the sum, open together ----

    async def contribute_block(self, name: str, values: Limbs) -> None:
        seed = self.record(f"{self.session}/{name}", randomness.fresh_seed)
        body, promise = await self.net.compute(self._encrypt, values, seed)
        await self.net.send(self._receiver, EncryptedInput(name, body))
        total = await self.net.receive(AddedInputs, self._receiver)
        check_round(name, total.block, self._receiver)
        opened = await self.net.compute(lattice.digest_of, total.body)
        await self._check_sum(name, body, promise, total, opened)
        share = await self.net.compute(self._secret.decryption_share, self._public, total.body, opened)
        await self.net.send(self._receiver, OpeningShare(name, share))

    def _encrypt(self, values: Limbs, seed: bytes) -> tuple[bytes, bytes]:
        """The ciphertext and its digest."""
        body = self._public.encrypt(values, summands=len(self.contributors), seed=seed)
        return body, lattice.digest_of(body)

    async def _check_sum(
        self, name: str, own: bytes, promise: bytes, total: AddedInputs, opened: bytes
    ) -> None:
        """A share is given for the sum of everybody's ciphertexts, and for nothing else.

        ``promise`` and ``opened`` are the digests of the own ciphertext and of the sum.
        """
        coin = await self._toss(name, self._digest("sum", opened, total.carries), promise)
        facts, ours = lattice.inspect(total.body), lattice.inspect(own)
        sizes = len(total.body), len(total.carries) * self._plan.parameters.cipher_bytes
        if facts != replace(ours, count=len(self.contributors)) or sizes != (
            len(own),
            len(own) - lattice.HEADER_BYTES,
        ):
            raise MessageError(_OTHER_SUM, hint=_NO_SHARE)
        part, whole = await self.net.compute(_fingerprints, own, total, coin)
        told = await self._compare(f"the fingerprints of {name}", coin, fingerprint.to_bytes([part]))
        parts = (fingerprint.from_bytes(note, 1)[0] for note in told)
        if fingerprint.plus(fingerprint.points(coin), parts) != whole:
            raise MessageError(_OTHER_SUM, hint=_NO_SHARE)

    async def total_block(self, name: str, n: int) -> Limbs:
        adder = lattice.Adder()

        def combine(sender: Address, message: EncryptedInput) -> None:
            check_round(name, message.block, sender)
            adder.add(message.body)

        await self.net.fold(EncryptedInput, self.contributors, combine)
        total = adder.finish()
        await self.net.broadcast(self.contributors, AddedInputs(name, total, adder.carries(total)))
        shares = await self.net.gather(OpeningShare, self.contributors)
        for sender, message in shares.items():
            check_round(name, message.block, sender)
        opened = await self.net.compute(
            self._public.combine, total, [message.share for message in shares.values()]
        )
        return of_length(opened, n)

    # ---- what contributors compare among themselves, past the receiver ----

    async def _compare(self, topic: str, digest: bytes, note: bytes) -> list[bytes]:
        bound = self._digest(topic, digest)
        return list((await self.net.agree(topic, bound, self.contributors, note)).values())

    async def _toss(self, name: str, digest: bytes, note: bytes) -> bytes:
        """A coin that falls after everybody has what the receiver sent, and only if that is the same."""
        nonce = self.record(f"{self.session}/{name}/coin", randomness.fresh_seed)
        told = await self._compare(f"the sum of {name}", digest, nonce + note)
        return self._digest("coin", name, digest, *_of_size(told, len(nonce + note)))

    def _digest(self, purpose: str, *parts: str | bytes) -> bytes:
        digest = hashlib.sha256()
        for part in (self.session, purpose, *parts):
            data = part if isinstance(part, bytes) else part.encode()
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.digest()


def _key_points(primes: Sequence[int], coin: bytes) -> list[fingerprint.Points]:
    return [fingerprint.points_modulo(prime, coin) for prime in primes]


def _add_key_shares(shares: list[bytes]) -> bytes:
    return lattice.aggregate(shares)


def _key_fingerprints(keys: Sequence[bytes], coin: bytes) -> list[list[fingerprint.Pair]]:
    """For every key one pair for every prime."""
    found = []
    for key in keys:
        residues, together, primes = lattice.key_residues(key)
        at = _key_points(primes, coin)
        found.append(fingerprint.evaluate_rows(residues, lattice.RESIDUE_BYTES, together, at))
    return found


def _fingerprints(own: bytes, total: AddedInputs, coin: bytes) -> tuple[fingerprint.Pair, fingerprint.Pair]:
    """Those of a summand, and of the sum."""
    at = fingerprint.points(coin)
    return fingerprint.evaluate(*lattice.coefficients(own), at), _sum_fingerprints(total, at)


def _sum_fingerprints(total: AddedInputs, at: fingerprint.Points) -> fingerprint.Pair:
    """Those of the integers that carries and coefficients make: ciphertexts wrap, integers do not."""
    body, size = lattice.coefficients(total.body)
    wrapped = fingerprint.evaluate(total.carries, 1, at)
    unit = 1 << (8 * size)
    return fingerprint.plus(
        at, (fingerprint.evaluate(body, size, at), (wrapped[0] * unit, wrapped[1] * unit))
    )


def _of_size(notes: Sequence[bytes], size: int) -> Sequence[bytes]:
    if any(len(note) != size for note in notes):
        raise MessageError(f"a contributor sent a note that does not have {size} bytes")
    return notes


_OVERHEAD = 100
_COMPARED = 160
_NO_KEY = "nothing was encrypted under it: ask the receiver what it did"
_OTHER_SUM = "the receiver asks to open something else than the sum of all contributors"
_NO_SHARE = "nothing was opened: ask the receiver what it did"
