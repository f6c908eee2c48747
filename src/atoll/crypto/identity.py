"""Identities: the keys by which organisations know each other, and the fingerprint they compare.

An identity is one seed. From it come an Ed25519 key that signs, an X25519 key that opens envelopes, and keys
for purposes of the site's own (:meth:`Identity.derive`). What others hold is the :class:`PublicIdentity`.
Studies pin its fingerprint, which two people compare by voice or on paper: no server vouches for it.

The file is readable by its owner only and can be sealed with a passphrase. Python cannot wipe memory: a
process that loaded an identity holds its seed until it ends.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from atoll import randomness
from atoll.crypto import envelope
from atoll.errors import MessageError, ParameterError

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
FILE_FORMAT: Final = 1

_DOMAIN: Final = "atoll/identity/v1"
_SCRYPT: Final = (1 << 15, 8, 1)
_NONCE: Final = bytes(12)  # a key stretched with a fresh salt seals one file
_CONSONANTS: Final = "bdfghjklmnprstvz"
_VOWELS: Final = "aiou"


@dataclass(frozen=True)
class PublicIdentity:
    """What others know of an organisation: a key that checks signatures and a key that seals envelopes."""

    signing: bytes
    sealing: bytes

    def __post_init__(self) -> None:
        if len(self.signing) != KEY_BYTES or len(self.sealing) != KEY_BYTES:
            raise MessageError("a public identity has two keys of 32 bytes")

    @classmethod
    def from_raw(cls, raw: bytes) -> PublicIdentity:
        """The inverse of :attr:`raw`."""
        if len(raw) != 2 * KEY_BYTES:
            raise MessageError("a public identity has 64 bytes")
        return cls(raw[:KEY_BYTES], raw[KEY_BYTES:])

    @property
    def raw(self) -> bytes:
        """64 bytes: both keys."""
        return self.signing + self.sealing

    @cached_property
    def fingerprint(self) -> str:
        """64 hexadecimal digits that stand for both keys: what studies pin."""
        return hashlib.sha256(_DOMAIN.encode() + b"/fingerprint" + self.raw).hexdigest()

    @property
    def words(self) -> str:
        """The first 128 bits of the fingerprint as eight words that can be read out."""
        return words(self.fingerprint)

    def verify(self, context: str, data: bytes, signature: bytes) -> None:
        """Raise unless this identity signed exactly this, for exactly this purpose."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, _signed(context, data))
        except (InvalidSignature, ValueError):
            raise MessageError(
                f"a signature is not that of {self.fingerprint[:16]}",
                hint="it was changed on its way, or somebody else made it",
            ) from None

    def seal_for(self, content: bytes, context: str) -> bytes:
        """An envelope that only this identity can open, under the same ``context``."""
        return envelope.seal(self.sealing, content, f"{_DOMAIN} {context}", randomness.fresh_seed())


class Identity:
    """An organisation's own keys. Its text and representation show the fingerprint and no key."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != randomness.SEED_BYTES:
            raise MessageError("an identity's seed has 32 bytes")
        self._seed = seed
        self._signing = Ed25519PrivateKey.from_private_bytes(randomness.derive(seed, _DOMAIN, "signing"))
        self._sealing = randomness.derive(seed, _DOMAIN, "sealing")
        self.public = PublicIdentity(
            self._signing.public_key().public_bytes_raw(), envelope.public_key(self._sealing)
        )

    def __repr__(self) -> str:
        return f"<Identity {self.fingerprint[:16]}>"

    def __reduce__(self) -> str:
        raise TypeError("an identity is stored by save(), nowhere else")

    @classmethod
    def new(cls) -> Identity:
        """An identity that nobody had before."""
        return cls(randomness.fresh_seed())

    @property
    def fingerprint(self) -> str:
        """See :attr:`PublicIdentity.fingerprint`."""
        return self.public.fingerprint

    def sign(self, context: str, data: bytes) -> bytes:
        """64 bytes that :meth:`PublicIdentity.verify` accepts for this context and data only."""
        return self._signing.sign(_signed(context, data))

    def unseal(self, sealed: bytes, context: str) -> bytes:
        """The content of an envelope made by :meth:`PublicIdentity.seal_for`."""
        return envelope.unseal(self._sealing, sealed, f"{_DOMAIN} {context}")

    def derive(self, label: str) -> bytes:
        """A secret of 32 bytes for one purpose of the owner's own (a login, a wrapping key)."""
        return randomness.derive(self._seed, _DOMAIN, "derived", label)

    def save(self, path: Path, passphrase: str | None = None, *, replace: bool = False) -> None:
        """Write the file, readable by its owner only; an existing one only with ``replace``."""
        stored = _Stored(
            FILE_FORMAT, self.public.raw.hex(), *_locked(self._seed, self.public.raw, passphrase)
        )
        if path.exists() and not replace:
            raise ParameterError(
                f"{path} is already there",
                hint="another identity would not be able to go on with this one's runs; choose another file",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_privately(path, msgspec.json.format(msgspec.json.encode(stored)) + b"\n")

    @classmethod
    def load(cls, path: Path, passphrase: str | None = None) -> Identity:
        """The identity in a file that :meth:`save` wrote."""
        stored = _read(path)
        public = _bytes(path, stored.public)
        seed = _unlocked(path, stored, public, passphrase)
        identity = cls(seed)
        if identity.public.raw != public:
            raise _damaged(path)
        return identity


def public_of(path: Path) -> PublicIdentity:
    """The public half of an identity's file, without its passphrase. Not checked against the private half."""
    return PublicIdentity.from_raw(_bytes(path, _read(path).public))


def needs_passphrase(path: Path) -> bool:
    """Whether the file is sealed with a passphrase."""
    return _read(path).salt is not None


def words(fingerprint: str) -> str:
    """The first 128 bits of a fingerprint as eight words of five letters."""
    head = bytes.fromhex(fingerprint[:32])
    return "-".join(_word(int.from_bytes(head[i : i + 2], "big")) for i in range(0, len(head), 2))


def _word(number: int) -> str:
    """16 bits as consonant, vowel, consonant, vowel, consonant: 4, 2, 4, 2 and 4 bits."""
    return (
        _CONSONANTS[number >> 12]
        + _VOWELS[number >> 10 & 3]
        + _CONSONANTS[number >> 6 & 15]
        + _VOWELS[number >> 4 & 3]
        + _CONSONANTS[number & 15]
    )


# ---- notices that an identity is replaced or no longer valid ----


class Notice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an identity says about itself, signed by it: another takes its place, or none does."""

    kind: Literal["rotated", "revoked"]
    old: bytes
    new: bytes
    """The public identity that takes its place; empty where it is revoked."""
    at: int
    """Seconds since 1970, by the clock of whoever signed."""
    signature: bytes
    new_signature: bytes
    """By the new identity: nobody can name another's as their own successor."""

    def signed(self) -> bytes:
        """What the signatures cover."""
        return msgspec.msgpack.encode((self.kind, self.old, self.new, self.at))

    def encode(self) -> bytes:
        """As bytes, to pass on."""
        return msgspec.msgpack.encode(self)


_NOTICE = "identity notice"


def rotation(old: Identity, new: Identity, at: int) -> Notice:
    """The notice that ``new`` takes the place of ``old``; whoever pinned the old one still decides."""
    draft = Notice("rotated", old.public.raw, new.public.raw, at, b"", b"")
    return msgspec.structs.replace(
        draft, signature=old.sign(_NOTICE, draft.signed()), new_signature=new.sign(_NOTICE, draft.signed())
    )


def revocation(identity: Identity, at: int) -> Notice:
    """The notice that this identity is not to be trusted any more."""
    draft = Notice("revoked", identity.public.raw, b"", at, b"", b"")
    return msgspec.structs.replace(draft, signature=identity.sign(_NOTICE, draft.signed()))


def read_notice(data: bytes) -> Notice:
    """A notice with good signatures, or :class:`MessageError`."""
    try:
        notice = msgspec.msgpack.decode(data, type=Notice)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise MessageError("a notice about an identity is malformed") from None
    PublicIdentity.from_raw(notice.old).verify(_NOTICE, notice.signed(), notice.signature)
    if notice.kind == "rotated":
        PublicIdentity.from_raw(notice.new).verify(_NOTICE, notice.signed(), notice.new_signature)
    elif notice.new or notice.new_signature:
        raise MessageError("a notice about an identity is malformed")
    return notice


# ---- the file ----


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: the seed in hexadecimal, or sealed with a passphrase and a salt."""

    atoll_identity: int
    public: str
    secret: str
    salt: str | None = None
    scrypt: tuple[int, int, int] | None = None


def _signed(context: str, data: bytes) -> bytes:
    # The length keeps one purpose's text from being the beginning of another's.
    purpose = context.encode()
    return _DOMAIN.encode() + len(purpose).to_bytes(4, "little") + purpose + data


def _locked(
    seed: bytes, public: bytes, passphrase: str | None
) -> tuple[str, str | None, tuple[int, int, int] | None]:
    if passphrase is None:
        return seed.hex(), None, None
    if not passphrase:
        raise ParameterError("an empty passphrase protects nothing", hint="leave it out, or choose one")
    salt = randomness.fresh_seed()
    key = _stretched(passphrase, salt, _SCRYPT)
    return ChaCha20Poly1305(key).encrypt(_NONCE, seed, public).hex(), salt.hex(), _SCRYPT


def _unlocked(path: Path, stored: _Stored, public: bytes, passphrase: str | None) -> bytes:
    if stored.salt is None or stored.scrypt is None:
        return _bytes(path, stored.secret)
    if passphrase is None:
        raise ParameterError(
            f"{path} is sealed with a passphrase", hint="give it when asked, or --passphrase-file"
        )
    try:
        key = _stretched(passphrase, _bytes(path, stored.salt), stored.scrypt)
        return ChaCha20Poly1305(key).decrypt(_NONCE, _bytes(path, stored.secret), public)
    except (InvalidTag, ValueError):
        raise ParameterError(
            f"the passphrase does not open {path}", hint="try again; it cannot be recovered"
        ) from None


def _stretched(passphrase: str, salt: bytes, cost: tuple[int, int, int]) -> bytes:
    n, r, p = cost
    if n * r * p > 1 << 22:  # a file could otherwise ask for all memory
        raise ValueError("cost")
    return Scrypt(salt=salt, length=KEY_BYTES, n=n, r=r, p=p).derive(passphrase.encode())


def _read(path: Path) -> _Stored:
    try:
        mode = path.stat().st_mode
        data = path.read_bytes()
    except FileNotFoundError:
        raise ParameterError(f"there is no identity at {path}", hint="make one: atoll identity new") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ParameterError(
            f"others on this machine can read the identity at {path}",
            hint=f"chmod 600 {path}; if others may have read it, make a new one: atoll identity rotate",
        )
    try:
        stored = msgspec.json.decode(data, type=_Stored)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise _damaged(path) from None
    if stored.atoll_identity != FILE_FORMAT:
        raise ParameterError(
            f"{path} has format {stored.atoll_identity}, this version reads {FILE_FORMAT}",
            hint="use the version of Atoll that made it, or a newer one",
        )
    return stored


def _bytes(path: Path, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _damaged(path) from None


def _damaged(path: Path) -> ParameterError:
    return ParameterError(f"{path} is no identity, or is damaged", hint="restore it from its backup")


def _write_privately(path: Path, content: bytes) -> None:
    """All or nothing, on disk when it returns, and never readable by others, not even for a moment."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
