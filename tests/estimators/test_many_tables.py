"""Islands where scikit-learn expects one table: what works, and the one sentence where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.decomposition
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import atoll
from atoll.errors import DataError, NotReleased, ParameterError, SchemaError

WINE = load_wine(as_frame=True)
ROWS, KIND = WINE.data, WINE.target.to_numpy()
ISLANDS = {"north": ROWS[:50], "centre": ROWS[50:100], "south": ROWS[100:]}
LABELLED = {
    name: table.assign(kind=[f"cultivar {KIND[i]}" for i in table.index], ward=1.0)
    for name, table in ISLANDS.items()
}
SENTENCE = "the projections of several islands are not one table"


def reference(k: int = 2, **options: Any) -> Any:
    return sklearn.decomposition.PCA(k, **options).fit(ROWS)


# ---- a mapping for a mapping, a list for a list ----


def test_projections_come_back_as_the_tables_went_in() -> None:
    pca = atoll.PCA(2)
    fitted = pca.fit_transform(ISLANDS)
    assert list(fitted) == ["north", "centre", "south"]
    again, listed = pca.transform(ISLANDS), pca.transform(list(ISLANDS.values()))
    for name, rows in ISLANDS.items():
        np.testing.assert_array_equal(fitted[name], pca.transform(rows))
        np.testing.assert_array_equal(again[name], fitted[name])
    assert isinstance(listed, list)
    np.testing.assert_array_equal(np.vstack(listed), np.vstack(list(fitted.values())))
    assert isinstance(pca.fit_transform(list(ISLANDS.values())), list)
    back = pca.inverse_transform(fitted)
    assert list(back) == list(fitted)
    np.testing.assert_array_equal(back["south"], pca.inverse_transform(fitted["south"]))
    np.testing.assert_array_equal(pca.inverse_transform(listed)[0], pca.inverse_transform(listed[0]))


def test_rows_in_lists_are_one_table() -> None:
    pca = atoll.PCA(2).fit([ROWS[:90].to_numpy(), ROWS[90:].to_numpy()])
    assert pca.transform(ROWS[:3].to_numpy().tolist()).shape == (3, 2)


def test_files_are_read_once_and_projected(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from atoll.data.readers.csv import CSV

    read: list[str] = []
    whole = CSV.open
    monkeypatch.setattr(CSV, "open", lambda self, path: [read.append(path.name), whole(self, path)][1])
    paths = {}
    for name, table in ISLANDS.items():
        paths[name] = tmp_path / f"{name}.csv"
        table.to_csv(paths[name], index=False)
    fitted = atoll.PCA(2).fit_transform(paths)
    np.testing.assert_allclose(fitted["south"], atoll.PCA(2).fit_transform(ISLANDS)["south"], atol=1e-9)
    assert sorted(read) == ["centre.csv", "north.csv", "south.csv"]


def test_columns_side_by_side_are_projected_together() -> None:
    left, right = ROWS[ROWS.columns[:7]], ROWS[ROWS.columns[7:]]
    pca = atoll.PCA(2, protocol="sfpca", partition="vertical", bounds=2048.0).fit([left, right])
    first, second = pca.transform([left[:5], right[:5]])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, pca.transform(ROWS[:5]), atol=1e-9)
    with pytest.raises(SchemaError, match="no island has 'alcohol', which the fit had"):
        pca.transform([left[left.columns[1:]], right])


# ---- set_output ----


def test_every_island_gets_a_frame_with_its_own_index() -> None:
    pca = atoll.PCA(2).set_output(transform="pandas")
    for projected in (pca.fit_transform(ISLANDS), pca.transform(ISLANDS)):
        for name, rows in ISLANDS.items():
            assert list(projected[name].columns) == ["pca0", "pca1"]
            assert projected[name].index.equals(rows.index)
    np.testing.assert_array_equal(projected["south"], atoll.PCA(2).fit_transform(ISLANDS)["south"])
    assert isinstance(pca.transform(ROWS), pd.DataFrame)
    polars = atoll.PCA(2).set_output(transform="polars").fit_transform(list(ISLANDS.values()))
    assert all(isinstance(frame, pl.DataFrame) for frame in polars)


# ---- pipelines and cross-validation ----


@pytest.mark.parametrize("islands", [ISLANDS, list(ISLANDS.values())])
def test_a_pipeline_over_islands_is_refused_before_anything_is_spent(islands: Any) -> None:
    engine = _Counting()
    with pytest.raises(DataError, match=SENTENCE) as refused:
        make_pipeline(atoll.PCA(2, engine=engine), LogisticRegression()).fit(islands, KIND)
    assert "FrozenEstimator(pca)" in str(refused.value.hint)
    assert engine.runs == 0


class _Counting(atoll.LocalEngine):
    runs = 0

    def run(self, *args: Any, **options: Any) -> Any:
        self.runs += 1
        return super().run(*args, **options)


def test_a_next_step_that_meets_projections_says_the_same() -> None:
    pca = atoll.PCA(2).fit(ISLANDS)
    for projected in (pca.transform(ISLANDS), pca.transform(list(ISLANDS.values()))):
        with pytest.raises(DataError, match=SENTENCE):
            LogisticRegression().fit(projected, KIND)


def test_the_way_that_the_sentence_names_works() -> None:
    pca = atoll.PCA(2).fit(ISLANDS)
    model = make_pipeline(FrozenEstimator(pca), LogisticRegression(max_iter=500)).fit(ROWS, KIND)
    twin = make_pipeline(reference(), LogisticRegression(max_iter=500)).fit(ROWS, KIND)
    assert model.score(ROWS, KIND) == pytest.approx(twin.score(ROWS, KIND), abs=0.02)


TARGETS = {name: KIND[table.index] for name, table in ISLANDS.items()}


@pytest.mark.parametrize("listed", [False, True])
def test_a_model_of_atolls_follows_in_a_pipeline_across_the_same_islands(listed: bool) -> None:
    islands: Any = list(ISLANDS.values()) if listed else ISLANDS
    targets: Any = list(TARGETS.values()) if listed else TARGETS
    model = make_pipeline(atoll.PCA(3, standardize=True), atoll.LogisticRegression())
    model.fit(islands, targets)
    projected = atoll.PCA(3, standardize=True).fit_transform(islands)
    by_hand = atoll.LogisticRegression().fit(projected, targets)
    np.testing.assert_array_equal(model[-1].coef_, by_hand.coef_)
    pooled = make_pipeline(
        StandardScaler(), sklearn.decomposition.PCA(3), LogisticRegression(tol=1e-12, max_iter=10_000)
    ).fit(ROWS, KIND)
    np.testing.assert_allclose(model.predict_proba(ROWS), pooled.predict_proba(ROWS), atol=1e-6)
    assert model.score(ROWS, KIND) == pooled.score(ROWS, KIND)


def test_in_a_pipeline_too_only_sums_of_projections_leave_an_island() -> None:
    model = make_pipeline(atoll.PCA(2), atoll.LogisticRegression()).fit(ISLANDS, TARGETS)
    assert set(model[-1].transcript_.kinds) >= {"Fields", "ShareSum"}
    assert model[-1].n_samples_ == len(ROWS)
    assert not hasattr(model[-1], "feature_names_in_")  # projections have no names that could be told


@pytest.mark.parametrize(
    ("targets", "options", "said"),
    [
        (KIND, {}, SENTENCE),
        (KIND.tolist(), {}, SENTENCE),
        (list(TARGETS.values())[:2], {}, SENTENCE),
        (TARGETS, {"protocol": "sfpca", "partition": "vertical"}, "all get the same projections"),
    ],
)
def test_other_targets_are_refused_before_anything_is_spent(
    targets: Any, options: dict[str, Any], said: str
) -> None:
    engine = _Counting()
    fits = make_pipeline(atoll.PCA(2, engine=engine, **options), atoll.LogisticRegression())
    with pytest.raises(DataError, match=said):
        fits.fit(ISLANDS, targets)
    assert engine.runs == 0


def test_a_model_of_rows_predicts_one_table_and_says_so() -> None:
    model = make_pipeline(atoll.PCA(2), atoll.LogisticRegression()).fit(ISLANDS, TARGETS)
    with pytest.raises(DataError, match="one table, not as several islands'") as refused:
        model.predict(ISLANDS)
    assert "one island after the other" in str(refused.value.hint)
    with pytest.raises(DataError, match="one table, not as several islands'"):
        atoll.KMeans(2).fit(ISLANDS).predict(list(ISLANDS.values()))


def test_leaving_out_one_island_after_the_other() -> None:
    tables = list(ISLANDS.values())
    scores = cross_val_score(atoll.PCA(2), tables, cv=LeaveOneOut())
    for i, score in enumerate(scores):
        others = pd.concat([table for j, table in enumerate(tables) if j != i])
        assert score == pytest.approx(sklearn.decomposition.PCA(2).fit(others).score(tables[i]), rel=1e-9)


# ---- columns and label ----


@pytest.mark.parametrize("protocol", ["pppca", "sfpca", "meta", "separate"])
def test_columns_and_label_are_as_in_a_study_file(protocol: str) -> None:
    names = list(ROWS.columns[:6])
    options: dict[str, Any] = {"protocol": protocol, "columns": names, "label": "kind"}
    pca = atoll.PCA(1, **options)
    projected = pca.fit_transform(LABELLED)
    assert projected["centre"].shape == (50, 1)
    assert tuple(pca.result_.study.parameters["columns"]) == tuple(names)
    if protocol != "separate":
        assert list(pca.feature_names_in_) == names
        assert pca.transform(LABELLED["north"]).shape == (50, 1)


@pytest.mark.parametrize("protocol", ["pppca", "sfpca"])
def test_a_label_is_no_feature(protocol: str) -> None:
    pca = atoll.PCA(2, protocol=protocol, label="kind").fit(LABELLED)
    assert "kind" not in pca.feature_names_in_
    assert "ward" in pca.feature_names_in_


def test_columns_of_arrays_are_called_by_their_places() -> None:
    arrays = [ROWS[:90].to_numpy(), ROWS[90:].to_numpy()]
    pca = atoll.PCA(1, label="x12")
    projected = pca.fit_transform(arrays)
    expected = sklearn.decomposition.PCA(1).fit(ROWS.to_numpy()[:, :12]).transform(ROWS.to_numpy()[:90, :12])
    np.testing.assert_allclose(np.abs(projected[0]), np.abs(expected), atol=1e-8)
    assert list(pca.feature_names_in_) == [f"x{i}" for i in range(12)]


def test_columns_and_labels_that_cannot_be() -> None:
    for options, words in (
        ({"columns": "ash"}, "columns='ash' must be a list of names"),
        ({"columns": ["ash", "ash"]}, "none twice"),
        ({"label": 3}, "label=3 must be the name of a column"),
        ({"columns": ["ash", "kind"], "label": "kind"}, "the label 'kind' cannot be among the columns"),
    ):
        with pytest.raises(ParameterError, match=words):
            atoll.PCA(1, **options).fit(LABELLED)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="there is no label column 'age' in north, centre, south"):
        atoll.PCA(1, label="age").fit(LABELLED)


# ---- all that are wrong are named ----


def test_every_island_with_a_wrong_value_is_named() -> None:
    wrong = {name: table.copy() for name, table in ISLANDS.items()}
    wrong["north"].iloc[3, 2] = np.nan
    wrong["south"].iloc[5, 1] = np.inf
    with pytest.raises(DataError, match=r"2 islands have problems: north: column 'ash' .*; south: column"):
        atoll.PCA(2).fit(wrong)


def test_every_island_with_other_columns_is_named() -> None:
    wrong = dict(ISLANDS, centre=ROWS[50:100].drop(columns="ash"), south=ROWS[100:].drop(columns="hue"))
    expected = (
        "2 islands have problems: centre lacks 'ash', which north has; south lacks 'hue', which north has"
    )
    with pytest.raises(SchemaError, match=expected):
        atoll.PCA(2).fit(wrong)
    with pytest.raises(SchemaError, match="centre lacks 'ash', which the fit had; south lacks 'hue'"):
        atoll.PCA(2).fit(ISLANDS).transform(wrong)


def test_every_island_without_a_file_is_named(tmp_path: Any) -> None:
    with pytest.raises(DataError, match=r"a: there is no file .*; b: there is no file"):
        atoll.PCA(2).fit({"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"})


# ---- what people look for ----


def test_likelihoods_and_covariance_are_scikit_learns() -> None:
    mine, theirs = atoll.PCA(2).fit(ISLANDS), reference()
    np.testing.assert_allclose(mine.score_samples(ROWS), theirs.score_samples(ROWS), rtol=1e-9)
    assert mine.score(ROWS) == pytest.approx(theirs.score(ROWS), rel=1e-12)
    assert mine.score(ISLANDS) == pytest.approx(theirs.score(ROWS), rel=1e-12)
    np.testing.assert_allclose(mine.get_covariance(), theirs.get_covariance(), atol=1e-8)
    standard = atoll.PCA(2, standardize=True).fit(ISLANDS)
    assert standard.score(ROWS) == pytest.approx(standard.to_sklearn().score(ROWS), rel=1e-12)


def test_whitened_projections_are_scikit_learns() -> None:
    mine, theirs = atoll.PCA(2, whiten=True).fit(ISLANDS), reference(whiten=True)
    Z = mine.transform(ROWS)
    np.testing.assert_allclose(np.abs(Z), np.abs(theirs.transform(ROWS)), atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1.0)
    np.testing.assert_allclose(mine.transform(ISLANDS)["north"], Z[:50])
    np.testing.assert_allclose(
        mine.inverse_transform(Z), reference().inverse_transform(reference().transform(ROWS))
    )
    np.testing.assert_allclose(mine.to_sklearn().transform(ROWS), Z, atol=1e-9)


def test_encrypted_pca_gives_what_its_outputs_allow() -> None:
    plain = atoll.PCA(2, protocol="sfpca").fit(ISLANDS)
    white = atoll.PCA(2, protocol="sfpca", whiten=True)
    Z = white.fit_transform(ISLANDS)
    np.testing.assert_allclose(np.vstack(list(Z.values())).std(axis=0, ddof=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(plain.get_covariance(), reference().get_covariance(), rtol=1e-4, atol=1e-2)
    for method in ("score", "score_samples"):
        with pytest.raises(NotReleased, match=f"{method} needs the mean of each column"):
            getattr(plain, method)(ROWS)


def test_variances_of_normalised_rows_are_not_those_of_rows() -> None:
    options: dict[str, Any] = {"protocol": "dpdpca", "epsilon": 1.0, "delta": 1e-5, "row_norm": 2000.0}
    engine = _Counting()
    with pytest.raises(NotReleased, match="whiten needs variances of the rows"):
        atoll.PCA(2, whiten=True, engine=engine, **options).fit(ISLANDS)
    assert engine.runs == 0
    private = atoll.PCA(2, **options).fit(ISLANDS)
    for method in (lambda: private.score(ROWS), private.get_covariance):
        with pytest.raises(NotReleased, match="those of a private fit are of normalised rows"):
            method()
    for figure in (private.plot_scree(), private.plot_projection(ISLANDS)):
        assert figure.axes[0].get_title(loc="left").endswith(f"\n{private.noise_.verdict()}")
    assert np.isfinite(atoll.PCA(2, rows="clip", **options).fit(ISLANDS).get_covariance()).all()
    with pytest.raises(ParameterError, match="whiten=True cannot be used with protocol='separate'"):
        atoll.PCA(2, protocol="separate", whiten=True).fit(ISLANDS)


def test_pictures_of_a_fitted_model() -> None:
    pca = atoll.PCA(2, label="kind", columns=list(ROWS.columns)).fit(LABELLED)
    (axes,) = pca.plot_scree().axes
    assert axes.patches[0].get_height() == pytest.approx(pca.explained_variance_ratio_[0])  # type: ignore[attr-defined]
    assert pca.plot_scree()._repr_png_().startswith(b"\x89PNG")
    (axes,) = pca.plot_projection(LABELLED).axes
    places = np.vstack([points.get_offsets() for points in axes.collections])
    assert len(places) == len(ROWS)
    np.testing.assert_allclose(
        places[np.lexsort(places.T)],
        (Z := np.vstack(list(pca.transform(LABELLED).values())))[np.lexsort(Z.T)],
    )
    bars = pca.plot_loadings().axes[0].patches
    assert bars[0].get_width() == pytest.approx(np.abs(pca.components_[0]).max())  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="plot_projection needs the islands' tables"):
        pca.plot_projection(ROWS)


def test_pictures_of_what_stays_with_its_owners() -> None:
    pca = atoll.PCA(2, protocol="sfpca", release="scores", whiten=True).set_output(transform="pandas")
    projected = pca.fit_transform(ISLANDS)
    np.testing.assert_allclose(pd.concat(projected.values()).std(), 1.0, atol=1e-6)
    (axes,) = pca.plot_projection(ISLANDS).axes
    with pytest.raises(ParameterError, match="only the projections of the islands that were fitted"):
        pca.plot_projection({"north": ROWS[:50]})
    assert sum(len(points.get_offsets()) for points in axes.collections) == len(ROWS)
    with pytest.raises(NotReleased, match="released to nobody"):
        pca.plot_loadings()
    assert pca.plot_scree().axes
