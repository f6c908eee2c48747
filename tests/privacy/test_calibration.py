"""Calibration against the closed form, in arithmetic of its own, and against dp-accounting."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from mpmath import mp, mpf, ncdf

from atoll.errors import ParameterError
from atoll.privacy import calibration as cal
from atoll.privacy.mechanisms import MIN_SHARE_WIDTH

GRID = [(epsilon, delta) for epsilon in (0.01, 0.1, 0.5, 1, 2, 5, 10) for delta in (1e-3, 1e-5, 1e-8, 1e-12)]


def closed_form_sigma(epsilon, delta):
    """Balle and Wang, Theorem 8, by bisection in 40 digits."""
    with mp.workdps(40):
        low, high = mpf("1e-3"), mpf("1e5")
        for _ in range(140):
            sigma = (low + high) / 2
            reached = ncdf(1 / (2 * sigma) - epsilon * sigma) - mp.exp(epsilon) * ncdf(
                -1 / (2 * sigma) - epsilon * sigma
            )
            low, high = (sigma, high) if reached > delta else (low, sigma)
        return float(high)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_sigma_is_the_closed_form(epsilon, delta):
    assert cal.gaussian_sigma(epsilon, delta) == pytest.approx(closed_form_sigma(epsilon, delta), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_epsilon_and_mu_are_inverse(epsilon, delta):
    assert cal.gdp_epsilon(cal.gdp_mu(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-6)


def test_sigma_per_unit_sensitivity():
    """Gaussian DP beats tight zCDP beats simple zCDP, at delta 1e-5."""
    for epsilon, simple, tight, gdp in (
        (0.1, 48.1, 34.0, 30.8),
        (0.5, 9.70, 7.67, 7.03),
        (1, 4.90, 4.05, 3.73),
    ):
        assert cal.gaussian_sigma(epsilon, 1e-5) * cal.GRID_INFLATION == pytest.approx(gdp, rel=2e-3)
        assert 1 / math.sqrt(2 * cal.zcdp_rho(epsilon, 1e-5)) == pytest.approx(tight, rel=2e-3)
        root = math.sqrt(math.log(1e5) + epsilon) - math.sqrt(math.log(1e5))
        assert cal.simple_zcdp_epsilon(root**2, 1e-5) == pytest.approx(epsilon, rel=1e-9)
        assert 1 / math.sqrt(2 * root**2) == pytest.approx(simple, rel=2e-3)


def test_the_textbook_formula_wastes_thirty_percent_at_epsilon_one():
    waste = cal.classic_gaussian_sigma(1, 1e-5) / cal.gaussian_sigma(1, 1e-5)
    assert waste == pytest.approx(1.30, abs=0.01)
    # That is why sqrt(2) on R alone matters little, and 4 on the centred scatter matters.
    assert cal.gdp_epsilon(math.sqrt(2) / cal.classic_gaussian_sigma(1, 1e-5), 1e-5) == pytest.approx(
        1.1, abs=0.05
    )
    assert cal.gdp_epsilon(4 / cal.classic_gaussian_sigma(1, 1e-5), 1e-5) == pytest.approx(3.5, abs=0.05)


@pytest.mark.parametrize("mu", [0.1, 0.27, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_dp_agrees_with_a_privacy_loss_distribution(mu, delta):
    peer = PLDAccountant(value_discretization_interval=1e-3)
    peer.compose(GaussianDpEvent(1 / mu))
    theirs = peer.get_epsilon(delta)
    # Theirs rounds up to its grid.
    assert theirs - 2e-3 <= cal.gdp_epsilon(mu, delta) <= theirs + 1e-9


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.5, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_tight_zcdp_conversion_agrees_with_renyi_accounting(rho, delta):
    orders = 1 + np.geomspace(1e-2, 2e4, 4000)
    peer = RdpAccountant(orders)
    peer.compose(GaussianDpEvent(1 / math.sqrt(2 * rho)))
    assert cal.zcdp_epsilon(rho, delta) == pytest.approx(peer.get_epsilon(delta), rel=2e-3)
    assert cal.zcdp_epsilon(rho, delta) < cal.simple_zcdp_epsilon(rho, delta)
    # A Gaussian is mu^2/2-zCDP, and its own curve is never worse than what zCDP says of it.
    assert cal.gdp_epsilon(math.sqrt(2 * rho), delta) <= cal.zcdp_epsilon(rho, delta)


@pytest.mark.parametrize("sigma", [16.0, 40.0, 300.0])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5])
def test_the_inflation_covers_the_grid(sigma, mu):
    """The exact privacy curve of a discrete Gaussian stays below the Gaussian curve that we state."""
    shift = max(int(sigma * mu / cal.GRID_INFLATION), 1)
    stated = shift * cal.GRID_INFLATION / sigma
    support = np.arange(-int(12 * sigma) - shift, int(12 * sigma) + shift + 1)
    here = np.exp(-(support**2) / (2 * sigma**2))
    there = np.exp(-((support - shift) ** 2) / (2 * sigma**2))
    here, there = here / here.sum(), there / there.sum()
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        exact = np.maximum(there - math.exp(epsilon) * here, 0).sum()
        if exact > 1e-13:
            assert exact <= cal.gdp_delta(stated, epsilon)


def divergence_of_summed_shares(width):
    """Largest log-ratio between the sum of two discrete Gaussians and one of twice the variance."""
    support = np.arange(-int(20 * width) - 20, int(20 * width) + 21)
    share = np.exp(-(support**2) / (2 * width**2))
    share /= share.sum()
    total = np.convolve(share, share, mode="same")
    whole = np.exp(-(support**2) / (4 * width**2))
    whole /= whole.sum()
    bulk = np.abs(support) <= 6 * width
    return np.abs(np.log(total[bulk] / whole[bulk])).max()


def test_sums_of_wide_shares_are_discrete_gaussian():
    """From 16 grid units on the difference is below rounding; narrow shares would show it."""
    assert divergence_of_summed_shares(MIN_SHARE_WIDTH) < 1e-10
    assert divergence_of_summed_shares(1.0) < 1e-3
    assert divergence_of_summed_shares(0.4) > 0.1


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2.0, math.nan])
def test_wrong_deltas_are_refused(delta):
    with pytest.raises(ParameterError, match="delta"):
        cal.gdp_mu(1.0, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, 1.01e6])
def test_wrong_epsilons_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        cal.gdp_mu(epsilon, 1e-5)


def test_nothing_spent_costs_nothing():
    assert cal.gdp_epsilon(0.0, 1e-5) == 0.0
    assert cal.zcdp_epsilon(0.0, 1e-5) == 0.0
    assert cal.gdp_delta(0.0, 0.0) == 0.0
