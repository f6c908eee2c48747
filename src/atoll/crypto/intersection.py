"""Recipe: ids as elements of Ristretto255 under the secrets of several parties (Diffie and Hellman).

An id x becomes k H(x). Whoever lacks k cannot tell it from a random element, nor test a guess of x. Secrets
commute: under the secrets of all parties, equal ids are equal elements, whoever had them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat.group import ELEMENT_BYTES, blind, raise_elements
from atoll.errors import MessageError

__all__ = ["ELEMENT_BYTES", "Elements", "blinded", "elements_of", "raised", "sorted_bytes"]

Elements = npt.NDArray[np.bytes_]
"""One element each; NumPy's byte strings of equal length compare as bytes do."""


def blinded(seed: bytes, ids: Iterable[str], context: str) -> bytes:
    """k H(x) for every id, in their order; the hash is bound to ``context``."""
    start = hashlib.sha256(b"atoll/intersection/v1\0" + context.encode() + b"\0")
    hashes = bytearray()
    for one in ids:
        hashed = start.copy()
        hashed.update(one.encode())
        hashes += hashed.digest()
    return blind(seed, bytes(hashes))


def raised(seed: bytes, elements: bytes) -> bytes:
    """The elements, each times one's own secret."""
    return raise_elements(seed, elements)


def elements_of(data: bytes) -> Elements:
    """A list of elements as an array, to compare and sort."""
    if len(data) % ELEMENT_BYTES:
        raise MessageError("a list of group elements is cut off")
    return np.frombuffer(data, dtype=f"S{ELEMENT_BYTES}")


def sorted_bytes(data: bytes) -> bytes:
    """The elements in the order of their bytes: to whoever lacks one of the secrets, a random order."""
    return np.sort(elements_of(data)).tobytes()
