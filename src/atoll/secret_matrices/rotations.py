"""Secret rotations, uniform on the orthogonal group to far more digits than are ever opened.

A rotation that is coarser than what is opened after it is not uniform: lattice reduction finds the grid.
So Gaussians are dithered to 200 bits and orthonormalised in integers of that precision.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atoll.lazy import lazy
from atoll.randomness import expand, expand_words

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

WORK_BITS = 220
_COARSE_BITS = 50
_DITHER_BYTES = 24


def gaussians(seed: bytes, count: int, *domain: str | int) -> npt.NDArray[np.float64]:
    """Standard normal numbers by inversion of 128 random bits each: a sign, and 127 bits of how rare.

    The tail is inverted where doubles are dense, near zero: of 53 bits alone the outermost values, and the
    gaps between them, would be seen in few draws."""
    words = expand_words(seed, 2 * count, "gaussian", *domain).reshape(count, 2)
    return normal(words[:, 0], words[:, 1])


def normal(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The normal numbers at (high 2^64 + low + 1/2) / 2^128, the highest bit being the sign."""
    rare = np.ldexp((high & np.uint64(2**63 - 1)).astype(np.float64), -64)
    rare += np.ldexp(low.astype(np.float64) + 0.5, -128)
    return np.where(high >> np.uint64(63), -1.0, 1.0) * np.asarray(special.ndtri(rare))


def rotation(seed: bytes, size: int, fraction: int) -> npt.NDArray[np.object_]:
    """A Haar orthogonal matrix as integers / 2^fraction."""
    rows = _dithered(seed, size)
    for i in range(size):
        for _ in range(2):  # once leaves errors that cancellation made; twice is enough
            if i:
                along = (rows[:i] @ rows[i]) >> WORK_BITS
                rows[i] -= (along @ rows[:i]) >> WORK_BITS
        norm = isqrt(int(rows[i] @ rows[i]))
        rows[i] = (rows[i] << WORK_BITS) // norm
    half = 1 << (WORK_BITS - fraction - 1)
    rounded: npt.NDArray[np.object_] = (rows + half) >> (WORK_BITS - fraction)
    return rounded


def _dithered(seed: bytes, size: int) -> Any:
    """Gaussians rounded to 2^-50, plus uniform digits below that."""
    coarse = np.rint(gaussians(seed, size * size, "rotation") * 2.0**_COARSE_BITS).astype(np.int64)
    data = expand(seed, size * size * _DITHER_BYTES, "dither")
    below = WORK_BITS - _COARSE_BITS
    values = np.empty(size * size, dtype=object)
    for e in range(size * size):
        digits = int.from_bytes(data[e * _DITHER_BYTES : (e + 1) * _DITHER_BYTES], "little")
        values[e] = (int(coarse[e]) << below) + (digits >> (8 * _DITHER_BYTES - below)) - (1 << (below - 1))
    return values.reshape(size, size)
