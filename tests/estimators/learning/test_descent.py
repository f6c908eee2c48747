"""Secure gradient descent: Algorithms 1 and 2, the three scenarios, batches, and costs of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression

import atoll
from atoll.errors import ParameterError, RunError, StudyError

pytestmark = pytest.mark.filterwarnings("ignore:the descent stopped")

X, Y = load_diabetes(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
COLUMNS = {"partition": "vertical", "accept_scores": True, "share_model": True}


def rows(values: Any, n: int = 3) -> list[Any]:
    return np.array_split(values, n)


def columns(values: Any, n: int = 3) -> list[Any]:
    return np.array_split(values, n, axis=1)


def by_hand(steps: int, rate: float) -> Any:
    """The descent of the joint table, as equations (2) and (7) say."""
    Z, theta = np.column_stack([np.ones(len(X)), X]), np.zeros(11)
    for _ in range(steps):
        theta = theta - rate * Z.T @ (Z @ theta - Y) / len(Z)
    return theta


@pytest.mark.parametrize("split", ["rows", "columns"])
def test_three_scenarios_give_the_model_of_the_equations(split: str) -> None:
    found = []
    for scenario in ("DU", "DT", "CT"):
        options: dict[str, Any] = {"scenario": scenario, "learning_rate": 0.2, "max_iter": 30, "tol": 0.0}
        if split == "rows":
            model = atoll.GradientDescent(**options).fit(rows(X), rows(Y))
        else:
            model = atoll.GradientDescent(**options, **COLUMNS).fit(columns(X), Y)
        found.append(model.theta_)
        assert model.n_iter_ == len(model.loss_curve_) == 30
    for theta in found:
        np.testing.assert_allclose(theta, by_hand(30, 0.2), rtol=1e-8, atol=1e-8)


def test_it_settles_at_the_optimum() -> None:
    model = atoll.GradientDescent(learning_rate=0.3, max_iter=20_000, tol=1e-7)
    model.fit(rows(X[:, :4]), rows(Y))
    assert model.converged_
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X[:, :4], Y).coef_, atol=1e-2)


@pytest.mark.parametrize("split", ["rows", "columns"])
def test_a_learning_rate_that_is_too_large_is_named_never_nan(split: str) -> None:
    fits = atoll.GradientDescent(learning_rate=10.0, **(COLUMNS if split == "columns" else {}))
    with pytest.raises(RunError, match="gradient descent diverges: the cost rose") as refused:
        fits.fit(*((rows(X), rows(Y)) if split == "rows" else (columns(X), Y)))
    assert "learning_rate" in (refused.value.hint or "")


def test_the_letter_takes_a_rise_for_convergence_and_sums_for_means() -> None:
    options: dict[str, Any] = {"convergence": "paper", "tol": 0.0, "max_iter": 50}
    model = atoll.GradientDescent(learning_rate=0.1, **options).fit(rows(X), rows(Y))
    assert model.converged_
    assert model.n_iter_ == 2
    assert model.loss_curve_[1] > model.loss_curve_[0]
    scaled = atoll.GradientDescent(learning_rate=0.2 / len(X), **options).fit(rows(X), rows(Y))
    np.testing.assert_allclose(scaled.theta_, by_hand(50, 0.2), rtol=1e-8)


@pytest.mark.parametrize("batch", [1, 50])
def test_batches_are_drawn_from_a_shared_seed(batch: int) -> None:
    options: dict[str, Any] = {"batch": batch, "learning_rate": 0.02, "max_iter": 60, "random_state": 4}
    split = atoll.GradientDescent(**options, **COLUMNS).fit(columns(X), Y)
    pooled = atoll.GradientDescent(**options, scenario="CT", **COLUMNS).fit(columns(X), Y)
    np.testing.assert_allclose(split.theta_, pooled.theta_, rtol=1e-8)
    by_rows = atoll.GradientDescent(**options).fit(rows(X), rows(Y))
    assert by_rows.loss_curve_[-10:].mean() < by_rows.loss_curve_[:10].mean()


def huber(scores: Any, y: Any) -> Any:
    r = np.abs(scores - y)
    return np.where(r < 50, 0.5 * r**2, 50 * r - 1250)


def huber_slope(scores: Any, y: Any) -> Any:
    return np.clip(scores - y, -50, 50)


def test_a_cost_of_ones_own_with_rows_and_columns_split() -> None:
    options: dict[str, Any] = {"learning_rate": 0.2, "max_iter": 40, "tol": 0.0}
    a = atoll.GradientDescent(huber, huber_slope, **options).fit(rows(X), rows(Y))
    b = atoll.GradientDescent(huber, huber_slope, **options, **COLUMNS).fit(columns(X), Y)
    np.testing.assert_allclose(a.theta_, b.theta_, rtol=1e-8)
    assert a.loss_curve_[-1] < a.loss_curve_[0]


def test_a_cost_of_the_model_itself() -> None:
    def cost(theta: Any, X: Any, y: Any) -> float:
        return float(((X @ theta - y) ** 2).sum() / 2)

    def gradient(theta: Any, X: Any, y: Any) -> Any:
        return X.T @ (X @ theta - y)

    options: dict[str, Any] = {"of": "model", "learning_rate": 0.2, "max_iter": 20, "tol": 0.0}
    fits = atoll.GradientDescent(cost, gradient, start=np.zeros(11), **options)
    np.testing.assert_allclose(fits.fit(rows(X), rows(Y)).theta_, by_hand(20, 0.2), rtol=1e-8)
    with pytest.raises(ParameterError, match="of the scores"):
        fits.set_params(**COLUMNS).fit(columns(X), Y)


def test_logistic_regression_by_descent() -> None:
    Z, y = load_breast_cancer(return_X_y=True)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    options: dict[str, Any] = {"learning_rate": 0.3, "max_iter": 60}
    model = atoll.GradientDescent("logistic", **options, **COLUMNS).fit(columns(Z), y)
    assert ((model.decision_function(Z) > 0) == y).mean() > 0.95


def test_names_that_nobody_knows_are_refused() -> None:
    with pytest.raises(StudyError, match="there is no cost called 'least-cubes'"):
        atoll.GradientDescent("least-cubes").fit(rows(X), rows(Y))
    with pytest.raises(StudyError, match="known to the process alone"):
        atoll.GradientDescent("here:strange-7").fit(rows(X), rows(Y))
    with pytest.raises(ParameterError, match="two functions"):
        atoll.GradientDescent(huber).fit(rows(X), rows(Y))
