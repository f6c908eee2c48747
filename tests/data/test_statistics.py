"""Local statistics of tables that are read in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from atoll.data import statistics
from atoll.data.island import Island
from atoll.data.statistics import about, moments
from atoll.protocols.pca.decompose import standard_scale


def table(rows: int, offset: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    # Rows drift, so that blocks have different means.
    return rng.normal(size=(rows, 3)) + np.linspace(0, 50, rows)[:, None] + offset


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_blocks_are_merged_to_the_moments_of_the_whole(
    offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "BLOCK_BYTES", 8 * 3 * 10)  # ten rows each
    X = table(503, offset)
    found = moments(Island(X).chosen(("x0", "x1", "x2")))
    assert found.n == 503
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-13)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(found.scatter, centred.T @ centred, rtol=1e-9)


def test_sum_and_scatter_about_another_centre() -> None:
    X, centre = table(40, 0.0), np.array([1.0, -2.0, 3.0])
    residual, scatter = about(moments(Island(X).chosen(("x0", "x1", "x2"))), centre)
    np.testing.assert_allclose(residual, (X - centre).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scatter, (X - centre).T @ (X - centre), rtol=1e-12)


def test_divisors_are_those_of_the_standard_scaler() -> None:
    X = np.column_stack([table(30, 0.0), np.full(30, 7.0)])
    found = standard_scale(X.var(axis=0, ddof=1), X.mean(axis=0), len(X))
    np.testing.assert_allclose(found, StandardScaler().fit(X).scale_, rtol=1e-12)
