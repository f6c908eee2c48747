"""``atoll.GradientDescent``: the paper's algorithms, for any cost with its gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from atoll.errors import ParameterError
from atoll.estimators.learning.options import SPLIT, SUMS, taking
from atoll.estimators.learning.split import SplitEstimator
from atoll.protocols.learning.descent.pairs import Pair, named_here


class GradientDescent(SplitEstimator):
    """Secure gradient descent with rows or columns split (Mehnaz, Bellala and Bertino 2017, Algorithms 1, 2).

    Parameters
    ----------
    cost : str or callable
        The name of a cost ("least-squares", "logistic", "squared-hinge", "poisson", or what an installed
        package brings), or in one process a function: cost(scores, y) gives a number for each row.
    gradient : callable, optional
        The slope of the cost by the score, for each row.
    of : "scores" or "model"
        "model" (rows split): cost(theta, X, y) and gradient(theta, X, y) of the model itself, from ``start``.
    batch : int, optional
        So many rows a step (1: stochastic), drawn from ``random_state``; else all.
    convergence : "mean" or "paper"
        "paper" is the published rule: with rows split it does not divide by the number of rows.
    scenario : "DU", "DT" or "CT"
        For comparison only, in one process: DT adds in the clear, CT pools the tables.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, scaled=True)
    >>> model = atoll.GradientDescent(learning_rate=1.0, tol=10.0)
    >>> model = model.fit([X[:200, :2], X[200:, :2]], [y[:200], y[200:]])
    >>> round(float(model.intercept_))
    152
    """

    protocol = columns_protocol = "gradient-descent"
    analysis = "regression"
    categorical = ()
    missing = "refuse"
    cost: Any
    gradient: Any
    of: str
    learning_rate: float
    tol: float
    max_iter: int
    batch: int | None
    random_state: int | None
    start: Any
    fit_intercept: bool
    convergence: str
    scenario: str

    __init__: Any = taking(
        {"cost": "least-squares", "gradient": None},
        {"of": "scores", "learning_rate": 0.1, "tol": 1e-9, "max_iter": 1000, "batch": None},
        {"random_state": None, "start": None, "fit_intercept": True, "convergence": "mean"},
        {"scenario": "DU", "columns": None},
        SPLIT,
        SUMS,
    )

    def fit(self, islands: Any, y: Any = None, *, target: str | None = None) -> GradientDescent:
        """Fit tables of rows with their targets, or tables of columns with one target."""
        finished = self._fit(islands, y, target)
        fit = finished.result["fit"]
        self.n_iter_, self.loss_curve_ = int(fit["iterations"]), np.array(fit["loss_curve"])
        self.converged_ = bool(fit["converged"])
        if not self.converged_ and self.batch is None:
            warnings.warn(
                f"the descent stopped at max_iter = {self.max_iter} steps, not settled",
                ConvergenceWarning,
                stacklevel=2,
            )
        if not self._stays_split or self.scenario == "CT":
            theta = np.array(finished.result["model"]["coefficients"])
            self.theta_ = theta
            self.coef_ = theta[int(self.fit_intercept) :]
            self.intercept_ = float(theta[0]) if self.fit_intercept else 0.0
        return self

    def _fields(self, target: str | None) -> dict[str, Any]:
        said = {} if target is None else {"target": target}
        return said | ({} if self.columns is None else {"columns": tuple(self.columns)})

    def _parameters(self) -> dict[str, Any]:
        said: dict[str, Any] = {"cost": self._named(), "learning_rate": float(self.learning_rate)}
        said |= {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        said |= {"seed": int(self.random_state or 0), "fit_intercept": bool(self.fit_intercept)}
        said |= {"convergence": self.convergence, "scenario": self.scenario}
        said |= {} if self.batch is None else {"batch": int(self.batch)}
        return said | ({} if self.start is None else {"start": tuple(map(float, self.start))})

    def _named(self) -> str:
        if isinstance(self.cost, str):
            if self.gradient is not None:
                raise ParameterError("a cost by name brings its gradient", hint="leave gradient out")
            return self.cost
        if not callable(self.cost) or not callable(self.gradient):
            raise ParameterError(
                "cost and gradient must be two functions, or cost a name", hint="cost='least-squares'"
            )
        if getattr(self.engine, "elsewhere", False):
            raise ParameterError(
                "functions do not travel to other machines",
                hint="install a package there that brings the cost: an entry point of the group atoll.costs",
            )
        if self.of not in ("scores", "model"):
            raise ParameterError(f"of={self.of!r} is neither 'scores' nor 'model'")
        return named_here(Pair(self.cost, self.gradient, self.of))  # type: ignore[arg-type]

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of new rows: of one table, or of each island's columns."""
        return self._linear_scores(X)[:, 0]

    predict = decision_function
