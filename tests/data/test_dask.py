"""Dask: an island whose statistics are computed on a cluster, here a real one with processes of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

import atoll
from atoll.data.island import Island, as_island
from atoll.data.statistics import moments
from atoll.data.tables import cluster as tables
from atoll.errors import DataError, MissingComponent, SchemaError
from atoll.privacy.dp_moments import Plan
from atoll.privacy.mechanisms import Crowd
from atoll.protocols.pca.private_release import noisy_integers

X = np.random.default_rng(0).normal(size=(900, 6)) @ np.random.default_rng(1).normal(size=(6, 6)) + 5.0
FRAME = pd.DataFrame(X, columns=list("abcdef"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as started:
        yield started


def test_statistics_on_a_cluster_are_those_of_the_rows_here(cluster: Any) -> None:
    lazy_frame = dd.from_pandas(FRAME[:600], npartitions=5)
    north = Island.from_dask(lazy_frame, scheduler=cluster.scheduler_address, name="north")
    assert (north.n_rows, north.columns) == (600, tuple("abcdef"))
    there, here = (
        moments(north.chosen(north.columns)),
        moments(as_island("north", FRAME[:600]).chosen("abcdef")),
    )
    assert np.allclose(there.mean, here.mean, rtol=1e-13)
    assert np.allclose(there.scatter, here.scatter, rtol=1e-12)
    fitted = atoll.PCA(2).fit({"north": north, "south": FRAME[600:]})
    plain = atoll.PCA(2).fit({"north": FRAME[:600], "south": FRAME[600:]})
    assert np.abs(fitted.components_ - plain.components_).max() < 1e-12
    assert np.abs(fitted.transform({"south": FRAME[600:]})["south"]).max() > 0


def test_rows_do_not_travel_for_statistics(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the first block, which says how large means are."""
    seen: list[int] = []
    whole = tables.DaskTable.pieces

    def counted(self: tables.DaskTable, places: Any) -> Iterator[Any]:
        for piece in whole(self, places):
            seen.append(len(piece) if isinstance(piece, np.ndarray) else len(piece[0]))
            yield piece

    monkeypatch.setattr(tables.DaskTable, "pieces", counted)
    array = da.from_array(X, chunks=(100, 3))
    island = Island.from_dask(array, scheduler=cluster.scheduler_address)
    monkeypatch.setattr("atoll.data.statistics.BLOCK_BYTES", 8 * 6 * 10)
    moments(island.chosen(island.columns))
    assert sum(seen) <= 100


WARDS = FRAME.assign(ward=["a", "b", "c"] * 300, ill=[0, 1] * 450, e=FRAME["e"].where(FRAME["a"] < 6.0))
NUMBERS = list("abcd")


def values_of(fitted: Any) -> Any:
    """What a fit found."""
    if isinstance(fitted, atoll.PCA):
        return np.hstack([fitted.components_.ravel(), fitted.explained_variance_])
    return fitted.coef_ if hasattr(fitted, "coef_") else fitted.numbers.to_numpy(float)


def pca(**options: Any) -> Callable[[Any], Any]:
    return lambda tables: values_of(atoll.PCA(1, accept_determined=True, **options).fit(tables))


FITS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "rows dropped": (pca(missing="drop", columns=[*NUMBERS, "e"]), 1e-12),
    "means filled in": (pca(missing="mean", categorical=["ward"], columns=[*NUMBERS, "e", "ward"]), 1e-12),
    "an opened range": (pca(protocol="sfpca", columns=NUMBERS), 1e-6),
    "bounds": (pca(protocol="sfpca", bounds=64.0, recipe="direct", columns=NUMBERS), 1e-6),
    "standardised": (pca(protocol="sfpca", standardize=True, columns=NUMBERS), 1e-6),
    "a logistic regression": (
        lambda tables: values_of(atoll.LogisticRegression(columns=NUMBERS).fit(tables, target="ill")),
        1e-7,
    ),
    "a description": (
        lambda tables: values_of(atoll.describe(tables, columns=[*NUMBERS, "ward"], categorical=["ward"])),
        1e-12,
    ),
}


@pytest.mark.parametrize("kind", FITS)
def test_whatever_is_computed_is_computed_there(
    kind: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, close = FITS[kind]
    due = fit({"north": WARDS[:600], "south": WARDS[600:]})
    travelled: list[int] = []
    whole = tables.DaskTable.pieces

    def counted(self: tables.DaskTable, places: Any) -> Iterator[Any]:
        for piece in whole(self, places):
            travelled.append(len(piece[0]))
            yield piece

    monkeypatch.setattr(tables.DaskTable, "pieces", counted)
    for module in ("island", "statistics"):  # small beside a partition
        monkeypatch.setattr(f"atoll.data.{module}.BLOCK_BYTES", 8 * 6)
    monkeypatch.setattr("atoll.data.statistics._BLOCKS_PER_SPAN", 1)
    lazy_frame = dd.from_pandas(WARDS[:600], npartitions=6)
    north = Island.from_dask(lazy_frame, scheduler=cluster.scheduler_address, name="north")
    found = fit({"north": north, "south": WARDS[600:]})
    np.testing.assert_allclose(found, due, rtol=close, atol=close)
    assert sum(travelled) <= 100  # the first partition says how large means are


def test_noise_is_added_here_to_sums_that_are_made_there(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed of the noise does not travel; the sums are the same integers."""
    plan = Plan(features=6, row_norm=64.0, epsilon=1.0, delta=None, crowd=Crowd(owners=2))
    lazy_frame = dd.from_pandas(FRAME, npartitions=4)
    there = Island.from_dask(lazy_frame, scheduler=cluster.scheduler_address, name="north")
    here = as_island("north", FRAME)
    monkeypatch.setattr(tables.DaskTable, "pieces", None)  # no row is read here
    found, due = (
        noisy_integers(plan, plan.first_mean, one.chosen(tuple("abcdef")), None, bytes(32))
        for one in (there, here)
    )
    assert np.array_equal(found, due)


def test_errors_on_a_cluster_name_the_row_of_the_table(cluster: Any) -> None:
    frame = FRAME.copy()
    frame.iloc[700, 3] = np.inf
    lazy_frame = dd.from_pandas(frame, npartitions=5)
    north = Island.from_dask(lazy_frame, scheduler=cluster.scheduler_address, name="north")
    with pytest.raises(DataError, match=r"^north: column 'd' holds an infinite value \(inf\) at row 700"):
        atoll.PCA(1).fit({"north": north, "south": FRAME})
    with pytest.raises(DataError, match=r"^north: column 'd' holds an infinite value \(inf\) at row 700"):
        atoll.PCA(1, missing="mean").fit({"north": north, "south": FRAME})
    words = pd.DataFrame({"a": [1.0] * 700 + ["x"] + [2.0] * 199}, dtype=object)
    with dask.config.set({"dataframe.convert-string": False}):
        lazy_words = dd.from_pandas(words, npartitions=5)
        there = Island.from_dask(lazy_words, scheduler=cluster.scheduler_address, name="north")
        with pytest.raises(DataError, match=r"^north: column 'a' holds text at row 700"):
            list(there.chosen(("a",)).mapped(len))


def test_a_worker_that_dies_is_an_error_that_names_the_island(cluster: Any) -> None:
    def dies(block: Any) -> Any:
        import os

        os._exit(1)

    lazy_array = da.from_array(X, chunks=(100, 6)).map_blocks(dies, dtype=float, meta=np.empty((0, 0)))
    north = Island.from_dask(lazy_array, scheduler=cluster.scheduler_address, name="north")
    with pytest.raises(DataError, match=r"^north: .*\(KilledWorker\)"):
        atoll.PCA(1).fit({"north": north, "south": X})
    with pytest.raises(DataError, match=r"^north: the cluster did not compute \(KilledWorker\)"):
        list(north.chosen(north.columns).mapped(len))


def test_without_a_scheduler_dask_chooses() -> None:
    plain = atoll.PCA(2).fit([X[:500], X[500:]])
    fitted = atoll.PCA(2).fit(
        [da.from_array(X[:500], chunks=(120, 6)), da.from_array(X[500:], chunks=(90, 2))]
    )
    assert np.abs(fitted.components_ - plain.components_).max() < 1e-12


def test_sfpca_adds_up_its_moments_there(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy_frame = dd.from_pandas(FRAME, npartitions=4)
    options = {
        "protocol": "sfpca",
        "bounds": 64.0,
        "recipe": "strict",
        "digits": "full",
        "accept_determined": True,
    }
    there = atoll.PCA(1, **options).fit([lazy_frame, FRAME[:300]])
    here = atoll.PCA(1, **options).fit([FRAME, FRAME[:300]])
    assert np.abs(there.components_ - here.components_).max() < 1e-6


def test_empty_partitions_and_missing_values() -> None:
    lazy_frame = dd.from_pandas(FRAME, npartitions=3)
    some = lazy_frame[lazy_frame["a"] > FRAME["a"].median()]
    island = as_island("north", some)
    assert island.n_rows == int((FRAME["a"] > FRAME["a"].median()).sum())
    holes = FRAME.copy()
    holes.iloc[700, 3] = np.nan
    with pytest.raises(DataError, match=r"north: column 'd' holds a missing value \(NaN\) at row 700"):
        atoll.PCA(1).fit({"north": dd.from_pandas(holes, npartitions=3), "south": FRAME})


def test_text_is_refused_by_name() -> None:
    frame = FRAME.assign(ward="a")
    with pytest.raises(DataError, match="column 'ward' holds text"):
        atoll.PCA(1).fit({"north": dd.from_pandas(frame, npartitions=2), "south": frame})


def test_what_is_no_table_of_dask_is_refused() -> None:
    with pytest.raises(DataError, match="north: a DataFrame is no array or data frame of Dask"):
        Island.from_dask(FRAME, name="north")
    with pytest.raises(DataError, match="expected 2D array, got 1D array"):
        Island.from_dask(da.ones(5, chunks=5))
    with pytest.raises((DataError, SchemaError)):
        Island.from_dask(
            dd.from_pandas(FRAME.set_axis(["1", "2", "3", "4", "5", "6"], axis=1), npartitions=1)
        )


def test_a_scheduler_that_is_not_there_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PATIENCE", "0.3s")
    with pytest.raises(DataError, match=r"north: there is no scheduler at tcp://127.0.0.1:9"):
        Island.from_dask(da.ones((5, 2), chunks=5), scheduler="tcp://127.0.0.1:9", name="north")


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    array = da.ones((5, 2), chunks=5)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(MissingComponent) as caught:
        Island.from_dask(array)
    assert caught.value.hint == "pip install 'atoll[dask]'"
