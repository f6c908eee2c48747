"""Envelopes: bytes that only the holder of one X25519 key can read, whoever carries them.

An ephemeral key, a key derived from the agreement and everything public, ChaCha20-Poly1305. The
recipient's key is bound in, and so is ``context`` (what the envelope is for): opened under another
context it fails. Failure says nothing about its cause.
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from atoll import randomness
from atoll.errors import MessageError

VERSION = 1
KEY_BYTES = 32

_DOMAIN = "atoll/envelope/v1"
# The key is used for one envelope only, so the nonce may be fixed.
_NONCE = bytes(12)


def public_key(private: bytes) -> bytes:
    """The public half of a 32-byte private key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def seal(recipient: bytes, content: bytes, context: str, seed: bytes) -> bytes:
    """An envelope for the holder of ``recipient``; ``seed`` is fresh for each."""
    ephemeral = randomness.derive(seed, _DOMAIN, "ephemeral", context)
    sender = public_key(ephemeral)
    cipher = ChaCha20Poly1305(_key(_agree(ephemeral, recipient), sender, recipient, context))
    return bytes([VERSION]) + sender + cipher.encrypt(_NONCE, content, None)


def unseal(private: bytes, envelope: bytes, context: str) -> bytes:
    """The content of an envelope sealed to this key under this context."""
    if len(envelope) < 1 + KEY_BYTES or envelope[0] != VERSION:
        raise MessageError("an envelope cannot be opened")
    sender = envelope[1 : 1 + KEY_BYTES]
    key = _key(_agree(private, sender), sender, public_key(private), context)
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, envelope[1 + KEY_BYTES :], None)
    except InvalidTag:
        raise MessageError("an envelope cannot be opened") from None


def agreement(private: bytes, public: bytes, *domain: str | bytes | int) -> bytes:
    """32 bytes that the holders of two keys both find, for one purpose, and nobody else."""
    ours = public_key(private)
    return randomness.derive(_agree(private, public), _DOMAIN, *sorted((ours, public)), *domain)


def _agree(private: bytes, public: bytes) -> bytes:
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:
        raise MessageError("an envelope cannot be opened") from None


def _key(agreed: bytes, sender: bytes, recipient: bytes, context: str) -> bytes:
    bound = hashlib.sha256(context.encode()).digest()
    return randomness.derive(agreed, _DOMAIN, sender, recipient, bound)
