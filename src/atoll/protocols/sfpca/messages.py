"""The messages of SF-PCA: those of its roles first, then those of the machines that compute for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.network import Compared


class RowCount(Message, frozen=True):
    """Provider -> coordinator: n_i, which is public."""

    n: int


class RowCounts(Message, frozen=True):
    """Coordinator -> provider, consumer: everybody's n_i, in the study's order."""

    n: tuple[int, ...]


class DataRange(Message, frozen=True):
    """Coordinator -> provider: 2^exponent, which no value exceeds; of all columns, or of each."""

    exponents: tuple[int, ...]


class Names(Message, frozen=True):
    """Coordinator -> consumer: the columns of the components, and the unit of the released offset."""

    columns: tuple[str, ...]
    named: bool
    offset_unit: float


class Certified(Message, frozen=True):
    """Coordinator -> consumer: the accuracy certificate."""

    recipe: str
    bound: float
    tau: float


# ---- of the machines; bodies are megabytes, and views of a message's bytes ----


class SeedPart(Message, frozen=True):
    """Provider -> coordinator: its part of the session's public seed."""

    seed: bytes


class SessionSeed(Message, frozen=True):
    """Coordinator -> provider: everybody's parts."""

    seeds: tuple[bytes, ...]


class KeyParts(Message, frozen=True):
    """Provider -> coordinator: its parts of the public keys, ring by ring."""

    parts: tuple[bytes, ...]


class OthersKeyParts(Message, frozen=True):
    """Coordinator -> provider: the parts of all others, in the study's order."""

    parts: tuple[tuple[bytes, ...], ...]


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


class SecondHalves(Message, frozen=True):
    """Coordinator -> provider: what decryption shares of a product are made from."""

    step: int
    body: memoryview


class MaskedShare(Message, frozen=True):
    """Provider -> coordinator: its decryption share under a mask."""

    step: int
    body: memoryview


class MaskedTotal(Message, frozen=True):
    """Coordinator -> the product's carrier: the masked result, before it is truncated."""

    step: int
    body: memoryview


class OpenedShare(Message, frozen=True):
    """Provider -> coordinator: its share of a matrix that is opened."""

    step: int
    words: np.ndarray[Any, Any]


class ReleasedShare(Message, frozen=True):
    """Share holder -> receiver of an output: its share of integers / 2^fraction."""

    step: int
    fraction: int
    words: np.ndarray[Any, Any]


class PublicNumbers(Message, frozen=True):
    """Coordinator -> provider: its rounding of public numbers that everybody can compute."""

    step: int
    values: np.ndarray[Any, Any]


class OpenedMatrix(Message, frozen=True):
    """Coordinator -> provider: an opened matrix (integers)."""

    step: int
    words: np.ndarray[Any, Any]


MESSAGES = (
    RowCount,
    RowCounts,
    DataRange,
    Names,
    Certified,
    SeedPart,
    SessionSeed,
    KeyParts,
    OthersKeyParts,
    EncryptedShare,
    EncryptedMatrix,
    ProductPart,
    SecondHalves,
    MaskedShare,
    MaskedTotal,
    OpenedShare,
    OpenedMatrix,
    ReleasedShare,
    PublicNumbers,
    Compared,
)
