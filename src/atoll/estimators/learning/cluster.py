"""``atoll.KMeans``: Lloyd's algorithm, sums and counts per cluster by secure sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin, TransformerMixin

from atoll.estimators.learning.base import RowsEstimator


class KMeans(ClusterMixin, TransformerMixin, RowsEstimator):  # type: ignore[misc]
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
    analysis = "clusters"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = None,
        max_iter: int = 300,
        tol: float = 0.0,
        columns: Any = None,
        missing: str = "refuse",
        secure_sum: str = "shares",
        dropouts: int = 0,
        key: str = "collective",
        mix: Any = None,
        random_state: int | None = None,
        engine: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.columns = columns
        self.missing = missing
        self.secure_sum = secure_sum
        self.dropouts = dropouts
        self.key = key
        self.mix = mix
        self.random_state = random_state
        self.engine = engine

    categorical = ()

    def fit(self, islands: Any, y: Any = None) -> KMeans:
        """Find the joint clusters of a list or mapping of tables."""
        del y
        finished = self._fit(islands, None, None)
        fit = finished.result["fit"]
        self.cluster_centers_ = np.array(finished.result["model"]["centres"])
        self.inertia_ = float(fit["inertia"])
        self.n_iter_ = int(fit["iterations"])
        self.counts_ = np.array(fit["counts"], dtype=int)
        return self

    def _parameters(self) -> dict[str, Any]:
        said: dict[str, Any] = {"n_clusters": int(self.n_clusters), "max_iter": int(self.max_iter)}
        said |= {"tol": float(self.tol), "seed": int(self.random_state or 0)}
        if self.init is not None:
            said["init"] = tuple(tuple(map(float, row)) for row in np.asarray(self.init, dtype=np.float64))
        return said

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Distances of new rows to the centres."""
        rows = self._design(X)
        return np.asarray(np.linalg.norm(rows[:, None, :] - self.cluster_centers_[None], axis=2))

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The nearest centre of new rows."""
        return np.asarray(self.transform(X).argmin(axis=1))
