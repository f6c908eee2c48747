"""Losses of a linear score: value, slope and curvature, for all rows at once.

A margin is the score with the sign of its class; a rounded hinge has its corner rounded over a width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from atoll.data.island import Matrix
from atoll.lazy import lazy

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")


def of_margins(name: str, m: Matrix, rounding: float) -> tuple[Matrix, Matrix, Matrix]:
    """Value, first and second derivative of the loss of each margin."""
    if name == "logistic":
        e = np.exp(-np.abs(m))  # one exponential for all three, none of which overflows
        p = 1.0 / (1.0 + e)
        q = np.where(m >= 0, e * p, p)
        return np.maximum(-m, 0.0) + np.log1p(e), -q, e * p * p
    if name == "squared_hinge":
        short = np.maximum(1.0 - m, 0.0)
        return short**2, -2.0 * short, np.where(short > 0, 2.0, 0.0)
    z = (1.0 - m) / rounding
    q = special.expit(z)
    value = rounding * np.logaddexp(0.0, z)
    return np.asarray(value), np.asarray(-q), np.asarray(q * (1.0 - q) / rounding)


def softmax(scores: Matrix, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[Matrix, Matrix]:
    """The loss of each row, and the probabilities of all classes."""
    top = scores.max(axis=1, keepdims=True) if len(scores) else scores
    E = np.exp(scores - top)
    whole = E.sum(axis=1)
    at = np.arange(len(chosen))
    loss = np.log(whole) + top[:, 0] - scores[at, chosen] if len(chosen) else np.zeros(0)
    return np.asarray(loss), np.asarray(E / whole[:, None])


def bends(name: str, slopes: Matrix, rounding: float) -> Matrix:
    """The second derivatives, which every loss here says by its first ones: whoever is told slopes has both.

    Of the softmax, those of each class by itself.
    """
    if name == "squares":
        return np.ones_like(slopes)
    if name == "squared_hinge":
        return np.where(slopes != 0.0, 2.0, 0.0)
    q = np.abs(slopes)
    return np.asarray(q * (1.0 - q) / (rounding if name == "hinge" else 1.0))
