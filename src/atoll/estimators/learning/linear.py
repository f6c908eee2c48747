"""``atoll.LinearRegression``, ``atoll.Ridge`` and ``atoll.Lasso``: one secure sum, scikit-learn's optimum."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from atoll.estimators.learning.base import RowsEstimator
from atoll.protocols.learning.summary import Summary


class _LeastSquares(RegressorMixin, RowsEstimator):  # type: ignore[misc]
    protocol = "least-squares"
    analysis = "regression"
    penalty: ClassVar[str]
    fit_intercept: bool

    def fit(self, islands: Any, y: Any = None, *, target: str | None = None) -> Any:
        """Fit the joint model: a list of tables with a list of targets, or tables with a target column."""
        finished = self._fit(islands, y, target)
        coefficients = np.array(finished.result["model"]["coefficients"])
        self.coef_ = coefficients[int(self.fit_intercept) :]
        self.intercept_ = float(coefficients[0]) if self.fit_intercept else 0.0
        self.n_iter_ = 1
        return self

    def _parameters(self) -> dict[str, Any]:
        return {"penalty": self.penalty, "fit_intercept": bool(self.fit_intercept), "alpha": self._alpha()}

    def _alpha(self) -> float:
        return float(getattr(self, "alpha", 0.0))

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The expected target of new rows."""
        predicted: npt.NDArray[np.float64] = self._design(X) @ self.coef_ + self.intercept_
        return predicted


class LinearRegression(_LeastSquares):
    """Ordinary least squares over rows on several islands.

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

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        columns: Any = None,
        categorical: Any = (),
        missing: str = "refuse",
        secure_sum: str = "shares",
        dropouts: int = 0,
        key: str = "collective",
        mix: Any = None,
        engine: Any = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.columns = columns
        self.categorical = categorical
        self.missing = missing
        self.secure_sum = secure_sum
        self.dropouts = dropouts
        self.key = key
        self.mix = mix
        self.engine = engine

    def summary(self) -> Summary:
        """Estimates with standard errors, t, p and intervals, as R or statsmodels print them."""
        return Summary.of(self.result_)


class Ridge(_LeastSquares):
    """Least squares with ``alpha`` times the squared coefficients, as scikit-learn's Ridge."""

    penalty = "l2"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        columns: Any = None,
        categorical: Any = (),
        missing: str = "refuse",
        secure_sum: str = "shares",
        dropouts: int = 0,
        key: str = "collective",
        mix: Any = None,
        engine: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.columns = columns
        self.categorical = categorical
        self.missing = missing
        self.secure_sum = secure_sum
        self.dropouts = dropouts
        self.key = key
        self.mix = mix
        self.engine = engine


class Lasso(_LeastSquares):
    """Least squares with ``alpha`` times the absolute coefficients, as scikit-learn's Lasso."""

    penalty = "l1"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        columns: Any = None,
        categorical: Any = (),
        missing: str = "refuse",
        secure_sum: str = "shares",
        dropouts: int = 0,
        key: str = "collective",
        mix: Any = None,
        engine: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.columns = columns
        self.categorical = categorical
        self.missing = missing
        self.secure_sum = secure_sum
        self.dropouts = dropouts
        self.key = key
        self.mix = mix
        self.engine = engine
