"""The audit: it convicts the noise that two papers print, and acquits ours however sharp the attack."""

import math
from typing import get_args

import numpy as np
import pytest
from benchmarks.dp_audit import PAIR_FORMS, ThinPlan, draw_runs, pair_run, whole_run

from atoll.privacy import dp_moments as dp
from atoll.privacy import grid, pairs
from atoll.privacy.calibration import classic_gaussian_sigma, gdp_epsilon, gdp_mu
from atoll.privacy.lab.audit import audit, score_bounds
from atoll.privacy.mechanisms import Crowd, GaussianNoise, LaplaceNoise, Part
from atoll.privacy.paper_forms import centred_scatter, gaussian_matrices, ppca_noise, wishart_matrices
from atoll.privacy.sensitivity import Neighbours, centred_scatter_replace
from atoll.randomness import derive

SEED = bytes(range(7, 39))
DELTA = 1e-5
RUNS = 100_000
FEWER_RUNS = 30_000
# As many whole runs as it takes to convict noise of a third of its width, with some to spare.
WHOLE_RUNS = 4_000


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


@pytest.mark.parametrize("neighbours", get_args(Neighbours))
@pytest.mark.parametrize(("kind", "caught"), [(dp.Plan, False), (ThinPlan, True)], ids=["ours", "a third"])
def test_whole_runs_stay_below_their_epsilon_unless_their_noise_is_thin(kind, caught, neighbours):
    """Every stage of a run, seen by one who knows all other rows, every formula and the noise's width."""
    plan = kind(3, 1.0, 1.0, DELTA, neighbours)
    sides, threshold, delta = whole_run(SEED, WHOLE_RUNS, plan)
    assert (audit(*sides, threshold, delta).epsilon_at_least > plan.epsilon) == caught
    # The attack is a real one: the two sides differ, by what Gaussian DP says at the most.
    mu = gdp_mu(plan.epsilon, DELTA) * (3 if caught else 1)
    apart = (sides[0].mean() - sides[1].mean()) / sides[1].std()
    assert 0.8 * mu < apart < mu + 4 * math.sqrt(2 / WHOLE_RUNS)


@pytest.mark.parametrize(("neighbours", "padded"), PAIR_FORMS)
@pytest.mark.parametrize(("kind", "caught"), [(dp.Plan, False), (ThinPlan, True)], ids=["ours", "a third"])
def test_pairs_stay_below_their_epsilon_unless_their_noise_is_thin(kind, caught, neighbours, padded):
    """Seen by one who knows all other rows, and in which places all of them stand."""
    plan = kind(3, 1.0, 1.0, DELTA, neighbours, centre="pairs", padded=padded)
    sides, threshold, delta = pair_run(SEED, FEWER_RUNS, plan)
    assert (audit(*sides, threshold, delta).epsilon_at_least > plan.epsilon) == caught
    # The sides are as far apart as Gaussian DP allows: the neighbours are the worst there are.
    mu = gdp_mu(plan.epsilon, DELTA) * (3 if caught else 1)
    apart = (sides[0].mean() - sides[1].mean()) / sides[1].std()
    assert apart == pytest.approx(mu / 1.001, abs=5 * math.sqrt(2 / FEWER_RUNS))


def test_pairs_in_the_order_of_the_table_are_caught(monkeypatch):
    """A row removed at the head of the table makes every pair behind it another one; drawn places do not."""
    stairs = np.cumsum([np.eye(3)[step % 2] for step in range(41)], axis=0)
    plan, runs = dp.Plan(3, 1.0, 1.0, DELTA, centre="pairs"), 500

    def bound() -> float:
        """What an attacker shows who presumes that the table was taken in its order."""
        in_order = [pairs.contribution_of(plan, rows, np.arange(len(rows))) for rows in (stairs, stairs[1:])]
        noise = plan.moments.noise
        widths = np.repeat([part.width for part in noise.parts], [part.size for part in noise.parts])
        weights = (in_order[0] - in_order[1]) / (noise.sigma * widths) ** 2
        sides = []
        for side, rows in enumerate((stairs, stairs[1:])):
            drawn = draw_runs(noise, derive(SEED, "order", side), runs)
            sums = [
                pairs.pair_contribution(plan, rows, len(rows), derive(SEED, "places", side, run))
                for run in range(runs)
            ]
            sides.append((np.array(sums) + drawn - (in_order[0] + in_order[1]) / 2) @ weights)
        return audit(*sides, 0.0, DELTA).epsilon_at_least

    assert bound() < 1.0
    monkeypatch.setattr(pairs, "draw_places", lambda _seed, rows, _capacity: np.arange(rows))
    assert bound() > 3.0


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
