"""A course: what the leader tells, what every owner of columns adds, and what sizes these have.

In every step the leader tells all owners some numbers and some columns of numbers, one for each row; each
owner answers with a vector; a secure sum adds the vectors; the leader is handed the total and goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from atoll.codec import Message
from atoll.data.island import Matrix


class Told(Message, frozen=True):
    """Leader -> every other provider: where the fit is, and what each row adds to a gradient there."""

    step: int
    last: bool
    numbers: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]


class Sizes(ABC):
    """How long everything is: public, so that all can check it."""

    width: int
    """Numbers for each row in what the leader tells."""

    @abstractmethod
    def numbers(self, step: int) -> int:
        """Numbers in what the leader tells."""

    @abstractmethod
    def sum(self, step: int) -> int:
        """Numbers in a sum."""


class EqualSizes(Sizes):
    """The same at every step."""

    def __init__(self, width: int, numbers: int, sum_: int) -> None:
        self.width, self._numbers, self._sum = width, numbers, sum_

    def numbers(self, step: int) -> int:
        del step
        return self._numbers

    def sum(self, step: int) -> int:
        del step
        return self._sum


class Leader(ABC):
    """The side of whoever sees the totals."""

    steps = 0

    @abstractmethod
    def first(self) -> Told:
        """What is told before the first sum."""

    @abstractmethod
    def advance(self, total: Matrix) -> Told:
        """What is told next; ``last`` where nothing is left to be gained."""

    @abstractmethod
    def fit(self) -> dict[str, Any]:
        """How well the model fits."""


class Owner(ABC):
    """The side of whoever has columns."""

    @abstractmethod
    def take(self, told: Told) -> None:
        """Move to where the leader says."""

    @abstractmethod
    def answer(self) -> Matrix:
        """What this owner adds."""

    @abstractmethod
    def coefficients(self) -> tuple[Matrix, Matrix]:
        """Its own part of the model (outputs x columns), and what it adds to every score besides."""
