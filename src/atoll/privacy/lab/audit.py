"""An empirical audit: a lower bound on the epsilon that a mechanism really has.

Run the mechanism many times on two neighbouring data sets and count how often a statistic exceeds a
threshold fixed beforehand. Under (epsilon, delta) the two probabilities obey p <= e^epsilon q + delta;
so confidence bounds on p and q give a bound on epsilon from below. It can show that a claim is wrong,
never that it is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DEVIATIONS = 3.0


@dataclass(frozen=True)
class Audit:
    """Hits on either side, and the bound that they support."""

    hits: int
    false_hits: int
    runs: int
    epsilon_at_least: float


def audit(with_row: npt.ArrayLike, without_row: npt.ArrayLike, threshold: float, delta: float = 0.0) -> Audit:
    """``with_row`` and ``without_row``: the statistic over as many runs on either neighbour."""
    seen, unseen = np.asarray(with_row), np.asarray(without_row)
    if seen.shape != unseen.shape or seen.ndim != 1:
        raise ValueError("an audit compares as many runs on either side")
    hits, false_hits = int((seen > threshold).sum()), int((unseen > threshold).sum())
    surely = score_bounds(hits, seen.size)[0] - delta
    at_most = score_bounds(false_hits, seen.size)[1]
    bound = math.log(surely / at_most) if surely > 0 else 0.0
    return Audit(hits, false_hits, seen.size, max(bound, 0.0))


def score_bounds(hits: int, runs: int, deviations: float = DEVIATIONS) -> tuple[float, float]:
    """Wilson's interval: sound for rare events too, where the plain standard error collapses."""
    share, z2 = hits / runs, deviations * deviations
    middle = (share + z2 / (2 * runs)) / (1 + z2 / runs)
    half = deviations / (1 + z2 / runs) * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs))
    return max(middle - half, 0.0), min(middle + half, 1.0)
