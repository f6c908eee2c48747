"""``atoll.GLM`` against statsmodels on the pooled rows, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import atoll
from atoll.errors import DataError, ParameterError, RunError

RNG = np.random.default_rng(1)
N = 600
CUTS = {"small": slice(0, 12), "middle": slice(12, 300), "large": slice(300, N)}
"""An island of 12 rows, all of them of one level."""


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
    "log": sm.families.links.Log,
    "probit": sm.families.links.Probit,
    "cloglog": sm.families.links.CLogLog,
    "sqrt": sm.families.links.Sqrt,
}


@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("gaussian", None),
        ("binomial", None),
        ("binomial", "probit"),
        ("binomial", "cloglog"),
        ("poisson", None),
        ("poisson", "sqrt"),
        ("gamma", "log"),
    ],
)
def test_equals_statsmodels_on_the_pooled_rows(family: str, link: str | None, weighted: bool) -> None:
    frame = rows()
    frame["y"] = responses(frame, family)
    offset = None if link == "sqrt" else "off"
    glm = atoll.GLM(
        family,
        link,
        columns=["age", "dose", "sex"],
        categorical=["sex"],
        offset=offset,
        weights="w" if weighted else None,
    ).fit({name: frame[cut] for name, cut in CUTS.items()}, target="y")
    design = pd.DataFrame(
        {"c": 1.0, "age": frame.age, "dose": frame.dose, "M": frame.sex == "M", "X": frame.sex == "X"}
    ).astype(float)
    chosen = FAMILIES[family](LINKS[link]()) if link else FAMILIES[family]()
    pooled = sm.GLM(
        frame.y,
        design,
        family=chosen,
        offset=frame.off if offset else None,
        var_weights=frame.w if weighted else None,
    ).fit(tol=1e-12)
    table = glm.summary().frame()
    assert list(table.index) == ["(Intercept)", "age", "dose", "sex[M]", "sex[X]"]
    for column, theirs in (
        ("estimate", pooled.params),
        ("std_error", pooled.bse),
        ("p_value", pooled.pvalues),
        ("statistic", pooled.tvalues),
    ):
        np.testing.assert_allclose(table[column], theirs, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(table[["low", "high"]], pooled.conf_int(), rtol=1e-6)
    np.testing.assert_allclose(glm.covariance_, pooled.cov_params(), rtol=1e-6, atol=1e-12)
    facts = glm.summary().facts
    for name, value in (
        ("deviance", pooled.deviance),
        ("null_deviance", pooled.null_deviance),
        ("aic", pooled.aic),
        ("bic", pooled.bic_llf),
        ("dispersion", pooled.scale),
        ("loglikelihood", pooled.llf),
    ):
        assert facts[name] == pytest.approx(value, rel=1e-6), name
    assert (facts["df_residual"], facts["df_null"], facts["n"]) == (pooled.df_resid, N - 1, N)
    np.testing.assert_allclose(
        glm.predict(frame, frame.off if offset else 0.0), pooled.fittedvalues, rtol=1e-6
    )


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


def test_rows_with_missing_values_are_refused_by_place_or_left_out_and_counted() -> None:
    frame = rows()
    frame["y"] = responses(frame, "binomial")
    frame.loc[13, "dose"] = np.nan
    frame.loc[400, "sex"] = None
    islands = {name: frame[cut] for name, cut in CUTS.items()}
    options: dict[str, Any] = {"columns": ["age", "dose", "sex"], "categorical": ["sex"]}
    with pytest.raises(DataError, match=r"(middle: column 'dose'|large: column 'sex') holds a missing value"):
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
