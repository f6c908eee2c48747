"""Noise exactly as two papers print it, for reproduction. **Not private as claimed.**

- Wang and Chang (2018), Algorithm 2: symmetric Gaussian noise for sensitivity 1, with the textbook
  formula, added to the *centred* scatter matrix, which one row can move by 4(N-1)/N.
- Gu et al. (2021): Laplace noise of scale 2p/(n epsilon) on every entry of X^T X/n, although with
  values in [0, 1] one row moves that matrix by p^2/n in the 1-norm.
- The Wishart mechanism (Jiang, Xie and Zhang 2016), pluggable into the first: its support moves with
  the data, so no finite epsilon holds for it when a row is added.

Continuous noise in floating point, as in the papers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from atoll.privacy.calibration import classic_gaussian_sigma
from atoll.randomness import expand_words

Floats = npt.NDArray[np.float64]

_DOMAIN = "atoll/privacy/paper/v1"


def uniform_floats(seed: bytes, count: int, *domain: str | int) -> Floats:
    """In (0, 1), from 53 bits each."""
    words = expand_words(seed, count, _DOMAIN, *domain) >> np.uint64(11)
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-53)


def gaussian_floats(seed: bytes, count: int, *domain: str | int) -> Floats:
    """Standard normal by Box and Muller."""
    uniform = uniform_floats(seed, 2 * count, "gaussian", *domain)
    return np.asarray(np.sqrt(-2.0 * np.log(uniform[:count])) * np.cos(2.0 * np.pi * uniform[count:]))


def laplace_floats(seed: bytes, scale: float, count: int, *domain: str | int) -> Floats:
    uniform = uniform_floats(seed, count, "laplace", *domain) - 0.5
    return np.asarray(-scale * np.sign(uniform) * np.log1p(-2.0 * np.abs(uniform)))


def _symmetric(triangle: Floats, features: int) -> Floats:
    matrix = np.zeros((features, features))
    matrix[np.triu_indices(features)] = triangle
    return matrix + np.triu(matrix, 1).T


def gaussian_matrix(seed: bytes, features: int, epsilon: float, delta: float) -> Floats:
    """Algorithm 2: the upper triangle with its diagonal is N(0, tau^2), mirrored."""
    tau = classic_gaussian_sigma(epsilon, delta)
    return _symmetric(tau * gaussian_floats(seed, features * (features + 1) // 2), features)


def laplace_matrix(seed: bytes, features: int, epsilon: float) -> Floats:
    """Symmetric Laplace noise for sensitivity 1, as the other mechanisms here assume."""
    return _symmetric(laplace_floats(seed, 1.0 / epsilon, features * (features + 1) // 2), features)


def wishart_matrix(seed: bytes, features: int, epsilon: float) -> Floats:
    """Wishart with d+1 degrees of freedom and scale 3/(2 epsilon) for an unnormalised scatter matrix."""
    draws = gaussian_floats(seed, (features + 1) * features, "wishart").reshape(features + 1, features)
    return np.asarray(1.5 / epsilon * draws.T @ draws)


def centred_scatter(rows: Floats) -> Floats:
    """S = R - v v^T/N, what the published protocol releases."""
    total = rows.sum(axis=0)
    return np.asarray(rows.T @ rows - np.outer(total, total) / rows.shape[0])


def ppca_second_moments(seed: bytes, rows: Floats, epsilon: float) -> Floats:
    """X^T X/n plus independent Laplace noise of scale 2p/(n epsilon) on every entry of the full matrix."""
    count, features = rows.shape
    noise = laplace_floats(seed, 2.0 * features / (count * epsilon), features * features)
    return np.asarray(rows.T @ rows / count + noise.reshape(features, features))
