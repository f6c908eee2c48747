"""What several releases cost together, as (epsilon, delta) and in words.

Two methods, and a data set has one of them for good:

- ``pure``: no release has a delta, and epsilons add up.
- ``gdp``: Gaussian DP, in which mu^2 adds. A release that is epsilon-private without a delta counts as the
  Gaussian one that is at most as private: mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)), the mu at which the
  best guess between two neighbours is equally good (the trade-off curve of a pure release is two lines that
  meet there, and the convex Gaussian curve lies below both; Dong, Roth and Su 2022).

Each is a bound on one number that only grows, so it holds whichever release is chosen next in the light of
the earlier ones (for mu^2: Smith and Thakurta 2022). Taking the smaller of two bounds afterwards does not
keep delta: each may fail by delta on its own account, and the choice between them depends on the releases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from atoll.lazy import lazy
from atoll.privacy.calibration import check_delta, gdp_delta, gdp_epsilon
from atoll.privacy.mechanisms import Cost, GaussianCost, check_spending
from atoll.privacy.normal import ndtr

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

Method = Literal["pure", "gdp"]

_LARGEST_EXPONENT = 700.0
LITTLE_LEFT = 0.995
"""An attacker whose guess is right more often than this is nearly sure."""


def method_at(delta: float | None) -> Method:
    """The method that gives an epsilon at this delta."""
    return "gdp" if delta else "pure"


def gdp_of_pure(epsilon: float) -> float:
    """The mu of the Gaussian release that is at most as private as an epsilon-private one."""
    if epsilon > _LARGEST_EXPONENT:  # Phi(-x) <= e^(-x^2/2)/2, so this is no less
        return 2.0 * math.sqrt(2.0 * epsilon)
    return float(-2.0 * special.ndtri(1.0 / (1.0 + math.exp(epsilon))))


@dataclass(frozen=True)
class Spent:
    """A sum of releases: ``mu`` of the Gaussian ones, and each pure one's epsilon."""

    mu: float = 0.0
    pure: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_spending("mu", self.mu)
        for epsilon in self.pure:
            check_spending("epsilon", epsilon)

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
    def whole_mu(self) -> float:
        """Of all releases by ``gdp``, pure ones as the Gaussian ones that they count as."""
        squares = (gdp_of_pure(epsilon) ** 2 for epsilon in self.pure)
        return math.sqrt(math.fsum((self.mu * self.mu, *squares)))

    def epsilon(self, delta: float | None) -> float:
        """At ``delta``, by ``gdp``; None or 0 asks for pure epsilon, which no Gaussian release has."""
        if method_at(delta) == "pure":
            return math.inf if self.mu > 0 else math.fsum(self.pure)
        assert delta is not None
        check_delta(delta)
        return gdp_epsilon(self.whole_mu, delta)


def guess_accuracy(epsilon: float, delta: float = 0.0) -> float:
    """The best accuracy of a 50:50 guess between two neighbours under (epsilon, delta).

    Errors of both kinds add up to at least 2(1-delta)/(1+e^epsilon) (Kairouz, Oh and Viswanath 2015).
    """
    return 1.0 - (1.0 - delta) / (1.0 + math.exp(min(epsilon, _LARGEST_EXPONENT)))


def gaussian_guess_accuracy(mu: float) -> float:
    """The same for Gaussian releases only, where it is known exactly: Phi(mu/2)."""
    return ndtr(mu / 2.0)


def in_words(epsilon: float, delta: float | None, neighbours: str = "add-remove") -> str:
    """One sentence for a person who signs a release."""
    accuracy = guess_accuracy(epsilon, delta or 0.0)
    if accuracy > LITTLE_LEFT:
        return "no useful bound: an attacker who knows all other rows may be nearly sure about one row"
    question = " (whether it is in the data at all)" if neighbours == "add-remove" else ""
    return (
        "an attacker who knows all other rows improves a 50:50 guess about one row to at most "
        f"{accuracy:.0%}{question}"
    )


def exact_delta(spent: Spent, epsilon: float) -> float:
    """delta(epsilon) of purely Gaussian spending, for plots and reviews."""
    return gdp_delta(spent.mu, epsilon)
