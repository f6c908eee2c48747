"""``atoll.GLM``: generalized linear models across islands, with the table that epidemiologists expect."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from atoll.estimators.learning.base import RowsEstimator
from atoll.estimators.learning.options import FIELDS, SUMS, taking
from atoll.protocols.learning.families import link_of
from atoll.protocols.learning.summary import Summary


class GLM(RowsEstimator):
    """A generalized linear model of rows on several islands, by one secure sum a step.

    Parameters
    ----------
    family : "gaussian", "binomial", "poisson" or "gamma"
    link : str, optional
        Another link than the family's usual one.
    offset, weights : str, optional
        Columns with a known part of the predictor, and with prior weights.
    categorical : sequence of str
        Columns that hold categories; their first level is the reference.
    missing : "refuse" or "drop"
        What to do with rows that lack a value.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> glm = atoll.GLM("poisson").fit([X[:200, :2], X[200:, :2]], [y[:200], y[200:]])
    >>> glm.coef_.round(2)
    array([2.  , 0.11])
    """

    protocol = "glm"
    analysis = "regression"

    family: str
    link: str | None
    fit_intercept: bool
    offset: str | None
    weights: str | None
    max_iter: int
    tol: float
    __init__: Any = taking(
        {"family": "gaussian", "link": None},
        {"fit_intercept": True, "offset": None, "weights": None, "max_iter": 100, "tol": 1e-8},
        FIELDS,
        SUMS,
    )

    def fit(self, islands: Any, y: Any = None, *, target: str | None = None) -> GLM:
        """Fit the joint model: a list of tables with a list of targets, or tables with a target column."""
        finished = self._fit(islands, y, target)
        coefficients = np.array(finished.result["model"]["coefficients"])
        self.coef_ = coefficients[int(self.fit_intercept) :]
        self.intercept_ = float(coefficients[0]) if self.fit_intercept else 0.0
        fit = finished.result["fit"]
        self.n_iter_ = int(fit["iterations"])
        self.deviance_, self.null_deviance_ = float(fit["deviance"]), float(fit["null_deviance"])
        self.aic_, self.bic_ = float(fit["aic"]), float(fit["bic"])
        self.covariance_ = np.array(fit["covariance"])
        self.loss_curve_ = np.array(fit["loss_curve"])
        return self

    def _parameters(self) -> dict[str, Any]:
        said = {"family": self.family, "fit_intercept": bool(self.fit_intercept)}
        said |= {"max_iter": int(self.max_iter), "tol": float(self.tol)}
        optional = {"link": self.link, "offset": self.offset, "weights": self.weights}
        return said | {name: value for name, value in optional.items() if value is not None}

    def predict(self, X: Any, offset: npt.ArrayLike = 0.0) -> npt.NDArray[np.float64]:
        """The expected response of new rows."""
        eta = self._design(X) @ self.coef_ + self.intercept_ + np.asarray(offset, dtype=np.float64)
        return np.asarray(link_of(self.family, self.link).mean(eta))

    def summary(self) -> Summary:
        """Estimates with standard errors, z or t, p and intervals, as R or statsmodels print them."""
        return Summary.of(self.result_)
