"""Protocols that release one joint model: components, and a mean that takes rows to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from atoll.data.island import Island
from atoll.errors import NotReleased
from atoll.estimators.pca.adapter import NEED_MEAN, Adapter, Matrix
from atoll.estimators.privacy_options import variances_of
from atoll.privacy.noise_statement import NoiseStatement
from atoll.runtime.execute import Run


class JointModel(Adapter):
    """What is fitted and how it projects, where components and mean are released."""

    def take(self, estimator: Any, run: Run) -> None:
        result = run.result
        estimator.components_ = np.array(result["components"])
        if result["mean"] is not None:
            estimator.mean_ = np.array(result["mean"])
        estimator.scale_ = None if result["scale"] is None else np.array(result["scale"])
        take_variances(estimator, run)
        if "islands" in result:
            estimator.islands_ = list(result["islands"])
        if self.is_private(estimator) or self.is_the_papers(estimator):
            estimator.variances_of_ = variances_of(estimator)
        estimator.n_components_, estimator.n_features_in_ = estimator.components_.shape
        take_names(estimator, run)

    def check_use(self, estimator: Any, what: str) -> None:
        super().check_use(estimator, what)
        if what in NEED_MEAN and estimator.centre == "pairs":
            raise NotReleased(
                f"{what} needs the mean of each column, which centre='pairs' spends nothing on",
                hint="transform works without it; centre='mean' gives a private mean",
            )

    def transform(self, estimator: Any, X: Matrix) -> Matrix:
        """Scores; not centred where the mean is unknown (``centre="pairs"``)."""
        return projected(X, estimator.components_, getattr(estimator, "mean_", None), estimator.scale_)

    def transform_islands(self, estimator: Any, islands: Mapping[str, Island]) -> list[Matrix]:
        return self.project(estimator, islands)


def take_variances(estimator: Any, run: Run) -> None:
    """Set how much the components explain, and of how many rows."""
    result = run.result
    estimator.explained_variance_ = np.array(result["explained_variance"])
    estimator.total_variance_ = float(result["total_variance"])
    estimator.noise_variance_ = float(result["noise_variance"])
    estimator.n_samples_ = int(result["n_samples"])
    estimator.explained_variance_ratio_ = estimator.explained_variance_ / (estimator.total_variance_ or 1.0)
    if "noise" in result:
        estimator.noise_ = NoiseStatement(**result["noise"])
    estimator.singular_values_ = np.sqrt(estimator.explained_variance_ * (estimator.n_samples_ - 1))


def take_names(estimator: Any, run: Run) -> None:
    """Set the names of the columns, where they have any."""
    if run.result["columns"] is not None:
        estimator.feature_names_in_ = np.array(run.result["columns"], dtype=object)


def projected(X: Matrix, components: Matrix, mean: Matrix | None, scale: Matrix | None) -> Matrix:
    """Rows on components, about the mean where it is known, in the columns' scales where there are any."""
    weights = components if scale is None else components / scale
    return np.asarray((X if mean is None else X - mean) @ weights.T)
