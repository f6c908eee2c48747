"""The normal distribution function and its logarithm, from the standard library alone.

A review of a private study needs these two and nothing else of SciPy, which takes longer to import than the
review itself. Tests compare them with arithmetic of 40 digits.
"""

from __future__ import annotations

import math

_SQRT_HALF = math.sqrt(0.5)
_LOG_SQRT_TAU = 0.5 * math.log(2.0 * math.pi)

_FAR = -20.0
"""Below this, the series of the tail is exact to the last digits after :data:`_TERMS` terms."""

_TERMS = 9


def ndtr(x: float) -> float:
    """Phi(x): how likely a standard normal number is at most ``x``."""
    return 0.5 * math.erfc(-x * _SQRT_HALF)


def log_ndtr(x: float) -> float:
    """log Phi(x), also where Phi(x) itself is too small for a float."""
    if x > _FAR:
        return math.log1p(-ndtr(-x)) if x > 0 else math.log(ndtr(x))
    # Phi(x) = phi(x)/|x| (1 - 1/x^2 + 1*3/x^4 - 1*3*5/x^6 + ...), an asymptotic series.
    term, tail = 1.0, 0.0
    for k in range(_TERMS):
        term *= -(2 * k + 1) / (x * x)
        tail += term
    return -0.5 * x * x - _LOG_SQRT_TAU - math.log(-x) + math.log1p(tail)
