"""Public numbers as exact integers: coefficients of secret matrices have 54 bits after the point."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

COEFFICIENT_BITS = 54
Coefficient = float | Fraction


def coefficient_units(value: Coefficient) -> int:
    """A coefficient in units of 2^-54."""
    units: int = round(value * 2**COEFFICIENT_BITS)
    return units


def scaled_units(value: Coefficient, fraction: int) -> int:
    """A coefficient in units of 2^-fraction."""
    units, drop = coefficient_units(value), COEFFICIENT_BITS - fraction
    return units << -drop if drop <= 0 else (units + (1 << (drop - 1))) >> drop


def public_integers(weights: Floats) -> Any:
    """A public matrix as integers at the precision of coefficients."""
    return as_objects(np.rint(np.asarray(weights) * 2.0**COEFFICIENT_BITS))


def at_grid(values: Floats, fraction: int) -> Any:
    """A public matrix as integers / 2^fraction."""
    units = public_integers(values)
    drop = COEFFICIENT_BITS - fraction
    return units << -drop if drop <= 0 else (units + (1 << (drop - 1))) >> drop


def as_objects(values: Any) -> Any:
    """An array of Python integers, which do not overflow."""
    array = np.asarray(values)
    if array.dtype == object:
        return array
    out = np.empty(array.shape, dtype=object)
    out.ravel()[:] = [int(v) for v in array.ravel()]
    return out
