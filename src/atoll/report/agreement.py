"""How well two sets of principal components agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import subspace_angles

Matrix = npt.NDArray[np.float64]


def cosines(a: Matrix, b: Matrix) -> Matrix:
    """|cos| of the angle between each component of ``a`` and the same one of ``b``: 1 is the same line."""
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.minimum(np.abs(np.sum(a * b, axis=1)) / lengths, 1.0))


def largest_angle(a: Matrix, b: Matrix) -> float:
    """The largest principal angle between the two subspaces, in degrees."""
    angles: npt.NDArray[Any] = subspace_angles(a.T, b.T)
    return float(np.degrees(angles.max()))
