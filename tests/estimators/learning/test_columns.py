"""Columns split: linear models, classifiers and k-means against scikit-learn's optimum on the joint table."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model, svm
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import atoll
from atoll.errors import DataError, NotReleased, ParameterError, RunError, SchemaError

SCORES: dict[str, Any] = {"partition": "vertical", "accept_scores": True, "share_model": True}


@cache
def standardised(name: str) -> tuple[Any, Any]:
    """Without constant and doubled columns, which leave an optimum undecided."""
    load: dict[str, Any] = {
        "diabetes": load_diabetes,
        "cancer": load_breast_cancer,
        "digits": lambda **_: load_digits(n_class=2, return_X_y=True),
    }
    X, y = load[name](return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kept = [j for j in range(X.shape[1]) if np.abs(X[:, :j].T @ X[:, j] / len(X)).max(initial=0.0) < 1 - 1e-9]
    return X[:, kept], y


def cut(X: Any, islands: int) -> list[Any]:
    return [X[:, part] for part in np.array_split(np.arange(X.shape[1]), islands)]


@pytest.mark.parametrize(
    ("data", "islands"), [("diabetes", 3), ("diabetes", 8), ("cancer", 3), ("digits", 4)]
)
def test_ridge_and_lasso_by_scores(data: str, islands: int) -> None:
    X, y = standardised(data)
    y = y.astype(float)
    for ours, theirs in (
        (atoll.Ridge(3.0, solver="scores", **SCORES), linear_model.Ridge(3.0)),
        (atoll.Lasso(0.05, **SCORES), linear_model.Lasso(0.05, tol=1e-14, max_iter=10**6)),
    ):
        model, pooled = ours.fit(cut(X, islands), y), theirs.fit(X, y)
        np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
        assert model.intercept_ == pytest.approx(pooled.intercept_, abs=1e-6)
        assert model.n_iter_ == len(model.loss_curve_)


def test_least_squares_by_scores_takes_one_sum_a_column() -> None:
    X, y = standardised("diabetes")
    model = atoll.LinearRegression(solver="scores", **SCORES).fit(cut(X, 3), y)
    np.testing.assert_allclose(model.coef_, linear_model.LinearRegression().fit(X, y).coef_, atol=1e-8)
    assert model.n_iter_ <= X.shape[1] + 3


@pytest.mark.parametrize("solver", ["auto", "encrypted"])
def test_coefficients_alone_are_those_of_the_joint_table(solver: str) -> None:
    X, y = standardised("diabetes")
    ours: Any = atoll.LinearRegression(solver=solver, partition="vertical", share_model=True)
    theirs: Any = linear_model.LinearRegression()
    tables, options = cut(X, 3), {}
    if solver == "encrypted":  # the other form, with a target that one island has
        ours = atoll.Ridge(3.0, solver=solver, partition="vertical", share_model=True, y_holder="island-1")
        theirs, X = linear_model.Ridge(3.0), X * np.arange(1, 11) + 5.0
        tables = cut(X, 3)
    model, pooled = ours.fit(tables, y, **options), theirs.fit(X, y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, rtol=1e-7, atol=1e-9)
    # The intercept is released with noise, as coefficients are: here about 1e-7.
    assert model.intercept_ == pytest.approx(pooled.intercept_, abs=1e-6)


@pytest.mark.parametrize(("data", "islands"), [("cancer", 3), ("cancer", 8), ("digits", 5)])
def test_logistic_regression_and_support_vectors(data: str, islands: int) -> None:
    X, y = standardised(data)
    tables = cut(X, islands)
    model = atoll.LogisticRegression(**SCORES).fit(tables, y)
    pooled: Any = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=1000).fit(
        X, y
    )
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(tables), pooled.predict_proba(X), atol=1e-6)
    assert model.score(X, y) == pooled.score(X, y)
    assert len(model.loss_curve_) <= 150
    svc = atoll.LinearSVC(**SCORES).fit(tables, y)
    pooled = svm.LinearSVC(tol=1e-12, max_iter=10**6, dual=False).fit(X, y)
    np.testing.assert_allclose(svc.coef_, pooled.coef_, atol=1e-5)
    np.testing.assert_allclose(svc.intercept_, pooled.intercept_, atol=1e-5)


def test_a_hinge_reaches_its_objective() -> None:
    X, y = standardised("cancer")
    model = atoll.LinearSVC(loss="hinge", **SCORES).fit(cut(X, 3), y)
    pooled = svm.LinearSVC(loss="hinge", tol=1e-9, max_iter=10**6).fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)

    def objective(w: Any, b: float) -> float:
        return float(0.5 * (w @ w + b * b) + np.maximum(1.0 - sign * (X @ w + b), 0.0).sum())

    ours = objective(model.coef_[0], model.intercept_[0])
    assert ours <= objective(pooled.coef_[0], pooled.intercept_[0]) * (1 + 1e-6)


def test_several_classes() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:, X.std(axis=0) > 0][:, :30]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    names = np.array(["none", "one", "two"])[y]
    model = atoll.LogisticRegression(0.1, y_holder="island-2", **SCORES).fit(cut(X, 3), names)
    pooled: Any = linear_model.LogisticRegression(C=0.1, tol=1e-12, max_iter=10**4).fit(X, names)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, pooled.intercept_, atol=1e-5)
    assert model.classes_.tolist() == pooled.classes_.tolist()
    svc = atoll.LinearSVC(0.1, **SCORES).fit(cut(X, 3), y)
    pooled = svm.LinearSVC(C=0.1, tol=1e-12, max_iter=10**6, dual=False).fit(X, y)
    np.testing.assert_allclose(svc.coef_, pooled.coef_, atol=1e-5)


@pytest.mark.parametrize(("data", "islands"), [("cancer", 3), ("digits", 8)])
def test_k_means_from_equal_seeds(data: str, islands: int) -> None:
    X, _ = standardised(data)
    model = atoll.KMeans(3, init=X[:3], **SCORES).fit(cut(X, islands))
    pooled = KMeans(3, init=X[:3], n_init=1, tol=0).fit(X)
    assert model.inertia_ == pytest.approx(pooled.inertia_, rel=1e-9)
    assert (model.predict(cut(X, islands)) == pooled.predict(X)).all()


def test_a_model_stays_split_unless_it_is_shared() -> None:
    X, y = standardised("cancer")
    tables = cut(X[:, :6], 3)
    model = atoll.LogisticRegression(partition="vertical", accept_scores=True).fit(tables, y)
    shared = atoll.LogisticRegression(**SCORES).fit(tables, y)
    with pytest.raises(NotReleased, match="split among the islands"):
        _ = model.coef_
    assert "model" not in model.result_
    np.testing.assert_allclose(model.decision_function(tables), shared.decision_function(X[:, :6]), atol=1e-9)
    with pytest.raises(ParameterError, match="each island's columns"):
        model.predict(X[:, :6])
    for name, part in model.parts_.items():
        assert part["coefficients"].shape == (1, 2), name


# ---- what is refused ----


@pytest.mark.parametrize(
    "model",
    [
        atoll.Lasso(partition="vertical"),
        atoll.Ridge(solver="scores", partition="vertical"),
        atoll.LogisticRegression(partition="vertical"),
        atoll.LinearSVC(partition="vertical"),
        atoll.KMeans(2, partition="vertical"),
        atoll.GradientDescent(partition="vertical"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scores_need_a_consent_that_says_why(model: Any) -> None:
    X, y = standardised("cancer")
    given = () if isinstance(model, atoll.KMeans) else (y,)
    with pytest.raises(ParameterError, match="another mixture of the other islands' columns") as refused:
        model.fit(cut(X[:, :6], 3), *given)
    assert "accept_scores" in (refused.value.hint or "")
    with pytest.raises(ParameterError, match="with two islands"):
        model.set_params(accept_scores=True).fit(cut(X[:, :6], 2), *given)
    model.set_params(accept_scores=False)


def test_bad_tables_and_targets_are_named() -> None:
    X, y = standardised("cancer")
    tables = cut(X[:, :6], 3)
    fits = atoll.LogisticRegression(**SCORES)
    with pytest.raises(SchemaError, match="island-1 has 500 rows, island-0 has 569"):
        atoll.KMeans(2, **SCORES).fit([tables[0], tables[1][:500], tables[2]])
    with pytest.raises(DataError, match="one class only"):
        fits.fit(tables, np.zeros(len(y)))
    with pytest.raises(DataError, match=r"holds text|cannot be read"):
        atoll.Lasso(**SCORES).fit(tables, np.array(["a"] * len(y)))
    with pytest.raises(DataError, match=r"569.*targets|targets for"):
        fits.fit(tables, y[:10])
    frames = [pd.DataFrame(t, columns=[f"c{i}{j}" for j in range(2)]) for i, t in enumerate(tables)]
    frames[2]["c00"] = 1.0
    with pytest.raises(SchemaError, match="'c00', which island-0 has too"):
        fits.fit(frames, y)


def test_separation_and_dependent_columns_are_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    with pytest.raises(RunError, match="separation"):
        atoll.LogisticRegression(None, **SCORES).fit(cut(X, 3), (X[:, 0] > 0).astype(int))
    y = X @ np.ones(6) + rng.normal(size=80)
    doubled = X.copy()
    doubled[:, 1] = 2.0 * doubled[:, 0]
    for solver in ("encrypted", "scores"):
        options = SCORES if solver == "scores" else {"partition": "vertical"}
        with pytest.raises(DataError, match="island-0: the columns 'x1' follow from the others"):
            atoll.LinearRegression(solver=solver, **options).fit(cut(doubled, 3), y)
    across = X.copy()
    across[:, 5] = across[:, 0]  # on two islands, where nobody sees both
    with pytest.raises(RunError, match="leave a coefficient undecided"):
        atoll.LinearRegression(partition="vertical", condition_bits=12).fit(cut(across, 3), y)


def test_options_of_columns_mean_nothing_to_rows() -> None:
    X, y = standardised("diabetes")
    with pytest.raises(ParameterError, match="share_model is for columns"):
        atoll.Ridge(share_model=True).fit([X[:200], X[200:]], [y[:200], y[200:]])
    with pytest.raises(ParameterError, match="solver='scores' is for columns"):
        atoll.Ridge(solver="scores").fit([X[:200], X[200:]], [y[:200], y[200:]])
