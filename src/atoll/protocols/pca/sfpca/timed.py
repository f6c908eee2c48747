"""What SF-PCA does with an island's own table, as ``atoll bench calibrate`` times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from atoll.data.island import Chosen, Island
from atoll.protocols.base import Timer
from atoll.protocols.pca.sfpca.prepared import own_moments
from atoll.protocols.pca.sfpca.ranges import Range, check_table, declared
from atoll.randomness import expand_words
from atoll.secret_matrices.costs.rates import Rate

_SEED = bytes(32)


def timed(seconds: Timer) -> Mapping[str, Rate | float]:
    """Rates by name: reading and checking a table, and its sums in doubles and exactly."""
    return {
        "table": _checks(seconds),
        "quick_moments": _moments(seconds, False, (24, 384), lambda n, m: n * m * m),
        "exact_moments": _moments(seconds, True, (4, 32), lambda _, m: m * m),
    }


def _checks(seconds: Timer) -> float:
    """Reading and checking a table, one value."""
    n, m = 2048, 64
    table = _chosen(n, m)
    limits = declared(1.0, table.columns)
    assert limits is not None

    def work() -> None:
        check_table(table)
        limits.check(table)

    return seconds(work) / (n * m)


def _moments(seconds: Timer, exact: bool, columns: tuple[int, int], parts: Callable[[int, int], int]) -> Rate:
    n, spent = 1024, []
    for m in columns:
        work = partial(own_moments, _chosen(n, m), Range(0, np.zeros(m)), exact)
        spent.append((n * m, parts(n, m), seconds(work)))
    return Rate.through(*spent)


def _chosen(n: int, m: int) -> Chosen:
    """Numbers below one, with all the digits of a double."""
    table = np.asarray((expand_words(_SEED, n * m, "table") >> np.uint64(11)) * 2.0**-53).reshape(n, m)
    island = Island.from_array(table, name="table")
    return island.chosen(island.columns)
