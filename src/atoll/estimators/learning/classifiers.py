"""``atoll.LogisticRegression`` and ``atoll.LinearSVC``: Newton's method, one secure sum a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from atoll.data.island import Island
from atoll.errors import NotReleased
from atoll.estimators.learning.options import FIELDS, SPLIT, SUMS, taking
from atoll.estimators.learning.split import VERTICAL, SplitEstimator
from atoll.protocols.learning.summary import Summary


class _Classifier(ClassifierMixin, SplitEstimator):  # type: ignore[misc]
    protocol = "classifier"
    columns_protocol = "classifier-columns"
    analysis = "classification"
    fit_intercept: bool

    def fit(self, islands: Any, y: Any = None, *, target: str | None = None) -> Any:
        """Fit the joint model: a list of tables with a list of targets, or tables with a target column."""
        finished = self._fit(islands, y, target)
        fit, split = finished.result["fit"], self.partition == VERTICAL
        if not self._stays_split:
            coefficients = np.array(finished.result["model"]["coefficients"])
            self.coef_ = coefficients[:, int(self.fit_intercept) :]
            self.intercept_ = coefficients[:, 0] if self.fit_intercept else np.zeros(len(coefficients))
        levels = fit["classes"] if split else finished.result["model"]["classes"]
        given = islands if y is None else y
        self.classes_ = as_classes(levels, [y] if split and y is not None else given, target)
        self.n_iter_ = np.array([int(fit["iterations"])])
        self.objective_ = float(fit["objective"])
        self.loss_curve_ = np.array(fit["loss_curve"])
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of new rows: one each for two classes, one for each class otherwise."""
        scores = self._linear_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most likely class of new rows."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[chosen]
        return predicted


class LogisticRegression(_Classifier):
    """Logistic regression over rows (or columns) on several islands, with scikit-learn's objective.

    C times the summed loss plus half the squared weights. Several classes share one softmax. ``C=None``: no
    penalty.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = atoll.LogisticRegression(C=0.1).fit([X[:300], X[300:]], [y[:300], y[300:]])
    >>> round(model.score(X, y), 2)
    0.95
    """

    C: float | None
    max_iter: int
    tol: float
    __init__: Any = taking(
        {"C": 1.0}, {"fit_intercept": True, "max_iter": 200, "tol": 1e-16}, FIELDS, SPLIT, SUMS
    )

    def _parameters(self) -> dict[str, Any]:
        said = {"loss": "logistic", "fit_intercept": bool(self.fit_intercept)}
        C = None if self.C is None or np.isinf(self.C) else float(self.C)
        return said | {"C": C, "max_iter": int(self.max_iter), "tol": float(self.tol)}

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, for new rows."""
        scores = self.decision_function(X)
        wide = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
        E = np.exp(wide - wide.max(axis=1, keepdims=True))
        return np.asarray(E / E.sum(axis=1, keepdims=True))

    def summary(self) -> Summary:
        """The table of a fit without a penalty (``C=None``), of two classes and with rows split."""
        check_is_fitted(self)
        if self.partition == VERTICAL:
            raise NotReleased(
                "with columns split nobody has what standard errors need", hint="rows split, or atoll.GLM"
            )
        return Summary.of(self.result_)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Its logarithm."""
        return np.asarray(np.log(self.predict_proba(X)))


class LinearSVC(_Classifier):
    """Support vectors over rows (or columns) on several islands, with scikit-learn's objective.

    C times the summed hinge (or its square) plus half the squared weights, the intercept among them.
    """

    C: float
    loss: str
    intercept_scaling: float
    max_iter: int
    tol: float
    __init__: Any = taking(
        {"C": 1.0},
        {"loss": "squared_hinge", "fit_intercept": True, "intercept_scaling": 1.0},
        {"max_iter": 1000, "tol": 1e-16},
        FIELDS,
        SPLIT,
        SUMS,
    )

    def _parameters(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "C": float(self.C),
            "fit_intercept": bool(self.fit_intercept),
            "intercept_scaling": float(self.intercept_scaling),
            "max_iter": int(self.max_iter),
            "tol": float(self.tol),
        }


def as_classes(levels: tuple[str, ...], given: Any, target: str | None) -> npt.NDArray[Any]:
    """Classes as the caller wrote them: numbers where all targets here were numbers, else words."""
    kinds = set()
    for part in given.values() if hasattr(given, "values") else given:
        if target is not None and hasattr(part, "columns") and not isinstance(part, Island):
            part = part[target]
        kinds.add(np.asarray(part).dtype.kind if target is None or not isinstance(part, str) else "U")
    if kinds <= {"i", "u"}:
        return np.array([int(level) for level in levels])
    if kinds <= {"b"}:
        return np.array([level == "True" for level in levels])
    if kinds <= {"i", "u", "f"}:
        return np.array([float(level) for level in levels])
    return np.array(levels)
