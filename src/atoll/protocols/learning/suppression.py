"""Small counts are left out of what is released, and so are others that would give them back.

A count from 1 to ``least`` - 1 is small. A single one left out of a list (or of a row or column of a table)
could be had from the total, so the next smallest count there is left out with it. Zeros stay: they say that
nobody is there, not who is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]


def suppressed_list(counts: Sequence[int], least: int) -> list[int | None]:
    """Counts of one list, whose total is known; None for what is left out."""
    values = np.array(counts, dtype=np.int64)
    out = (values > 0) & (values < least)
    _complement(values, out, least)
    return [None if hidden else int(value) for value, hidden in zip(values, out, strict=True)]


def suppressed_table(counts: npt.NDArray[np.int64], least: int) -> list[list[int | None]]:
    """Counts of a two-way table whose row and column totals are known; None for what is left out."""
    values = np.array(counts, dtype=np.int64)
    out = (values > 0) & (values < least)
    while True:
        before = int(out.sum())
        for i in range(values.shape[0]):
            _complement(values[i], out[i], least)
        for j in range(values.shape[1]):
            column = out[:, j].copy()
            _complement(values[:, j], column, least)
            out[:, j] = column
        if int(out.sum()) == before:
            break
    return [
        [None if hidden else int(value) for value, hidden in zip(row, flags, strict=True)]
        for row, flags in zip(values, out, strict=True)
    ]


def _complement(values: npt.NDArray[np.int64], out: Flags, least: int) -> None:
    """Leave out the next smallest count too, while those left out together would be told by the total.

    One alone is the total less the others; two or more whose sum is below ``least`` are still small.
    """
    while out.any() and (out.sum() == 1 or values[out].sum() < least):
        candidates: Any = np.flatnonzero(~out & (values > 0))
        if len(candidates) == 0:
            candidates = np.flatnonzero(~out)  # a zero hides it as well: nobody knows which is which
        if len(candidates) == 0:
            return
        out[candidates[np.argmin(values[candidates])]] = True
