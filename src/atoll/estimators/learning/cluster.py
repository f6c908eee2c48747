"""``atoll.KMeans``: Lloyd's algorithm, sums and counts per cluster by secure sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin, TransformerMixin

from atoll.estimators.learning.options import SPLIT, SUMS, taking
from atoll.estimators.learning.split import VERTICAL, SplitEstimator


class KMeans(ClusterMixin, TransformerMixin, SplitEstimator):  # type: ignore[misc]
    """k-means over rows on several islands.

    ``init``: the first centres, which all parties know; without it they are drawn around the joint mean from
    ``random_state``. A cluster that loses all its rows stays where it is.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = atoll.KMeans(3, init=X[[0, 60, 120]]).fit([X[:75], X[75:]])
    >>> round(model.inertia_, 2)
    78.86
    """

    protocol = "kmeans"
    columns_protocol = "kmeans-columns"
    analysis = "clusters"

    n_clusters: int
    init: Any
    max_iter: int
    tol: float
    random_state: int | None
    __init__: Any = taking(
        {"n_clusters": 8},
        {"init": None, "max_iter": 300, "tol": 0.0, "columns": None, "missing": "refuse"},
        {"random_state": None},
        SPLIT,
        SUMS,
    )

    categorical = ()

    def fit(self, islands: Any, y: Any = None) -> KMeans:
        """Find the joint clusters of a list or mapping of tables."""
        del y
        finished = self._fit(islands, None, None)
        fit = finished.result["fit"]
        if not self._stays_split:
            self.cluster_centers_ = np.array(finished.result["model"]["centres"])
        self.inertia_ = float(fit["inertia"])
        self.n_iter_ = int(fit["iterations"])
        self.counts_ = np.array(fit["counts"], dtype=int)
        self.loss_curve_ = np.array(fit["loss_curve"])
        return self

    def _parameters(self) -> dict[str, Any]:
        said: dict[str, Any] = {"n_clusters": int(self.n_clusters), "max_iter": int(self.max_iter)}
        said |= {"tol": float(self.tol), "seed": int(self.random_state or 0)}
        if self.init is not None:
            said["init"] = tuple(tuple(map(float, row)) for row in np.asarray(self.init, dtype=np.float64))
        return said

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Distances of new rows to the centres."""
        if self.partition == VERTICAL and isinstance(X, list | tuple | Mapping):
            return np.sqrt(np.maximum(self._summed(X, _own_distances), 0.0))
        rows = self._design(X)
        return np.asarray(np.linalg.norm(rows[:, None, :] - self.cluster_centers_[None], axis=2))

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The nearest centre of new rows."""
        return np.asarray(self.transform(X).argmin(axis=1))


def _own_distances(part: Any, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """One island's part of the squared distances to every centre."""
    centres = np.asarray(part["coefficients"])
    return np.asarray(((table[:, None, :] - centres[None]) ** 2).sum(axis=2))
