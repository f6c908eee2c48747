"""atoll.PCA(protocol="sfpca", partition="vertical") against scikit-learn on every split; what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA

import atoll
from atoll.errors import (
    AtollError,
    DataError,
    NotReleased,
    ParameterError,
    RangeOverflow,
    SchemaError,
    StudyError,
)
from atoll.protocols.pca.sfpca.recipes import columns as exact_columns
from atoll.protocols.pca.sfpca.recipes import vertical as of_columns

DIGITS = load_digits().data
WINE = load_wine().data
FRAME = pd.DataFrame(WINE[:, :4], columns=["alcohol", "acid", "ash", "alkali"])


def vertical(n_components: Any = 2, **options: Any) -> atoll.PCA:
    exactly = {"digits": "full", "accept_determined": True} | options
    return atoll.PCA(n_components, protocol="sfpca", partition="vertical", **exactly)


def by_columns(X: np.ndarray, islands: int) -> list[np.ndarray]:
    return np.array_split(X, islands, axis=1)


def cosines(fitted: atoll.PCA, exact: PCA) -> np.ndarray:
    k = len(fitted.components_)
    return np.abs(np.sum(fitted.components_ * exact.components_[:k], axis=1))


@pytest.mark.parametrize("islands", [2, 3, 8])
def test_all_components_of_digits_do_not_depend_on_the_split(islands: int) -> None:
    exact, rank = PCA().fit(DIGITS), 61  # three pixels are always white
    fitted = vertical(None).fit(by_columns(DIGITS, islands))
    assert fitted.certificate_["recipe"] == "direct"
    assert cosines(fitted, exact)[:rank].min() > 1 - 1e-12
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(64), atol=1e-12)
    np.testing.assert_allclose(fitted.explained_variance_[:rank], exact.explained_variance_[:rank], rtol=1e-9)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("islands", [2, 8])
def test_leading_components_of_digits_do_not_depend_on_the_split(islands: int) -> None:
    exact = PCA(3).fit(DIGITS)
    fitted = vertical(3, bounds=(0, 16), spectrum="ritz").fit(by_columns(DIGITS, islands))
    assert fitted.certificate_["recipe"] == "default"
    assert cosines(fitted, exact).min() > 0.999999
    np.testing.assert_allclose(fitted.explained_variance_, exact.explained_variance_, rtol=1e-5)
    signs = np.sign(np.sum(fitted.components_ * exact.components_, axis=1))
    np.testing.assert_allclose(fitted.transform(DIGITS), exact.transform(DIGITS) * signs, atol=1e-2)
    assert fitted.n_samples_ == len(DIGITS)
    assert fitted.rows_ == {f"island-{i}": len(DIGITS) for i in range(islands)}


def made(name: str) -> np.ndarray:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    tables = {
        "one column each": X,
        "constant columns": np.hstack([X[:, :2], np.full((60, 1), 7.0), X[:, 2:4], np.zeros((60, 1))]),
        "fewer rows than columns": rng.normal(size=(31, 40)) * 0.8 ** np.arange(40),
        "rank-deficient": np.hstack([X[:, :3], X[:, :1] - X[:, 1:2], X[:, 2:3]]),
        "large means": X * [1.0, 10.0, 0.1, 1.0, 1.0] + [1e6, -1e6, 0.0, 3.0, 1e5],
    }
    return tables[name]


@pytest.mark.parametrize(
    ("name", "islands"),
    [
        ("one column each", 5),
        ("constant columns", 3),
        ("fewer rows than columns", 2),
        ("rank-deficient", 2),
        ("large means", 3),
    ],
)
@pytest.mark.filterwarnings("ignore::atoll.errors.PrivacyWarning")
def test_awkward_tables_are_right(name: str, islands: int) -> None:
    X = made(name)
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    k = min(X.shape) - (name == "fewer rows than columns")
    exact, fitted = PCA(k, svd_solver="full").fit(X), vertical(k).fit(by_columns(X, islands))
    assert cosines(fitted, exact)[:rank].min() > 1 - 1e-9
    np.testing.assert_allclose(fitted.explained_variance_, exact.explained_variance_, rtol=1e-9, atol=1e-9)
    means = np.abs(X.mean(axis=0)).max()
    np.testing.assert_allclose(fitted.offset_, fitted.components_ @ X.mean(axis=0), atol=1e-9 * max(1, means))


@pytest.mark.parametrize("recipe", ["direct", "strict"])
def test_many_rows_go_in_pieces(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_columns, "_PIECE_ROWS", 16)
    monkeypatch.setattr(of_columns, "_GROUP_PIECES", 2)
    monkeypatch.setattr(of_columns, "SCORE_ROWS", 30)
    monkeypatch.setattr(exact_columns, "_BATCH_VALUES", 100)
    X = WINE[:75, [0, 3, 5, 6, 9]] * [1.0, 2.0, 0.3, 0.2, 0.1]
    fitted = vertical(1, recipe=recipe, release="scores").fit([X[:, :2], X[:, 2:]])
    expected = np.abs(PCA(1).fit_transform(X))
    np.testing.assert_allclose(np.abs(fitted.scores_["island-1"]), expected, atol=1e-3)


def test_frames_keep_their_columns_names_in_the_order_of_the_islands() -> None:
    islands = {"lab": FRAME[["ash"]], "ward": FRAME[["alkali", "alcohol"]]}
    fitted = vertical(2).fit(islands)
    assert list(fitted.feature_names_in_) == ["ash", "alkali", "alcohol"]
    whole = FRAME[["ash", "alkali", "alcohol"]]
    exact = PCA(2).fit(whole)
    assert cosines(fitted, exact).min() > 1 - 1e-12
    projected = fitted.transform(whole)
    for scores in vertical(2).fit_transform(islands).values():
        np.testing.assert_allclose(scores, projected, atol=1e-8)
    assert not hasattr(fitted, "scores_")
    with pytest.raises(NotReleased, match="mean of each column"):
        fitted.to_sklearn()


def test_scores_of_the_common_rows_reach_all_islands_and_components_nobody() -> None:
    islands = {"north": WINE[:, :5], "south": WINE[:, 5:]}
    fitted = vertical(2, release="scores", bounds=[(0.0, 2000.0)] * 13)
    projected = fitted.fit_transform(islands)
    assert len(projected) == 2
    expected = np.abs(PCA(2).fit_transform(WINE))
    # Each of two providers adds up to 2^-27 to every entry of a component, and as much of the range (2,000
    # around its middle: 2^10) to every score.
    noise = 2 * 2.0**-27 * (np.abs(WINE - WINE.mean(axis=0)).sum(axis=1).max() + 2**10)
    np.testing.assert_allclose(np.abs(projected["north"]), expected, rtol=0, atol=noise + 1e-9)
    np.testing.assert_array_equal(fitted.scores_["north"], fitted.scores_["south"])
    with pytest.raises(NotReleased, match="released to nobody"):
        fitted.transform(WINE)
    for learned in fitted.learned_.values():
        assert "components" not in learned.outputs


def test_scores_and_components_have_the_same_signs() -> None:
    from tests.support.examples import sfpca_columns

    from atoll.runtime.execute import run_study

    both = {"components": ("provider",), "scores": ("provider",)}
    example = sfpca_columns(both, bounds=64.0, digits="full")
    result = run_study(example.study, example.own).result
    X = np.hstack([island.features(island.columns) for island in example.islands.values()])
    projected = X @ result["components"].T - result["offset"]
    for scores in result["scores"].values():
        np.testing.assert_allclose(scores, projected, atol=1e-8)


def shuffled() -> pd.DataFrame:
    return FRAME[["ash"]].iloc[::-1]


BAD: dict[str, tuple[Callable[[], Any], type[AtollError], str]] = {
    "rows": (
        lambda: vertical().fit({"north": WINE[:, :2], "south": WINE[:-1, 2:]}),
        SchemaError,
        "south has 177 rows, north has 178",
    ),
    "a column twice": (
        lambda: vertical().fit({"north": FRAME[["ash", "acid"]], "south": FRAME[["acid"]]}),
        SchemaError,
        "south has the column 'acid', which north has too",
    ),
    "other rows": (
        lambda: vertical().fit({"north": FRAME[["acid"]], "south": shuffled()}),
        SchemaError,
        "the rows of south have another index than those of north",
    ),
    "names and none": (
        lambda: vertical().fit({"north": FRAME[["acid"]], "south": WINE[:, 2:]}),
        SchemaError,
        "columns of south are not named",
    ),
    "no columns": (
        lambda: vertical().fit({"north": WINE[:, :2], "south": WINE[:, :0]}),
        SchemaError,
        r"south: 0 feature\(s\)",
    ),
    "missing": (
        lambda: vertical().fit({"north": FRAME[["ash"]], "south": FRAME[["acid"]].mask(FRAME > 5)}),
        DataError,
        "south: column 'acid' holds a missing value",
    ),
    "beyond its range": (
        lambda: vertical(bounds={"ash": (0, 10), "acid": (0, 5)}).fit(
            {"north": FRAME[["ash"]], "south": FRAME[["acid"]]}
        ),
        RangeOverflow,
        "south: column 'acid' holds a value beyond its declared range",
    ),
    "too many components": (
        lambda: vertical(14).fit(by_columns(WINE, 2)),
        ParameterError,
        "n_components=14 must be between 1 and .*=13",
    ),
    "nothing varies": (
        lambda: vertical(1).fit([np.ones((40, 2)), np.ones((40, 1))]),
        ParameterError,
        "no variance",
    ),
    "another protocol": (
        lambda: atoll.PCA(2, partition="vertical").fit(by_columns(WINE, 2)),
        StudyError,
        "pppca does not run on data split by partition='vertical'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(name: str) -> None:
    run, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        run()


def test_a_study_may_name_its_columns() -> None:
    from msgspec import structs
    from tests.support.examples import sfpca_columns

    from atoll.runtime.execute import run_study

    example = sfpca_columns(n_components=1, columns=("dose", "weight", "stay"))
    result = run_study(example.study, example.own).result
    assert result["columns"] == ("dose", "weight", "stay")
    parameters = {**example.study.parameters, "columns": ("dose", "weight", "stay", "pulse")}
    with pytest.raises(SchemaError, match="no island has 'pulse'"):
        run_study(structs.replace(example.study, parameters=parameters), example.own)
