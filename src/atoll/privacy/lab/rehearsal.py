"""The staged release with all owners in one place and a plain sum between them.

The same integers and the same noise as in a study, without cryptography: for benchmarks, for audits,
and to choose an epsilon on public data. Never for private data of several owners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from atoll.privacy import dp_moments as dp
from atoll.privacy import pairs
from atoll.privacy.mechanisms import GaussianNoise
from atoll.randomness import derive

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rehearsal:
    """What everybody sees of a run: the noisy sum of every stage, and what follows from it."""

    centre: dp.Centre | None
    """None where rows are taken in pairs: then there is none."""
    moments: dp.PrivateMoments
    sums: dict[str, Integers]

    @property
    def spectrum(self) -> dp.Spectrum:
        return dp.spectrum(self.moments)


def rehearse(
    plan: dp.Plan,
    islands: Sequence[npt.ArrayLike],
    seed: bytes,
    *,
    at_once: bool = False,
    capacities: Sequence[int] | None = None,
) -> Rehearsal:
    """One run; ``seed`` stands for the owners' separate randomness.

    ``at_once``: Gaussian noise of all owners as one draw of its variance; then the rows may stand in fewer
    tables than there are owners. ``capacities``: of the islands, where the plan pads pairs.
    """
    sums: dict[str, Integers] = {}

    def add_up(stage: dp.Stage, contributions: list[Integers]) -> Integers:
        if at_once and isinstance(stage.noise, GaussianNoise):
            shares = [stage.noise.draw_sum(derive(seed, stage.name))]
        else:
            shares = [stage.draw_share(derive(seed, owner)) for owner in range(len(islands))]
        sums[stage.name] = np.sum([*contributions, *shares], axis=0)
        return sums[stage.name]

    if plan.centre == "pairs":
        places = capacities or [len(np.asarray(rows)) for rows in islands]
        paired = [
            pairs.pair_contribution(plan, rows, places[owner], derive(seed, "pairs", owner))
            for owner, rows in enumerate(islands)
        ]
        return Rehearsal(None, pairs.finish_pairs(plan, add_up(plan.moments, paired)), sums)
    first = add_up(plan.first_mean, [dp.first_mean_contribution(plan, rows) for rows in islands])
    centre = dp.finish_first_mean(plan, first)
    if plan.assume_centered:
        centre = dp.starting_centre(plan, centre)
    else:
        second = add_up(
            plan.second_mean, [dp.second_mean_contribution(plan, rows, centre) for rows in islands]
        )
        centre = dp.finish_second_mean(plan, centre, second)
    if plan.rows == "clip":
        distances = add_up(plan.radius, [dp.radius_contribution(plan, rows, centre) for rows in islands])
        centre = dp.finish_radius(plan, centre, distances)
    total = add_up(plan.moments, [dp.moments_contribution(plan, rows, centre) for rows in islands])
    return Rehearsal(centre, dp.finish_moments(plan, centre, total), sums)
