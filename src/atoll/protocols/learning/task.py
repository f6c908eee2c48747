"""A learning task: what islands add at a point, and where the server goes from the total.

Both sides make the task from the study, the agreed columns and the common units, so both know how long the
sums are. ``local`` is a pure function of rows and a point. Only the server calls ``start``, ``advance`` and
``found``, and only there the task remembers anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from atoll.data.island import Matrix
from atoll.protocols.learning.design import INTERCEPT, Rows, Survey, Units

WHOLE = "; where a few columns hold whole numbers (codes, counts) they say all joint sums and products"
"""Of coefficients of least squares, for the disclosure."""


class Setting(NamedTuple):
    """What both sides know before the first point."""

    parameters: Any
    terms: tuple[str, ...]
    """The columns of the design, without the intercept."""
    classes: tuple[str, ...]
    units: Units
    intercept: bool

    @property
    def width(self) -> int:
        return len(self.terms) + self.intercept

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return ((INTERCEPT,) if self.intercept else ()) + self.terms

    def restored(self, coefficients: Matrix) -> Matrix:
        """Coefficients of the columns as they are, from those of centred columns in common units."""
        return np.asarray(self.restoring() @ coefficients)

    def restoring(self) -> Matrix:
        """The matrix that takes coefficients back to the columns' own centre and units."""
        p, start = self.width, int(self.intercept)
        T = np.eye(p)
        unit, centre = self.units.unit[: p - start], self.units.centre[: p - start]
        T[range(start, p), range(start, p)] = 1.0 / unit
        if self.intercept:
            T[0, 1:] = -centre / unit
        return T


class Found(NamedTuple):
    """What a task ends with: the model, and how well it fits, as plain values and arrays by name."""

    model: dict[str, Any]
    fit: dict[str, Any]


class Task(ABC):
    """One task. ``longest``: the numbers of a sum; ``point_length``: those of a point."""

    longest: int
    point_length: int

    def __init__(self, setting: Setting, survey: Survey | None = None) -> None:
        self.setting = setting
        self.survey = survey
        """Known to the server only."""

    @abstractmethod
    def local(self, rows: Rows, point: Matrix) -> Matrix:
        """What these rows add at this point; rows of several blocks and islands add up."""

    @abstractmethod
    def start(self) -> Matrix:
        """The first point."""

    @abstractmethod
    def advance(self, total: Matrix) -> Matrix | None:
        """The next point, from the total at the latest one; None at the end."""

    @abstractmethod
    def found(self) -> Found:
        """The result, after the end."""

    @property
    def coefficients(self) -> int:
        """How many numbers the rows decide: with no more rows than these a model says what rows hold."""
        return self.setting.width

    def is_point(self, point: Matrix) -> bool:
        """Whether finite numbers of the right length can be a point: switches are 0 or 1, scales positive."""
        del point
        return True

    def check_rows(self, rows: Rows, island: str) -> None:
        """Refuse responses that cannot be; nothing by default."""
        del rows, island
