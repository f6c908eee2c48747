"""A fitted PCA in use: projections of rows and back, likelihoods, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from atoll.errors import ParameterError
from atoll.estimators.pca.adapter import Adapter
from atoll.estimators.pca.by_island import (
    ByIsland,
    IslandByIsland,
    Projected,
    are_islands,
    features_of,
    tables_of,
)
from atoll.estimators.pca.columns import labels_of
from atoll.estimators.pca.registry import adapter_of
from atoll.estimators.pca.sklearn_twin import twin_of
from atoll.estimators.pca.tables import prepared_islands, prepared_rows
from atoll.protocols import Learned, protocol_of
from atoll.runtime.learned import LearnedByRole

if TYPE_CHECKING:
    from atoll.report.plots import Picture

Matrix = npt.NDArray[np.float64]


class Model(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What a fitted estimator can do, as far as the protocol released what it takes."""

    # ---- rows ----

    def transform(self, X: Any) -> Matrix:
        """Project the rows of one table on the joint components."""
        if isinstance(X, Projected):
            return self._whitened(X.scores)
        adapter = self._fitted("transform")
        return self._whitened(adapter.transform(self, self._one(X)))

    def inverse_transform(self, Z: Any) -> Any:
        """Back to the original columns, as far as the components reach; of islands, island by island."""
        self._fitted("inverse_transform")
        if not are_islands(Z):
            return self._back(Z)
        if isinstance(Z, Mapping):
            return ByIsland({name: self._back(scores) for name, scores in Z.items()})
        return IslandByIsland(map(self._back, Z))

    def _back(self, Z: Any) -> Matrix:
        Z = check_array(Z, dtype=np.float64)
        rows = (Z * self._spread() if self.whiten else Z) @ self.components_
        return np.asarray((rows if self.scale_ is None else rows * self.scale_) + self.mean_)

    def _one(self, X: Any) -> Matrix:
        """The rows of one table, as numbers in the columns of the fit."""
        if hasattr(self, "table_"):
            return prepared_rows(self, X)
        return np.asarray(validate_data(self, self._chosen(X), dtype=np.float64, reset=False))

    def _chosen(self, X: Any) -> Any:
        """Of a frame, the columns of the fit, where ``columns`` or ``label`` say that it has others."""
        names = getattr(self, "feature_names_in_", None)
        if (self.columns is None and self.label is None) or names is None or not hasattr(X, "columns"):
            return X
        return X[list(names)] if set(names) <= set(X.columns) else X

    def _whitened(self, scores: Matrix) -> Matrix:
        return scores / self._spread() if self.whiten else scores

    def _spread(self) -> Matrix:
        """Standard deviations of the scores; those of nothing are not divided by."""
        spread = np.sqrt(self.explained_variance_)
        return np.asarray(np.maximum(spread, np.finfo(np.float64).eps))

    # ---- likelihoods ----

    def score_samples(self, X: Any) -> Matrix:
        """The log-likelihood of every row under the probabilistic model of PCA, as scikit-learn's
        ``score_samples``; of standardised columns where ``standardize`` is on. Takes one table, or islands,
        whose rows then stand one after the other."""
        self._fitted("score_samples")
        return np.asarray(twin_of(self, named=False).score_samples(self._rows(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples` over all rows: what cross-validation compares."""
        del y
        self._fitted("score")
        return float(np.mean(twin_of(self, named=False).score_samples(self._rows(X))))

    def get_covariance(self) -> Matrix:
        """The covariance of the probabilistic model, as scikit-learn's: variances of the components, and the
        mean of the others in all other directions. Of standardised columns, their correlations."""
        self._fitted("get_covariance")
        W, rest = self.components_, self.noise_variance_
        beyond = np.maximum(self.explained_variance_ - rest, 0.0)
        return np.asarray((W.T * beyond) @ W + rest * np.eye(W.shape[1]))

    def _rows(self, X: Any) -> Any:
        if not are_islands(X):
            return self._one(X)
        names, tables = getattr(self, "feature_names_in_", None), prepared_islands(self, tables_of(X))
        return np.vstack(list(features_of(tables, names, self.n_features_in_).values()))

    # ---- pictures ----

    def plot_scree(self) -> Picture:
        """Each component's share of the variance, as a matplotlib figure."""
        from atoll.report.plots import scree_figure

        self._fitted("plot_scree")
        return scree_figure(self.explained_variance_, self.total_variance_, self._title("explained variance"))

    def plot_loadings(self) -> Picture:
        """What the first components are made of, column by column."""
        from atoll.report.plots import loadings_figure

        self._fitted("plot_loadings")
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return loadings_figure(
            self.components_,
            list(names),
            self._title("loadings"),
            getattr(self, "explained_variance_ratio_", None),
        )

    def plot_projection(self, islands: Any) -> Picture:
        """Every row of ``islands`` on the first two components: islands by colour, labels by marker."""
        from atoll.report.plots import projection_figure

        self._fitted("plot_projection")
        if not are_islands(islands):
            raise ParameterError("plot_projection needs the islands' tables", hint="plot_projection(islands)")
        tables = tables_of(islands)
        scores = self._scores_of(tables) if hasattr(self, "components_") else self._own_scores(tables)
        return projection_figure(
            scores,
            self._title("every record's projection"),
            labels=labels_of(self, tables),
            label_name=self.label or "label",
            shares=getattr(self, "explained_variance_ratio_", None),
        )

    def _scores_of(self, tables: Mapping[str, Any]) -> dict[str, Matrix]:
        projected = adapter_of(self.protocol, self.variant).project(self, tables)
        return {name: self._whitened(scores) for name, scores in zip(tables, projected, strict=True)}

    def _own_scores(self, tables: Mapping[str, Any]) -> dict[str, Matrix]:
        """Without components there are the projections of the fit's own rows, and no others."""
        own = {name: len(scores) for name, scores in self.scores_.items()}
        if own != {name: table.n_rows for name, table in tables.items()}:
            raise ParameterError(
                "without components there are only the projections of the islands that were fitted",
                hint="hand in the islands of the fit",
            )
        return {name: self._whitened(scores) for name, scores in self.scores_.items()}

    def _title(self, what: str) -> str:
        study = self.result_.study
        noise = f"\n{self.noise_.verdict()}" if hasattr(self, "noise_") else ""
        return f"PCA of {len(protocol_of(study.protocol).table_holders(study))} islands: {what}{noise}"

    # ---- as scikit-learn knows it ----

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn PCA; standardised, a pipeline of StandardScaler and PCA."""
        self._fitted("to_sklearn")
        return twin_of(self)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __getstate__(self) -> dict[str, Any]:
        """What a stored estimator holds: released outputs, not what a role saw by the protocol's nature."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "learned_" in state:
            kept = {address: Learned(known.outputs) for address, known in state["learned_"].items()}
            state["learned_"] = LearnedByRole(kept)
        return state

    def _adapter(self, what: str) -> Adapter:
        """The adapter, if the method ``what`` is possible with these options."""
        adapter = adapter_of(self.protocol, self.variant)
        adapter.check_use(self, what)
        return adapter

    def _fitted(self, what: str) -> Adapter:
        """The adapter, where there is a fitted model that the method ``what`` can use."""
        check_is_fitted(self, "result_")
        return self._adapter(what)
