"""Matrices of exact integers, as the Go library takes them.

An array has the shape ``(rows, columns, words)``: two's complement, least significant word first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.crypto.hazmat import golib
from atoll.errors import ParameterError, RangeOverflow

Integers = npt.NDArray[np.uint64]

golib.declare("""
int32_t atoll_product_combine(uint64_t**, uint64_t, uint64_t*, int64_t*, uint32_t, uint64_t*, uint64_t*,
    char*, uint64_t);
int32_t atoll_product_smudge(uint64_t*, uint64_t*, uint32_t, uint8_t*, uint64_t, uint8_t*, uint64_t,
    uint64_t*, char*, uint64_t);
""")


def combine(matrices: Sequence[Integers], coefficients: Sequence[int], shift: int, words: int) -> Integers:
    """round(sum of coefficients times matrices / 2^shift), entry by entry."""
    widest = max(matrix.shape[2] for matrix in matrices)
    same = [widened(matrix, widest) for matrix in matrices]
    kept = [golib.words_in(matrix)[0] for matrix in same]
    rows, cols, _ = same[0].shape
    out = empty(rows, cols, words)
    golib.call(
        "atoll_product_combine",
        golib.ffi.new("uint64_t*[]", kept),
        len(same),
        golib.ffi.new("uint64_t[3]", list(same[0].shape)),
        golib.ffi.new("int64_t[]", list(coefficients)),
        shift,
        *matrix_in(out),
    )
    return out


def smudge(x: Integers, width: int, seed: bytes, domain: bytes) -> Integers:
    """Every entry plus an integer uniform in [-2^(width-1), 2^(width-1))."""
    x = np.ascontiguousarray(x)
    out = np.empty_like(x)
    golib.call(
        "atoll_product_smudge",
        *matrix_in(x),
        width,
        *golib.bytes_in(seed),
        *golib.bytes_in(domain),
        golib.words_out(out)[0],
    )
    return out


def from_ints(values: npt.ArrayLike, words: int) -> Integers:
    """A matrix of Python integers (or int64) as words; too large ones are a RangeOverflow.

    Of int64 the words may be a view, also of a transpose.
    """
    array = np.asarray(values)
    if array.ndim != 2:
        raise ParameterError(f"a matrix has two dimensions. Got {array.ndim}.")
    if array.dtype == np.int64 and words == 1 and (array.flags.c_contiguous or array.flags.f_contiguous):
        return array.view(np.uint64)[:, :, None]
    if array.dtype != object:
        narrow = np.ascontiguousarray(array, dtype=np.int64)
        return widened(narrow.view(np.uint64).reshape(*narrow.shape, 1), words)
    try:
        data = b"".join(int(value).to_bytes(8 * words, "little", signed=True) for value in array.flat)
    except OverflowError as problem:
        raise RangeOverflow(f"an integer does not fit {words} words") from problem
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(*array.shape, words)


def to_ints(x: Integers) -> npt.NDArray[np.object_]:
    """The words as a matrix of Python integers."""
    rows, cols, words = x.shape
    data = np.ascontiguousarray(x).astype("<u8").tobytes()
    step = 8 * words
    values = [int.from_bytes(data[i : i + step], "little", signed=True) for i in range(0, len(data), step)]
    out = np.empty(rows * cols, dtype=object)
    out[:] = values
    return out.reshape(rows, cols)


def widened(x: Integers, words: int) -> Integers:
    """The same integers in more words."""
    if x.shape[2] == words:
        return np.ascontiguousarray(x)
    if x.shape[2] > words:
        raise ParameterError(f"integers of {x.shape[2]} words do not fit {words}")
    out = empty(x.shape[0], x.shape[1], words)
    out[:, :, : x.shape[2]] = x
    sign = np.ascontiguousarray(x[:, :, -1]).view(np.int64) >> 63
    out[:, :, x.shape[2] :] = sign.view(np.uint64)[:, :, None]
    return out


def empty(rows: int, cols: int, words: int) -> Integers:
    """Room for a matrix."""
    return np.empty((rows, cols, words), dtype=np.uint64)


def matrix_in(x: Integers) -> tuple[Any, Any]:
    """A matrix as the pointers to words and shape that the library takes."""
    if x.dtype != np.uint64 or x.ndim != 3:
        raise ParameterError(f"a matrix is a (rows, columns, words) array of uint64. Got {x.shape}.")
    # The pointer keeps what it points to alive.
    return golib.words_in(np.ascontiguousarray(x))[0], golib.ffi.new("uint64_t[3]", list(x.shape))
