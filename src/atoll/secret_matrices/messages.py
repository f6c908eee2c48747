"""The messages between machines. Bodies are megabytes, and views of a message's bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.network import Compared


class SeedPart(Message, frozen=True):
    """Provider -> coordinator: its part of the session's public seed."""

    seed: bytes


class SessionSeed(Message, frozen=True):
    """Coordinator -> provider: everybody's parts."""

    seeds: tuple[bytes, ...]


class KeyParts(Message, frozen=True):
    """Provider -> coordinator: its parts of the public keys, ring by ring."""

    parts: tuple[bytes, ...]


class AllKeyParts(Message, frozen=True):
    """Coordinator -> provider: everybody's parts, in the study's order, one after another.

    The same bytes for all: where many roles share a memory, they share these.
    """

    body: memoryview


class EncryptedShare(Message, frozen=True):
    """Provider -> coordinator: its share of a matrix, encrypted."""

    step: int
    body: memoryview


class EncryptedMatrix(Message, frozen=True):
    """Coordinator -> provider: a matrix under the collective key."""

    step: int
    body: memoryview


class ProductPart(Message, frozen=True):
    """Provider -> coordinator: an encrypted matrix times its own, re-randomised."""

    step: int
    body: memoryview


class SecondPart(Message, frozen=True):
    """Provider -> coordinator: the second half of its product, ahead of the encrypted matrix."""

    step: int
    body: memoryview


class SecondHalves(Message, frozen=True):
    """Coordinator -> provider: what decryption shares of a product are made from."""

    step: int
    body: memoryview


class MaskedShare(Message, frozen=True):
    """Provider -> coordinator: its decryption share under a mask.

    With the first half of its product, where the second went ahead. ``blind`` hides the fingerprints that it
    tells the others of it (:mod:`blinds`).
    """

    step: int
    body: memoryview
    blind: bytes


class MaskedTotal(Message, frozen=True):
    """Coordinator -> the carrier, or all members: the masked result, before it is truncated; the sum of
    blinds."""

    step: int
    body: memoryview
    blind: bytes


class OpenedShare(Message, frozen=True):
    """Provider -> coordinator: its share of a matrix that is opened."""

    step: int
    words: np.ndarray[Any, Any]


class ReleasedShare(Message, frozen=True):
    """Share holder -> receiver of an output: its share of integers / 2^fraction."""

    step: int
    fraction: int
    words: np.ndarray[Any, Any]


class DealtShare(Message, frozen=True):
    """Provider -> provider: its part of the receiver's share of outputs of which t members are enough."""

    step: int
    body: memoryview


class ReleasedPoint(Message, frozen=True):
    """Member -> receiver of an output: its share of integers / 2^fraction, row by row, of which t are enough;
    ``commitments``: the hashes that it was told, of all members' shares."""

    which: bytes
    point: int
    rows: int
    cols: int
    fraction: int
    nonce: bytes
    commitments: bytes
    body: memoryview


class PairSeed(Message, frozen=True):
    """Member -> each one after it: the seed of a mask that one of the two adds and the other takes away."""

    step: int
    seed: bytes


class MaskedPoint(Message, frozen=True):
    """Member -> the first one: its weighted share of a dealt matrix, under its masks."""

    step: int
    body: memoryview


class PublicNumbers(Message, frozen=True):
    """Coordinator -> provider: its rounding of public numbers that everybody can compute."""

    step: int
    values: np.ndarray[Any, Any]


class OpenedMatrix(Message, frozen=True):
    """Coordinator -> provider: an opened matrix (integers)."""

    step: int
    words: np.ndarray[Any, Any]


MESSAGES = (
    SeedPart,
    SessionSeed,
    KeyParts,
    AllKeyParts,
    EncryptedShare,
    EncryptedMatrix,
    ProductPart,
    SecondPart,
    SecondHalves,
    MaskedShare,
    MaskedTotal,
    OpenedShare,
    ReleasedShare,
    DealtShare,
    ReleasedPoint,
    PairSeed,
    MaskedPoint,
    PublicNumbers,
    OpenedMatrix,
    Compared,
)
