"""Families and links of generalized linear models: what each row adds to a fit.

McCullagh and Nelder, Generalized Linear Models (1989). Symbols: y -> response, mu -> its mean, eta = g(mu) ->
linear predictor, V -> variance function, phi -> dispersion, w -> prior weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from atoll.data.island import Matrix
from atoll.errors import ParameterError, one_of
from atoll.lazy import lazy

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

_TINY = 1e-300

Flags = npt.NDArray[np.bool_]


class Link(ABC):
    """g, which takes means to linear predictors, with its inverse and the inverse's slope."""

    @abstractmethod
    def link(self, mu: Matrix) -> Matrix:
        """eta = g(mu)."""

    @abstractmethod
    def mean(self, eta: Matrix) -> Matrix:
        """mu = g^-1(eta)."""

    @abstractmethod
    def slope(self, eta: Matrix) -> Matrix:
        """d mu / d eta."""


class Identity(Link):
    def link(self, mu: Matrix) -> Matrix:
        return mu

    def mean(self, eta: Matrix) -> Matrix:
        return eta

    def slope(self, eta: Matrix) -> Matrix:
        return np.ones_like(eta)


class Log(Link):
    def link(self, mu: Matrix) -> Matrix:
        return np.asarray(np.log(mu))

    def mean(self, eta: Matrix) -> Matrix:
        return np.asarray(np.exp(eta))

    def slope(self, eta: Matrix) -> Matrix:
        return np.asarray(np.exp(eta))


class Inverse(Link):
    def link(self, mu: Matrix) -> Matrix:
        return 1.0 / mu

    def mean(self, eta: Matrix) -> Matrix:
        return 1.0 / eta

    def slope(self, eta: Matrix) -> Matrix:
        return -1.0 / eta**2


class SquareRoot(Link):
    def link(self, mu: Matrix) -> Matrix:
        return np.asarray(np.sqrt(mu))

    def mean(self, eta: Matrix) -> Matrix:
        return eta**2

    def slope(self, eta: Matrix) -> Matrix:
        return 2.0 * eta


class Logit(Link):
    def link(self, mu: Matrix) -> Matrix:
        return np.asarray(special.logit(mu))

    def mean(self, eta: Matrix) -> Matrix:
        return np.asarray(special.expit(eta))

    def slope(self, eta: Matrix) -> Matrix:
        p = special.expit(-np.abs(eta))  # the smaller tail, so that neither factor is rounded to zero
        return np.asarray(p * (1.0 - p))


class Probit(Link):
    def link(self, mu: Matrix) -> Matrix:
        return np.asarray(special.ndtri(mu))

    def mean(self, eta: Matrix) -> Matrix:
        return np.asarray(special.ndtr(eta))

    def slope(self, eta: Matrix) -> Matrix:
        return np.asarray(np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi))


class ComplementaryLogLog(Link):
    def link(self, mu: Matrix) -> Matrix:
        return np.asarray(np.log(-np.log1p(-mu)))

    def mean(self, eta: Matrix) -> Matrix:
        return np.asarray(-np.expm1(-np.exp(eta)))

    def slope(self, eta: Matrix) -> Matrix:
        return np.asarray(np.exp(eta - np.exp(eta)))


LINKS: dict[str, Link] = {
    "identity": Identity(),
    "log": Log(),
    "inverse": Inverse(),
    "sqrt": SquareRoot(),
    "logit": Logit(),
    "probit": Probit(),
    "cloglog": ComplementaryLogLog(),
}


class Family(ABC):
    """The distribution of the response: variance, deviance and likelihood."""

    links: ClassVar[tuple[str, ...]]
    """Those that it can have; the first is the usual one."""
    dispersed: ClassVar[bool]
    """Whether phi is estimated; else it is 1."""
    response: ClassVar[str]
    """What the response must be, in words."""

    @abstractmethod
    def variance(self, mu: Matrix) -> Matrix:
        """V(mu)."""

    @abstractmethod
    def deviance(self, y: Matrix, mu: Matrix) -> Matrix:
        """Twice the lack of likelihood of each row, at phi = 1 and w = 1."""

    @abstractmethod
    def loglikelihood(self, y: Matrix, mu: Matrix, weight: Matrix, phi: float) -> Matrix:
        """Of each row."""

    @abstractmethod
    def starting_mean(self, y: Matrix) -> Matrix:
        """A mean near the response, where every link is finite: where the fit begins."""

    @abstractmethod
    def is_response(self, y: Matrix) -> Flags:
        """Which responses can be."""

    def is_mean(self, mu: Matrix) -> Flags:
        """Which means can be."""
        return np.isfinite(mu)


class Gaussian(Family):
    links = ("identity", "log", "inverse")
    dispersed = True
    response = "a finite number"

    def variance(self, mu: Matrix) -> Matrix:
        return np.ones_like(mu)

    def deviance(self, y: Matrix, mu: Matrix) -> Matrix:
        return (y - mu) ** 2

    def loglikelihood(self, y: Matrix, mu: Matrix, weight: Matrix, phi: float) -> Matrix:
        return -0.5 * (weight * (y - mu) ** 2 / phi + np.log(2.0 * np.pi * phi / weight))

    def starting_mean(self, y: Matrix) -> Matrix:
        return y

    def is_response(self, y: Matrix) -> Flags:
        return np.isfinite(y)


class Binomial(Family):
    links = ("logit", "probit", "cloglog")
    dispersed = False
    response = "0 or 1 (or a share between them)"

    def variance(self, mu: Matrix) -> Matrix:
        return mu * (1.0 - mu)

    def deviance(self, y: Matrix, mu: Matrix) -> Matrix:
        return np.asarray(-2.0 * (_xlogy(y, mu, y) + _xlogy(1.0 - y, 1.0 - mu, 1.0 - y)))

    def loglikelihood(self, y: Matrix, mu: Matrix, weight: Matrix, phi: float) -> Matrix:
        del phi
        return np.asarray(
            weight * (special.xlogy(y, _at_least(mu)) + special.xlogy(1 - y, _at_least(1 - mu)))
        )

    def starting_mean(self, y: Matrix) -> Matrix:
        return (y + 0.5) / 2.0

    def is_response(self, y: Matrix) -> Flags:
        return (y >= 0.0) & (y <= 1.0)

    def is_mean(self, mu: Matrix) -> Flags:
        return (mu >= 0.0) & (mu <= 1.0)


class Poisson(Family):
    links = ("log", "identity", "sqrt")
    dispersed = False
    response = "a count: 0, 1, 2, ..."

    def variance(self, mu: Matrix) -> Matrix:
        return mu

    def deviance(self, y: Matrix, mu: Matrix) -> Matrix:
        return np.asarray(2.0 * (special.xlogy(y, _at_least(y)) - special.xlogy(y, _at_least(mu)) - (y - mu)))

    def loglikelihood(self, y: Matrix, mu: Matrix, weight: Matrix, phi: float) -> Matrix:
        del phi
        return np.asarray(weight * (special.xlogy(y, _at_least(mu)) - mu - special.gammaln(y + 1.0)))

    def starting_mean(self, y: Matrix) -> Matrix:
        return y + 0.1

    def is_response(self, y: Matrix) -> Flags:
        return np.isfinite(y) & (y >= 0.0)

    def is_mean(self, mu: Matrix) -> Flags:
        return np.isfinite(mu) & (mu > 0.0)


class Gamma(Family):
    links = ("inverse", "log", "identity")
    dispersed = True
    response = "a number above 0"

    def variance(self, mu: Matrix) -> Matrix:
        return mu**2

    def deviance(self, y: Matrix, mu: Matrix) -> Matrix:
        return np.asarray(2.0 * ((y - mu) / mu - np.log(y / mu)))

    def loglikelihood(self, y: Matrix, mu: Matrix, weight: Matrix, phi: float) -> Matrix:
        shape = weight / phi
        return np.asarray(
            shape * np.log(shape * y / mu) - shape * y / mu - np.log(y) - special.gammaln(shape)
        )

    def starting_mean(self, y: Matrix) -> Matrix:
        return y

    def is_response(self, y: Matrix) -> Flags:
        return np.isfinite(y) & (y > 0.0)

    def is_mean(self, mu: Matrix) -> Flags:
        return np.isfinite(mu) & (mu > 0.0)


FAMILIES: dict[str, Family] = {
    "gaussian": Gaussian(),
    "binomial": Binomial(),
    "poisson": Poisson(),
    "gamma": Gamma(),
}


def family_of(name: str) -> Family:
    """The family called ``name``."""
    if name not in FAMILIES:
        hint = one_of(name, FAMILIES)
        raise ParameterError(f"there is no family called {name!r}", hint=hint, option="family")
    return FAMILIES[name]


def link_of(family: str, name: str | None) -> Link:
    """The link called ``name``, or the family's usual one."""
    known = family_of(family).links
    if name is not None and name not in known:
        raise ParameterError(
            f"the family {family} cannot have the link {name!r}", hint=one_of(name, known), option="link"
        )
    return LINKS[known[0] if name is None else name]


def _at_least(values: Matrix) -> Matrix:
    """Kept above zero, so that the logarithm of a rounded zero is large and finite."""
    return np.maximum(values, _TINY)


def _xlogy(y: Matrix, mu: Matrix, of: Matrix) -> Matrix:
    """y log(mu / of), which is zero where y is."""
    return np.asarray(special.xlogy(y, _at_least(mu)) - special.xlogy(y, _at_least(of)))
