"""The staged release: right without noise, as useful as stated with it, and budgeted to the digit."""

import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from atoll.errors import ParameterError
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.accountant import Spent
from atoll.privacy.lab.joint_moments import JointPlan, finish_joint, joint_contribution
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.mechanisms import (
    Crowd,
    GaussianCost,
    GaussianNoise,
    LaplaceNoise,
    Part,
    calibrate_gaussian,
    symmetric_parts,
)
from atoll.randomness import derive

SEED = bytes(range(1, 33))
RNG = np.random.default_rng(11)
# So large a budget that the noise disappears beside any effect that a test looks at.
LAVISH = 1e5


def private_moments(plan, islands, seed):
    run = rehearse(plan, islands, seed)
    return run.centre, run.moments


def unit_rows(table):
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def captured(components, rows):
    """Variance in the span of the components over that of the best span of the same size."""
    centred = rows - rows.mean(axis=0)
    scatter = centred.T @ centred
    best = np.linalg.eigvalsh(scatter)[-len(components) :].sum()
    return float(np.trace(components @ scatter @ components.T) / best)


def cloud(count=3000, features=4, mean=(0.6, 0.0, 0.2, 0.0)):
    spread = np.array([0.2, 0.1, 0.05, 0.02])[:features]
    return RNG.standard_normal((count, features)) * spread + np.array(mean)[:features]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("rows", ["normalise", "clip"])
@pytest.mark.parametrize("assume_centered", [False, True])
def test_stages_spend_the_budget_and_no_more(neighbours, delta, rows, assume_centered):
    plan = dp.Plan(7, 1.0, 0.8, delta, neighbours, rows, Crowd(5, 1), assume_centered)
    spent = Spent.of(stage.cost for stage in plan.stages)
    assert spent.epsilon(delta) == pytest.approx(0.8)
    assert {type(stage.noise) for stage in plan.stages} <= {GaussianNoise, LaplaceNoise}
    assert isinstance(plan.moments.noise, LaplaceNoise if delta is None else GaussianNoise)


def test_mean_and_moments_are_right_when_noise_is_negligible():
    table = cloud()
    islands = np.array_split(table, 4)
    plan = dp.Plan(4, 2.0, LAVISH, 1e-5, rows="clip", crowd=Crowd(4, 1))
    centre, moments = private_moments(plan, islands, SEED)
    assert centre.count == pytest.approx(3000, abs=1)
    # Step two cuts rows at the radius, which moves the mean of a symmetric cloud but little.
    assert centre.point == pytest.approx(table.mean(axis=0), abs=5e-3)
    centred = table - centre.point
    kept = centred * np.minimum(1, centre.radius / np.linalg.norm(centred, axis=1))[:, None]
    assert moments.matrix == pytest.approx(kept.T @ kept, abs=0.05)
    cut = (np.linalg.norm(centred, axis=1) > centre.radius).mean()
    assert 0.3 < cut <= 0.51


def test_normalised_rows_are_spatial_signs_around_the_private_centre():
    table = cloud()
    plan = dp.Plan(4, 2.0, LAVISH, 1e-5)
    centre, moments = private_moments(plan, [table], SEED)
    signs = unit_rows(table - centre.point)
    assert moments.matrix == pytest.approx(signs.T @ signs, abs=0.05)
    result = dp.spectrum(moments)
    assert result.of_normalised_rows
    assert result.eigenvalues.sum() == pytest.approx(1.0, abs=1e-3)
    assert abs(result.components[0] @ np.eye(4)[0]) > 0.99
    assert result.components @ result.components.T == pytest.approx(np.eye(4), abs=1e-12)


def test_islands_and_order_do_not_matter_but_for_noise():
    table = cloud(500)
    plan = dp.Plan(4, 2.0, 1.0, 1e-5)
    whole = dp.first_mean_contribution(plan, table)
    parts = sum(dp.first_mean_contribution(plan, rows) for rows in np.array_split(table[::-1], 7))
    assert np.array_equal(whole, parts)
    centre = dp.Centre(np.zeros(4), 500.0, 1.0)
    for step in (dp.second_mean_contribution, dp.radius_contribution, dp.moments_contribution):
        apart = sum(step(plan, rows, centre) for rows in np.array_split(table, 3))
        assert np.array_equal(step(plan, table, centre), apart)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", ["normalise", "clip"])
def test_no_row_moves_a_contribution_beyond_its_stage(neighbours, rows):
    """Exact integers: the stated sensitivity holds without any slack."""
    plan = dp.Plan(3, 1.0, 1.0, 1e-5, neighbours, rows)
    centre = dp.Centre(np.array([0.3, -0.2, 0.1]), 50.0, 0.4)
    table = RNG.standard_normal((6, 3))
    for scale in (1e-300, 1e-6, 1.0, 1e300):
        for _ in range(20):
            row, other = RNG.standard_normal((2, 1, 3)) * scale
            one = np.vstack([table, row])
            two = np.vstack([table, other]) if neighbours == "replace" else table
            for stage, step in (
                (plan.first_mean, dp.first_mean_contribution),
                (plan.second_mean, lambda p, t: dp.second_mean_contribution(p, t, centre)),
                (plan.radius, lambda p, t: dp.radius_contribution(p, t, centre)),
                (plan.moments, lambda p, t: dp.moments_contribution(p, t, centre)),
            ):
                moved = (step(plan, one) - step(plan, two)).astype(float)
                widths = np.concatenate([np.full(part.size, part.width) for part in stage.noise.parts])
                assert (moved[widths == 0] == 0).all()
                length = np.linalg.norm(moved[widths > 0] / widths[widths > 0])
                allowed = stage.noise.sigma * stage.cost.mu / 1.001
                assert length <= allowed * (1 + 1e-12)


def test_the_bounds_of_the_stages_are_attained():
    """Not only safe but tight: less noise would break the guarantee."""
    plan = dp.Plan(2, 1.0, 1.0, 1e-5)
    at_origin = dp.Centre(np.zeros(2), 50.0, 1.0)
    row = np.array([[1.0, 0.0]])
    moved = dp.moments_contribution(plan, row, at_origin)
    assert (
        moved[0]
        == grid.MOMENT_UNITS
        == pytest.approx(plan.moments.noise.sigma * plan.moments.cost.mu / 1.001)
    )


def test_noise_does_not_carry_the_mean_out_of_the_ball():
    plan = dp.Plan(5, 1.0, 0.01, 1e-5)
    centre = rehearse(plan, [np.zeros((3, 5))], SEED).centre
    assert np.linalg.norm(centre.point) <= 1.0 + 1e-12
    assert centre.count >= 1.0


def test_stages_draw_apart_from_one_seed():
    plan = dp.Plan(5, 1.0, 1.0, 1e-5)
    first, second = plan.first_mean.draw_share(SEED)[:5], plan.second_mean.draw_share(SEED)
    scaled = first / plan.first_mean.noise.sigma - second / plan.second_mean.noise.sigma
    assert np.abs(scaled).min() > 1e-3
    assert np.array_equal(second, plan.second_mean.draw_share(SEED))


def test_two_stages_of_one_noise_and_one_seed_have_nothing_in_common():
    """Were the name not in the domain, one stage's noise would be the other's: subtracted, it is gone."""
    noise = GaussianNoise(1000.0, (Part(200),))
    names = ("first mean", "second mean", "radius", "second moments", "rows")
    drawn = [dp.Stage(name, noise, GaussianCost(1.0)).draw_share(SEED) for name in names]
    for one, other in combinations(drawn, 2):
        assert (one == other).mean() < 0.05
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.35
    plan = dp.Plan(5, 1.0, 1.0, 1e-5, rows="clip")
    assert len({stage.name for stage in plan.stages}) == len(plan.stages) == 4


def test_replace_opens_the_number_of_rows_and_add_remove_does_not():
    table = cloud(1000)
    public = dp.finish_first_mean(*_first(dp.Plan(4, 2.0, 0.5, 1e-5, "replace"), table))
    private = dp.finish_first_mean(*_first(dp.Plan(4, 2.0, 0.5, 1e-5, "add-remove"), table))
    assert public.count == 1000.0
    assert private.count != 1000.0
    assert private.count == pytest.approx(1000.0, rel=0.2)


def _first(plan, table):
    return plan, dp.first_mean_contribution(plan, table) + plan.first_mean.draw_share(SEED)


def test_pure_epsilon_without_a_delta():
    table = cloud(20_000)
    plan = dp.Plan(4, 1.5, 4.0, None, crowd=Crowd(5, 1))
    centre, moments = private_moments(plan, np.array_split(table, 5), SEED)
    assert centre.point == pytest.approx(table.mean(axis=0), abs=0.05)
    assert abs(dp.spectrum(moments).components[0, 0]) > 0.99


def test_assume_centered_keeps_the_origin():
    table = cloud(2000, mean=(0, 0, 0, 0))
    plan = dp.Plan(4, 1.0, 5.0, 1e-5, rows="clip", assume_centered=True)
    centre, moments = private_moments(plan, [table], SEED)
    assert not centre.point.any()
    assert abs(dp.spectrum(moments).components[0, 0]) > 0.99


def test_deflation_undoes_the_inflation_of_noise():
    features, theta = 200, np.array([50.0, 35.0, 25.0])
    signal = np.zeros((features, features))
    signal[range(3), range(3)] = theta
    noise = calibrate_gaussian(1.0, 1000.0, symmetric_parts(features))
    drawn = [
        grid.unpack_triangle(noise.draw_share(derive(SEED, "deflate", run)), features) / noise.sigma
        for run in range(10)
    ]
    values = np.mean([np.linalg.eigvalsh(signal + matrix)[::-1] for matrix in drawn], axis=0)
    # Inflated by d sigma^2/(2 theta); the noise's own spectrum ends at sqrt(2 d) sigma.
    assert values[:3] - theta == pytest.approx(features / (2 * theta), abs=0.8)
    assert values[5] < math.sqrt(2 * features) < values[2]
    assert dp.deflate(values, features, 1.0)[:3] == pytest.approx(theta, abs=0.8)
    assert (dp.deflate(values, features, 1.0)[5:] == 0).all()
    assert dp.deflate(np.array([5.0, -1.0]), 2, 0.0) == pytest.approx([5.0, 0.0])


@pytest.mark.parametrize("row_norm", [0.0, -1.0, math.inf, math.nan, None])
def test_a_missing_bound_is_an_error_with_a_hint(row_norm):
    with pytest.raises(ParameterError, match="never from the rows themselves"):
        dp.Plan(3, row_norm, 1.0, 1e-5)


@pytest.mark.parametrize(
    "wrong", [{"rows": "drop"}, {"neighbours": "any"}, {"epsilon": 0.0}, {"delta": 0.0}, {"features": 0}]
)
def test_wrong_plans_are_refused(wrong):
    with pytest.raises(ParameterError):
        dp.Plan(**({"features": 3, "row_norm": 1.0, "epsilon": 1.0, "delta": 1e-5} | wrong))


# --- the joint release -----------------------------------------------------------------------------------


def test_joint_release_without_noise_is_the_centred_scatter():
    table = cloud()
    plan = JointPlan(4, 1.5, LAVISH, 1e-5, crowd=Crowd(3, 1))
    total = sum(
        joint_contribution(plan, rows) + plan.noise.draw_share(derive(SEED, owner))
        for owner, rows in enumerate(np.array_split(table, 3))
    )
    kept = grid.shorten(table, 1.5)
    centred = kept - kept.mean(axis=0)
    assert finish_joint(plan, total) == pytest.approx(centred.T @ centred, abs=0.5)


def test_triangle_noise_is_as_private_and_wider_off_the_diagonal():
    isotropic = JointPlan(6, 1.0, 1.0, 1e-5).noise
    triangle = JointPlan(6, 1.0, 1.0, 1e-5, shape="triangle").noise
    assert triangle.size == isotropic.size
    assert triangle.sigma == isotropic.sigma
    assert triangle.deviation_of_sum(0) == pytest.approx(math.sqrt(2) * isotropic.deviation_of_sum(1))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_no_row_moves_the_joint_release_beyond_its_sensitivity(neighbours):
    plan = JointPlan(2, 1.0, 1.0, 1e-5, neighbours, sum_weight=0.8, count_weight=1.3)
    widths = np.concatenate([np.full(part.size, part.width) for part in plan.noise.parts])
    allowed = plan.noise.sigma * plan.cost.mu / 1.001
    longest = 0.0
    for angle in np.linspace(0, math.pi, 181):
        one = np.array([[1.0, 0.0]])
        two = np.array([[math.cos(angle), math.sin(angle)]]) if neighbours == "replace" else np.zeros((0, 2))
        moved = (joint_contribution(plan, one) - joint_contribution(plan, two)).astype(float)
        longest = max(longest, np.linalg.norm(moved[widths > 0] / widths[widths > 0]))
        assert longest <= allowed * (1 + 1e-12)
    assert longest == pytest.approx(allowed, rel=1e-3)


# --- utility ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "components", "epsilon", "at_least"),
    [
        (load_digits, 5, 0.1, 0.24),
        (load_digits, 5, 0.3, 0.77),
        (load_digits, 5, 0.5, 0.90),
        (load_digits, 5, 1.0, 0.97),
        (load_digits, 5, 2.0, 0.99),
        (load_breast_cancer, 3, 1.0, 0.88),
        (load_breast_cancer, 3, 2.0, 0.94),
    ],
)
def test_captured_variance_over_ten_islands(load, components, epsilon, at_least):
    rows = unit_rows(load().data)
    plan = dp.Plan(rows.shape[1], 1.0, epsilon, 1e-5, crowd=Crowd(10, 1))
    islands = np.array_split(rows, 10)
    found = [
        captured(
            dp.spectrum(private_moments(plan, islands, derive(SEED, run))[1]).components[:components], rows
        )
        for run in range(4)
    ]
    assert np.mean(found) >= at_least
