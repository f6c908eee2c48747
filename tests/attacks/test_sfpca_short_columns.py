"""A standardised run that ends because a column varies too little has said how little it varies.

The trace of the correlations is opened before anybody knows whether it is a whole number. A yes-or-no column
in a range that is far too wide falls short of one by an amount that tells how many say yes. Review and
threat model say so; bounds that fit their columns avoid it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.support.examples import sfpca_standardised

from atoll.errors import ParameterError
from atoll.protocols import protocol_of
from atoll.protocols.pca.sfpca.recipes.correlation import standardised
from atoll.secret_matrices.simulated import Simulated

ROWS, WIDE = 1000, 22
"""A range of 2^22 for a column of zeros and ones."""


class Noting(Simulated):
    """Notes what is opened."""

    seen: float

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        found = await super().opened(x, smudge_bits=smudge_bits)
        self.seen = float(found[0, 0])
        return found


def trace(yes: int, seed: int = 0) -> float:
    """What a run opens of three columns, of which one holds so many ones."""
    share = yes / ROWS
    variances = [1 / 3, 1 / 5, share * (1 - share) * 4.0**-WIDE]
    machine = Noting(3, np.random.default_rng(seed).random)
    integers = np.array([[int(v * 2.0**110)] for v in variances], dtype=object)

    async def program() -> None:
        await machine.set_up()
        column = machine.private(None, integers, (3, 1), 110, 1)
        await standardised(machine, column, column)

    with pytest.raises(ParameterError, match="varies by less than 1/400,000 of its range"):
        asyncio.run(program())
    return machine.seen


def test_the_trace_of_a_refused_run_says_the_variance_that_falls_short() -> None:
    """One person more or less is told apart, whatever the noise of the opening."""
    one, again, other = trace(100), trace(100, seed=1), trace(101)
    assert 2.0 < one < 3.0
    assert abs(one - other) > 100 * abs(one - again) > 0.0


def test_a_review_says_so() -> None:
    example = sfpca_standardised()
    said = [one.learns for one in protocol_of("sfpca").learns(example.study)]
    assert any("too little to be standardised" in words for words in said)
