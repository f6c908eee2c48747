"""The normal distribution function against arithmetic of 40 digits, and what calibration makes of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf, ncdf

from atoll.errors import ParameterError
from atoll.privacy import calibration, normal

# Where the function changes its form, and around it.
EDGES = (-20.5, -20.0 - 1e-9, -20.0, -20.0 + 1e-9, -19.5, -1e-12, 0.0, 1e-12)


@pytest.mark.parametrize("x", [*np.linspace(-37.0, 9.0, 93).tolist(), *EDGES])
def test_the_distribution_function_is_exact(x: float) -> None:
    with mp.workdps(40):
        exact = ncdf(mpf(x))
        # x sqrt(1/2) is rounded once: x^2 last digits in the tail.
        assert abs(mpf(normal.ndtr(x)) / exact - 1) < 2**-52 * (2 + x * x)


@pytest.mark.parametrize("x", [*np.linspace(-150.0, 9.0, 107).tolist(), *EDGES, -1e3])
def test_its_logarithm_is_exact_also_where_the_function_is_too_small_for_a_float(x: float) -> None:
    with mp.workdps(40):
        exact = mp.log(ncdf(mpf(x)))
        assert abs(mpf(normal.log_ndtr(x)) / exact - 1) < 2e-14


def test_far_out_the_logarithm_stays_a_number() -> None:
    assert normal.log_ndtr(-1e150) == pytest.approx(-0.5e300, rel=1e-15)
    assert normal.log_ndtr(60.0) == 0.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_noise_and_epsilon_are_on_the_private_side(epsilon: float, delta: float) -> None:
    """The float found is private by the curve, and the next one is not: nothing is rounded the other way."""
    mu = calibration.gdp_mu(epsilon, delta)
    assert (
        calibration.gdp_delta(mu, epsilon) <= delta < calibration.gdp_delta(math.nextafter(mu, 9e9), epsilon)
    )
    said = calibration.gdp_epsilon(mu, delta)
    assert calibration.gdp_delta(mu, said) <= delta < calibration.gdp_delta(mu, math.nextafter(said, 0.0))


def exact_delta(mu: float, epsilon: float) -> mpf:
    a, b = mpf(mu), mpf(epsilon)
    return ncdf(a / 2 - b / a) - mp.exp(b) * ncdf(-a / 2 - b / a)


@pytest.mark.parametrize("epsilon", np.geomspace(1e-4, 200.0, 15).tolist())
@pytest.mark.parametrize("delta", [1e-3, 3e-6, 1e-9, 7e-12, 1e-15])
def test_rounding_never_says_less_than_is_spent(epsilon: float, delta: float) -> None:
    """By 60 digits: what is found is private, and wastes next to nothing."""
    with mp.workdps(60):
        mu = calibration.gdp_mu(epsilon, delta)
        assert 1 - 1e-7 < exact_delta(mu, epsilon) / mpf(delta) <= 1
        said = calibration.gdp_epsilon(mu, delta)
        assert 1 - 1e-7 < exact_delta(mu, said) / mpf(delta) <= 1


def test_a_budget_too_small_for_any_noise_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs more noise than can be drawn") as refused:
        calibration.gdp_mu(1e-12, 1e-300)
    assert refused.value.option == "epsilon"
