"""Second moments without a mean: unit differences of disjoint row pairs, in one release.

The difference of two rows does not depend on where their mean lies, so nothing is spent on it. Every owner
draws a *place* for each of its rows, uniformly and apart from what the rows say; rows in places 2i and 2i+1
form a pair and count as (x - y)/|x - y|. A row beside an empty place, and a pair of equal rows, count as
nothing.

Why places are drawn, and not taken from the order of the table: whoever adds or removes a row in the middle
of a table would shift all pairs after it. Drawn, the places of the other rows are distributed alike with
and without that row, and one pair changes (docs/explanation/pairs.md, which proves the sensitivities).

Beside the second moments the number of rows is released: exact where it is public (``replace``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atoll.errors import DataError, RangeOverflow
from atoll.privacy import grid
from atoll.privacy.dp_moments import COUNT_UNITS, Floats, Integers, Plan, PrivateMoments, Sum, moment_sigma
from atoll.randomness import expand_words

_PLACES_DOMAIN = "atoll/privacy/places/v1"
# A noisy number of rows or pairs is not believed below this, nor below its own noise.
_SMALLEST_COUNT = 1.0


def check_capacity(rows: int, capacity: int, whose: str = "a table") -> None:
    """Refuse a table that does not fit; to be asked before a release is paid for."""
    if capacity >= grid.MAX_ROWS:
        raise RangeOverflow(
            f"{whose} declares a capacity for which the grid is too small",
            hint=f"fewer than {grid.MAX_ROWS} places; split a larger table between two islands",
        )
    if rows > capacity:  # the number stays out of the message: it is the owner's alone
        raise DataError(
            f"{whose} has more rows than the capacity that was declared for it",
            hint="declare a capacity that the table cannot outgrow, never one taken from its rows",
        )


def draw_places(seed: bytes, rows: int, capacity: int) -> Integers:
    """A place for every row: distinct, and uniform among ``capacity``.

    128-bit keys: no two are equal but with probability 2^-85, so their order is uniform.
    """
    check_capacity(rows, capacity)
    keys = expand_words(seed, 2 * capacity, _PLACES_DOMAIN).reshape(2, capacity)
    return np.lexsort(keys)[:rows].astype(np.int64)


def unit_differences(table: Floats, places: Integers) -> Integers:
    """The pairs' differences on the grid, one row for each pair of which both places are filled."""
    order = np.argsort(places)
    first, second = order[:-1], order[1:]
    together = (places[first] // 2) == (places[second] // 2)
    # Halved first: the difference of two finite rows may be beyond float64, that of their halves is not.
    halves = table[first[together]] * 0.5 - table[second[together]] * 0.5
    return grid.normalise_to_grid(halves)


def contribution_of(plan: Plan, rows: npt.ArrayLike, places: Integers) -> Integers:
    """An owner's exact integers, with its rows in these places: second moments, and the number of rows."""
    table = grid.checked_rows(rows, plan.features)
    moments = grid.second_moment_triangle(unit_differences(table, places))
    return np.append(moments, np.int64(table.shape[0] * COUNT_UNITS))


def pair_contribution(plan: Plan, rows: npt.ArrayLike, capacity: int, seed: bytes) -> Integers:
    """The same, with places drawn from a seed among ``capacity``, which counts where the plan is padded."""
    table = grid.checked_rows(rows, plan.features)
    count = table.shape[0]
    return contribution_of(plan, table, draw_places(seed, count, capacity if plan.padded else count))


def finish_pairs(plan: Plan, total: Sum, present: int | None = None) -> PrivateMoments:
    """Noisy second moments of unit differences, and the number of rows.

    A unit difference has trace one, so the trace is the number of pairs, as noisy as the matrix is.
    """
    values = np.asarray(total)
    noise = plan.moments.noise
    matrix = grid.unpack_triangle(values[:-1], plan.features) / grid.MOMENT_UNITS
    sigma = moment_sigma(plan, present) / grid.MOMENT_UNITS
    pairs = max(float(np.trace(matrix)), sigma, _SMALLEST_COUNT)
    doubt = noise.deviation_of_sum(len(noise.parts) - 1, present) / COUNT_UNITS
    samples = max(float(values[-1]) / COUNT_UNITS, doubt, _SMALLEST_COUNT)
    return PrivateMoments(matrix, pairs, sigma, plan.rows, samples=samples)
