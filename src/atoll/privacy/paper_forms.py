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


def _symmetric(triangles: Floats, features: int) -> Floats:
    """One mirrored matrix for each row of ``triangles``."""
    matrices = np.zeros((len(triangles), features, features))
    upper = np.triu_indices(features)
    matrices[:, upper[0], upper[1]] = triangles
    matrices[:, upper[1], upper[0]] = triangles
    return matrices


def gaussian_matrices(seed: bytes, features: int, epsilon: float, delta: float, count: int = 1) -> Floats:
    """Algorithm 2, ``count`` times: the upper triangle with its diagonal is N(0, tau^2), mirrored."""
    tau, size = classic_gaussian_sigma(epsilon, delta), features * (features + 1) // 2
    return _symmetric(tau * gaussian_floats(seed, count * size).reshape(count, size), features)


def laplace_matrices(seed: bytes, features: int, epsilon: float, count: int = 1) -> Floats:
    """Symmetric Laplace noise for sensitivity 1, as the other mechanisms here assume."""
    size = features * (features + 1) // 2
    return _symmetric(laplace_floats(seed, 1.0 / epsilon, count * size).reshape(count, size), features)


def wishart_matrices(seed: bytes, features: int, epsilon: float, count: int = 1) -> Floats:
    """Wishart with d+1 degrees of freedom and scale 3/(2 epsilon) for an unnormalised scatter matrix."""
    draws = gaussian_floats(seed, count * (features + 1) * features, "wishart")
    factors = draws.reshape(count, features + 1, features)
    return np.asarray(1.5 / epsilon * factors.transpose(0, 2, 1) @ factors)


def centred_scatter(rows: Floats) -> Floats:
    """S = R - v v^T/N, what the published protocol releases."""
    total = rows.sum(axis=0)
    return np.asarray(rows.T @ rows - np.outer(total, total) / rows.shape[0])


def ppca_noise(seed: bytes, rows: int, features: int, epsilon: float, count: int = 1) -> Floats:
    """Noise on E(X^T X): independent Laplace of scale 2p/(n epsilon) on every entry of the full matrix."""
    noise = laplace_floats(seed, 2.0 * features / (rows * epsilon), count * features * features, "ppca")
    return noise.reshape(count, features, features)
