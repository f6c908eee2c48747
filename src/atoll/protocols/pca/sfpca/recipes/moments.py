"""A provider's own sums, exactly: integers on a public grid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.errors import RangeOverflow

# Rows are split into digits so small that products summed over a block of rows are exact in doubles.
_DIGIT_BITS = 20
_BLOCK_ROWS = 4096
_PIECE_ROWS = 64
QUICK_ROWS = 512
"""Rows of one product in doubles."""


class RowTable(NamedTuple):
    """A provider's rows in doubles, and the public range that they lie in."""

    X: npt.NDArray[np.float64]
    centre: npt.NDArray[np.float64] | float
    exponent: int

    def __repr__(self) -> str:
        return f"RowTable({self.X.shape[0]} x {self.X.shape[1]})"

    def on(self, fraction: int, room: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.int64]:
        """The rows over their range as integers / 2^fraction, some at a time; in ``room`` if there is one."""
        out = np.empty(self.X.shape, np.int64) if room is None else room[: len(self.X)]
        for start in range(0, len(out), _PIECE_ROWS):
            block = slice(start, start + _PIECE_ROWS)
            out[block] = on_grid(self.X[block] - self.centre, self.exponent, fraction)
        return out


class Moments(NamedTuple):
    """n, column sums u, sum of squares and second moments G, of integer rows.

    u and squares are exact; G is exact (integers) or in doubles, where it is rounded later anyway. Islands
    with few rows keep the rows, over the data's range, instead of G.
    """

    n: int
    u: npt.NDArray[np.object_]
    squares: int
    G: Any
    rows: RowTable | None = None

    def __repr__(self) -> str:
        return f"Moments(n={self.n}, columns={len(self.u)})"


def on_grid(X: npt.NDArray[np.float64], exponent: int, fraction: int) -> npt.NDArray[np.int64]:
    """Rows / 2^exponent, which must lie in [-1, 1], as integers / 2^fraction (at most 60)."""
    if not np.all(np.abs(X) <= 2.0**exponent):
        raise RangeOverflow(
            f"a value is beyond the declared range of ±2^{exponent}; nothing was sent",
            hint="widen the study's bounds",
        )
    return np.rint(np.ldexp(X, fraction - exponent)).astype(np.int64)


def exact_moments(A: npt.NDArray[np.int64]) -> Moments:
    """Sums and second moments of integer rows, without rounding."""
    m = A.shape[1]
    u, G = _zeros((m,)), _zeros((m, m))
    for start in range(0, len(A), _BLOCK_ROWS):
        digits = _digits(A[start : start + _BLOCK_ROWS])
        for i, x in digits:
            u += _integers(x.sum(axis=0)) << i
            for j, y in digits:
                if j <= i:
                    block = _integers(x.T @ y)
                    G += (block if i == j else block + block.T) << (i + j)
    return Moments(len(A), u, int(np.trace(G)), G)


def quick_moments(A: npt.NDArray[np.int64]) -> Moments:
    """Exact sums and squares, second moments in doubles."""
    return quick_moments_of(A[start : start + QUICK_ROWS] for start in range(0, len(A), QUICK_ROWS))


def quick_moments_of(blocks: Iterable[npt.NDArray[np.int64]]) -> Moments:
    """The same of rows that come in blocks of up to ``QUICK_ROWS``; one may lie where the last one did.

    Buffers are used again: touching fresh memory would take longer than adding up.
    """
    n, exact, floats, G, part = 0, _Sums(), np.empty(0), np.empty(0), np.empty(0)
    for A in blocks:
        if not n:
            m = A.shape[1]
            floats, G, part = np.empty((QUICK_ROWS, m)), np.zeros((m, m)), np.empty((m, m))
        here = floats[: len(A)]
        here[:] = A
        G += np.dot(here.T, here, out=part)
        exact.add(A)
        n += len(A)
    return Moments(n, exact.u, exact.squares, G)


def row_moments(A: npt.NDArray[np.int64]) -> Moments:
    """Exact sums and squares alone: no matrix of columns times columns is formed."""
    return Moments(len(A), *sums(A), None)


def sums(A: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.object_], int]:
    """The sum of every column and the sum of all squares, exactly."""
    made = _Sums()
    made.add(A)
    return made.u, made.squares


class _Sums:
    """Running sums of columns and of all squares, exactly, a few rows at a time."""

    def __init__(self) -> None:
        self._columns = 0
        self._by_place: dict[int, npt.NDArray[np.int64]] = {}
        self.squares = 0

    def add(self, A: npt.NDArray[np.int64]) -> None:
        """Take in some rows."""
        self._columns = A.shape[1]
        for start in range(0, len(A), _PIECE_ROWS):
            digits = _digits(A[start : start + _PIECE_ROWS])
            for i, x in digits:
                # Digits of 20 bits: 64 rows of squares, over all columns, are far below a word.
                self._by_place[i] = self._by_place.get(i, 0) + x.sum(axis=0).astype(np.int64)
                for j, y in digits:
                    self.squares += int(np.einsum("ij,ij->j", x, y).astype(np.int64).sum()) << (i + j)

    @property
    def u(self) -> Any:
        """The sums of the columns."""
        total = _zeros((self._columns,))
        for place, columns in self._by_place.items():
            total += _integers(columns) << place
        return total


def total_moments(parts: Iterable[Moments]) -> Moments:
    """The moments of all rows together."""
    parts = iter(parts)
    n, u, squares, G, _ = next(parts)
    for part in parts:
        n, u, squares = n + part.n, u + part.u, squares + part.squares
        if G is not None:
            G += part.G
    return Moments(n, u, squares, G)


def check_moments(own: Moments | None, fraction: int) -> None:
    """Refuse sums that no rows within [-1, 1] have: every bound of the run is derived from those of rows."""
    if own is None:
        return
    one, G = 1 << fraction, np.asarray(own.G, dtype=np.float64)
    limit = float(own.n * one**2)
    diagonal, near = np.diagonal(G), 1 + 2.0**-30
    wrong = (
        any(abs(int(v)) > own.n * one for v in own.u)
        or not np.all((diagonal >= 0) & (diagonal <= limit * near))
        or np.any(own.u.astype(np.float64) ** 2 > own.n * diagonal * near)
        or any(np.any(row**2 > d * diagonal * near) for row, d in zip(G, diagonal, strict=True))
        or abs(float(own.squares) - diagonal.sum()) > diagonal.sum() * 2.0**-30
    )
    if wrong:
        raise RangeOverflow(
            "an island's sums are not those of rows within the declared range; nothing was sent",
            hint="the sums were not made by this version of Atoll, or the memory is damaged",
        )


def _digits(A: npt.NDArray[np.int64]) -> list[tuple[int, npt.NDArray[np.float64]]]:
    """Signed digits of 20 bits with the place of their last bit, without those all zero."""
    common = int(np.bitwise_or.reduce(A, axis=None)) if A.size else 0
    place = (common & -common).bit_length() - 1  # rows of small integers then have one digit
    digits: list[tuple[int, npt.NDArray[np.float64]]] = []
    rest, half = A >> max(place, 0), 1 << (_DIGIT_BITS - 1)
    while rest.any():
        low = ((rest + half) & ((1 << _DIGIT_BITS) - 1)) - half
        if low.any():
            digits.append((place, low.astype(np.float64)))
        rest = (rest - low) >> _DIGIT_BITS
        place += _DIGIT_BITS
    return digits


def _integers(values: npt.NDArray[Any]) -> Any:
    out = np.empty(values.shape, dtype=object)
    out.ravel()[:] = [int(v) for v in values.ravel()]
    return out


def _zeros(shape: tuple[int, ...]) -> Any:
    out = np.empty(shape, dtype=object)
    out[...] = 0
    return out
