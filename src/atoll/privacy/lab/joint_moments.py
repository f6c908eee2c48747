"""One joint release of (second moments, w v, u N), from which anybody forms the centred scatter.

One round instead of several. Under add/remove neighbours Delta^2 = B^4 + w^2 B^2 + u^2. It loses to
the staged release of ``dp_moments`` wherever the mean is far from the origin, because then most of
the second moments, and so most of the noise, is spent on the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from atoll.privacy import grid
from atoll.privacy.calibration import gdp_mu
from atoll.privacy.mechanisms import (
    CURATOR,
    Crowd,
    GaussianCost,
    GaussianNoise,
    Part,
    calibrate_gaussian,
    symmetric_parts,
)
from atoll.privacy.sensitivity import Neighbours, joint_release

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class JointPlan:
    """Rows are cut at ``row_norm`` and measured in it, so B = 1 in the weights' units."""

    features: int
    row_norm: float
    epsilon: float
    delta: float
    neighbours: Neighbours = "add-remove"
    crowd: Crowd = CURATOR
    sum_weight: float = 1.0
    count_weight: float = 1.0
    # "triangle": the same width on and off the diagonal. As private, and wider off it by sqrt(2).
    shape: Literal["frobenius", "triangle"] = "frobenius"

    @property
    def cost(self) -> GaussianCost:
        return GaussianCost(gdp_mu(self.epsilon, self.delta))

    @property
    def noise(self) -> GaussianNoise:
        """Widths relative to the moments' grid, which is 2^20 times finer than that of v and N."""
        private_count = self.neighbours == "add-remove"
        count_width = 1.0 / (self.count_weight * grid.ROW_UNITS) if private_count else 0.0
        triangle = (Part(grid.triangle_size(self.features)),)
        parts = (
            *(symmetric_parts(self.features) if self.shape == "frobenius" else triangle),
            Part(self.features, 1.0 / (self.sum_weight * grid.ROW_UNITS)),
            Part(1, count_width),
        )
        reach = joint_release(1.0, self.sum_weight, self.count_weight, self.neighbours)
        return calibrate_gaussian(self.cost.mu, reach * grid.MOMENT_UNITS, parts, self.crowd)


def joint_contribution(plan: JointPlan, rows: npt.ArrayLike) -> Integers:
    table = grid.checked_rows(rows, plan.features)
    integers = grid.cut_to_grid(table, plan.row_norm)
    count = np.int64(table.shape[0] * grid.ROW_UNITS)
    return np.concatenate([grid.second_moment_triangle(integers), grid.row_sum(integers), [count]])


def finish_joint(plan: JointPlan, total: npt.ArrayLike) -> Floats:
    """The centred scatter matrix R - v v^T/N, in the data's units."""
    values = np.asarray(total).astype(np.float64)
    size = grid.triangle_size(plan.features)
    unit = plan.row_norm / grid.ROW_UNITS
    scatter = grid.unpack_triangle(values[:size], plan.features) * unit * unit
    summed = values[size:-1] * unit
    count = max(float(values[-1]) / grid.ROW_UNITS, 1.0)
    # |v| <= N B holds for the true values; without this a small noisy N would blow the mean up.
    summed *= min(1.0, count * plan.row_norm / max(math.sqrt(float(summed @ summed)), 1e-300))
    return np.asarray(scatter - np.outer(summed, summed) / count)
