"""Onions: bytes under one envelope for each of several readers, to be opened in turn.

Every layer is an envelope (:mod:`atoll.crypto.envelope`) of its own: the outermost is opened first. A
layer is bound to its context, which says what the onion is for and at which place in the order the layer
stands: one that is moved to another place, another order or another round cannot be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from atoll import randomness
from atoll.crypto import envelope
from atoll.errors import MessageError

LAYER_BYTES = 1 + envelope.KEY_BYTES + 16
"""What a layer adds: version, ephemeral key, tag."""


class Layer(NamedTuple):
    """One reader's public key, and what its layer is for."""

    key: bytes
    context: str


def wrap(content: bytes, layers: Sequence[Layer], seed: bytes) -> list[bytes]:
    """The onion after each layer, the innermost first; the last one is the whole onion."""
    wrapped = []
    for number, layer in enumerate(layers):
        content = envelope.seal(layer.key, content, layer.context, randomness.derive(seed, "layer", number))
        wrapped.append(content)
    return wrapped


def strip(onions: Sequence[bytes], private: bytes, context: str) -> list[bytes]:
    """Every onion without its outermost layer; an error that names the first that cannot be opened."""
    stripped = []
    for number, onion in enumerate(onions):
        try:
            stripped.append(envelope.unseal(private, onion, context))
        except MessageError:
            raise MessageError(f"layer {number + 1} of {len(onions)} cannot be opened") from None
    return stripped


def size(content_bytes: int, layers: int) -> int:
    """The length of an onion."""
    return content_bytes + layers * LAYER_BYTES
