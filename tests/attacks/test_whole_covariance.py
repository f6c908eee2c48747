"""When components and variances are the covariance: it is rebuilt at the line, and one component below it
another covariance has the same outputs.

The receiver solves linear equations for the rest, the part of the covariance that the components leave: its
trace, its diagonal where columns are standardised, its own block where the receiver holds columns itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import atoll
from atoll.errors import PrivacyError
from atoll.protocols.pca import determined
from atoll.protocols.pca.determined import Given, Table

Matrix = npt.NDArray[np.float64]
ROWS = 120


class Outputs(NamedTuple):
    """What a receiver has, and its own block of the covariance where it holds the first columns."""

    components: Matrix
    variances: Matrix
    total: float
    diagonal: Matrix | None = None
    own: Matrix | None = None


class Rest(NamedTuple):
    """What the equations say: one solution, and the directions in which others differ from it."""

    rebuilt: Matrix
    free: list[Matrix]


def solve(got: Outputs) -> Rest:
    """All symmetric matrices that have the given outputs, by least squares over the rest."""
    known = (got.components.T * got.variances) @ got.components
    d = known.shape[0]
    V = np.linalg.svd(got.components)[2][len(got.components) :]
    r = len(V)
    places = [(i, j) for i in range(r) for j in range(i, r)]
    basis = [(np.outer(V[i], V[j]) + np.outer(V[j], V[i])) / (2 if i == j else 2**0.5) for i, j in places]
    told = [(np.eye(d), got.total)]
    for i, value in enumerate(() if got.diagonal is None else got.diagonal):
        told.append((np.outer(np.eye(d)[i], np.eye(d)[i]), float(value)))
    for i, j in [] if got.own is None else np.ndindex(got.own.shape):
        told.append((np.outer(np.eye(d)[i], np.eye(d)[j]), float(got.own[i, j])))
    A = np.array([[float((E * b).sum()) for b in basis] for E, _ in told])
    right = np.array([value - float((E * known).sum()) for E, value in told])
    x = np.linalg.lstsq(A, right, rcond=None)[0]
    _, s, vt = np.linalg.svd(A)
    null = vt[int((s > 1e-9 * s[0]).sum()) :]
    combine = lambda weights: sum((w * b for w, b in zip(weights, basis, strict=True)), np.zeros((d, d)))  # noqa: E731
    return Rest(known + combine(x), [combine(direction) for direction in null])


def table(d: int, seed: int = 5) -> Matrix:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(ROWS, d)) @ draw.normal(size=(d, d)) + draw.normal(size=d)


def islands(X: Matrix) -> list[Matrix]:
    return [X[:50], X[50:]]


def outputs_of(pca: Any, **known: Any) -> Outputs:
    return Outputs(pca.components_, pca.explained_variance_, pca.total_variance_, **known)


def another(C: Matrix, k: int, direction: Matrix) -> Matrix:
    """C moved so far that it stays a covariance whose first k components are the same."""
    for step in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003):
        moved = C + step * direction * np.linalg.eigvalsh(C)[0]
        values = np.linalg.eigvalsh(moved)[::-1]
        if values[-1] > 0 and np.allclose(values[:k], np.linalg.eigvalsh(C)[::-1][:k], rtol=1e-12, atol=0):
            return np.asarray(moved)
    raise AssertionError("no room to move")


def assert_underdetermined(C: Matrix, got: Outputs) -> None:
    """Another covariance, visibly another, from which every receiver gets the same outputs."""
    k = len(got.components)
    rest = solve(got)
    assert rest.free
    other = another(C, k, rest.free[0])
    assert np.abs(other - C).max() > 1e-4 * np.abs(C).max()
    np.testing.assert_allclose(np.trace(other), got.total, rtol=1e-12)
    np.testing.assert_allclose(other @ got.components.T, got.components.T * got.variances, atol=1e-9)
    if got.diagonal is not None:
        np.testing.assert_allclose(np.diag(other), got.diagonal, rtol=1e-12)
    if got.own is not None:
        a = len(got.own)
        np.testing.assert_allclose(other[:a, :a], got.own, atol=1e-11)


def test_all_components_but_one_are_the_covariance_and_two_fewer_are_not() -> None:
    X = table(6)
    C = np.cov(X.T)
    with pytest.raises(PrivacyError, match=r"n_components=5 of 6 columns .* say the whole joint covariance"):
        atoll.PCA(5).fit(islands(X))
    at, below = (outputs_of(atoll.PCA(k, accept_determined=True).fit(islands(X))) for k in (5, 4))
    np.testing.assert_allclose(solve(at).rebuilt, C, rtol=1e-12, atol=1e-12)
    assert not solve(at).free
    assert_underdetermined(C, below)
    assert determined.whole_line(Table(6, ROWS), Given()) == 5


def test_the_same_of_encrypted_pca() -> None:
    """With all digits released; nobody in the run ever saw the covariance."""
    X = table(5)
    with pytest.raises(PrivacyError, match=r"n_components=4 of 5 columns .* say the whole joint covariance"):
        atoll.PCA(4, protocol="sfpca", digits="full").fit(islands(X))
    options: dict[str, Any] = {"protocol": "sfpca", "digits": "full", "accept_determined": True}
    at, below = (outputs_of(atoll.PCA(k, **options).fit(islands(X))) for k in (4, 3))
    scale = np.abs(np.cov(X.T)).max()
    np.testing.assert_allclose(solve(at).rebuilt / scale, np.cov(X.T) / scale, atol=1e-12)
    assert len(solve(below).free) == 2


def test_standardised_columns_are_said_by_fewer() -> None:
    """The diagonal of a correlation matrix is known: three of six components leave six numbers, and six
    equations for them."""
    X = table(6)
    R = np.corrcoef(X.T) * ROWS / (ROWS - 1)  # divided by n, as StandardScaler does; variances by n - 1
    for options in ({}, {"protocol": "sfpca"}):
        with pytest.raises(PrivacyError, match=r"n_components=3 of 6 columns"):
            atoll.PCA(3, standardize=True, **options).fit(islands(X))
    for k in (3, 2):
        got = outputs_of(atoll.PCA(k, standardize=True, accept_determined=True).fit(islands(X)))
        got = got._replace(diagonal=np.full(6, ROWS / (ROWS - 1)))
        if k == 3:
            np.testing.assert_allclose(solve(got).rebuilt, R, atol=1e-12)
        else:
            assert_underdetermined(R, got)
    assert determined.whole_line(Table(6, ROWS), Given(scales=True)) == 3
    assert determined.whole_line(Table(10, ROWS), Given(whole_numbers=False)) == 6
    assert determined.whole_line(Table(30, ROWS), Given(whole_numbers=False)) == 23


def test_an_island_with_columns_of_its_own_needs_as_many_components_as_the_others_have_columns() -> None:
    X = table(7)
    C = np.cov(X.T)
    values, vectors = np.linalg.eigh(C)
    for k in (3, 2):
        got = Outputs(vectors[:, ::-1][:, :k].T, values[::-1][:k], float(values.sum()), own=C[:4, :4])
        if k == 3:
            np.testing.assert_allclose(solve(got).rebuilt, C, rtol=1e-9, atol=1e-12)
        else:
            assert_underdetermined(C, got)
    assert determined.whole_line(Table(7, ROWS, own_columns=4), Given()) == 3
    with pytest.raises(PrivacyError, match=r"n_components=3 of 7 columns .* say the whole joint covariance"):
        atoll.PCA(3, protocol="sfpca", partition="vertical", digits=16).fit([X[:, :4], X[:, 4:]])


def test_as_many_components_as_the_rank_are_the_covariance_and_one_fewer_is_not() -> None:
    draw = np.random.default_rng(8)
    X = draw.normal(size=(ROWS, 3)) @ draw.normal(size=(3, 8))
    C = np.cov(X.T)
    with pytest.raises(PrivacyError, match="explain all of the variance"):
        atoll.PCA(3).fit(islands(X))
    at = outputs_of(atoll.PCA(3, accept_determined=True).fit(islands(X)))
    np.testing.assert_allclose((at.components.T * at.variances) @ at.components, C, atol=1e-12)
    # One fewer: how much is left is known, but not which way it points.
    below = outputs_of(atoll.PCA(2, accept_determined=True).fit(islands(X)))
    left = below.total - below.variances.sum()
    V = np.linalg.svd(below.components)[2][2:]
    mirrored = (below.components.T * below.variances) @ below.components + left * np.outer(V[0], V[0])
    assert np.abs(mirrored - C).max() > 1e-2
    np.testing.assert_allclose(np.linalg.eigvalsh(mirrored)[::-1][:2], below.variances, rtol=1e-12)
    np.testing.assert_allclose(np.trace(mirrored), below.total, rtol=1e-12)


def test_few_rows_bound_the_rank() -> None:
    assert determined.whole_line(Table(300, 20), Given()) == 19
    assert not determined.is_whole(Table(300, 20), 18, Given())


def test_a_rest_that_is_level_says_itself() -> None:
    """Rows that somebody whitened before: one component with its variance and the total say it all."""
    X = table(5)
    white = np.linalg.qr(X - X.mean(axis=0))[0] * (ROWS - 1) ** 0.5
    with pytest.raises(PrivacyError, match="a rest that varies in all directions as component 1 does"):
        atoll.PCA(1).fit(islands(white))
    pca = atoll.PCA(1, accept_determined=True).fit(islands(white))
    w, value = pca.components_[0], pca.explained_variance_[0]
    left = (pca.total_variance_ - value) / 4
    rebuilt = value * np.outer(w, w) + left * (np.eye(5) - np.outer(w, w))
    np.testing.assert_allclose(rebuilt, np.cov(white.T), atol=1e-12)
    stretched = white * [3.0, 2.0, 1.0, 1.0, 0.9]
    assert atoll.PCA(1).fit(islands(stretched)).n_components_ == 1
    with pytest.raises(PrivacyError, match="as component 3 does") as refused:
        determined.check_spectrum([9.0, 4.0, 1.0], 16.0, 5)
    assert refused.value.hint == "n_components=2 or fewer, or accept_determined=True where all may know it"
    determined.check_spectrum([9.0, 4.0, 1.0], 15.99, 5)
