"""An owner's part of a private release that takes rows in pairs (``centre="pairs"``, ``privacy.pairs``).

One release, no centre and nothing sent back: the private release around it is that of ``private_release``.
"""

from __future__ import annotations

import numpy as np

from atoll import fixedpoint
from atoll.data.island import Island, Matrix
from atoll.errors import DataError
from atoll.fixedpoint import Limbs
from atoll.privacy import dp_moments as dp
from atoll.privacy import pairs
from atoll.privacy.sensitivity import Neighbours

RECORDED_PLACES = "privacy/places"


def gen_noisy(plan: dp.Plan, X: Matrix, places: bytes, capacity: int, seed: bytes) -> Limbs:
    """An owner's only contribution, its noise share in it; ``places``: the seed of its rows' places."""
    exact = pairs.pair_contribution(plan, X, capacity, places)
    noisy = np.asarray(exact + plan.moments.draw_share(seed))
    return fixedpoint.from_int64(noisy, contributors=plan.crowd.owners)


def checked_capacity(plan: dp.Plan, island: Island) -> int:
    """Among how many places the island draws its pairs; refused before anything is paid for."""
    if not plan.padded:
        return island.n_rows
    if island.capacity is None:
        raise DataError(
            f"{island.name} declares no capacity, and this study's noise is for islands that do (padded)",
            hint="[local] capacities, or Island.from_array(X, capacity=...): as many rows as it could ever "
            "have, never a number taken from its rows",
        )
    pairs.check_capacity(island.n_rows, island.capacity, island.name)
    return island.capacity


def in_words(neighbours: Neighbours, *, padded: bool) -> list[str]:
    """What a study says that takes rows in pairs, for the review."""
    said = [
        (
            "every island draws its rows into pairs, and a pair counts by the direction of its difference: "
            "nothing is spent on a mean, none is released, and variances are of such directions"
        ),
        "pairs stand within islands: how the islands' means differ is not part of the components",
    ]
    if padded:
        said.append(
            "every island draws its pairs among as many places as it declared (its capacity, which nobody "
            "else learns); one with more rows is refused, and that alone tells the others so"
        )
    elif neighbours == "add-remove":
        said.append(
            "no capacity is declared: a row more or less may put one pair in the place of another, and the "
            "noise is for that, 1.4 times as wide as with padded = true"
        )
    return said
