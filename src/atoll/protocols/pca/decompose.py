"""From a joint covariance to principal components, with scikit-learn's conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.data.island import Matrix
from atoll.errors import ParameterError
from atoll.lazy import lazy

if TYPE_CHECKING:
    from scipy import linalg
else:
    linalg = lazy("scipy.linalg")


class Decomposition(NamedTuple):
    """The k leading components (rows) and variances, and what is left over."""

    components: Matrix
    explained_variance: Matrix
    total_variance: float
    noise_variance: float


def decompose(covariance: Matrix, n: int, n_components: int | float | None) -> Decomposition:
    """Eigenvectors by falling eigenvalue, signs as scikit-learn sets them."""
    d = len(covariance)
    check_components(n_components, n, d)
    values, vectors = linalg.eigh(covariance)
    values, components = np.maximum(values[::-1], 0.0), vectors.T[::-1]
    k = choose_k(values[: min(n, d)], n_components)
    rest = values[k : min(n, d)]
    return Decomposition(
        deterministic_signs(components[:k]),
        values[:k].copy(),
        float(values.sum()),
        float(rest.mean()) if len(rest) else 0.0,
    )


def check_components(n_components: int | float | None, n: int | None, d: int) -> None:
    """Refuse a number of components that the joint table does not have; ``n`` is None while unknown."""
    most, of = (d, "n_features") if n is None else (min(n, d), "min(n_samples, n_features)")
    if isinstance(n_components, int) and not 1 <= n_components <= most:
        rows = "" if n is None else f"{n} rows and "
        raise ParameterError(
            f"n_components={n_components} must be between 1 and {of}={most}",
            hint=f"the joint table has {rows}{d} columns",
        )


def choose_k(variances: Matrix, n_components: int | float | None) -> int:
    """An int as it is, a share as the fewest components that explain more than it, None as all."""
    if n_components is None:
        return len(variances)
    if isinstance(n_components, int):
        return n_components
    total = variances.sum()
    cumulated = np.cumsum(variances) / total if total > 0 else np.ones(len(variances))
    return min(int(np.searchsorted(cumulated, n_components, side="right")) + 1, len(variances))


def deterministic_signs(components: Matrix) -> Matrix:
    """The entry of largest magnitude of each component is positive."""
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return components * np.where(signs == 0, 1.0, signs)[:, None]


def standard_scale(variances: Matrix, mean: Matrix, n: int) -> Matrix:
    """The divisors of scikit-learn's StandardScaler, from sample variances: constant columns get 1."""
    population = variances * ((n - 1) / n)
    return np.where(is_constant(population, mean, n), 1.0, np.sqrt(np.maximum(population, 0)))


def is_constant(population: Matrix, mean: Matrix, n: int) -> npt.NDArray[np.bool_]:
    """Where a variance is no more than the rounding of its mean, as scikit-learn judges it."""
    eps = np.finfo(np.float64).eps
    return np.asarray((population <= n * eps * population + (n * mean * eps) ** 2) | (population <= 0))
