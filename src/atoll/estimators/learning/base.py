"""What learning estimators share: tables with their targets, the study, and what was released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted

from atoll.data.island import Island, as_islands
from atoll.errors import DataError, ParameterError
from atoll.estimators.base import parties, run, warn_of_missing
from atoll.estimators.pca.by_island import are_islands
from atoll.estimators.sum_options import sum_options
from atoll.lazy import lazy
from atoll.protocols.base import MIN_ISLANDS
from atoll.protocols.own import owned
from atoll.runtime.execute import Run
from atoll.study.model import Study

pd: Any = lazy("pandas")

TARGET = "target"
"""The name of a target that was handed in beside the tables."""


class RowsEstimator(BaseEstimator):  # type: ignore[misc]
    """Fits a model to islands that hold rows, by secure sums under a server."""

    protocol: ClassVar[str]
    analysis: ClassVar[str]

    # Options that every estimator has; subclasses name them in their own __init__, as scikit-learn asks.
    secure_sum: str
    key: str
    mix: Any
    engine: Any
    columns: Any
    categorical: Any
    missing: str
    dropouts = 0
    """Nobody can leave: all sums are over the same rows."""

    def _fit(self, islands: Any, y: Any, target: str | None) -> Run:
        """Build the study, run it, and keep what it says of rows and columns."""
        tables, target = with_targets(islands, y, target)
        if len(tables) < MIN_ISLANDS:
            raise ParameterError(
                f"fit needs at least {MIN_ISLANDS} islands, got {len(tables)}",
                hint="fit([X1, X2, ...], [y1, y2, ...]); for one table use scikit-learn",
            )
        protocol, parameters, outputs = self._rows_study(target)
        study = Study(
            name=type(self).__name__,
            analysis=self.analysis,
            protocol=protocol,
            secure_sum=self.secure_sum,
            sum_options=sum_options(self),
            parties=parties(tables, "provider", "server", "consumer"),
            parameters=parameters,
            release=dict.fromkeys(outputs, ("consumer",)),
        )
        finished = run(study, owned(tables), self.engine)
        self._keep(finished, tables)
        return finished

    def _rows_study(self, target: str | None) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        """The protocol where rows are split, its parameters, and what is released."""
        return self.protocol, self._fields(target) | self._parameters(), ("model", "fit", "n_samples")

    def _fields(self, target: str | None) -> dict[str, Any]:
        said: dict[str, Any] = {"missing": self.missing}
        if target is not None:
            said["target"] = target
        if self.columns is not None:
            said["columns"] = tuple(self.columns)
        if self.categorical:
            said["categorical"] = tuple(self.categorical)
        return said

    def _parameters(self) -> dict[str, Any]:
        """The options of the estimator as the study holds them."""
        raise NotImplementedError

    def _keep(self, finished: Run, tables: Mapping[str, Island]) -> None:
        result = finished.result
        self.result_ = result
        self.transcript_ = result.transcript
        self.learned_ = finished.learned
        self.n_samples_ = int(result["n_samples"])
        self.n_dropped_ = int(result["n_dropped"]) if "n_dropped" in result else 0
        self.dropped_ = dict(result["dropped"]) if "dropped" in result else {}
        self.islands_ = list(result["islands"])
        self.terms_ = tuple(name for name in result["model"]["names"] if name != "(Intercept)")
        self.n_features_in_ = len(self.terms_)
        if all(table.named for table in tables.values()):
            self.feature_names_in_ = np.array(self.terms_, dtype=object)
        warn_of_missing(tables, self.islands_)

    def _design(self, X: Any) -> npt.NDArray[np.float64]:
        """New rows as the model takes them: numbers as they are, categories as their indicators."""
        check_is_fitted(self)
        if are_islands(X):
            raise DataError(
                "new rows come as one table, not as several islands'",
                hint="one island after the other: [model.predict(table) for table in tables]",
            )
        if not self.categorical:
            named = getattr(self, "feature_names_in_", None)
            if named is not None and hasattr(X, "columns"):
                missing = [name for name in named if name not in X.columns]
                if missing:
                    raise DataError(f"the rows lack the column {missing[0]!r}")
                X = X[list(named)]
            checked: npt.NDArray[np.float64] = check_array(X, dtype=np.float64)
            if checked.shape[1] != self.n_features_in_:
                raise DataError(f"{checked.shape[1]} columns where the model has {self.n_features_in_}")
            return checked
        return self._with_indicators(X)

    def _with_indicators(self, X: Any) -> npt.NDArray[np.float64]:
        from atoll.data.levels import as_levels

        columns = []
        for term in self.terms_:
            name, bracket, level = term.partition("[")
            if bracket and name in self.categorical:
                columns.append(np.array(as_levels(np.asarray(X[name]))) == level[:-1])
            else:
                columns.append(np.asarray(X[term], dtype=np.float64))
        return np.column_stack(columns).astype(np.float64)


def with_targets(islands: Any, y: Any, target: str | None) -> tuple[dict[str, Island], str | None]:
    """Islands by name, each with its target as a column, and that column's name."""
    tables = as_islands(islands)
    if y is None:
        return tables, target
    if target is not None:
        raise ParameterError("give the target as y or by the name of its column, not both")
    given = list(y.values()) if isinstance(y, Mapping) else y
    if isinstance(y, Mapping):
        given = [_of(y, name) for name in tables]
    if not isinstance(given, Sequence) or len(given) != len(tables):
        raise ParameterError(
            f"fit needs one target per island: {len(tables)} tables",
            hint="fit([X1, X2, ...], [y1, y2, ...]), or fit(islands, target='column')",
        )
    return {
        name: with_column(table, values) for (name, table), values in zip(tables.items(), given, strict=True)
    }, TARGET


def _of(y: Mapping[Any, Any], name: str) -> Any:
    for key, value in y.items():
        if str(key) == name:
            return value
    raise ParameterError(f"there is no target for {name}")


def with_column(table: Island, values: Any) -> Island:
    """The table with its target as one column more."""
    column = np.asarray(values)
    if column.ndim != 1 or len(column) != table.n_rows:
        raise DataError(f"{table.name}: {np.shape(values)} targets for {table.n_rows} rows")
    frame = pd.DataFrame({name: table.values(name) for name in table.columns})
    if TARGET in frame:
        raise DataError(f"{table.name}: there is a column called {TARGET!r} beside the target")
    frame[TARGET] = column
    joined = Island.from_frame(frame, name=table.name, identity=table.identity)
    joined.named, joined.order = table.named, table.order
    return joined
