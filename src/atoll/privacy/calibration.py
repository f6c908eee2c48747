"""Privacy curves and their inverses: (epsilon, delta), Gaussian DP (mu), zero-concentrated DP (rho).

Numbers only; no noise is drawn here. A Gaussian release whose sensitivity is mu standard deviations
is mu-GDP, and k of them together are sqrt(sum mu^2)-GDP (Dong, Roth and Su 2022); its exact
(epsilon, delta) curve is that of the analytic Gaussian mechanism (Balle and Wang 2018).
zCDP is converted with the tight bound of Canonne, Kamath and Steinke (2020, Proposition 12), for comparison:
no account is kept in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from atoll.errors import ParameterError
from atoll.lazy import lazy
from atoll.privacy.normal import log_ndtr, ndtr

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = lazy("scipy.optimize")

# The discrete Gaussian is not exactly Gaussian DP; this covers the difference at every width we draw.
GRID_INFLATION = 1.001

_LARGEST_EPSILON = 1e6
_MU_RANGE = (1e-10, 1e4)
_ROUNDING = 2.0**-51


def check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError(
            f"epsilon must be a positive number, got {epsilon!r}",
            hint="smaller is more private, and noisier; 0.1 to 5 are usual",
            option="epsilon",
        )
    if epsilon > _LARGEST_EPSILON:
        raise ParameterError(
            f"epsilon {epsilon:g} is beyond {_LARGEST_EPSILON:,.0f}, and promises nothing at all",
            hint="take an epsilon of a few units at most, or leave it out for an exact result",
            option="epsilon",
        )


def check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError(
            f"delta must lie strictly between 0 and 1, got {delta!r}",
            hint="take delta well below 1/rows, or leave it out for pure epsilon",
            option="delta",
        )


def gdp_delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) of a mu-GDP release: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).

    Where epsilon is small, the two are nearly equal and their rounding is a larger part of the difference
    (2e-9 at an epsilon of 1e-4). What rounding could have taken off is added: delta is never said to be
    smaller than it is.
    """
    if mu <= 0:
        return 0.0
    x, y = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    first, exponent = ndtr(x), epsilon + log_ndtr(y)
    second = math.exp(min(exponent, 0.0))
    # x and y are off by two last digits, so Phi(x) by 2 x^2 of them; the exponent by its largest part.
    rounding = _ROUNDING * ((2 + x * x) * first + (2 + y * y) * second)
    return max(first - second + rounding, 0.0)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon that a mu-GDP release has at ``delta``."""
    check_delta(delta)
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    upper = 1.0
    while gdp_delta(mu, upper) > delta:
        upper *= 2.0
        if upper > _LARGEST_EPSILON:
            return math.inf
    # The end at which the release is private: what is said is never less than what is spent.
    return _bisected(lambda epsilon: gdp_delta(mu, epsilon) > delta, 0.0, upper)[1]


@lru_cache(maxsize=256)
def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose release is still (epsilon, delta)-private."""
    check_epsilon(epsilon)
    check_delta(delta)
    low, high = _MU_RANGE
    if gdp_delta(low, epsilon) > delta:
        raise ParameterError(
            f"epsilon={epsilon:g} at delta={delta:g} needs more noise than can be drawn",
            hint="take a larger epsilon, or a larger delta",
            option="epsilon",
        )
    # The end at which the release is private, which the other end is not.
    return _bisected(lambda mu: gdp_delta(mu, epsilon) <= delta, low, high)[0]


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Neighbouring floats between ``low``, where a condition holds, and ``high``, where it does not."""
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation of the analytic Gaussian mechanism."""
    return sensitivity / gdp_mu(epsilon, delta)


def classic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The textbook formula sqrt(2 ln(1.25/delta))/epsilon; wasteful, and proven for epsilon <= 1 only."""
    check_epsilon(epsilon)
    check_delta(delta)
    return sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Tight conversion: min over alpha > 1 of e^((alpha-1)(alpha rho - eps))/(alpha-1) (1-1/alpha)^alpha."""
    if rho <= 0:
        return 0.0

    def log_delta(log_order: float) -> float:
        above_one = math.exp(log_order)  # alpha - 1
        alpha = 1.0 + above_one
        return above_one * (alpha * rho - epsilon) - math.log(above_one) - alpha * math.log1p(1 / above_one)

    best = optimize.minimize_scalar(
        log_delta, bounds=(-15.0, 25.0), method="bounded", options={"xatol": 1e-10}
    )
    return math.exp(min(float(best.fun), 0.0))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon that the tight conversion gives at ``delta``."""
    check_delta(delta)
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    upper = simple_zcdp_epsilon(rho, delta)
    return float(optimize.brentq(lambda eps: zcdp_delta(rho, eps) - delta, 0.0, upper, xtol=1e-12))


def simple_zcdp_epsilon(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1/delta)): the first conversion, kept for comparison and as a bracket."""
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose tight conversion is still (epsilon, delta)."""
    check_epsilon(epsilon)
    check_delta(delta)
    return math.exp(
        float(
            optimize.brentq(
                lambda log_rho: zcdp_epsilon(math.exp(log_rho), delta) - epsilon, -40.0, 10.0, xtol=1e-12
            )
        )
    )
