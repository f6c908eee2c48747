"""The default form of a mix: every segment is one onion of envelopes.

A whole vector is one payload, so a layer costs one agreement on a key and the speed of a stream cipher. That
a vector moves as a unit is safe only because its values are blinded and cut uniformly. A layer is bound to
session, round, order and place; an item that was altered, or comes from elsewhere, does not open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from atoll import fixedpoint, randomness
from atoll.crypto import envelope, onion
from atoll.errors import MessageError
from atoll.fixedpoint import Limbs
from atoll.secure_sums.mix.form import Batch, Form, Hop, Wrapped, shuffled


class Onions(Form):
    """Layers of X25519 and ChaCha20-Poly1305."""

    def private_key(self, root: bytes, context: str) -> bytes:
        return root

    def public_key(self, private: bytes) -> bytes:
        return envelope.public_key(private)

    def check_key(self, public: bytes, context: str) -> None:
        # Nobody gains by a key that it does not know: nobody then opens its layer.
        if len(public) != envelope.KEY_BYTES:
            raise MessageError(f"a key of {len(public)} bytes came where {envelope.KEY_BYTES} are due")

    def size(self, n: int, layers: int) -> int:
        return onion.size(fixedpoint.BYTES_PER_VALUE * n, layers)

    def wrap(self, segments: Sequence[Limbs], keys: Sequence[bytes], hop: Hop, seed: bytes) -> Wrapped:
        layers = [onion.Layer(key, hop.at(place).context) for place, key in enumerate(keys)]
        stages = [
            onion.wrap(_to_bytes(segment), layers, randomness.derive(seed, "onion", number))
            for number, segment in enumerate(segments)
        ]
        marks = tuple(frozenset(mark(wrapped[place]) for wrapped in stages) for place in range(len(layers)))
        return Wrapped(tuple(wrapped[-1] for wrapped in stages), marks)

    def strip(
        self, batch: Sequence[bytes], private: bytes, below: Sequence[bytes], hop: Hop, seed: bytes
    ) -> Batch:
        stripped = onion.strip(batch, private, hop.context)
        return tuple(stripped[k] for k in shuffled(len(stripped), seed))

    def read(self, batch: Sequence[bytes], private: bytes, hop: Hop, n: int) -> list[Limbs]:
        return [_from_bytes(segment, n) for segment in onion.strip(batch, private, hop.context)]


def mark(item: bytes) -> bytes:
    """By which a contributor knows its own items again."""
    return hashlib.sha256(item).digest()


def _to_bytes(values: Limbs) -> bytes:
    return np.ascontiguousarray(values, dtype="<u8").tobytes()


def _from_bytes(data: bytes, n: int) -> Limbs:
    return np.frombuffer(data, "<u8").reshape(fixedpoint.LIMBS, n).astype(np.uint64, copy=False)
