"""Costs with their gradients, by name.

A study names its pair: one of these, or one that an installed package brings (entry points of the group
``atoll.costs``), so that every site runs code that it has installed itself. Code never travels. In one
process any two functions will do: they get a name there, which no other process knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from atoll.data.island import Matrix
from atoll.errors import DataError, StudyError, one_of
from atoll.protocols.learning import losses
from atoll.registry import Registry

HERE = "here:"
"""Names of pairs that only this process has begin with this."""


@dataclass(frozen=True)
class Pair:
    """``of`` "scores": cost(scores, y) and gradient(scores, y) give a number for each row, the latter the
    slope by the score. ``of`` "model": cost(theta, X, y) gives their sum over rows, gradient(theta, X, y) a
    vector; for rows split alone."""

    cost: Callable[..., Any]
    gradient: Callable[..., Any]
    of: Literal["scores", "model"] = "scores"
    target: str = ""
    """What the target must be, in words, where not every number can be one ..."""
    is_target: Callable[[Matrix], Any] | None = None
    """... and which values are."""

    def check_target(self, y: Matrix, island: str, column: str) -> None:
        """Refuse what the cost says nothing sensible of."""
        if self.is_target is not None and not np.all(self.is_target(y)):
            raise DataError(
                f"{island}: the target {column!r} holds a value that is not {self.target}, as the cost needs",
                hint="choose another cost, or recode the target",
            )

    def local(self, theta: Matrix, X: Matrix, y: Matrix) -> tuple[float, Matrix]:
        """Cost and gradient, summed over these rows."""
        if self.of == "model":
            return float(self.cost(theta, X, y)), np.asarray(self.gradient(theta, X, y), dtype=np.float64)
        scores = X @ theta
        return float(np.sum(self.cost(scores, y))), np.asarray(X.T @ self.gradient(scores, y))


def _sign(y: Matrix) -> Matrix:
    return np.where(y > 0, 1.0, -1.0)


def _margins(name: str) -> Pair:
    """Of targets that are 0 or 1 (or -1 and 1)."""
    return Pair(
        lambda s, y: losses.of_margins(name, _sign(y) * s, 1.0)[0],
        lambda s, y: losses.of_margins(name, _sign(y) * s, 1.0)[1] * _sign(y),
        target="0 or 1 (or -1 or 1)",
        is_target=lambda y: np.isin(y, (0.0, 1.0)).all() or np.isin(y, (-1.0, 1.0)).all(),
    )


LEAST_SQUARES = Pair(lambda s, y: 0.5 * (s - y) ** 2, lambda s, y: s - y)
LOGISTIC = _margins("logistic")
SQUARED_HINGE = _margins("squared_hinge")
POISSON = Pair(
    lambda s, y: np.exp(s) - y * s,
    lambda s, y: np.exp(s) - y,
    target="0 or more",
    is_target=lambda y: y >= 0.0,
)

_HOME = "atoll.protocols.learning.descent.pairs"
PAIRS: Registry[Pair] = Registry(
    "atoll.costs",
    "a cost with its gradient",
    Pair,
    {
        "least-squares": f"{_HOME}:LEAST_SQUARES",
        "logistic": f"{_HOME}:LOGISTIC",
        "squared-hinge": f"{_HOME}:SQUARED_HINGE",
        "poisson": f"{_HOME}:POISSON",
    },
)
"""Every pair by name; packages add theirs as entry points of this group."""

_here: dict[str, Pair] = {}


def named_here(pair: Pair) -> str:
    """A name for a pair that only this process has."""
    for name, known in _here.items():
        if known == pair:
            return name
    name = f"{HERE}{getattr(pair.cost, '__name__', 'cost')}-{len(_here)}"
    _here[name] = pair
    return name


def pair_of(name: str) -> Pair:
    """The pair called ``name``."""
    if name in _here:
        return _here[name]
    if name.startswith(HERE):
        raise StudyError(
            f"the cost {name!r} is known to the process alone that named it",
            hint="across machines, install a package that brings it: an entry point of the group atoll.costs",
            path=("parameters", "cost"),
        )
    if name not in PAIRS:
        raise StudyError(
            f"there is no cost called {name!r}",
            hint=one_of(name, PAIRS.names()),
            path=("parameters", "cost"),
        )
    return PAIRS[name]
