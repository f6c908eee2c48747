"""atoll.PCA(protocol="sfpca") against scikit-learn, on every split, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import atoll
from atoll.data.chosen import Chosen
from atoll.errors import (
    AtollError,
    CertificateRefused,
    DataError,
    NotReleased,
    ParameterError,
    PrivacyWarning,
    RangeOverflow,
    SchemaError,
    StudyError,
)

X, y = load_wine(return_X_y=True)
EXACT = PCA(13).fit(X)
FRAME = pd.DataFrame(X[:, :3], columns=["age", "dose", "weight"])


EXACTLY: dict[str, Any] = {"digits": "full", "accept_determined": True}


def sfpca(n_components: Any = 3, **options: Any) -> atoll.PCA:
    return atoll.PCA(n_components, protocol="sfpca", **EXACTLY | options)


def cosines(fitted: atoll.PCA, exact: PCA = EXACT) -> np.ndarray:
    k = len(fitted.components_)
    return np.abs(np.sum(fitted.components_ * exact.components_[:k], axis=1))


def random_split() -> list[np.ndarray]:
    order = np.random.default_rng(2).permutation(len(X))
    return np.array_split(X[order], 4)


SPLITS: dict[str, Callable[[], list[np.ndarray]]] = {
    "at random": random_split,
    "by label": lambda: [X[y == label] for label in np.unique(y)],
    "90 % in one": lambda: [X[:17], X[17:]],
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.filterwarnings("ignore::atoll.errors.PrivacyWarning")
def test_the_result_does_not_depend_on_the_split(split: str) -> None:
    fitted = sfpca(13).fit(SPLITS[split]())
    assert cosines(fitted).min() > 1 - 1e-12
    np.testing.assert_allclose(fitted.explained_variance_, EXACT.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(fitted.offset_, fitted.components_ @ X.mean(axis=0), rtol=1e-9, atol=1e-9)
    projected = fitted.transform(X)
    np.testing.assert_allclose(np.abs(projected), np.abs(EXACT.transform(X)), atol=1e-8)
    assert fitted.n_samples_ == len(X)


def made(spectrum: np.ndarray, n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(3)
    m = len(spectrum)
    return rng.normal(size=(n, m)) * np.sqrt(spectrum) @ np.linalg.qr(rng.normal(size=(m, m)))[0]


def test_many_columns_take_the_strict_recipe_and_a_certificate() -> None:
    rows = made(0.6 ** np.arange(44)) + 2
    fitted = sfpca(2, bounds=16.0, spectrum="ritz").fit([rows[:30], rows[30:]])
    assert fitted.certificate_["recipe"] == "default"
    assert fitted.certificate_["bound"] < 0.014
    assert fitted.result_.certificate == fitted.certificate_
    assert cosines(fitted, PCA(2).fit(rows)).min() > 0.9999
    assert np.abs(fitted.transform(rows).mean(axis=0)).max() < 1e-6


def test_a_flat_spectrum_is_refused() -> None:
    rows = made(np.ones(46))
    with pytest.raises(CertificateRefused, match="certified"):
        sfpca(2, recipe="accurate").fit([rows[:150], rows[150:]])


def test_a_refused_result_is_computed_again_with_new_keys() -> None:
    rows = made(0.95 ** np.arange(46))
    fitted = sfpca(2, recipe="fast").fit([rows[:150], rows[150:]])
    assert fitted.certificate_["recipe"] == "accurate"
    assert fitted.transcript_.kinds["KeyParts"] == 4
    assert cosines(fitted, PCA(2).fit(rows)).min() > 0.9999


def test_scores_reach_their_owner_and_components_nobody() -> None:
    islands = {"north": X[:80], "south": X[80:]}
    fitted = sfpca(3, release="scores", bounds=[(0.0, 2000.0)] * 13)
    projected = fitted.fit_transform(islands)
    np.testing.assert_allclose(
        np.abs(np.vstack(list(projected.values()))), np.abs(EXACT.transform(X)[:, :3]), atol=1e-7
    )
    assert not hasattr(fitted, "components_")
    with pytest.raises(NotReleased, match="released to nobody"):
        fitted.transform(X)
    for address, learned in fitted.learned_.items():
        assert "components" not in learned.outputs
        if address.role == "provider":
            assert list(learned.outputs["scores"]) == [address.party]
        else:
            assert "scores" not in learned.outputs


def test_ranks_ties_and_single_rows_are_right_or_said() -> None:
    deficient = np.hstack([X[:, :3], X[:, :1] + X[:, 1:2], np.ones((len(X), 1))])
    fitted = sfpca(5).fit([deficient[:90], deficient[90:]])
    exact = PCA(5).fit(deficient)
    assert cosines(fitted, exact)[:3].min() > 1 - 1e-9
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(5), atol=1e-12)
    with pytest.warns(PrivacyWarning, match="island-0: fewer than 30 rows"):
        fitted = sfpca(2).fit([X[:1], X[1:]])
    assert cosines(fitted).min() > 1 - 1e-9
    with pytest.raises(ParameterError, match="no variance"):
        sfpca(1).fit([np.ones((40, 2)), np.ones((40, 2))])


def test_two_columns_and_two_islands() -> None:
    fitted = sfpca(None).fit([X[:90, :2], X[90:, :2]])
    assert cosines(fitted, PCA(2).fit(X[:, :2])).min() > 1 - 1e-12


def test_without_the_mean_some_things_cannot_be_done() -> None:
    fitted = sfpca(2).fit([X[:90], X[90:]])
    for what in (lambda: fitted.to_sklearn(), lambda: fitted.inverse_transform(np.ones((1, 2)))):
        with pytest.raises(NotReleased, match="mean of each column"):
            what()
    assert not hasattr(fitted, "mean_")


STANDARD = StandardScaler().fit_transform(X)
STANDARDISED = PCA(13).fit(STANDARD)


@pytest.mark.parametrize(
    ("recipe", "islands", "bounds"),
    [
        ("direct", 2, None),
        ("direct", 5, [(X[:, j].min(), X[:, j].max()) for j in range(13)]),
        ("strict", 2, None),
    ],
    ids=["two islands", "five islands with bounds", "strict"],
)
def test_standardised_columns(recipe: str, islands: int, bounds: Any) -> None:
    k = 13 if recipe == "direct" else 3
    fitted = sfpca(k, standardize=True, recipe=recipe, bounds=bounds).fit(np.array_split(X, islands))
    assert cosines(fitted, STANDARDISED).min() > 1 - 1e-9
    np.testing.assert_allclose(
        fitted.explained_variance_, STANDARDISED.explained_variance_[:k], rtol=1e-12 if k == 13 else 1e-5
    )
    np.testing.assert_allclose(
        fitted.explained_variance_ratio_, STANDARDISED.explained_variance_ratio_[:k], rtol=1e-5
    )
    np.testing.assert_allclose(fitted.noise_variance_, PCA(k).fit(STANDARD).noise_variance_, atol=1e-5)
    assert not hasattr(fitted, "offset_")
    for what in (
        lambda: fitted.transform(X),
        lambda: sfpca(2, standardize=True).fit_transform([X[:90], X[90:]]),
    ):
        with pytest.raises(NotReleased, match="standard deviation of each column"):
            what()
    for learned in fitted.learned_.values():
        assert "scores" not in learned.outputs
        assert learned.outputs.get("offset") is None


@pytest.mark.parametrize("release", ["components", "scores"])
def test_rows_are_projected_block_by_block(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No role holds an island's rows as a whole, and a block of scores ends within the table."""
    draw = np.random.default_rng(4)
    rows = draw.normal(size=(2600, 4)) * [8.0, 4.0, 2.0, 1.0]
    monkeypatch.setattr(Chosen, "whole", None)
    monkeypatch.setattr("atoll.data.island.BLOCK_BYTES", 1 << 14)
    fitted = sfpca(2, release=release, recipe="strict", bounds=64.0).fit([rows[:1500], rows[1500:]])
    exact = PCA(2).fit(rows)
    found = np.vstack(list(fitted.scores_.values())) if release == "scores" else fitted.transform([rows])[0]
    np.testing.assert_allclose(np.abs(found), np.abs(exact.transform(rows)), atol=1e-3)


def test_scores_of_standardised_columns_reach_their_owner() -> None:
    rows = np.hstack([X, np.full((len(X), 1), 7.0), 1e5 + X[:, :1]])  # a constant, and a large mean
    fitted = sfpca(4, standardize=True, release="scores")
    projected = np.vstack(list(fitted.fit_transform({"north": rows[:80], "south": rows[80:]}).values()))
    exact = PCA(4).fit_transform(StandardScaler().fit_transform(rows))
    np.testing.assert_allclose(np.abs(projected), np.abs(exact), atol=1e-7)
    np.testing.assert_allclose(fitted.total_variance_, 14 * len(X) / (len(X) - 1), rtol=1e-12)
    assert not hasattr(fitted, "components_")


def outlier() -> pd.DataFrame:
    frame = FRAME.copy()
    frame.iloc[41, 1] = 1e6
    return frame


BAD: dict[str, tuple[Callable[[], Any], type[AtollError], str]] = {
    "variant": (
        lambda: sfpca(variant="slow").fit([X, X]),
        ParameterError,
        "variant='slow' is not possible",
    ),
    "eigen": (lambda: sfpca(eigen="open").fit([X, X]), ParameterError, "eigen='open' is not"),
    "release": (lambda: sfpca(release="sealed").fit([X, X]), ParameterError, "release='sealed' is not"),
    "standardize many": (
        lambda: sfpca(standardize=True).fit([np.ones((40, 1025)), np.ones((40, 1025))]),
        ParameterError,
        "standardize=True is for up to 1024 columns",
    ),
    "standardize what hardly varies": (
        lambda: sfpca(2, standardize=True).fit([X[:90, :3] + [0, 0, 1e9], X[90:, :3] + [0, 0, 1e9]]),
        ParameterError,
        "varies by less than 1/400,000 of its range",
    ),
    "standardize whole columns": (
        lambda: sfpca(2, standardize=True, partition="vertical").fit([X[:, :6], X[:, 6:]]),
        StudyError,
        "islands that hold whole columns",
    ),
    "partition": (
        lambda: sfpca(partition="diagonal").fit([X, X]),
        StudyError,
        "split by partition='diagonal'",
    ),
    "secure sum": (lambda: sfpca(secure_sum="masks").fit([X, X]), ParameterError, "cannot be used"),
    "recipe": (lambda: sfpca(recipe="quick").fit([X, X]), ParameterError, "no recipe 'quick'"),
    "share of variance": (lambda: sfpca(0.9).fit([X, X]), ParameterError, "must be a whole number or None"),
    "k > d": (lambda: sfpca(14).fit([X, X]), ParameterError, "n_components=14 must be between 1 and .*=13"),
    "k = 0": (lambda: sfpca(0).fit([X, X]), StudyError, "n_components=0 is not possible"),
    "one island": (lambda: sfpca().fit([X]), ParameterError, "at least 2 islands"),
    "bounds upside down": (lambda: sfpca(bounds=(3, 1)).fit([X, X]), StudyError, "the lower first"),
    "bounds of text": (lambda: sfpca(bounds="wide").fit([X, X]), ParameterError, "bounds must be a number"),
    "bounds for too few": (
        lambda: sfpca(bounds=[(0, 1), (0, 1)]).fit([X, X]),
        SchemaError,
        "bounds for 2 columns, the tables have 13",
    ),
    "bounds without a column": (
        lambda: sfpca(2, bounds={"age": (0, 20)}).fit([FRAME, FRAME]),
        SchemaError,
        "bounds lack the column 'dose'",
    ),
    "beyond its range": (
        lambda: sfpca(2, bounds=200.0).fit({"north": FRAME, "south": outlier()}),
        RangeOverflow,
        r"south: column 'dose' holds a value beyond its declared range at row 41; no number was sent",
    ),
    "beyond any range": (lambda: sfpca(2).fit([X, X * 1e20]), RangeOverflow, r"beyond 2\^64"),
    "missing": (
        lambda: sfpca(2).fit({"north": FRAME, "south": FRAME.mask(FRAME > 14.7)}),
        DataError,
        "south: column 'age' holds a missing value",
    ),
    "no rows": (
        lambda: sfpca(2).fit({"north": X, "south": X[:0]}),
        DataError,
        "south: the table has no rows",
    ),
    "columns differ": (
        lambda: sfpca(2).fit({"north": FRAME, "south": FRAME.drop(columns="dose")}),
        SchemaError,
        "south lacks 'dose'",
    ),
    "direct on many": (
        lambda: sfpca(2, recipe="direct").fit([np.ones((40, 300)), np.ones((40, 300))]),
        ParameterError,
        "direct' is for up to 256 columns",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(name: str) -> None:
    run, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        run()


def test_a_joint_table_of_twenty_rows_is_enough() -> None:
    rows = X[:20, :3]
    with pytest.warns(PrivacyWarning, match="fewer than"):
        fitted = sfpca(2, bounds=2000.0).fit([rows[:10], rows[10:]])
    assert np.allclose(fitted.explained_variance_, PCA(2).fit(rows).explained_variance_)
