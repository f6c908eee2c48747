"""Matrices of exact integers: what does not fit is an error, and nothing is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest

from atoll.crypto import products as go
from atoll.crypto.hazmat.integers import matrix_in
from atoll.errors import ParameterError, RangeOverflow


@pytest.mark.parametrize("words", [1, 2, 5])
def test_integers_of_either_sign_come_back_to_the_last_one_that_fits(words: int) -> None:
    top = 2 ** (64 * words - 1)
    values = np.array([[0, 1, -1], [top - 1, -top, top // 3]], dtype=object)
    assert go.to_ints(go.from_ints(values, words)).tolist() == values.tolist()
    for beyond in (top, -top - 1, 2 * top):
        with pytest.raises(RangeOverflow, match=f"an integer does not fit {words} words"):
            go.from_ints(np.array([[beyond]], dtype=object), words)


def test_machine_integers_are_the_same_integers_in_any_order_of_memory() -> None:
    values = np.array([[1, -2, 3], [-(2**63), 2**63 - 1, 0]], dtype=np.int64)
    for array in (values, np.asfortranarray(values), values.T, values[:, ::2], values.astype(np.int32) // 2):
        for words in (1, 3):
            assert go.to_ints(go.from_ints(array, words)).tolist() == array.tolist()
    for wrong in (np.zeros(3, np.int64), np.zeros((1, 1, 1), np.int64)):
        with pytest.raises(ParameterError, match="a matrix has two dimensions"):
            go.from_ints(wrong, 1)


def test_integers_grow_wider_and_never_narrower() -> None:
    values = np.array([[5, -5, 2**63 - 1, -(2**63)]], dtype=object)
    one = go.from_ints(values, 1)
    for words in (1, 2, 4):
        wide = go.widened(one, words)
        assert wide.shape == (1, 4, words)
        assert go.to_ints(wide).tolist() == values.tolist()
    with pytest.raises(ParameterError, match="integers of 4 words do not fit 2"):
        go.widened(go.widened(one, 4), 2)


@pytest.mark.parametrize(
    "x", [np.zeros((2, 2, 1), np.int64), np.zeros((2, 2, 1), np.float64), np.zeros((2, 2), np.uint64)]
)
def test_what_is_no_matrix_of_words_does_not_reach_the_library(x: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="array of uint64"):
        matrix_in(x)


def test_a_combination_is_rounded_once_and_to_the_nearest() -> None:
    a = go.from_ints(np.array([[3, -3, 2**70, 5]], dtype=object), 2)
    b = go.from_ints(np.array([[1, 1, -(2**70), -7]], dtype=object), 2)
    assert go.to_ints(go.combine([a, b], [2, -1], 0, 2)).tolist() == [[5, -7, 3 * 2**70, 17]]
    assert go.to_ints(go.combine([a, b], [2, -1], 1, 2)).tolist() == [[3, -3, 3 * 2**69, 9]]
    with pytest.raises(RangeOverflow):
        go.combine([a], [1], 3, 1)  # 2^67 is beyond a word


def test_smudging_is_as_wide_as_was_asked_for() -> None:
    zero = go.from_ints(np.zeros((20, 20), np.int64), 2)
    for width in (1, 40, 100):
        drawn = go.to_ints(go.smudge(zero, width, bytes(32), b"x")).ravel()
        assert -(2 ** (width - 1)) <= min(drawn) < max(drawn) < 2 ** (width - 1) or width == 1
        assert max(abs(int(v)) for v in drawn).bit_length() >= width - 2
        assert set(drawn) <= {-1, 0} or width > 1
