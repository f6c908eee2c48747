"""The field of 2^255 - 19, and fixed-point numbers as its elements.

Elements are Python integers in arrays of objects: arrays are short, and products of elements need 510 bits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from atoll import randomness
from atoll.errors import MessageError, RangeOverflow

__all__ = [
    "ELEMENT_BYTES",
    "FRACTION",
    "MAGNITUDE",
    "PRIME",
    "Elements",
    "decoded",
    "elements",
    "encoded",
    "from_bytes",
    "integers_below",
    "signed",
    "to_bytes",
    "uniform",
]

PRIME: Final = 2**255 - 19
ELEMENT_BYTES: Final = 32

FRACTION: Final = 40
"""Bits after the point of a number at rest."""
MAGNITUDE: Final = 64
"""A number at rest, as an integer, is below 2^64: 24 bits before the point."""

Elements = npt.NDArray[np.object_]
"""Elements of the field; as shares, a row for each party that this machine speaks for."""


def elements(values: Any) -> Elements:
    """Integers as elements."""
    return np.array(np.asarray(values, dtype=object) % PRIME, dtype=object)


def signed(values: Elements) -> Elements:
    """The integers of least magnitude that elements stand for."""
    return np.where(values > PRIME // 2, values - PRIME, values)


def encoded(numbers: Any, fraction: int = FRACTION) -> Elements:
    """Numbers at a number of bits after the point."""
    flat = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(flat).all() or (np.abs(flat) >= 2.0 ** (MAGNITUDE - FRACTION)).any():
        raise RangeOverflow(
            f"a number to be shared is not below 2^{MAGNITUDE - FRACTION}",
            hint="scale the columns by a public power of ten",
        )
    # A double is an integer times a power of two: nothing is lost before the last rounding.
    ratios = [float(x).as_integer_ratio() for x in flat.reshape(-1)]
    out = np.empty(flat.size, dtype=object)
    out[:] = [(2 * (top << fraction) + bottom) // (2 * bottom) for top, bottom in ratios]
    return elements(out.reshape(flat.shape))


def decoded(values: Elements, fraction: int = FRACTION) -> npt.NDArray[np.float64]:
    """Elements as numbers."""
    numbers: npt.NDArray[np.float64] = (signed(values) / 2**fraction).astype(np.float64)
    return numbers


def uniform(seed: bytes, shape: tuple[int, ...], *domain: str | int) -> Elements:
    """Uniform elements from a seed: 16 bytes more than the field keep the bias below 2^-120."""
    return integers_below(seed, shape, PRIME, *domain)


def integers_below(seed: bytes, shape: tuple[int, ...], bound: int, *domain: str | int) -> Elements:
    """Uniform integers in [0, bound) from a seed, of bias below 2^-120."""
    size, count = (bound.bit_length() + 7) // 8 + 16, int(np.prod(shape))
    stream = randomness.expand(seed, size * count, "atoll/secret-numbers/v1", *domain)
    out = np.empty(count, dtype=object)
    out[:] = [int.from_bytes(stream[i * size : (i + 1) * size], "little") % bound for i in range(count)]
    return out.reshape(shape)


def to_bytes(values: Elements) -> bytes:
    """Elements as they travel."""
    return b"".join(int(x).to_bytes(ELEMENT_BYTES, "little") for x in values.flat)


def from_bytes(data: bytes | memoryview, count: int) -> Elements:
    """As many elements as were due; anything else is refused."""
    if len(data) != count * ELEMENT_BYTES:
        raise MessageError(f"{len(data)} bytes arrived where {count} elements of a field were due")
    whole = bytes(data)
    out = np.empty(count, dtype=object)
    out[:] = [
        int.from_bytes(whole[i : i + ELEMENT_BYTES], "little") for i in range(0, len(whole), ELEMENT_BYTES)
    ]
    if (out >= PRIME).any():
        raise MessageError("an element of a field that arrived is not below its prime")
    return out
