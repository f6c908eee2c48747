"""What several releases cost together, as (epsilon, delta) and in words.

Gaussian releases compose exactly as Gaussian DP; pure releases add up. A mixture is bounded in two
ways, by zCDP and by adding the pure epsilons to the Gaussian part's, and the smaller bound counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from scipy.special import ndtr

from atoll.privacy.calibration import (
    check_delta,
    gdp_delta,
    gdp_epsilon,
    zcdp_epsilon,
    zcdp_of_gdp,
    zcdp_of_pure,
)
from atoll.privacy.mechanisms import Cost, GaussianCost


@dataclass(frozen=True)
class Spent:
    """A sum of releases: ``mu`` of the Gaussian ones, and each pure one's epsilon."""

    mu: float = 0.0
    pure: tuple[float, ...] = ()

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> Spent:
        listed = list(costs)
        squares = [cost.mu * cost.mu for cost in listed if isinstance(cost, GaussianCost)]
        pure = [cost.epsilon for cost in listed if not isinstance(cost, GaussianCost)]
        return cls(math.sqrt(math.fsum(squares)), tuple(sorted(pure)))

    @classmethod
    def total(cls, parts: Iterable[Spent]) -> Spent:
        listed = list(parts)
        pure = chain.from_iterable(part.pure for part in listed)
        return cls(math.sqrt(math.fsum(part.mu * part.mu for part in listed)), tuple(sorted(pure)))

    def __add__(self, other: Spent) -> Spent:
        return Spent.total((self, other))

    def for_pairs(self) -> Spent:
        """The same releases for neighbours that differ in two rows: one removed, another added."""
        return Spent(2.0 * self.mu, tuple(2.0 * epsilon for epsilon in self.pure))

    @property
    def rho(self) -> float:
        """In zero-concentrated DP."""
        return zcdp_of_gdp(self.mu) + math.fsum(zcdp_of_pure(epsilon) for epsilon in self.pure)

    def epsilon(self, delta: float | None) -> float:
        """The smallest epsilon known to hold at ``delta``; None or 0 asks for pure epsilon."""
        pure = math.fsum(self.pure)
        if not delta:
            return math.inf if self.mu > 0 else pure
        check_delta(delta)
        if not self.pure:
            return gdp_epsilon(self.mu, delta)
        added = pure + (gdp_epsilon(self.mu, delta) if self.mu > 0 else 0.0)
        return min(added, zcdp_epsilon(self.rho, delta))


def guess_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """The best accuracy of a 50:50 guess between two neighbours under (epsilon, delta).

    Errors of both kinds add up to at least 2(1-delta)/(1+e^epsilon) (Kairouz, Oh and Viswanath 2015).
    """
    return 1.0 - (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))


def gaussian_guess_accuracy(mu: float) -> float:
    """The same for Gaussian releases only, where it is known exactly: Phi(mu/2)."""
    return float(ndtr(mu / 2.0))


def in_words(epsilon: float, delta: float | None, neighbours: str = "add-remove") -> str:
    """One sentence for a person who signs a release."""
    accuracy = guess_accuracy(epsilon, delta or 0.0)
    if accuracy > 0.995:
        return "no useful bound: an attacker who knows all other rows may be nearly sure about one row"
    question = " (whether it is in the data at all)" if neighbours == "add-remove" else ""
    return (
        "an attacker who knows all other rows improves a 50:50 guess about one row to at most "
        f"{accuracy:.0%}{question}"
    )


def exact_delta(spent: Spent, epsilon: float) -> float:
    """delta(epsilon) of purely Gaussian spending, for plots and reviews."""
    return gdp_delta(spent.mu, epsilon)
