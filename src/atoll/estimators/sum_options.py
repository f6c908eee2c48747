"""The options of estimators that belong to a secure sum, as the secure sums declare them."""

from __future__ import annotations

from typing import Any

from atoll.secure_sums import METHODS


def options_of(secure_sum: str) -> tuple[str, ...]:
    """The estimator's options that mean something to this secure sum."""
    return tuple(METHODS[secure_sum].estimator_options) if secure_sum in METHODS else ()


def sum_options(estimator: Any) -> dict[str, Any]:
    """What the estimator says about its secure sum, as a study holds it."""
    said = {name: getattr(estimator, name) for name in options_of(estimator.secure_sum)}
    return METHODS[estimator.secure_sum].from_estimator(said) if said else {}
