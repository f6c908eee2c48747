"""Whole numbers that add up to the numbers in slots: a vector leaves a ciphertext in parts, and comes back.

Shares are Python integers in arrays of objects: masks are 64 bits wider than what they hide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.errors import MessageError, RangeOverflow
from atoll.randomness import expand
from atoll.secret_matrices.slots.machine import Integers

__all__ = ["from_bytes", "from_words", "rounded", "to_bytes", "to_words", "wide_numbers", "within"]

_WORD_BYTES = 16


def _array(values: list[int]) -> Integers:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def from_words(words: npt.NDArray[np.uint64], length: int) -> Integers:
    """The first of two's complement numbers of two words."""
    data = np.ascontiguousarray(words[:length]).astype("<u8").tobytes()
    return from_bytes(data, length, _WORD_BYTES)


def to_words(values: Integers, slots: int) -> npt.NDArray[np.uint64]:
    """Two's complement numbers of two words, with zeros behind them."""
    data = b"".join(int(value).to_bytes(_WORD_BYTES, "little", signed=True) for value in values)
    words = np.zeros((slots, 2), dtype=np.uint64)
    words[: len(values)] = np.frombuffer(data, "<u8").reshape(-1, 2)
    return words


def to_bytes(values: Integers, size: int = _WORD_BYTES) -> memoryview:
    """Signed numbers as they travel."""
    return memoryview(b"".join(int(value).to_bytes(size, "little", signed=True) for value in values))


def from_bytes(data: Any, length: int, size: int = _WORD_BYTES) -> Integers:
    """Signed numbers as they arrive."""
    if len(data) != length * size:
        raise MessageError(f"{len(data)} bytes are not {length} numbers of {size} bytes")
    view = bytes(data)
    return _array(
        [int.from_bytes(view[i : i + size], "little", signed=True) for i in range(0, len(view), size)]
    )


def wide_numbers(seed: bytes, length: int, bits: int) -> Integers:
    """Uniform numbers of so many bits, around zero."""
    size = -(-bits // 8)
    data = expand(seed, length * size, "atoll/slots/mask/1")
    wide = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    return _array([(value & ((1 << bits) - 1)) - (1 << (bits - 1)) for value in wide])


def within(values: Integers, bits: int) -> Integers:
    """The values, if none is wider than this."""
    if any(abs(value) >> bits for value in values):
        raise RangeOverflow(
            f"a number that comes back from shares is beyond 2^{bits}",
            hint="a share is wrong, or a number is larger than slots can hold",
        )
    return values


def rounded(values: Integers, bits: int) -> Integers:
    """Without so many bits after the point."""
    half = (1 << bits) >> 1
    found: Integers = (values + half) >> bits
    return found
