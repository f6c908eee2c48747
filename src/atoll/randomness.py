"""Randomness: the only module that asks the operating system, and the only way to stretch a seed.

Secrets start as 32 bytes from the operating system, drawn through a role's ``record``; everything
longer is expanded from such a seed under a *domain*: a named constant bound to what it is for, so
that one seed never gives the same bytes for two purposes.

The expansion is AES-256 in counter mode under a key derived with BLAKE2b: a PRG under the usual
assumption on AES, at memory speed on processors with AES instructions.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

SEED_BYTES = 32

_ZERO_NONCE = bytes(16)

Public = np.random.Generator
"""Draws numbers that are no secret: everybody who knows the seed can draw them again."""


def public(seed: int | list[int]) -> Public:
    """For simulations, first centres and made-up rows alone; never for keys, masks or noise."""
    return np.random.default_rng(seed)


def fresh_seed() -> bytes:
    """32 bytes from the operating system. Call it through a role's ``record``."""
    return secrets.token_bytes(SEED_BYTES)


def fresh_below(bound: int) -> int:
    """A uniform integer in [0, bound) from the operating system."""
    return secrets.randbelow(bound)


def derive(seed: bytes, *domain: str | bytes | int) -> bytes:
    """A 32-byte key bound to ``domain``; parts are length-prefixed, so no two domains collide."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes")
    mac = hashlib.blake2b(key=seed, digest_size=SEED_BYTES, person=b"atoll/derive/v1")
    for part in domain:
        data = part if isinstance(part, bytes) else str(part).encode()
        mac.update(len(data).to_bytes(8, "little"))
        mac.update(data)
    return mac.digest()


def expand(seed: bytes, n_bytes: int, *domain: str | bytes | int) -> bytes:
    """``n_bytes`` of keystream from ``seed`` under ``domain``."""
    # A key derived for one domain encrypts one stream only, so the counter may start at zero.
    key = derive(seed, *domain)
    stream = Cipher(algorithms.AES(key), modes.CTR(_ZERO_NONCE)).encryptor()
    return stream.update(bytes(n_bytes))


def expand_words(seed: bytes, n_words: int, *domain: str | bytes | int) -> npt.NDArray[np.uint64]:
    """``n_words`` uniform 64-bit words from ``seed`` under ``domain``."""
    return np.frombuffer(expand(seed, 8 * n_words, *domain), dtype="<u8").astype(np.uint64, copy=False)
