"""What a receiver checks of shares before it adds them up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from atoll.errors import MessageError, ParameterError
from atoll.secret_matrices.messages import ReleasedShare
from atoll.secret_matrices.openings import check_masked, check_step, check_words, collected


@pytest.mark.parametrize(
    "words",
    [
        np.zeros((2, 3, 4), np.int64),
        np.zeros((2, 3), np.uint64),
        np.zeros((2, 3, 4, 1), np.uint64),
        np.zeros((3, 2, 4), np.uint64),
        np.zeros((2, 4, 4), np.uint64),
        np.zeros((2, 3, 9), np.uint64),
    ],
)
def test_a_share_is_words_of_the_matrix_that_is_opened(words: np.ndarray) -> None:
    check_words(np.zeros((2, 3, 4), np.uint64), (2, 3))
    check_words(np.zeros((2, 3, 8), np.uint64), (2, 3))
    with pytest.raises(MessageError, match="an opened share has the wrong shape"):
        check_words(words, (2, 3))


@pytest.mark.parametrize("found", [6, 8])
def test_a_share_is_for_this_step(found: int) -> None:
    check_step(7, 7)
    with pytest.raises(MessageError, match=f"a message is for step {found}, not for step 7"):
        check_step(found, 7)


def test_only_what_is_masked_is_opened() -> None:
    check_masked(SimpleNamespace(known=False))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a matrix of a party's own data must not be opened"):
        check_masked(SimpleNamespace(known=True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (ReleasedShare(8, 10, np.zeros((1, 1, 1), np.uint64)), "step"),
        (ReleasedShare(7, 11, np.zeros((1, 1, 1), np.uint64)), "different scales"),
        (ReleasedShare(7, 10, np.zeros((1, 2, 1), np.uint64)), "wrong shape"),
    ],
)
def test_shares_of_one_output_fit_together(other: ReleasedShare, said: str) -> None:
    class Net:
        async def gather(self, kind: Any, holders: Any) -> dict[str, ReleasedShare]:
            return {"north": other}

    own = ReleasedShare(7, 10, np.zeros((1, 1, 1), np.uint64))
    with pytest.raises(MessageError, match=said):
        asyncio.run(collected(Net(), (), own))  # type: ignore[arg-type]
