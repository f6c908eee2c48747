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


def test_sums_of_shares_are_discrete_gaussian_to_all_practical_purposes():
    """Kairouz, Liu and Steinke 2021: distance at most 10 sum over k of exp(-2 pi^2 s^2 k/(k+1))."""
    assert 10 * 1000 * math.exp(-2 * math.pi**2 * 16.0**2 / 2) < 1e-300


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2.0, math.nan])
def test_wrong_deltas_are_refused(delta):
    with pytest.raises(ParameterError, match="delta"):
        cal.gdp_mu(1.0, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_wrong_epsilons_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        cal.gdp_mu(epsilon, 1e-5)


def test_nothing_spent_costs_nothing():
    assert cal.gdp_epsilon(0.0, 1e-5) == 0.0
    assert cal.zcdp_epsilon(0.0, 1e-5) == 0.0
    assert cal.gdp_delta(0.0, 0.0) == 0.0
