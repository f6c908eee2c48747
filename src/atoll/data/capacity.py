"""As many rows as a table could ever have, declared by its owner."""

from __future__ import annotations

import numpy as np

from atoll.errors import ParameterError


def checked_capacity(name: str, capacity: int | None) -> int | None:
    """A whole number from 1, or none."""
    if capacity is None:
        return None
    if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 1:
        raise ParameterError(f"{name}: capacity={capacity!r} must be a whole number from 1")
    return int(capacity)
