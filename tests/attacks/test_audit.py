"""The audit: it convicts the noise that two papers print, and acquits ours however sharp the attack."""

import math

import numpy as np
import pytest

from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.privacy.audit import audit, score_bounds
from atoll.privacy.calibration import classic_gaussian_sigma, gdp_epsilon
from atoll.privacy.mechanisms import Crowd, GaussianNoise, LaplaceNoise, Part
from atoll.privacy.paper_forms import centred_scatter, gaussian_matrices, ppca_noise, wishart_matrices
from atoll.privacy.rehearsal import rehearse
from atoll.privacy.sensitivity import centred_scatter_replace
from atoll.randomness import derive

SEED = bytes(range(7, 39))
DELTA = 1e-5
RUNS = 100_000
FEWER_RUNS = 30_000


# --- the published forms are caught ----------------------------------------------------------------------


def dpdpca_statistics(runs):
    """S'_11 of 50 rows e1, and with one of them turned into -e1."""
    rows = np.zeros((50, 4))
    rows[:, 0] = 1.0
    turned = rows.copy()
    turned[0, 0] = -1.0
    return [
        centred_scatter(table)[0, 0] + gaussian_matrices(derive(SEED, side), 4, 1.0, DELTA, runs)[:, 0, 0]
        for side, table in enumerate((turned, rows))
    ]


def test_dpdpca_as_printed_exceeds_its_epsilon():
    moved = centred_scatter_replace(50)
    # Two standard deviations beyond the larger mean, fixed before any run.
    threshold = moved + 2.0 * classic_gaussian_sigma(1.0, DELTA)
    found = audit(*dpdpca_statistics(RUNS), threshold, DELTA)
    assert found.epsilon_at_least > 1.8  # stated: 1
    true_epsilon = gdp_epsilon(moved / classic_gaussian_sigma(1.0, DELTA), DELTA)
    assert found.epsilon_at_least < true_epsilon == pytest.approx(3.43, abs=0.01)


def ppca_statistics(runs, rows=2000, features=8, epsilon=4.0):
    """Log-likelihood ratio of the full noisy matrix: all rows zero, or one of ones."""
    scale, moved = 2.0 * features / (rows * epsilon), 1.0 / rows
    sides = []
    for side, value in enumerate((moved, 0.0)):
        seen = value + ppca_noise(derive(SEED, "ppca", side), rows, features, epsilon, runs)
        sides.append((np.abs(seen) - np.abs(seen - moved)).sum(axis=(1, 2)) / scale)
    return sides


def test_ppca_full_matrix_as_printed_exceeds_its_epsilon():
    found = audit(*ppca_statistics(RUNS), 4.4)
    assert found.epsilon_at_least > 4.3  # stated: 4, of which the matrix was given 2
    assert found.epsilon_at_least < 8 * 4.0 / 2


def test_wishart_noise_moves_its_support():
    """Adding a row e1: with probability 1 - e^(-epsilon/3) the output is impossible without it."""
    epsilon = 1.0
    noise = wishart_matrices(SEED, 3, epsilon, 4000)
    row = np.zeros((3, 3))
    row[0, 0] = 1.0
    impossible = (np.linalg.eigvalsh(noise - row)[:, 0] < 0).mean()
    assert impossible == pytest.approx(1 - math.exp(-epsilon / 3), abs=0.04)


# --- ours is not -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("crowd", [Crowd(1), Crowd(10, 1)], ids=["curator", "nine honest shares"])
def test_the_default_noise_stays_below_its_epsilon(epsilon, crowd):
    """A row e1 more or less, seen in R_11; colluders have subtracted their own shares."""
    plan = dp.Plan(4, 1.0, epsilon, DELTA, crowd=crowd)
    moved = dp.moments_contribution(plan, np.eye(4)[:1], dp.Centre(np.zeros(4), 50.0, 1.0))[0]
    noise = GaussianNoise(plan.moments.noise.sigma, (Part(FEWER_RUNS),), crowd)
    sides = [
        value + sum(noise.draw_share(derive(SEED, side, owner)) for owner in range(crowd.honest))
        for side, value in enumerate((moved, 0))
    ]
    for beyond in (0.0, 1.0, 2.0):
        assert audit(*sides, moved + beyond * noise.sigma, DELTA).epsilon_at_least < epsilon
    assert moved == grid.MOMENT_UNITS


def test_too_little_noise_is_caught():
    """The same audit convicts the default mechanism once its noise is cut to a third."""
    plan = dp.Plan(4, 1.0, 1.0, DELTA)
    noise = GaussianNoise(plan.moments.noise.sigma / 3, (Part(RUNS),))
    sides = [value + noise.draw_share(derive(SEED, value)) for value in (grid.MOMENT_UNITS, 0)]
    assert audit(*sides, grid.MOMENT_UNITS + 2 * noise.sigma, DELTA).epsilon_at_least > 1.5


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_pure_epsilon_from_polya_shares_is_tight_and_holds(epsilon):
    moved, crowd = 1 << 20, Crowd(5, 1)
    noise = LaplaceNoise(moved / epsilon, (Part(FEWER_RUNS),), crowd)
    sides = [
        value + sum(noise.draw_share(derive(SEED, "pure", side, owner)) for owner in range(crowd.honest))
        for side, value in enumerate((moved, 0))
    ]
    found = audit(*sides, moved)
    assert epsilon - 0.1 < found.epsilon_at_least < epsilon


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_whole_run_stays_below_its_epsilon(neighbours):
    """Every stage of a real run, seen by one who knows all other rows and every formula."""
    epsilon, runs = 4.0, 150
    sides = whole_run_statistics(epsilon, neighbours, runs)
    mu = math.sqrt(sum(stage.cost.mu**2 for stage in dp.Plan(3, 1.0, epsilon, DELTA, neighbours).stages))
    for threshold in (0.0, mu):
        assert audit(*sides, threshold, DELTA).epsilon_at_least < epsilon
    # The attack is a real one: the two sides do differ, by what Gaussian DP says at the most.
    apart = (sides[0].mean() - sides[1].mean()) / sides[1].std()
    assert mu / 2 < apart < mu + 4 * math.sqrt(2 / runs)


def whole_run_statistics(epsilon, neighbours, runs):
    """Per run the sum over stages of <shift, seen - expected>/sigma^2, in units of each noise."""
    plan = dp.Plan(3, 1.0, epsilon, DELTA, neighbours)
    others = np.tile(np.eye(3)[0], (20, 1)) * 0.5
    row, instead = np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 0.0]])
    absent = np.vstack([others, instead]) if neighbours == "replace" else others
    present = np.vstack([others, row])
    return [
        np.array(
            [
                _score(plan, rehearse(plan, [table], derive(SEED, side, run)), present, absent)
                for run in range(runs)
            ]
        )
        for side, table in enumerate((present, absent))
    ]


def _score(plan, run, present, absent):
    first = dp.finish_first_mean(plan, run.sums["first mean"])
    steps = [
        (plan.first_mean, lambda table: dp.first_mean_contribution(plan, table)),
        (plan.second_mean, lambda table: dp.second_mean_contribution(plan, table, first)),
        (plan.moments, lambda table: dp.moments_contribution(plan, table, run.centre)),
    ]
    score = 0.0
    for stage, step in steps:
        widths = np.concatenate([np.full(part.size, part.width) for part in stage.noise.parts])
        noisy = widths > 0
        middle = (step(present) + step(absent))[noisy] / 2
        shift = (step(present) - step(absent))[noisy].astype(float)
        score += float(
            shift @ ((run.sums[stage.name][noisy] - middle) / (stage.noise.sigma * widths[noisy]) ** 2)
        )
    return score


# --- the audit itself ------------------------------------------------------------------------------------


def test_score_bounds_are_sound_for_rare_events():
    low, high = score_bounds(0, 1000)
    assert low == 0.0
    assert high == pytest.approx(9 / 1009)
    assert score_bounds(1000, 1000)[1] == 1.0
    low, high = score_bounds(500, 1000)
    assert (low, high) == pytest.approx((0.4528, 0.5472), abs=1e-3)


def test_an_audit_needs_both_sides():
    with pytest.raises(ValueError, match="either side"):
        audit([1.0], [1.0, 2.0], 0.0)
    assert audit(np.zeros(50), np.zeros(50), 1.0).epsilon_at_least == 0.0
