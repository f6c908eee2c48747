"""Tables and targets that no model can be of: each is refused by name, and never is a number NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import atoll
from atoll.errors import DataError, NotReleased, RunError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6))
Y = X @ np.ones(6) + RNG.normal(size=90)
LABEL = (Y > 0).astype(int)
TOLD = (X[:, 0] > 0).astype(int)
DOUBLED = np.column_stack([X[:, :5], X[:, 0]])
SCORES: dict[str, Any] = {"partition": "vertical", "accept_scores": True, "share_model": True}


def fitted(model: Any, table: Any, y: Any) -> Any:
    if model.get_params().get("partition") == "vertical":
        return model.fit(np.array_split(table, 3, axis=1), y)
    return model.fit(np.array_split(table, 3), np.array_split(y, 3))


CLASSIFIERS = {
    "logistic": atoll.LogisticRegression,
    "squared hinge": atoll.LinearSVC,
    "hinge": lambda **options: atoll.LinearSVC(loss="hinge", **options),
}
REGRESSIONS = {
    "least squares": atoll.LinearRegression,
    "ridge": atoll.Ridge,
    "lasso": atoll.Lasso,
    "descent": atoll.GradientDescent,
}
SPLITS = {"rows": {}, "columns": SCORES}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_that_are_no_classes(kind: str, split: str) -> None:
    model = CLASSIFIERS[kind](**SPLITS[split])
    with pytest.raises(DataError, match=r"island-\d: the target 'target' holds numbers with fractions"):
        fitted(model, X, Y)
    with pytest.raises(DataError, match=r"island-0: .*'target'.* missing .*row 4"):
        fitted(model.set_params(y_holder="island-0" if SPLITS[split] else None), X, gone(LABEL))
    with pytest.raises(DataError, match="one class only"):
        fitted(model, X, np.zeros(90))


def gone(values: Any) -> Any:
    return np.where(np.arange(90) == 4, np.nan, values)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", REGRESSIONS)
def test_targets_that_are_no_numbers(kind: str, split: str) -> None:
    options = dict(SPLITS[split])
    if options and kind in ("least squares", "ridge"):
        options["solver"] = "scores"
    model = REGRESSIONS[kind](**options)
    with pytest.raises(DataError, match="column 'target' holds text at row 0"):
        fitted(model, X, np.array(["a", "b", "c"] * 30))
    with pytest.raises(DataError, match=r"'target' holds a missing value \(NaN\) at row 4"):
        fitted(model, X, gone(Y))


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_responses_and_columns_that_a_family_cannot_have(family: str) -> None:
    y = {"binomial": LABEL, "poisson": np.abs(Y).round(), "gamma": np.abs(Y) + 0.1}.get(family, Y)
    for wrong, said in (
        (np.array(["yes", "no", "no"] * 30), "column 'target' holds text at row 0"),
        (gone(Y), r"'target' holds a missing value \(NaN\) at row 4"),
    ):
        with pytest.raises(DataError, match=said):
            fitted(atoll.GLM(family), X, wrong)
    with pytest.raises(DataError, match="the columns 'x5' follow from the others"):
        fitted(atoll.GLM(family), DOUBLED, y)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("y", [TOLD, np.digitize(X[:, 0], [-0.5, 0.5])], ids=["two classes", "three classes"])
def test_separation_without_a_penalty_is_named(split: str, y: Any) -> None:
    with pytest.raises(RunError, match="separation"):
        fitted(atoll.LogisticRegression(None, **SPLITS[split]), X, y)


def test_columns_that_follow_from_others_are_named_where_no_penalty_decides() -> None:
    for y in (LABEL, np.arange(90) % 3):
        with pytest.raises(DataError, match="the columns 'x5' follow from the others"):
            fitted(atoll.LogisticRegression(None), DOUBLED, y)
    assert np.isfinite(fitted(atoll.LogisticRegression(), DOUBLED, LABEL).coef_).all()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("cost", ["logistic", "squared-hinge", "poisson"])
def test_a_descent_refuses_targets_that_its_cost_cannot_have(cost: str, split: str) -> None:
    wrong = -np.ones(90) if cost == "poisson" else np.arange(90) % 3
    with pytest.raises(DataError, match=r"island-\d: the target 'target' holds a value that is not"):
        fitted(atoll.GradientDescent(cost, max_iter=3, **SPLITS[split]), X, wrong)


def test_a_descent_too_needs_more_rows_than_coefficients() -> None:
    with pytest.raises(DataError, match="6 rows on all islands for 7 coefficients"):
        atoll.GradientDescent().fit([X[:3], X[3:6]], [Y[:3], Y[3:6]])


def test_a_target_that_is_explained_exactly_has_no_table_rather_than_nan() -> None:
    with pytest.raises(RunError, match="explain the target exactly"):
        fitted(atoll.GLM(), X, np.ones(90))
    model = fitted(atoll.LinearRegression(), X, np.ones(90))
    np.testing.assert_allclose([model.intercept_, *model.coef_], [1.0, 0, 0, 0, 0, 0, 0], atol=1e-12)
    with pytest.raises(NotReleased, match="explain exactly"):
        model.summary()


@pytest.mark.parametrize(
    "model",
    [atoll.LogisticRegression(**SCORES), atoll.Lasso(0.1, **SCORES), atoll.KMeans(2, **SCORES)],
    ids=lambda model: type(model).__name__,
)
def test_a_column_beyond_a_doubles_squares_is_named(model: Any) -> None:
    tables = np.array_split(X, 3, axis=1)
    tables[1] = tables[1] * 1e160
    with pytest.raises(DataError, match="island-1: the squares of column 'x0' exceed a double's range"):
        model.fit(tables) if isinstance(model, atoll.KMeans) else model.fit(tables, LABEL)
