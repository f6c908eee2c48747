"""The group Ristretto255 (go/group): ElGamal for the layers of a mix, and ids for set intersection.

Hazardous material: use it through a secure sum or a recipe. A ciphertext under the product of several keys is
stripped of one key after another; whoever strips re-randomises and permutes, so that nobody can tell which
ciphertext became which. All draws come from seeds: the same call gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll.crypto.hazmat import golib

PIECE_BYTES = 12
CIPHER_BYTES = 64
SECRET_BYTES = 32
PUBLIC_BYTES = 96
ELEMENT_BYTES = 32
HASH_BYTES = 32

golib.declare("""
int32_t atoll_group_keygen(uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
                           char*, uint64_t);
int32_t atoll_group_check_key(uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_group_wrap(uint8_t**, uint64_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
                         uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_group_strip(uint8_t*, uint64_t, uint8_t**, uint64_t*, uint64_t, uint64_t, uint8_t*, uint64_t,
                          uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_group_read(uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_group_blind(uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
int32_t atoll_group_raise(uint8_t*, uint64_t, uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);
""")


class KeyPair(NamedTuple):
    """A secret key, and the public one with its proof of possession."""

    secret: bytes
    public: bytes

    def __repr__(self) -> str:
        return "<KeyPair>"


def keygen(seed: bytes, context: str) -> KeyPair:
    """A key pair; the proof is bound to ``context``."""
    secret, public = golib.bytes_out(SECRET_BYTES), golib.bytes_out(PUBLIC_BYTES)
    golib.call(
        "atoll_group_keygen",
        *golib.bytes_in(seed),
        *golib.bytes_in(context.encode()),
        *secret[1:],
        *public[1:],
    )
    return KeyPair(secret[0].tobytes(), public[0].tobytes())


def check_key(public: bytes, context: str) -> None:
    """Refuse a key without a valid proof of possession."""
    golib.call("atoll_group_check_key", *golib.bytes_in(public), *golib.bytes_in(context.encode()))


def wrap(keys: Sequence[bytes], pieces: bytes, seed: bytes) -> bytes:
    """Every piece of 12 bytes, encrypted under the product of the keys."""
    out = golib.bytes_out(len(pieces) // PIECE_BYTES * CIPHER_BYTES)
    listed = golib.BufferList(keys)
    golib.call(
        "atoll_group_wrap", *listed.arguments, *golib.bytes_in(pieces), *golib.bytes_in(seed), *out[1:]
    )
    return out[0].tobytes()


def strip(secret: bytes, below: Sequence[bytes], items: int, batch: bytes, seed: bytes) -> bytes:
    """The batch without one key: re-randomised, and every column of its ``items`` rows permuted."""
    out = golib.bytes_out(len(batch))
    listed = golib.BufferList(below)
    golib.call(
        "atoll_group_strip",
        *golib.bytes_in(secret),
        *listed.arguments,
        items,
        *golib.bytes_in(batch),
        *golib.bytes_in(seed),
        *out[1:],
    )
    return out[0].tobytes()


def read(secret: bytes, batch: bytes) -> bytes:
    """The pieces, from under the last key."""
    out = golib.bytes_out(len(batch) // CIPHER_BYTES * PIECE_BYTES)
    golib.call("atoll_group_read", *golib.bytes_in(secret), *golib.bytes_in(batch), *out[1:])
    return out[0].tobytes()


def blind(seed: bytes, hashes: bytes) -> bytes:
    """Every hash of 32 bytes as an element, times the secret that the seed stands for."""
    out = golib.bytes_out(len(hashes) // HASH_BYTES * ELEMENT_BYTES)
    golib.call("atoll_group_blind", *golib.bytes_in(seed), *golib.bytes_in(hashes), *out[1:])
    return out[0].tobytes()


def raise_elements(seed: bytes, elements: bytes) -> bytes:
    """Every element times the secret; malformed ones are refused."""
    out = golib.bytes_out(len(elements))
    golib.call("atoll_group_raise", *golib.bytes_in(seed), *golib.bytes_in(elements), *out[1:])
    return out[0].tobytes()
