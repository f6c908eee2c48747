"""The options of estimators that belong to a secure sum."""

from __future__ import annotations

from typing import Any

SUM_OPTIONS = {"masks": ("dropouts",), "lattice": ("key",), "mix": ("mix",)}
"""Estimators' options by secure sum. An option of the secure sum's own name holds a table of its options."""


def options_of(secure_sum: str) -> tuple[str, ...]:
    """The estimator's options that mean something to this secure sum."""
    return SUM_OPTIONS.get(secure_sum, ())


def sum_options(estimator: Any) -> dict[str, Any]:
    """What the estimator says about its secure sum, as a study holds it."""
    said: dict[str, Any] = {}
    for name in options_of(estimator.secure_sum):
        value = getattr(estimator, name)
        said |= dict(value or {}) if name == estimator.secure_sum else {name: value}
    return said
