"""PCA across islands equals scikit-learn's PCA on the pooled rows, however they are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import atoll
from atoll import secure_sums

TOLERANCE = 1e-8
GAP = 1e-6

LOADERS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast-cancer": lambda: load_breast_cancer(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "random": lambda: (np.random.default_rng(0).normal(3.0, 2.0, (500, 20)), np.arange(500) % 7),
}


def exact(n_components: Any, **options: Any) -> atoll.PCA:
    """All components are the covariance, which the study has to accept."""
    return atoll.PCA(n_components, accept_determined=True, **options)


def at_random(X: np.ndarray, y: np.ndarray, M: int) -> list[np.ndarray]:
    return np.array_split(X[np.random.default_rng(1).permutation(len(X))], M)


def by_label(X: np.ndarray, y: np.ndarray, M: int) -> list[np.ndarray]:
    return np.array_split(X[np.argsort(y, kind="stable")], M)


def one_row_islands(X: np.ndarray, y: np.ndarray, M: int) -> list[np.ndarray]:
    return [X[i : i + 1] for i in range(M - 1)] + [X[M - 1 :]]


def assert_same_pca(mine: atoll.PCA, islands: list[np.ndarray], pooled: np.ndarray) -> None:
    """Means, variances and projections to 1e-8 of the largest; components where the gap allows it."""
    k = mine.n_components_
    theirs = sklearn.decomposition.PCA(svd_solver="full").fit(pooled)
    spectrum = theirs.explained_variance_
    largest = max(spectrum[0], np.finfo(float).tiny)
    np.testing.assert_allclose(mine.explained_variance_, spectrum[:k], atol=TOLERANCE * largest, rtol=0)
    assert mine.total_variance_ == pytest.approx(spectrum.sum(), abs=TOLERANCE * largest * len(spectrum))
    assert mine.n_samples_ == len(pooled)
    padded = np.concatenate([[np.inf], spectrum, [-np.inf]])
    scores = np.abs((pooled - theirs.mean_) @ theirs.components_.T).max()
    start = 0
    while start < k:
        # Runs of nearly equal eigenvalues are compared as one subspace.
        stop = start + 1
        while stop < len(spectrum) and padded[stop] - padded[stop + 1] <= GAP * largest:
            stop += 1
        # A subspace that reaches into the dropped components has no counterpart among ours.
        if stop <= k and spectrum[start] > GAP * largest:
            ours, reference = mine.components_[start:stop], theirs.components_[start:stop]
            if stop - start == 1:
                np.testing.assert_allclose(ours, reference, atol=TOLERANCE)
                projected = (pooled - mine.mean_) @ ours.T
                expected = (pooled - theirs.mean_) @ reference.T
                np.testing.assert_allclose(projected, expected, atol=TOLERANCE * max(scores, 1e-300))
            else:
                np.testing.assert_allclose(ours.T @ ours, reference.T @ reference, atol=TOLERANCE)
        start = stop


def assert_same_mean(mine: atoll.PCA, pooled: np.ndarray) -> None:
    # A centred table's mean is rounding noise: compare on the scale of the data where that is larger.
    mean, scale = pooled.mean(axis=0), max(np.abs(pooled.mean(axis=0)).max(), pooled.std(axis=0).max())
    np.testing.assert_allclose(mine.mean_, mean, atol=TOLERANCE * scale, rtol=0)


@pytest.mark.parametrize("cut", [at_random, by_label, one_row_islands])
@pytest.mark.parametrize("n_islands", [2, 3, 10, 50])
@pytest.mark.parametrize("name", LOADERS)
def test_equals_pooled_pca(name: str, n_islands: int, cut: Callable[..., list[np.ndarray]]) -> None:
    X, y = LOADERS[name]()
    islands = cut(X, y, n_islands)
    mine = exact(n_components=None).fit(islands)
    pooled = np.vstack(islands)
    assert_same_mean(mine, pooled)
    assert_same_pca(mine, islands, pooled)


@pytest.mark.parametrize("secure_sum", sorted(set(secure_sums.METHODS) - {"shares"}))
@pytest.mark.parametrize("name", ["wine", "breast-cancer"])
def test_every_secure_sum_is_as_exact(name: str, secure_sum: str) -> None:
    X, y = LOADERS[name]()
    islands = by_label(X, y, 3)
    mine = exact(n_components=None, secure_sum=secure_sum).fit(islands)
    assert_same_mean(mine, np.vstack(islands))
    assert_same_pca(mine, islands, np.vstack(islands))


@st.composite
def awkward_tables(draw: st.DrawFn) -> tuple[list[np.ndarray], bool]:
    """Tables that break careless PCA: duplicated and constant columns, n < d, rank one, wild scales."""
    d = draw(st.integers(2, 8))
    n = draw(st.integers(3, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["plain", "duplicated", "constant", "wide", "rank-one", "scales", "offset"]))
    X = rng.normal(size=(n, d))
    if kind == "duplicated":
        X[:, -1] = X[:, 0]
    elif kind == "constant":
        X[:, 0] = 3.25
    elif kind == "wide":
        X = rng.normal(size=(3, d + 3))
    elif kind == "rank-one":
        X = np.outer(rng.normal(size=n), rng.normal(size=d))
    elif kind == "scales":
        X *= 10.0 ** rng.uniform(-6, 9, d)
    elif kind == "offset":
        X += 10.0 ** rng.uniform(0, 5, d)
    cuts = sorted(draw(st.lists(st.integers(1, len(X) - 1), min_size=1, max_size=4, unique=True)))
    return np.split(X, cuts), kind == "scales"


@pytest.mark.filterwarnings("ignore::atoll.errors.PrivacyWarning")
@given(awkward_tables())
def test_awkward_tables(case: tuple[list[np.ndarray], bool]) -> None:
    islands, standardize = case
    pooled = np.vstack(islands)
    mine = exact(n_components=None, standardize=standardize).fit(islands)
    assert_same_mean(mine, pooled)
    if standardize:
        scaler = StandardScaler().fit(pooled)
        np.testing.assert_allclose(mine.scale_, scaler.scale_, rtol=TOLERANCE)
        reference = scaler.transform(pooled)
        mine.mean_ = np.zeros_like(mine.mean_)
        assert_same_pca(mine, islands, reference)
    else:
        assert_same_pca(mine, islands, pooled)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9])
def test_means_far_larger_than_deviations(offset: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 6)) @ np.diag([3, 2.5, 2, 1.5, 1.2, 1]) + offset
    islands = np.array_split(X[np.argsort(X[:, 0])], 3)
    mine = exact(n_components=None).fit(islands)
    assert_same_mean(mine, X)
    # Projections are as good as a double holds the mean; variances and components are better.
    theirs = sklearn.decomposition.PCA(svd_solver="full").fit(X - offset)
    np.testing.assert_allclose(mine.explained_variance_, theirs.explained_variance_, rtol=TOLERANCE)
    np.testing.assert_allclose(mine.components_, theirs.components_, atol=TOLERANCE)


@pytest.mark.parametrize("value", [1e12 / 3, 1e15 / 3, 0.1])
def test_a_constant_column_stays_constant_however_large(value: float) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 0] = value
    mine = exact(n_components=None, standardize=True).fit([X[:50], X[50:120], X[120:]])
    reference = sklearn.decomposition.PCA(svd_solver="full").fit(StandardScaler().fit_transform(X[:, 1:]))
    np.testing.assert_allclose(mine.explained_variance_[:2], reference.explained_variance_, rtol=1e-8)
    assert mine.explained_variance_[2] < 1e-8
    assert mine.scale_[0] == 1.0


def test_deviations_below_the_grid_are_an_error() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(atoll.errors.RangeOverflow, match="'x0' deviates by less"):
        exact(2).fit([X[:50] * 1e-14, X[50:] * 1e-14])
    with pytest.raises(atoll.errors.RangeOverflow, match="'x1' deviates by less"):
        exact(2, standardize=True).fit([X[:50] * [1, 1e-16, 1], X[50:] * [1, 1e-16, 1]])
    assert exact(2).fit([X[:50] * [1, 1e-16, 1], X[50:] * [1, 1e-16, 1]]).n_samples_ == 100


def test_columns_of_1e9_beside_1e_minus_6_standardised() -> None:
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(300, 3))
    X = latent @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(300, 6))
    X *= np.array([1e9, 1e-6, 1.0, 1e3, 1e-3, 1e6])
    X += np.array([1e9, 1e-6, 5.0, 0.0, 1.0, -1e6])
    mine = exact(n_components=None, standardize=True).fit([X[:7], X[7:100], X[100:]])
    scaler = StandardScaler().fit(X)
    theirs = sklearn.decomposition.PCA(svd_solver="full").fit(scaler.transform(X))
    np.testing.assert_allclose(mine.mean_, scaler.mean_, rtol=TOLERANCE)
    np.testing.assert_allclose(mine.scale_, scaler.scale_, rtol=TOLERANCE)
    np.testing.assert_allclose(mine.explained_variance_, theirs.explained_variance_, atol=TOLERANCE)
    np.testing.assert_allclose(mine.components_, theirs.components_, atol=TOLERANCE)
    np.testing.assert_allclose(mine.transform(X), theirs.transform(scaler.transform(X)), atol=1e-7)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_share_of_the_variance_chooses_as_scikit_learn_does(share: float) -> None:
    X, _ = LOADERS["digits"]()
    mine = exact(n_components=share).fit(np.array_split(X, 4))
    theirs = sklearn.decomposition.PCA(n_components=share, svd_solver="full").fit(X)
    assert mine.n_components_ == theirs.n_components_
    assert mine.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-8)
    np.testing.assert_allclose(mine.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-10)
    np.testing.assert_allclose(mine.singular_values_, theirs.singular_values_, rtol=1e-9)


def test_the_consumer_gets_projections_and_labels_ready_for_any_model() -> None:
    from sklearn.linear_model import LogisticRegression
    from tests.support.examples import pppca

    example = pppca()
    from atoll.runtime.execute import run_study

    frame = run_study(example.study, example.own).result.consumer_frame()
    assert list(frame.columns) == ["island", "PC1", "PC2", "label"]
    assert len(frame) == 40
    assert set(frame["label"]) == {"well", "ill"}
    model = LogisticRegression().fit(frame[["PC1", "PC2"]], frame["label"])
    assert model.score(frame[["PC1", "PC2"]], frame["label"]) > 0.6


def test_meta_with_the_spread_between_means_is_exact_when_nothing_is_truncated() -> None:
    X, y = LOADERS["wine"]()
    islands = by_label(X, y, 3)
    whole = atoll.PCA(n_components=None, protocol="meta", between_means=True).fit(islands)
    assert_same_pca(whole, islands, np.vstack(islands))
    truncated = atoll.PCA(n_components=2, protocol="meta", between_means=True).fit(islands)
    exact = sklearn.decomposition.PCA(2, svd_solver="full").fit(np.vstack(islands))
    cosines = np.abs(np.sum(truncated.components_ * exact.components_, axis=1))
    assert cosines[0] > 0.999


def test_meta_leaves_out_by_default_what_sets_the_islands_apart() -> None:
    rng = np.random.default_rng(3)
    along, between = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    tables = [rng.normal(size=(50, 3)) + rng.normal(size=(50, 1)) * 5 * along for _ in range(2)]
    islands = [tables[0] - 40 * between, tables[1] + 40 * between]
    pca = atoll.PCA(n_components=1, protocol="meta").fit(islands)
    assert abs(pca.components_[0] @ along) > 0.99
    together = atoll.PCA(n_components=1, protocol="meta", between_means=True).fit(islands)
    assert abs(together.components_[0] @ between) > 0.99


def test_a_table_with_fewer_rows_than_columns_warns() -> None:
    X = np.random.default_rng(0).normal(size=(5, 8))
    with pytest.warns(atoll.errors.PrivacyWarning, match="5 rows for 8 columns"):
        exact(2).fit([X[:2], X[2:]])


def test_separate_gives_each_island_its_own() -> None:
    X, _ = LOADERS["wine"]()
    islands = {"north": X[:60], "south": X[60:]}
    mine = atoll.PCA(n_components=2, protocol="separate").fit(islands)
    for name, rows in islands.items():
        theirs = sklearn.decomposition.PCA(2, svd_solver="full").fit(rows)
        np.testing.assert_allclose(mine.models_[name]["components"], theirs.components_, atol=1e-8)
    assert [z.shape for z in mine.fit_transform(islands).values()] == [(60, 2), (118, 2)]
    with pytest.raises(atoll.AtollError, match="one model per island"):
        mine.transform(X)
