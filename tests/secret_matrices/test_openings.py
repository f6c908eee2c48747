"""What a receiver checks of shares before it adds them up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from atoll.errors import MessageError, ParameterError
from atoll.secret_matrices.local import LocalMachine
from atoll.secret_matrices.messages import PublicNumbers, ReleasedShare
from atoll.secret_matrices.openings import check_masked, check_step, check_words, collected
from atoll.secret_matrices.provider import Provider


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


@pytest.mark.parametrize(
    "values",
    [
        np.array([[1.0, 2.0]]),
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([1, 2]),
    ],
)
@pytest.mark.parametrize("recomputed", [True, False])
def test_public_numbers_have_the_shape_that_is_due(values: np.ndarray, recomputed: bool) -> None:
    """Also those that a provider cannot compute itself, of which it checks nothing else here."""

    class Net:
        async def receive(self, kind: Any, sender: Any) -> PublicNumbers:
            return PublicNumbers(7, values)

    here: Any = SimpleNamespace(next_step=lambda: 7, net=Net(), coordinator="hub", _news=False)
    with pytest.raises(MessageError, match="hub sent public numbers of the wrong shape"):
        asyncio.run(Provider.same(here, np.array([1.0, 2.0]), recomputed=recomputed))


def _shared(fraction: int, carrier: str | None = None) -> Any:
    share = np.zeros((1, 1, 1), np.uint64)
    return SimpleNamespace(fraction=fraction, share=share, carrier=carrier, bits=1, known=False)


def test_matrices_on_different_grids_are_not_added() -> None:
    """Their integers mean different numbers: the sum would be of neither."""
    here: Any = SimpleNamespace(providers=("a", "b"))
    with pytest.raises(
        ParameterError, match="only matrices with the same number of fractional bits can be comb"
    ):
        LocalMachine.combine(here, [(1.0, _shared(10)), (1.0, _shared(11))], bits=2)
    with pytest.raises(ParameterError, match="with 10 fractional bits cannot have"):
        LocalMachine.combine(here, [(1.0, _shared(10))], bits=2, fraction=10**4)
    with pytest.raises(
        ParameterError, match="only matrices with the same number of fractional bits can be stack"
    ):
        LocalMachine.hstack(here, [_shared(10), _shared(11)])
    with pytest.raises(ParameterError, match="of different groups of providers cannot be combined"):
        LocalMachine._carrier_of(here, [_shared(10, "a"), _shared(10, "b")], needed=False)
