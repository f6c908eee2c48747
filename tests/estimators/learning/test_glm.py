"""``atoll.GLM`` against statsmodels on the pooled rows, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import atoll
from atoll.errors import DataError, NotReleased, ParameterError, RunError
from atoll.protocols.learning.families import family_of

RNG = np.random.default_rng(1)
N = 600
CUTS = {"small": slice(0, 12), "men": slice(12, 60), "middle": slice(60, 300), "large": slice(300, N)}
"""An island of 12 rows, all of them of one level; another of one level only."""


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(2000, 5, N),
            "dose": rng.exponential(size=N) * 1e-4,
            "sex": rng.choice(["F", "M", "X"], N, p=[0.5, 0.45, 0.05]),
            "w": rng.uniform(0.5, 2, N),
            "off": rng.normal(0, 0.1, N),
        }
    )
    frame.loc[:11, "sex"] = "F"
    frame.loc[12:59, "sex"] = "M"
    return frame


def predictor(frame: pd.DataFrame) -> Any:
    return 0.1 * (frame.age - 2000) + frame.dose * 5000 + (frame.sex == "M") * 0.4


def responses(frame: pd.DataFrame, family: str) -> Any:
    rng, eta = np.random.default_rng(2), predictor(frame)
    if family == "gaussian":
        return eta + rng.normal(size=N)
    if family == "binomial":
        return (rng.uniform(size=N) < 1 / (1 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(0.3 * eta))
    return rng.gamma(2, np.exp(0.3 * eta) / 2)


FAMILIES = {
    "gaussian": sm.families.Gaussian,
    "binomial": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma,
}
LINKS = {
    "identity": sm.families.links.Identity,
    "log": sm.families.links.Log,
    "inverse": sm.families.links.InversePower,
    "logit": sm.families.links.Logit,
    "probit": sm.families.links.Probit,
    "cloglog": sm.families.links.CLogLog,
    "sqrt": sm.families.links.Sqrt,
}
RANGES = {"identity": (2, 9), "log": (0, 2), "inverse": (1, 3), "sqrt": (1, 3)}
"""Of predictors whose mean can be one, whatever the family."""


def drawn(frame: pd.DataFrame, family: str, link: str) -> Any:
    """Responses of the very model that is fitted: no link fails because it does not suit the data."""
    rng, eta = np.random.default_rng(2), predictor(frame).to_numpy()
    low, high = RANGES.get(link, (-2, 2))
    eta = low + (high - low) * (eta - eta.min()) / np.ptp(eta)
    mu = LINKS[link]().inverse(eta)
    if family == "gaussian":
        return mu + 0.1 * rng.normal(size=N) * mu.min()
    if family == "binomial":
        return (rng.uniform(size=N) < mu).astype(float)
    return rng.poisson(mu) if family == "poisson" else rng.gamma(5, mu / 5)


def pooled_fit(frame: pd.DataFrame, family: str, link: str, weights: bool, offset: bool, ones: bool) -> Any:
    design = pd.DataFrame(
        {"age": frame.age, "dose": frame.dose, "M": frame.sex == "M", "X": frame.sex == "X"}
    )
    if ones:
        design.insert(0, "c", 1.0)
    return sm.GLM(
        frame.y,
        design.astype(float),
        family=FAMILIES[family](LINKS[link]()),
        offset=frame.off if offset else None,
        var_weights=frame.w if weights else None,
    ).fit(tol=1e-13, maxiter=300)


GRID = [(family, link) for family in FAMILIES for link in family_of(family).links]


@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
@pytest.mark.parametrize("offset", [False, True], ids=["", "offset"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize(("family", "link"), GRID)
def test_equals_statsmodels_on_the_pooled_rows(family: str, link: str, weighted: bool, offset: bool) -> None:
    frame = rows()
    frame["y"] = drawn(frame, family, link)
    glm = atoll.GLM(
        family,
        link,
        columns=["age", "dose", "sex"],
        categorical=["sex"],
        offset="off" if offset else None,
        weights="w" if weighted else None,
    ).fit({name: frame[cut] for name, cut in CUTS.items()}, target="y")
    pooled = pooled_fit(frame, family, link, weighted, offset, ones=True)
    table = glm.summary().frame()
    assert list(table.index) == ["(Intercept)", "age", "dose", "sex[M]", "sex[X]"]
    assert_same_table(glm, pooled)
    facts = glm.summary().facts
    assert (facts["df_residual"], facts["df_null"], facts["n"]) == (pooled.df_resid, N - 1, N)
    np.testing.assert_allclose(
        glm.predict(frame, frame.off if offset else 0.0), pooled.fittedvalues, rtol=1e-6
    )


@pytest.mark.parametrize(("family", "link"), [("gaussian", "identity"), ("binomial", "logit")])
def test_without_an_intercept_too(family: str, link: str) -> None:
    frame = rows().assign(age=lambda f: f.age - 2000.0)
    frame["y"] = drawn(frame, family, link)
    fits = atoll.GLM(family, columns=["age", "dose", "sex"], categorical=["sex"], fit_intercept=False)
    glm = fits.fit({name: frame[cut] for name, cut in CUTS.items()}, target="y")
    assert_same_table(glm, pooled_fit(frame, family, link, False, False, ones=False))


def assert_same_table(model: Any, pooled: Any) -> None:
    """Every number of the summary, to a millionth of itself."""
    summary = model.summary()
    table, facts = summary.frame(), summary.facts
    for column, theirs in (
        ("estimate", pooled.params),
        ("std_error", pooled.bse),
        ("p_value", pooled.pvalues),
        ("statistic", pooled.tvalues),
    ):
        np.testing.assert_allclose(table[column], theirs, rtol=1e-6, atol=1e-12, err_msg=column)
    np.testing.assert_allclose(table[["low", "high"]], pooled.conf_int(), rtol=1e-6)
    errors = np.outer(pooled.bse, pooled.bse)  # a covariance near zero has no digits of its own
    np.testing.assert_allclose(summary.covariance / errors, pooled.cov_params() / errors, atol=1e-6)
    for name, value in (
        ("deviance", pooled.deviance),
        ("aic", pooled.aic),
        ("bic", pooled.bic_llf),
        ("dispersion", pooled.scale),
        ("loglikelihood", pooled.llf),
        ("null_deviance", pooled.null_deviance),
    ):
        assert facts[name] == pytest.approx(value, rel=1e-6), name


def test_linear_regression_has_the_table_of_ordinary_least_squares() -> None:
    frame = rows()
    frame["y"] = responses(frame, "gaussian")
    model = atoll.LinearRegression(columns=["age", "dose"]).fit(
        [frame[cut] for cut in CUTS.values()], target="y"
    )
    pooled = sm.OLS(frame.y, sm.add_constant(frame[["age", "dose"]])).fit()
    summary = model.summary()
    np.testing.assert_allclose(summary.table["estimate"], pooled.params, rtol=1e-9)
    np.testing.assert_allclose(summary.table["std_error"], pooled.bse, rtol=1e-9)
    np.testing.assert_allclose(summary.table["p_value"], pooled.pvalues, rtol=1e-6)
    assert summary.facts["r_squared"] == pytest.approx(pooled.rsquared, rel=1e-9)
    assert summary.facts["adjusted_r_squared"] == pytest.approx(pooled.rsquared_adj, rel=1e-9)
    assert summary.facts["f_statistic"] == pytest.approx(pooled.fvalue, rel=1e-9)
    assert summary.facts["f_p_value"] == pytest.approx(pooled.f_pvalue, rel=1e-6)
    for name, value in (
        ("aic", pooled.aic),
        ("bic", pooled.bic),
        ("loglikelihood", pooled.llf),
        ("deviance", pooled.ssr),
        ("null_deviance", pooled.centered_tss),
        ("dispersion", pooled.scale),
    ):
        assert summary.facts[name] == pytest.approx(value, rel=1e-9), name
    assert (summary.facts["df_residual"], summary.facts["df_null"]) == (pooled.df_resid, N - 1)
    np.testing.assert_allclose(summary.covariance, pooled.cov_params(), rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression_without_a_penalty_has_the_table_of_the_binomial_model(intercept: bool) -> None:
    frame = rows().assign(age=lambda f: f.age - 2000.0)
    frame["y"] = np.where(drawn(frame, "binomial", "logit") > 0, "yes", "no")
    options: dict[str, Any] = {"columns": ["age", "dose", "sex"], "categorical": ["sex"]}
    model = atoll.LogisticRegression(None, fit_intercept=intercept, **options).fit(
        {name: frame[cut] for name, cut in CUTS.items()}, target="y"
    )
    frame["y"] = (frame.y == "yes").astype(float)
    assert_same_table(model, pooled_fit(frame, "binomial", "logit", False, False, ones=intercept))
    assert str(model.summary()).startswith("binomial regression, link logit\n600 rows used")
    assert len(model.loss_curve_) >= model.n_iter_[0]
    assert (np.diff(model.loss_curve_) <= 0).all()


def test_a_penalised_classifier_has_no_table_and_says_which_has() -> None:
    frame = rows().assign(y=lambda f: np.where(responses(f, "binomial") > 0, "yes", "no"))
    model = atoll.LogisticRegression(columns=["age", "dose"]).fit(halves(frame), target="y")
    with pytest.raises(NotReleased, match="penalty") as refused:
        model.summary()
    assert "LogisticRegression(C=None)" in str(refused.value.hint)


def test_rows_left_out_are_counted_by_what_they_lack() -> None:
    frame = rows().assign(y=lambda f: responses(f, "poisson").astype(float))
    frame.loc[[3, 400], "y"] = np.nan
    frame.loc[400, "dose"] = np.nan  # counted once
    frame.loc[[5, 6, 7], "w"] = np.nan
    frame.loc[100, "sex"] = None
    frame.loc[[101, 500, 501], "age"] = np.nan
    glm = atoll.GLM(
        "poisson", columns=["age", "dose", "sex"], categorical=["sex"], weights="w", missing="drop"
    ).fit({name: frame[cut] for name, cut in CUTS.items()}, target="y")
    assert glm.dropped_ == {"target": 2, "weights or offset": 3, "columns": 4}
    assert (glm.n_samples_, glm.n_dropped_) == (N - 9, 9)
    assert "9 with missing values left out (target 2, weights or offset 3, columns 4)" in str(glm.summary())
    assert json.loads(glm.summary().json())["dropped_for"] == glm.dropped_
    frame["y"] = np.where(frame.y > 1, "many", np.where(frame.y <= 1, "few", None))
    model = atoll.LogisticRegression(columns=["age", "dose"], missing="drop").fit(
        {name: frame[cut] for name, cut in CUTS.items()}, target="y"
    )
    assert model.dropped_ == {"target": 2, "weights or offset": 0, "columns": 3}


def test_rows_with_missing_values_are_refused_by_place_or_left_out_and_counted() -> None:
    frame = rows()
    frame["y"] = responses(frame, "binomial")
    frame.loc[13, "dose"] = np.nan
    frame.loc[400, "sex"] = None
    islands = {name: frame[cut] for name, cut in CUTS.items()}
    options: dict[str, Any] = {"columns": ["age", "dose", "sex"], "categorical": ["sex"]}
    with pytest.raises(DataError, match=r"(men: column 'dose'|large: column 'sex') holds a missing value"):
        atoll.GLM("binomial", **options).fit(islands, target="y")
    glm = atoll.GLM("binomial", missing="drop", **options).fit(islands, target="y")
    assert (glm.n_samples_, glm.n_dropped_) == (N - 2, 2)
    left = frame.dropna()
    design = pd.DataFrame(
        {"c": 1.0, "age": left.age, "dose": left.dose, "M": left.sex == "M", "X": left.sex == "X"}
    ).astype(float)
    pooled = sm.GLM(left.y, design, family=sm.families.Binomial()).fit(tol=1e-12)
    np.testing.assert_allclose(np.append(glm.intercept_, glm.coef_), pooled.params, rtol=1e-6)


def halves(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"a": frame[:300], "b": frame[300:]}


def test_columns_that_follow_from_others_are_named() -> None:
    frame = rows().assign(twice=lambda f: 2 * f.age - 1, y=lambda f: responses(f, "gaussian"))
    with pytest.raises(DataError, match="'twice' follow"):
        atoll.GLM(columns=["age", "dose", "twice"]).fit(halves(frame), target="y")


def test_separation_is_named_and_never_nan() -> None:
    frame = rows().assign(y=lambda f: responses(f, "binomial"))
    frame["tells"] = 3.0 * frame.y + np.random.default_rng(3).normal(size=N) * 0.1
    with pytest.raises(RunError, match=r"told for certain by 'tells'.*separation"):
        atoll.GLM("binomial", columns=["age", "tells"]).fit(halves(frame), target="y")


@pytest.mark.parametrize(
    ("family", "value"), [("binomial", 2.0), ("poisson", -1.0), ("gamma", 0.0)], ids=lambda v: str(v)
)
def test_responses_that_cannot_be_are_refused(family: str, value: float) -> None:
    frame = rows().assign(y=1.0)
    frame.loc[5, "y"] = value
    with pytest.raises(DataError, match=f"a: the target 'y' holds a value that is not .* {family!r} needs"):
        atoll.GLM(family, columns=["age", "dose"]).fit(halves(frame), target="y")


def test_unknown_families_and_links_are_refused() -> None:
    frame = rows().assign(y=1.0)
    with pytest.raises(ParameterError, match="no family called 'binomal'"):
        atoll.GLM("binomal", columns=["age"]).fit(halves(frame), target="y")
    with pytest.raises(ParameterError, match="poisson cannot have the link 'logit'"):
        atoll.GLM("poisson", "logit", columns=["age"]).fit(halves(frame), target="y")


def test_a_summary_is_text_html_json_and_a_frame() -> None:
    frame = rows().assign(y=lambda f: responses(f, "poisson"))
    glm = atoll.GLM("poisson", columns=["age", "dose"]).fit(halves(frame), target="y")
    summary = glm.summary()
    text = str(summary)
    assert text.startswith("poisson regression, link log\n600 rows used, 0 with missing values left out")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "P>|z|" in text
    assert "<td>" in summary._repr_html_()
    plain = json.loads(summary.json())
    assert plain["coefficients"]["age"]["estimate"] == pytest.approx(float(glm.coef_[0]))
    assert plain["n"] == N
