"""Dask: an island whose statistics are computed on a cluster, here a real one with processes of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

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
