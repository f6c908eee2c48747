"""Studies of regressions, classifiers, clusters and descriptions, from their files: reviewed and run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from tests.support.running import atoll

import atoll as package

HEAD = """\
[study]
name = "wards"
analysis = "{analysis}"
protocol = "{protocol}"
[parameters]
{parameters}
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "west"
role = "provider"
[[party]]
name = "office"
role = "server"
[[party]]
name = "lab"
role = "consumer"
[release]
{release}
[local]
data = {{ north = "north.csv", south = "south.csv", west = "west.csv" }}
"""
MODEL = 'model = ["provider", "consumer"]\nfit = ["consumer"]\nn_samples = ["consumer"]'
DESCRIBED = """\
columns = ["age", "dose", "sex", "ward"]
categorical = ["sex", "ward"]
ranges = { age = [0.0, 120.0] }
tables = [["sex", "ward"]]
"""
KINDS = {
    "glm": (
        "regression",
        'family = "poisson"\ntarget = "visits"\ncolumns = ["age", "dose", "sex"]\ncategorical = ["sex"]',
    ),
    "least-squares": ("regression", 'target = "stay"\ncolumns = ["age", "dose"]'),
    "classifier": ("classification", 'target = "outcome"\ncolumns = ["age", "dose"]'),
    "kmeans": ("clusters", 'n_clusters = 2\ncolumns = ["age", "dose"]'),
    "describe": (
        "description",
        DESCRIBED,
    ),
}
STEPPED = {"glm", "classifier", "kmeans"}


def rows() -> pd.DataFrame:
    draw = np.random.default_rng(11)
    frame = pd.DataFrame({"age": draw.normal(60, 10, 240), "dose": draw.exponential(size=240)})
    frame["sex"] = draw.choice(["F", "M"], 240)
    frame["ward"] = np.where(
        np.arange(240) % 100 == 7, "icu", draw.choice(["east", "west"], 240, p=[0.6, 0.4])
    )
    frame["stay"] = 0.1 * frame["age"] + frame["dose"] + draw.normal(size=240)
    frame["visits"] = draw.poisson(np.exp(0.02 * frame["age"] - 0.3 * frame["dose"]))
    frame["outcome"] = np.where(frame["age"] + draw.normal(0, 8, 240) > 60, "ill", "well")
    return frame


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    frame = rows()
    for name, part in (("north", frame[:50]), ("south", frame[50:120]), ("west", frame[120:])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    for protocol, (analysis, parameters) in KINDS.items():
        release = 'description = ["consumer"]' if protocol == "describe" else MODEL
        study = HEAD.format(analysis=analysis, protocol=protocol, parameters=parameters, release=release)
        (tmp_path / f"{protocol}.toml").write_text(study)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(protocol: str) -> tuple[package.Result, dict[str, str], str]:
    """The result, the files beside it by their ending, and what the command said."""
    finished = atoll("run", f"{protocol}.toml", "--output", "out")
    assert finished.code == 0, finished.err
    files = {path.name.removeprefix("wards"): path for path in Path("out/lab").iterdir()}
    texts = {name: path.read_text() for name, path in files.items() if name.endswith(".csv")}
    return package.load_result(files[".atoll"]), texts, finished.out + finished.err


def test_a_regression_is_run_and_its_table_is_shown_and_written(wards: Path) -> None:
    result, files, said = ran("glm")
    assert list(result["model"]["names"]) == ["(Intercept)", "age", "dose", "sex[M]"]
    assert "std error" in said
    assert "sex[M]" in said
    written = pd.read_csv(wards / "out" / "lab" / "wards-coefficients.csv")
    np.testing.assert_allclose(written["estimate"], result["model"]["coefficients"])
    assert files["-coefficients.csv"].startswith("term,estimate,std_error,statistic,p_value,low,high")


def test_least_squares_and_a_classifier_are_those_of_the_pooled_rows(wards: Path) -> None:
    frame = rows()
    X = frame[["age", "dose"]]
    result, _, _ = ran("least-squares")
    pooled = LinearRegression().fit(X, frame["stay"])
    np.testing.assert_allclose(result["model"]["coefficients"], [pooled.intercept_, *pooled.coef_], rtol=1e-8)
    result, files, said = ran("classifier")
    logistic = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, frame["outcome"])
    np.testing.assert_allclose(result["model"]["coefficients"][0, 1:], logistic.coef_[0], atol=1e-5)
    assert "towards well" in said
    assert files["-weights.csv"].startswith("term,well")


def test_clusters_are_counted_and_their_centres_written(wards: Path) -> None:
    result, files, said = ran("kmeans")
    assert result["fit"]["counts"].sum() == 240
    assert "cluster 2" in said
    assert files["-centres.csv"].startswith("cluster,age,dose")


def test_a_description_is_shown_and_written_without_small_cells(wards: Path) -> None:
    frame = rows()
    rare = int((frame["ward"] == "icu").sum())
    assert 0 < rare < 5
    result, files, said = ran("describe")
    told = result["description"]["levels"]["ward"]
    assert told["counts"][told["levels"].index("icu")] is None
    for words in ("Numbers", "Levels", "sex x ward", "left out", "median"):
        assert words in said
    assert set(files) == {"-numbers.csv", "-levels.csv", "-correlation.csv", "-table-1.csv"}
    levels = pd.read_csv(wards / "out" / "lab" / "wards-levels.csv")
    hidden = levels[(levels["column"] == "ward") & (levels["level"] == "icu")]["count"]
    assert hidden.isna().all()
    numbers = pd.read_csv(wards / "out" / "lab" / "wards-numbers.csv").set_index("column")
    assert numbers.loc["age", "mean"] == pytest.approx(frame["age"].mean(), rel=1e-9)
    assert numbers.loc["age", "50%"] == pytest.approx(frame["age"].median(), abs=0.25)
    assert np.isnan(numbers.loc["dose", "50%"])  # the study says no range for it


def test_one_of_very_few_rows_in_a_cluster_is_warned_of(wards: Path) -> None:
    text = (wards / "kmeans.toml").read_text()
    far = "init = [[60.0, 1.0], [60.0, 1e3]]\n"
    (wards / "kmeans.toml").write_text(text.replace("n_clusters = 2\n", f"n_clusters = 2\n{far}"))
    table = pd.read_csv(wards / "north.csv")
    table.loc[0, "dose"] = 1e3
    table.to_csv(wards / "north.csv", index=False)
    _, _, said = ran("kmeans")
    assert "1 cluster(s) have fewer than 5 rows" in said


@pytest.mark.parametrize("protocol", KINDS)
def test_review_says_what_is_opened_and_what_a_step_costs(wards: Path, protocol: str) -> None:
    said = json.loads(atoll("review", f"{protocol}.toml", "--json").out)
    server = next(role for role in said["roles"] if role["role"] == "server")
    assert any(line.startswith("over all islands together, exactly:") for line in server["learns"])
    cost = said["cost"]
    assert (cost["steps"] is not None) == (cost["further"] is not None) == (protocol in STEPPED)
    screen = " ".join(atoll("review", f"{protocol}.toml").out.split())
    assert ("each step more: messages" in screen) == (protocol in STEPPED)
    if protocol in STEPPED:
        assert f"for how many steps of the fit {cost['steps']}" in screen
        assert cost["further"]["messages"] == 3 + 3 + 6  # points told, shares added, comparisons


def test_two_runs_differ_by_what_review_says_a_step_costs(wards: Path) -> None:
    """A looser tolerance takes fewer steps; each one costs what was announced."""
    costs = {}
    for tol in ("1e-2", "1e-8"):
        text = (
            (wards / "glm.toml").read_text().replace('family = "poisson"', f'family = "poisson"\ntol = {tol}')
        )
        (wards / f"glm-{tol}.toml").write_text(text)
        finished = atoll("run", f"glm-{tol}.toml", "--output", f"out-{tol}", "--json")
        assert finished.code == 0, finished.err
        result = package.load_result(wards / f"out-{tol}" / "lab" / "wards.atoll")
        costs[tol] = (result["fit"]["iterations"], json.loads(finished.out)["messages"])
    further = json.loads(atoll("review", "glm.toml", "--json").out)["cost"]["further"]
    more = costs["1e-8"][0] - costs["1e-2"][0]
    assert more > 0
    assert costs["1e-8"][1] - costs["1e-2"][1] == more * further["messages"]


def test_a_review_for_privacy_officers_says_what_few_rows_in_a_cluster_mean(wards: Path) -> None:
    page = " ".join(atoll("review", "kmeans.toml", "--markdown").out.split())
    assert "A cluster of a single row is that row" in page
    assert "This is for 12 steps of the fit" in page
