"""Linear models, classifiers and k-means against scikit-learn's optimum on the pooled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import atoll
from atoll.errors import DataError, ParameterError, RunError


def standardised(X: Any) -> Any:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def cut(values: Any, n: int) -> list[Any]:
    return [values[part] for part in np.array_split(np.random.default_rng(0).permutation(len(values)), n)]


DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize("islands", [2, 3, 8])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            lambda c: atoll.LinearRegression(fit_intercept=c),
            lambda c: linear_model.LinearRegression(fit_intercept=c),
        ),
        (lambda c: atoll.Ridge(3.0, fit_intercept=c), lambda c: linear_model.Ridge(3.0, fit_intercept=c)),
        (
            lambda c: atoll.Lasso(2.0, fit_intercept=c),
            lambda c: linear_model.Lasso(2.0, fit_intercept=c, tol=1e-14, max_iter=10**6),
        ),
    ],
    ids=["least squares", "ridge", "lasso"],
)
def test_linear_models(ours: Any, theirs: Any, intercept: bool, islands: int) -> None:
    X, y = standardised(DIABETES[0]), DIABETES[1]
    model = ours(intercept).fit(cut(X, islands), cut(y, islands))
    pooled = theirs(intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-8)
    assert model.intercept_ == pytest.approx(pooled.intercept_, abs=1e-8)
    assert model.score(X, y) == pytest.approx(pooled.score(X, y), abs=1e-10)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_logistic_regression(C: float) -> None:
    X, y = standardised(CANCER[0]), CANCER[1]
    model = atoll.LogisticRegression(C).fit(cut(X, 3), cut(y, 3))
    pooled = linear_model.LogisticRegression(C=C, solver="newton-cholesky", tol=1e-14, max_iter=1000).fit(
        X, y
    )
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), pooled.predict_proba(X), atol=1e-6)
    assert (model.predict(X) == pooled.predict(X)).all()
    assert model.classes_.tolist() == [0, 1]


def test_logistic_regression_opens_at_most_twelve_sums() -> None:
    X, y = standardised(CANCER[0]), CANCER[1]
    model = atoll.LogisticRegression().fit(cut(X, 3), cut(y, 3))
    assert model.transcript_.kinds["ShareSum"] <= 12 * 3


def test_a_softmax_over_three_classes() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    X = standardised(X)
    names = np.array(["none", "one", "two"])[y]
    model = atoll.LogisticRegression(0.1).fit(cut(X, 3), cut(names, 3))
    pooled = linear_model.LogisticRegression(C=0.1, tol=1e-12, max_iter=10**4).fit(X, names)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, pooled.intercept_, atol=1e-5)
    assert model.classes_.tolist() == pooled.classes_.tolist()


def test_support_vectors_with_squared_hinge() -> None:
    X, y = standardised(CANCER[0]), CANCER[1]
    model = atoll.LinearSVC().fit(cut(X, 3), cut(y, 3))
    pooled = svm.LinearSVC(tol=1e-12, max_iter=10**6, dual=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, pooled.intercept_, atol=1e-5)


def hinge(model: Any, X: Any, y: Any) -> float:
    w, b = model.coef_[0], float(model.intercept_[0])
    sign = np.where(y == 1, 1.0, -1.0)
    return float(0.5 * (w @ w + b * b) + np.maximum(1.0 - sign * (X @ w + b), 0.0).sum())


def test_support_vectors_with_hinge_reach_the_objective() -> None:
    X, y = standardised(CANCER[0][:, :10]), CANCER[1]
    model = atoll.LinearSVC(loss="hinge").fit(cut(X, 3), cut(y, 3))
    pooled = svm.LinearSVC(loss="hinge", tol=1e-9, max_iter=10**7).fit(X, y)
    assert hinge(model, X, y) <= hinge(pooled, X, y) * (1 + 1e-6)


def test_one_against_the_rest() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    X = standardised(X)
    model = atoll.LinearSVC(0.1).fit(cut(X, 3), cut(y, 3))
    pooled = svm.LinearSVC(C=0.1, tol=1e-12, max_iter=10**6, dual=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    assert (model.predict(X) == pooled.predict(X)).all()


@pytest.mark.parametrize("islands", [2, 5])
def test_k_means_from_equal_seeds(islands: int) -> None:
    X = standardised(CANCER[0])
    model = atoll.KMeans(3, init=X[:3]).fit(cut(X, islands))
    pooled = KMeans(3, init=X[:3], n_init=1, tol=0).fit(X)
    assert model.inertia_ == pytest.approx(pooled.inertia_, rel=1e-9)
    assert (model.predict(X) == pooled.predict(X)).all()
    assert model.counts_.sum() == len(X)


def test_an_island_of_one_class_is_fine_all_of_one_class_are_not() -> None:
    X, y = standardised(CANCER[0])[:, :5], CANCER[1]
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = atoll.LogisticRegression().fit([X[:200], X[200:]], [y[:200], y[200:]])
    pooled = linear_model.LogisticRegression(tol=1e-12, max_iter=10**4).fit(X, y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    with pytest.raises(DataError, match="one class only"):
        atoll.LogisticRegression().fit([X[:100], X[100:200]], [y[:100], y[100:200]])


def test_perfect_separation_without_a_penalty_is_named() -> None:
    X = np.arange(40.0)[:, None]
    y = (X[:, 0] > 19.5).astype(int)
    with pytest.raises(RunError, match="separation"):
        atoll.LogisticRegression(None, max_iter=60).fit([X[::2], X[1::2]], [y[::2], y[1::2]])


def test_more_coefficients_than_rows_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(8, 9))
    with pytest.raises(DataError, match="8 rows for 10 coefficients"):
        atoll.Ridge().fit([X[:4], X[4:]], [X[:4, 0], X[4:, 0]])


def test_targets_must_fit_the_tables() -> None:
    X, y = DIABETES
    with pytest.raises(ParameterError, match="one target per island"):
        atoll.Ridge().fit([X[:200], X[200:]], y)
    with pytest.raises(DataError, match=r"island-1: \(10,\) targets for 242 rows"):
        atoll.Ridge().fit([X[:200], X[200:]], [y[:200], y[:10]])
    with pytest.raises(DataError, match="there is no column 'gone'"):
        atoll.Ridge().fit([X[:200], X[200:]], target="gone")
