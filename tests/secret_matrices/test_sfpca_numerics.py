"""SF-PCA without its cryptography: exact sums, rotations, polynomials, both recipes simulated."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from tests.support.sfpca_runs import direct, exponent_of, simulate, simulated, strict

from atoll.errors import ParameterError, RangeOverflow, RunError
from atoll.protocols.pca.sfpca.prepared import OwnSums
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import Inputs
from atoll.protocols.pca.sfpca.recipes.moments import exact_moments, on_grid, quick_moments
from atoll.secret_matrices.polynomials import Basis, evaluate, schedule, split, times_m
from atoll.secret_matrices.rotations import gaussians, normal, rotation


def test_moments_are_exact() -> None:
    rng = np.random.default_rng(1)
    A = rng.integers(-(2**60), 2**60, (300, 4))
    wide = A.astype(object)
    found, quick = exact_moments(A), quick_moments(A)
    assert (wide.T @ wide == found.G).all()
    assert (found.u == wide.sum(axis=0)).all()
    assert found.squares == quick.squares == (wide * wide).sum()
    assert (quick.u == found.u).all()
    np.testing.assert_allclose(quick.G, found.G.astype(float), rtol=1e-13)


def test_rows_beyond_the_declared_range_are_refused() -> None:
    with pytest.raises(RangeOverflow, match="nothing was sent"):
        on_grid(np.array([[1.0, 4.1]]), 2, 60)


@pytest.mark.parametrize("size", [1, 2, 11, 34])
def test_rotations_are_orthonormal_to_their_last_digit(size: int) -> None:
    H = rotation(bytes(range(32)), size, 120)
    identity = (1 << 240) * np.eye(size, dtype=object)
    assert np.abs(H @ H.T - identity).max() < 1 << (240 - 115)


def test_rotations_are_uniform() -> None:
    # The first entry of a Haar matrix of size 3 is uniform on [-1, 1] (Archimedes).
    entries = [float(rotation(i.to_bytes(32, "little"), 3, 120)[0, 0]) / 2.0**120 for i in range(400)]
    counts, _ = np.histogram(entries, bins=8, range=(-1, 1))
    assert ((counts - 50) ** 2 / 50).sum() < 32  # chi-square, 7 degrees of freedom: 4e-5
    low_bits = [int(rotation(i.to_bytes(32, "little"), 3, 120)[1, 2]) & 0xFF for i in range(400)]
    assert len(set(low_bits)) > 150  # the digits far below 2^-50 are filled too


def test_gaussians_are_normal() -> None:
    x = np.sort(gaussians(bytes(32), 20000))
    cdf = np.array([NormalDist().cdf(v) for v in x])
    assert np.abs(cdf - (np.arange(20000) + 0.5) / 20000).max() < 0.0155  # KS at 1e-4


def test_gaussians_are_inverted_from_128_bits() -> None:
    """A tail that 53 bits do not reach, and both signs of the same number."""
    top = 1 << 63
    high = np.array([0, 0, top, top - 1, 1 << 62, 1], dtype=np.uint64)
    low = np.array([0, 1, 0, 2**64 - 1, 0, 0], dtype=np.uint64)
    found = normal(high, low)
    exact = [
        -13.108626,  # at 2^-129; 53 bits end at -8.29
        float(ndtri(1.5 * 2.0**-128)),
        13.108626,
        0.0,
        float(ndtri(0.25)),
        float(ndtri(2.0**-64)),
    ]
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-15)
    assert len(set(gaussians(b"s" * 32, 4096, "x"))) == 4096


def test_splitting_a_polynomial_keeps_it() -> None:
    c = [Fraction(i * i - 5, 7) for i in range(17)]
    low, high = split(c, 8)
    x = np.linspace(-1, 1, 9)
    T = np.polynomial.chebyshev.chebval
    whole = T(x, [float(v) for v in c])
    parts = T(x, [float(v) for v in low]) + T(x, [0.0] * 8 + [1.0]) * T(x, [float(v) for v in high])
    np.testing.assert_allclose(whole, parts, atol=1e-12)
    np.testing.assert_allclose(T(x, [float(v) for v in times_m(c)]), (x + 1) / 2 * whole, atol=1e-12)


@pytest.mark.parametrize(("degree", "rounds"), [(3, 2), (7, 3), (15, 4)])
def test_polynomials_of_a_secret_matrix(degree: int, rounds: int) -> None:
    rng = np.random.default_rng(degree)
    q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    M = (q * np.linspace(0.001, 1, 6)) @ q.T
    M = (M + M.T) / 2
    machine = simulated(3)
    shared = machine.private(None, np.rint(M * 2.0**52).astype(np.int64), (6, 6), 52, 1)
    c = [Fraction(round(v * 2**50), 2**50) for v in rng.normal(size=degree + 1)]
    shared = machine.combine([(1.0, shared)], fraction=100, bits=1)
    p, mp = asyncio.run(evaluate(Basis(machine, shared, 100), [c, times_m(c)]))
    w, v = np.linalg.eigh(M)
    exact = (v * np.polynomial.chebyshev.chebval(2 * w - 1, [float(x) for x in c])) @ v.T
    np.testing.assert_allclose(p.share.astype(float) / 2.0**100, exact, atol=1e-11)
    np.testing.assert_allclose(mp.share.astype(float) / 2.0**100, M @ exact, atol=1e-11)
    assert machine.rounds == rounds


def test_the_schedules_reach_what_they_promise() -> None:
    for name, policy in POLICIES.items():
        row = schedule(policy.schedule)
        s = 2.0 ** np.linspace(row.range_log2, 0, 2000)
        for step in row.steps:
            s = s * np.polynomial.chebyshev.chebval(2 * s * s - 1, [float(c) for c in step])
        assert np.abs(s - 1).max() < 2.0**-20, name


def blocks_of(X: np.ndarray, parties: int) -> list[np.ndarray]:
    return np.array_split(X[np.random.default_rng(0).permutation(len(X))], parties)


def test_direct_agrees_with_scikit_learn_on_an_ill_conditioned_table() -> None:
    X = load_wine().data
    exact = PCA(13).fit(X)
    result, machine = simulate(lambda m, i, r: direct(m, i, 13, r), blocks_of(X, 3))
    assert machine.rounds == 4
    cosines = np.abs(np.sum(result.components * exact.components_, axis=1))
    assert cosines.min() > 1 - 1e-12
    unit = 4.0 ** exponent_of(X) * len(X) / (len(X) - 1)
    np.testing.assert_allclose(result.values * unit, exact.explained_variance_, rtol=1e-6)
    assert result.total_variance * unit == pytest.approx(exact.explained_variance_.sum(), rel=1e-12)
    offset = result.offset * 2.0 ** exponent_of(X)
    np.testing.assert_allclose(offset, result.components @ X.mean(axis=0), rtol=1e-9, atol=1e-9)


def test_strict_agrees_with_scikit_learn() -> None:
    X = load_digits().data
    exact = PCA(5).fit(X)
    result, machine = simulate(lambda m, i, r: strict(m, i, 5, r), blocks_of(X, 3))
    cosines = np.abs(np.sum(result.components * exact.components_, axis=1))
    assert cosines.min() > 1 - 1e-8
    assert machine.rounds <= 51
    assert result.certificate.bound < 0.014
    np.testing.assert_allclose(
        result.offset * 2.0 ** exponent_of(X), result.components @ X.mean(axis=0), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(result.components @ result.components.T, np.eye(5), atol=1e-9)


def made(spectrum: np.ndarray, seed: int = 0) -> np.ndarray:
    """Rows whose covariance has exactly this spectrum, up to scale, in a random basis."""
    rng = np.random.default_rng(seed)
    m = len(spectrum)
    basis, _ = np.linalg.qr(rng.normal(size=(m, m)))
    rows = rng.normal(size=(300, m))
    left, _, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    return (left * np.sqrt(spectrum)) @ basis.T + 0.1 * rng.normal(size=m)


@pytest.mark.parametrize(
    ("spectrum", "good"),
    [
        (0.7 ** np.arange(40.0), True),
        (1 / (1 + np.arange(40.0)), True),
        (np.ones(40), False),
        (np.array([1, 1 - 1e-7] + [0.1] * 38), False),
        (1 - 0.005 * np.arange(40.0), False),
    ],
    ids=["decay", "slow", "flat", "twins", "nearly flat"],
)
def test_the_certificate_tells_right_from_wrong(spectrum: np.ndarray, good: bool) -> None:
    X = made(spectrum)
    if not good:
        with pytest.raises(RunError, match="certified"):
            simulate(lambda m, i, r: strict(m, i, 2, r), blocks_of(X, 3))
        return
    result, _ = simulate(lambda m, i, r: strict(m, i, 2, r), blocks_of(X, 3))
    exact = PCA(2).fit(X)
    error = np.sqrt(2 * (1 - np.abs(np.sum(result.components * exact.components_, axis=1)).min()))
    assert error < result.certificate.bound < 0.014


def alike(spread: float) -> list[np.ndarray]:
    rows = np.random.default_rng(5).normal(size=(300, 44)) * 0.6 ** np.arange(44) * spread + 0.9
    return blocks_of(rows, 3)


def test_the_certificate_knows_what_doubles_lost_of_rows_that_are_much_alike() -> None:
    bounds = [
        simulate(lambda m, i, r: strict(m, i, 2, r), alike(spread))[0].certificate.bound
        for spread in (1e-2, 1e-5)
    ]
    assert bounds[0] < bounds[1] < 0.014


def test_rows_too_alike_for_their_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="differ too little"):
        simulate(lambda m, i, r: strict(m, i, 2, r), alike(1e-7))


def test_no_repr_shows_rows_or_seeds() -> None:
    inputs = Inputs(3, 2, ("a", "b"), "a", None, b"secret rotation seed")
    sums = OwnSums(quick_moments(np.array([[77777, 1], [2, 3]])), np.array([[77777, 1]]))
    assert "secret" not in repr(inputs)
    assert "77777" not in repr(sums)
