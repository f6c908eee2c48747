"""The paper's own form of a mix: ElGamal, here in Ristretto255, one ciphertext for all layers.

A ciphertext is made under the product of all keys. Whoever is next takes its own key off, re-randomises what
is left, and permutes: each coordinate by a permutation of its own, so that a vector does not move as a unit.
A value of 192 bits travels in two group elements.

Deviation: the paper puts one encryption inside another; a product of keys does the same at the size of one.
Every key comes with a proof that its owner knows the secret: a key that cancels the others' has none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atoll import fixedpoint
from atoll.codec import decode, encode
from atoll.crypto import mixing as group
from atoll.errors import KeyMismatch, MessageError
from atoll.fixedpoint import Limbs
from atoll.secure_sums.mix.form import Batch, Form, Hop, Wrapped

PIECES = fixedpoint.BYTES_PER_VALUE // group.PIECE_BYTES


class ElGamal(Form):
    """Layers that are keys of one ciphertext."""

    def private_key(self, root: bytes, context: str) -> bytes:
        return encode(tuple(group.keygen(root, context)))

    def public_key(self, private: bytes) -> bytes:
        return _pair(private).public

    def check_key(self, public: bytes, context: str) -> None:
        try:
            group.check_key(public, context)
        except KeyMismatch as error:
            raise MessageError(error.message) from None

    def size(self, n: int, layers: int) -> int:
        return PIECES * n * group.CIPHER_BYTES

    def wrap(self, segments: Sequence[Limbs], keys: Sequence[bytes], hop: Hop, seed: bytes) -> Wrapped:
        pieces = b"".join(_to_pieces(segment) for segment in segments)
        return Wrapped(_items(group.wrap(keys, pieces, seed), len(segments)), ())

    def strip(
        self, batch: Sequence[bytes], private: bytes, below: Sequence[bytes], hop: Hop, seed: bytes
    ) -> Batch:
        stripped = group.strip(_pair(private).secret, below, len(batch), b"".join(batch), seed)
        return _items(stripped, len(batch))

    def read(self, batch: Sequence[bytes], private: bytes, hop: Hop, n: int) -> list[Limbs]:
        pieces = group.read(_pair(private).secret, b"".join(batch))
        return [_from_pieces(item, n) for item in _items(pieces, len(batch))]


def _pair(private: bytes) -> group.KeyPair:
    return group.KeyPair(*decode(private, tuple[bytes, bytes]))


def _items(data: bytes, count: int) -> Batch:
    size = len(data) // count
    return tuple(data[start : start + size] for start in range(0, len(data), size))


def _to_pieces(values: Limbs) -> bytes:
    """Value after value, the lower half first."""
    return np.ascontiguousarray(values.T, dtype="<u8").tobytes()


def _from_pieces(data: bytes, n: int) -> Limbs:
    # Each piece was permuted alone: halves of different values meet here, and only their sum means anything.
    return np.ascontiguousarray(np.frombuffer(data, "<u8").reshape(n, fixedpoint.LIMBS).T.astype(np.uint64))
