"""The bounds that masks rely on: never below what is drawn, and not far above."""

from __future__ import annotations

import math

import numpy as np
import pytest

from atoll.privacy import grid
from atoll.privacy.mechanisms import Crowd, GaussianNoise, LaplaceNoise, Noise, Part, symmetric_parts
from atoll.privacy.tails import frobenius_reach

D = 6
CROWD = Crowd(5, 1)
NOISES = [
    GaussianNoise(1000.0, symmetric_parts(D), CROWD),
    LaplaceNoise(1000.0, (Part(grid.triangle_size(D)),), CROWD),
    LaplaceNoise(1000.0, (Part(grid.triangle_size(D)),), Crowd(5, 4)),
]


def norms(noise: Noise, runs: int) -> np.ndarray:
    seeds = [[bytes([owner, run % 256, run // 256]) + bytes(29) for owner in range(5)] for run in range(runs)]
    sums = [sum(noise.draw_share(seed) for seed in owners) for owners in seeds]
    return np.array([np.linalg.norm(grid.unpack_triangle(total, D)) for total in sums])


@pytest.mark.parametrize("noise", NOISES, ids=["gaussian", "laplace", "laplace-local"])
def test_no_draw_reaches_the_bound_and_the_bound_is_not_absurd(noise: Noise) -> None:
    drawn = norms(noise, 500)
    assert drawn.max() < frobenius_reach(noise, D)
    assert frobenius_reach(noise, D) < 100 * drawn.max()


def test_the_gaussian_bound_is_the_chi_bound() -> None:
    sigma = 1000.0 * math.sqrt(5 / 4)
    assert frobenius_reach(NOISES[0], D) == pytest.approx(sigma * (math.sqrt(21) + 8.0))


def test_the_laplace_bound_covers_the_exact_tail() -> None:
    """One entry of a curator's discrete Laplace: P(|x| >= t) = 2 p^t/(1+p), known exactly."""
    noise = LaplaceNoise(50.0, (Part(1),))
    reach, p = frobenius_reach(noise, 1), math.exp(-1 / 50)
    assert 2 * p ** math.ceil(reach) / (1 + p) < 2.0**-46
