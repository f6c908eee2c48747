"""The release: its sums are those of two-way tables, its sensitivity is the true one, its noise as stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from atoll.errors import RangeOverflow
from atoll.privacy.calibration import gdp_mu
from atoll.privacy.lab.audit import audit
from atoll.privacy.mechanisms import Crowd, GaussianCost, GaussianNoise, Part
from atoll.protocols.synthesis import moments
from atoll.protocols.synthesis.moments import UNITS, Plan, check_rows, helmert
from atoll.randomness import derive

SIZES = (2, 3, 1, 4, 2)
SEED = bytes(range(32))


def rows(n: int = 500) -> np.ndarray:
    rng = np.random.default_rng(2)
    return np.column_stack([rng.integers(0, k, n) for k in SIZES])


def tables(found: moments.Moments, a: int, b: int) -> np.ndarray:
    """The two-way table that moments say."""
    u, v = (found.mean[found.owner == c] for c in (a, b))
    A, B = helmert(SIZES[a]), helmert(SIZES[b])
    inner = A @ found.second[np.ix_(found.owner == a, found.owner == b)] @ B.T
    margins = (A @ u)[:, None] / SIZES[b] + (B @ v)[None, :] / SIZES[a]
    return np.asarray(1.0 / (SIZES[a] * SIZES[b]) + margins + inner)


def test_without_noise_moments_say_every_two_way_table() -> None:
    codes, plan = rows(), Plan(SIZES, 1.0, 1e-5)
    found = moments.finish(plan, moments.contribution(plan, codes))
    assert found.count == 500
    for a, b in itertools.combinations(range(len(SIZES)), 2):
        cells = codes[:, a] * SIZES[b] + codes[:, b]
        counted = np.bincount(cells, minlength=SIZES[a] * SIZES[b]).reshape(SIZES[a], SIZES[b]) / 500
        assert tables(found, a, b) == pytest.approx(counted, abs=1e-12)


def _widths(plan: Plan) -> np.ndarray:
    parts = plan.stage.noise.parts
    return np.repeat([part.width for part in parts], [part.size for part in parts])


@pytest.mark.parametrize("sizes", [SIZES, (2, 2, 2), (5, 3)])
def test_every_row_moves_the_release_by_its_sensitivity(sizes: tuple[int, ...]) -> None:
    """All rows that there can be, each alone, in units of the noise: exactly mu, and none beyond."""
    plan = Plan(sizes, 1.0, 1e-5)
    assert isinstance(plan.stage.noise, GaussianNoise)
    assert isinstance(plan.stage.cost, GaussianCost)
    every = np.array(list(itertools.product(*(range(k) for k in sizes))))
    moved = [moments.contribution(plan, row[None]) / _widths(plan) for row in every]
    reach = np.linalg.norm(moved, axis=1) / plan.stage.noise.sigma * 1.001
    assert reach == pytest.approx(gdp_mu(1.0, 1e-5), rel=1e-9)
    assert plan.stage.cost.mu == gdp_mu(1.0, 1e-5)
    pure = Plan(sizes, 1.0, None)
    moved = [moments.contribution(pure, row[None]) / _widths(pure) for row in every]
    assert (np.abs(moved).sum(axis=1) <= pure.stage.noise.scale * (1 + 1e-9)).all()  # type: ignore[union-attr]


def test_the_sum_has_the_stated_noise() -> None:
    """Shares of three owners, two of them honest: per row, in orthonormal coordinates, as moments say."""
    plan = Plan(SIZES, 1.0, 1e-5, Crowd(3, 1))
    runs = [
        moments.finish(
            plan, sum(plan.stage.draw_share(derive(SEED, run, owner)) for owner in range(3)) + UNITS
        )
        for run in range(400)
    ]
    found = runs[0]
    i, j = np.nonzero(found.owner[:, None] < found.owner[None, :])
    second = np.array([run.second[i, j] * run.count for run in runs])
    mean = np.array([run.mean * run.count for run in runs])
    spread = plan.stage.noise.deviation_of_sum(0) / UNITS
    assert second.std() == pytest.approx(spread, rel=0.05)
    assert mean.std() == pytest.approx(spread / moments.MARGIN_WEIGHT, rel=0.08)
    assert found.second_noise.max() * found.count == pytest.approx(spread)


@pytest.mark.parametrize("thinner", [1.0, 3.0])
def test_the_audit_acquits_the_release_and_convicts_a_third_of_its_noise(thinner: float) -> None:
    """One row more, seen along the direction in which it moves everything; one owner's share is known."""
    epsilon, runs = 1.0, 20_000
    plan = Plan((2, 2, 3), epsilon, 1e-5, Crowd(3, 1))
    noise = plan.stage.noise
    assert isinstance(noise, GaussianNoise)
    length = np.linalg.norm(moments.contribution(plan, np.array([[0, 1, 2]])) / _widths(plan))
    # Along one direction the noise is that of one coordinate.
    thin = GaussianNoise(noise.sigma / thinner, (Part(runs),), noise.crowd)
    sides = [
        value + sum(thin.draw_share(derive(SEED, side, owner)) for owner in range(noise.crowd.honest))
        for side, value in enumerate((length, 0.0))
    ]
    found = audit(*sides, float(length) + thin.sigma, 1e-5)
    assert (found.epsilon_at_least > epsilon) == (thinner > 1.0)


def test_margins_are_shares_that_agree_and_none_is_impossible() -> None:
    plan = Plan(SIZES, 0.05, 1e-5, Crowd(3, 1))
    noise = sum(plan.stage.draw_share(derive(SEED, owner)) for owner in range(3))
    found = moments.finish(plan, moments.contribution(plan, rows(50)) + noise)
    for margin in found.margins:
        assert margin.sum() == pytest.approx(1.0)
        assert (margin > 0.0).all()


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(Exception, match="cells would need a sum of"):
        Plan((1000,) * 20, 1.0, 1e-5)


def test_sums_that_would_wrap_are_refused() -> None:
    check_rows(1 << 20, (2, 1000))
    with pytest.raises(RangeOverflow, match=r"north has 1,048,576 rows, and a column has 5,000 cells"):
        check_rows(1 << 20, (2, 5000), "north")


def test_helmert_is_orthonormal() -> None:
    for k in (1, 2, 3, 7):
        basis = helmert(k)
        assert basis.shape == (k, k - 1)
        assert basis.T @ basis == pytest.approx(np.eye(k - 1))
        assert np.abs(basis.sum(axis=0)) == pytest.approx(np.zeros(k - 1), abs=1e-12)
    assert math.isclose(helmert(2)[1, 0], math.sqrt(0.5))
