"""What the sums that open the data's range tell: whether anybody exceeds a level, not how many do."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy.stats import chi2

from atoll import fixedpoint
from atoll.data.island import Island
from atoll.fixedpoint import Limbs
from atoll.protocols.pca.sfpca import ranges
from atoll.randomness import derive

LEVELS = np.array(ranges.LEVELS)


def opened(islands: int, exceeding: int, run: int, *, by_column: bool) -> Limbs:
    """The totals of one opening: so many islands have the value 1 in the odd columns, all others 2^-64."""
    parts = []
    for i in range(islands):
        X = np.full((3, 4), 2.0**-64)
        X[1, 1::2] = 1.0 if i < exceeding else 2.0**-64
        seed = derive(bytes(32), "range", run, exceeding, i)
        island = Island.from_array(X, name=f"p{i}")
        parts.append(ranges.exceeded(island.chosen(island.columns), seed, by_column=by_column))
    return reduce(fixedpoint.add, parts)


def uniform(words: Limbs, shift: int) -> float:
    """p-value of four bits of these words being uniform."""
    counts = np.bincount((words.ravel() >> np.uint64(shift)).astype(np.int64) & 15, minlength=16)
    expected = words.size / 16
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 15))


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("exceeding", [1, 2, 6])
def test_the_sum_does_not_tell_how_many_islands_exceed_a_level(exceeding: int, by_column: bool) -> None:
    runs = [opened(6, exceeding, run, by_column=by_column) for run in range(40)]
    above = np.tile(LEVELS < 0, 4 if by_column else 1)
    if by_column:
        above &= np.repeat([False, True, False, True], len(LEVELS))
    for limb in range(fixedpoint.LIMBS):
        seen = np.concatenate([total[limb, above] for total in runs])
        # The last bits hold the carries of the limb below, the first its own; either is uniform.
        assert uniform(seen, 0) > 1e-6, limb
        assert uniform(seen, 60) > 1e-6, limb
    for total in runs:
        assert not total[:, ~above].any()
        assert total[:, above].any(axis=0).all()
        covers = ranges.smallest_covers(total)
        assert covers == ((-64, 0, -64, 0) if by_column else (0,))


@pytest.mark.parametrize("by_column", [False, True])
def test_the_sum_is_zero_where_nobody_exceeds_a_level(by_column: bool) -> None:
    assert not opened(6, 0, 0, by_column=by_column).any()
