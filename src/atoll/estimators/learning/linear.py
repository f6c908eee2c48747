"""``atoll.LinearRegression``, ``atoll.Ridge`` and ``atoll.Lasso``: one secure sum, scikit-learn's optimum."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from atoll.errors import NotReleased, ParameterError
from atoll.estimators.learning.options import FIELDS, SPLIT, SUMS, taking
from atoll.estimators.learning.split import HORIZONTAL, VERTICAL, SplitEstimator
from atoll.protocols.learning.summary import Summary

SOLVERS = ("auto", "normal", "encrypted", "scores")
SOLVER = {"solver": "auto", "condition_bits": None}
"""``solver`` "normal" (rows split) opens the joint products of rows and solves the normal equations;
"encrypted" opens coefficients only; "scores" (columns split) opens summed scores; "auto" takes "normal" where
rows are split, "encrypted" where columns are. ``condition_bits``: how near to
dependent the columns may be under encryption (24, with rows split 32)."""


class _LeastSquares(RegressorMixin, SplitEstimator):  # type: ignore[misc]
    protocol = "least-squares"
    columns_protocol = "least-squares-columns"
    analysis = "regression"
    penalty: ClassVar[str]
    fit_intercept: bool
    solver = "auto"
    condition_bits: int | None = None

    def fit(self, islands: Any, y: Any = None, *, target: str | None = None) -> Any:
        """Fit tables of rows with a list of targets, tables of columns with one, or with a target column."""
        if self.solver not in SOLVERS:
            raise ParameterError(f"solver={self.solver!r} is none of {', '.join(map(repr, SOLVERS))}")
        if self.solver == ("scores" if self.partition == HORIZONTAL else "normal"):
            split = "columns" if self.solver == "scores" else "rows"
            raise ParameterError(
                f"solver={self.solver!r} is for {split} that are split", hint="solver='auto'"
            )
        finished = self._fit(islands, y, target)
        result = finished.result
        self.n_iter_ = int(result["fit"]["iterations"]) if self._iterates else 1
        if self._iterates:
            self.loss_curve_ = np.array(result["fit"]["loss_curve"])
        if not self._stays_split:
            coefficients = np.array(result["model"]["coefficients"])
            self.coef_ = coefficients[int(self.fit_intercept) :]
            self.intercept_ = float(coefficients[0]) if self.fit_intercept else 0.0
        return self

    @property
    def _encrypted(self) -> bool:
        """Whether coefficients alone are opened: if columns are split the usual course, but for the lasso."""
        usual = self.partition == VERTICAL and self.penalty != "l1"
        return self.solver == "encrypted" or (self.solver == "auto" and usual)

    @property
    def _iterates(self) -> bool:
        return self.partition == VERTICAL and not self._encrypted

    def _columns_study(self) -> tuple[str, dict[str, Any]]:
        if self._encrypted:
            return "least-squares-encrypted", self._parameters() | self._condition()
        return super()._columns_study()

    def _rows_study(self, target: str | None) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        if not self._encrypted:
            return super()._rows_study(target)
        self._check_fields()
        said: dict[str, Any] = {} if target is None else {"target": target}
        said |= {} if self.columns is None else {"columns": tuple(self.columns)}
        said |= self._parameters() | self._condition()
        return "least-squares-encrypted-rows", said, ("model", "n_samples")

    def _condition(self) -> dict[str, Any]:
        return {} if self.condition_bits is None else {"condition_bits": int(self.condition_bits)}

    def _parameters(self) -> dict[str, Any]:
        return {"penalty": self.penalty, "fit_intercept": bool(self.fit_intercept), "alpha": self._alpha()}

    def _alpha(self) -> float:
        return float(getattr(self, "alpha", 0.0))

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The expected target of new rows."""
        return self._linear_scores(X)[:, 0]


class LinearRegression(_LeastSquares):
    """Ordinary least squares over rows on several islands, or over columns (``partition="vertical"``).

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = atoll.LinearRegression().fit([X[:200], X[200:]], [y[:200], y[200:]])
    >>> model.coef_.round(1)[:3]
    array([ -10. , -239.8,  519.8])
    """

    penalty = "none"

    __init__: Any = taking({}, {"fit_intercept": True}, SOLVER, FIELDS, SPLIT, SUMS)

    def summary(self) -> Summary:
        """Estimates with standard errors, t, p and intervals, as R or statsmodels print them."""
        if self._encrypted:
            raise NotReleased(
                "solver='encrypted' opens coefficients only: nobody has what standard errors need",
                hint="solver='auto' with rows split",
            )
        return Summary.of(self.result_)


class _Penalised(_LeastSquares):
    alpha: float
    __init__: Any = taking({"alpha": 1.0}, {"fit_intercept": True}, SOLVER, FIELDS, SPLIT, SUMS)


class Ridge(_Penalised):
    """Least squares with ``alpha`` times the squared coefficients, as scikit-learn's Ridge."""

    penalty = "l2"


class Lasso(_Penalised):
    """Least squares with ``alpha`` times the absolute coefficients, as scikit-learn's Lasso."""

    penalty = "l1"
    __init__: Any = taking({"alpha": 1.0}, {"fit_intercept": True}, FIELDS, SPLIT, SUMS)
