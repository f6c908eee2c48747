"""How far noise can reach: what the masks that hide a noisy matrix are made for.

Bounds fail with probability below e^-32 < 2^-46, so that one for the sum and one for each of fifty owners
hold together but for 2^-40; of 256 owners, but for 2^-38.
"""

from __future__ import annotations

import math

from atoll.privacy.mechanisms import GaussianNoise, LaplaceNoise, Noise

_FAILURE = 32.0
"""Minus the logarithm of the probability that a bound fails."""


def frobenius_reach(noise: Noise, features: int) -> float:
    """What the Frobenius norm of all owners' noise on a symmetric matrix stays below, in grid units.

    ``noise`` is on [diagonal, upper triangle]. No smaller set of owners reaches further, by the same bound.
    """
    entries = features * (features + 1) // 2
    if isinstance(noise, GaussianNoise):
        return _gaussian(noise, entries)
    return features * _laplace_entry(noise, entries)


def _gaussian(noise: GaussianNoise, entries: int) -> float:
    """Isotropic in the Frobenius norm: sigma (sqrt(D) + sqrt(2 x)), except with probability e^-x.

    Discrete Gaussians are sub-Gaussian with their own sigma (Canonne, Kamath and Steinke 2020), for which
    the bound on a chi-square variable holds too (Hsu, Kakade and Zhang 2012).
    """
    last = len(noise.parts) - 1
    sigma = max(noise.deviation_of_sum(0), math.sqrt(2.0) * noise.deviation_of_sum(last))
    return sigma * (math.sqrt(entries) + math.sqrt(2.0 * _FAILURE))


def _laplace_entry(noise: LaplaceNoise, entries: int) -> float:
    """Every entry at once, by Chernoff's bound at half the rate of the tail.

    All shares together are a difference of two negative binomials, r times as many as make one discrete
    Laplace variable, whose moments are known exactly.
    """
    scale, r = noise.part_scale(0), noise.crowd.variance_factor()
    p, rate = math.exp(-1.0 / scale), 0.5 / scale
    log_moment = r * (
        2.0 * math.log1p(-p) - math.log1p(-p * math.exp(rate)) - math.log1p(-p * math.exp(-rate))
    )
    return (log_moment + math.log(2.0 * entries) + _FAILURE) / rate
