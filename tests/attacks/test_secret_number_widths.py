"""What parties open of secret numbers is 64 bits narrower than its mask, wherever the numbers lie."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from atoll.randomness import public
from atoll.secret_numbers import bits, eigen, functions
from atoll.secret_numbers.field import FRACTION, PRIME, Elements, elements, encoded, signed
from atoll.secret_numbers.machine import HIDING
from atoll.secret_numbers.together import Together


class Watched(Together):
    """Notes what is rounded, how wide it is said to be, and the masks of the first party."""

    def __init__(self, n_parties: int) -> None:
        super().__init__(n_parties, bytes(32))
        self.bounds: list[int] = []

    async def rounded(self, x: Elements, bits: int, magnitude: int) -> Elements:
        whole = signed(elements(x.sum(axis=0)))
        widest = max(abs(int(value)) for value in whole.ravel())
        assert widest < 1 << magnitude, (widest.bit_length(), magnitude)
        before = len(self.bounds)
        out = await super().rounded(x, bits, magnitude)
        high, low = sorted(self.bounds[before:], reverse=True)
        # One party's mask, low part and high part, is so much wider than the number and its offset ...
        assert high * low == 1 << magnitude + HIDING
        # ... and all parties' masks together do not wrap around the field.
        assert self.n_parties * high * low + (2 << magnitude) < PRIME
        return out

    def own_integers(self, count: int, bound: int) -> Elements:
        self.bounds.append(bound)
        return super().own_integers(count, bound)


UNIT = 2.0**-FRACTION
EXTREMES = [UNIT, 3 * UNIT, 2.0**-20, 0.3, 1.0, 1.5, 1023.9, 2.0**20, 2.0**24 - 1]
FUNCTIONS: dict[str, Callable[[Watched, Elements], Awaitable[Any]]] = {
    "root": functions.square_root,
    "inverse root": functions.inverse_square_root,
    "reciprocal": functions.reciprocal,
    "sign": bits.sign,
}


@pytest.mark.parametrize("n_parties", [2, 50])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_that_is_rounded_is_wider_than_it_is_said_to_be(name: str, n_parties: int) -> None:
    parties = Watched(n_parties)
    x = parties.shared(encoded(EXTREMES))
    asyncio.run(FUNCTIONS[name](parties, x))  # type: ignore[arg-type]
    # Bits are found under a mask of 64 bits above the number's own.
    assert 1 << HIDING in parties.bounds


@pytest.mark.parametrize("spread", [(900.0, 1e-6), (1.0, 1.0), (0.5, -0.5)])
def test_neither_is_what_eigenvectors_are_made_of(spread: tuple[float, float]) -> None:
    turn = np.linalg.qr(public(1).normal(size=(3, 3)))[0]
    matrix = turn @ np.diag([spread[0], spread[1], 0.1]) @ turn.T
    parties = Watched(3)
    asyncio.run(eigen.eigenvectors(parties, parties.shared(encoded((matrix + matrix.T) / 2)), sweeps=2))
    assert parties.bounds


@pytest.mark.parametrize("hidden", [True, False])
def test_what_a_coalition_sees_of_a_rounding_is_distributed_alike(hidden: bool) -> None:
    """0 and 2^23 behind the masks of two parties, of which the highest digits are looked at."""
    seen, top = [], 64 + HIDING if hidden else 64
    for number in (0.0, 2.0**23):
        parties = Together(2, bytes(32))
        if not hidden:  # a variant for this test alone: masks hardly wider than the number
            draw = parties.own_integers
            parties.own_integers = lambda count, bound, draw=draw: draw(count, min(bound, 1 << 24))  # type: ignore[method-assign]
        x = parties.shared(encoded(np.full(4000, number)))
        asyncio.run(parties.rounded(x, FRACTION, 64))
        seen.append(np.array([int(value) >> (top - 3) for value in parties.seen[0]]))
    one, two = (np.bincount(values, minlength=32)[:32] for values in seen)
    expected = (one + two) / 2
    some = expected > 5
    found = chisquare(one[some], expected[some] * one[some].sum() / expected[some].sum()).pvalue
    assert found > 1e-6 if hidden else found < 1e-9
