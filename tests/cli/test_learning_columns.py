"""Studies of learning with columns split, and of gradient descent, from files: reviewed, run, refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from tests.cli.test_learning import HEAD
from tests.support.running import atoll

import atoll as package

CONSENT = "accept_scores = true"
KINDS = {
    "least-squares-columns": ("regression", f'target = "stay"\n{CONSENT}'),
    "least-squares-encrypted": ("regression", 'target = "stay"\ncondition_bits = 6'),
    "classifier-columns": ("classification", f'target = "outcome"\n{CONSENT}'),
    "kmeans-columns": ("clusters", f"n_clusters = 2\n{CONSENT}"),
    "gradient-descent": ("regression", f'target = "stay"\nlearning_rate = 0.3\nmax_iter = 200\n{CONSENT}'),
}


def rows() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(draw.normal(size=(120, 3)), columns=["age", "dose", "iron"])
    frame["stay"] = frame["age"] - 0.5 * frame["iron"] + draw.normal(size=120)
    frame["outcome"] = np.where(frame["dose"] + draw.normal(size=120) > 0, "ill", "well")
    return frame


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(protocol: str, said: str | None = None) -> None:
    analysis, parameters = KINDS[protocol]
    target = {"classifier-columns": ["outcome"], "kmeans-columns": []}.get(protocol, ["stay"])
    for island, column in (("north", "age"), ("south", "dose"), ("west", "iron")):
        rows()[[column, *target]].to_csv(f"{island}.csv", index=False)
    release = 'part = ["provider"]\nmodel = ["consumer"]\nn_samples = ["consumer"]'
    release += "" if protocol == "least-squares-encrypted" else '\nfit = ["consumer"]'
    text = HEAD.format(
        analysis=analysis, protocol=protocol, parameters=said or parameters, release=release
    ).replace("[parameters]", 'partition = "vertical"\n[parameters]')
    Path("study.toml").write_text(text)


@pytest.mark.parametrize("protocol", KINDS)
def test_a_study_with_columns_split_is_reviewed_and_run(wards: Path, protocol: str) -> None:
    write(protocol)
    said = json.loads(atoll("review", "study.toml", "--json").out)
    learns = " ".join(line for role in said["roles"] for line in role["learns"])
    assert ("mixture" in learns or "summed" in learns) == (protocol != "least-squares-encrypted")
    finished = atoll("run", "study.toml", "--output", "out")
    assert finished.code == 0, finished.err
    model = package.load_result(wards / "out" / "lab" / "wards.atoll")["model"]
    X = rows()[["age", "dose", "iron"]]
    if protocol == "kmeans-columns":
        assert np.asarray(model["centres"]).shape == (2, 3)
    elif protocol == "classifier-columns":
        pooled = linear_model.LogisticRegression(tol=1e-10).fit(X, rows()["outcome"])
        np.testing.assert_allclose(model["coefficients"][0, 1:], pooled.coef_[0], atol=1e-4)
    else:
        line = linear_model.LinearRegression().fit(X, rows()["stay"])
        np.testing.assert_allclose(model["coefficients"], [line.intercept_, *line.coef_], atol=1e-4)


@pytest.mark.parametrize("protocol", [name for name in KINDS if name != "least-squares-encrypted"])
def test_without_consent_a_study_is_refused_with_a_hint(wards: Path, protocol: str) -> None:
    write(protocol, KINDS[protocol][1].replace(CONSENT, ""))
    refused = atoll("run", "study.toml", "--output", "out")
    assert refused.code != 0
    assert refused.err.startswith("error:")
    assert "hint:" in refused.err
    assert "accept_scores" in refused.err
    assert not (wards / "out").exists()


@pytest.mark.parametrize(
    ("protocol", "spoil", "named"),
    [
        ("classifier-columns", lambda t: t.assign(outcome="ill"), "one class only"),
        ("classifier-columns", lambda t: t[:100], "rows"),
        ("least-squares-columns", lambda t: t.assign(stay="long"), "text"),
        ("gradient-descent", lambda t: t.assign(stay=np.nan), "missing"),
        ("least-squares-encrypted", lambda t: t.assign(iron=1.0), "constant"),
    ],
)
def test_a_bad_table_is_named_and_nothing_is_written(
    wards: Path, protocol: str, spoil: object, named: str
) -> None:
    write(protocol)
    spoil(pd.read_csv("west.csv")).to_csv("west.csv", index=False)  # type: ignore[operator]
    refused = atoll("run", "study.toml", "--output", "out")
    assert refused.code != 0
    assert refused.err.startswith("error:")
    assert "west" in refused.err
    assert named in refused.err
    assert not list(wards.glob("out/*/*.atoll"))
