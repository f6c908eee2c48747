"""SF-PCA where islands have fewer rows than columns: products with rows, no Gram matrix."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from sklearn.decomposition import PCA
from tests.support.sfpca_runs import exponent_of, own_moments, simulate, simulated, strict, total_moments

import atoll
from atoll.crypto.products import family
from atoll.errors import ParameterError, PrivacyWarning
from atoll.protocols.pca.sfpca.recipes.certificate import PublicTerms, rounding
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import Inputs
from atoll.protocols.pca.sfpca.recipes.rows import RowCovariance, covariance, prefers_rows
from atoll.secret_matrices.widths import layout_for

rng = np.random.default_rng


def table(n: int, m: int, *, mean: float = 0.0, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    draw = rng(seed)
    strong = draw.normal(size=(n, 4)) * (1.0, 0.7, 0.5, 0.3) @ draw.normal(size=(4, m))
    return strong + noise * draw.normal(size=(n, m)) + mean * draw.normal(size=m)


def product(blocks: list[np.ndarray], P: np.ndarray, policy: str = "default") -> tuple[np.ndarray, ...]:
    """P C by the program, P C in doubles, and the form."""
    X = np.vstack(blocks)
    exponent = exponent_of(X)
    moments = total_moments([own_moments(b, exponent, True) for b in blocks])
    names, sizes = tuple(f"p{i}" for i in range(len(blocks))), tuple(map(len, blocks))
    inputs = Inputs(len(X), X.shape[1], names, "simulated", moments, b"", sizes, plays=names)
    machine, chosen = simulated(len(blocks)), POLICIES[policy]

    async def run() -> tuple[np.ndarray, RowCovariance]:
        C = await covariance(machine, inputs, chosen)
        assert isinstance(C, RowCovariance)
        F = chosen.sketch_fraction
        left = machine.private(None, np.rint(P * 2.0**F), P.shape, F, 1)
        out = await C.times(machine, left)
        return np.asarray(out.share, dtype=float) * 2.0**-F, C

    found, C = asyncio.run(run())
    centred = (X - X[0]) * 2.0**-exponent  # exactly, where rows are alike
    centred -= centred.mean(axis=0)
    return found, P @ centred.T @ centred / (len(X) * C.scale), C


def unit_rows(rho: int, m: int) -> np.ndarray:
    P = rng(1).normal(size=(rho, m))
    return P / np.linalg.norm(P, axis=1)[:, None]


@pytest.mark.parametrize("mean", [0.0, 3.0, 1e4])
def test_products_with_rows_are_those_with_the_covariance(mean: float) -> None:
    X = table(40, 300, mean=mean)
    found, exact, C = product([X[:25], X[25:39], X[39:]], unit_rows(5, 300))
    # A row of C's root is sqrt(theta) long, so its error is twice the rows' rounding at most.
    assert np.abs(found - exact).max() < 2 * C.row_error + 2.0**-36
    assert C.row_error < 2.0**-8


def test_a_table_on_a_binary_grid_is_not_rounded() -> None:
    X = rng(3).integers(0, 3, size=(30, 200)).astype(float)
    found, exact, _ = product([X[:10], X[10:]], unit_rows(4, 200))
    assert np.abs(found - exact).max() < 2.0**-37


@pytest.mark.parametrize("kind", ["alike", "one huge row", "one column"])
def test_bounds_hold_on_tables_made_to_break_them(kind: str) -> None:
    # The simulation raises where a value is beyond the bound that its mask is made for.
    X = rng(5).normal(size=(40, 300))
    if kind == "alike":
        X = 1e3 + 1e-5 * X
    elif kind == "one huge row":
        X[7] *= 1e6
    else:
        X[:, 3] *= 1e6
    P = unit_rows(6, 300)
    centred = X - X.mean(axis=0)
    P[0] = np.linalg.svd(centred, full_matrices=False)[2][0]  # as long as it gets
    P[1] = X[7] / np.linalg.norm(X[7])
    found, exact, C = product([X[:20], X[20:]], P)
    assert np.abs(found - exact).max() < 2 * C.row_error + 2.0**-36


@pytest.mark.parametrize(("policy", "spread"), [("default", 1e-9), ("accurate", 5e-9)])
def test_column_sums_may_be_wider_than_a_word(policy: str, spread: float) -> None:
    X = 1e3 + spread * table(60, 300, noise=0.5, seed=3)
    found, exact, C = product([X[:30], X[30:]], unit_rows(4, 300), policy)
    entry_bits = C.straight[0].fraction - C.halvings
    assert 60 * 2.0**entry_bits * 1000 / 1024 > 2.0**63
    assert entry_bits <= 60
    assert np.abs(found - exact).max() < 2 * C.row_error + 2.0**-36


def test_rows_that_hardly_differ_within_their_range_are_refused() -> None:
    X = 1e3 + 1e-13 * rng(5).normal(size=(40, 300))
    with pytest.raises(ParameterError, match=r"no variance|differ too little"):
        product([X[:20], X[20:]], unit_rows(3, 300))


def test_the_rounding_term_covers_what_rounding_of_rows_does() -> None:
    # Rows of few distinct values off the grid: their errors are anything but independent.
    draw = rng(7)
    X = draw.integers(0, 3, size=(60, 400)) / 3.0
    X[:30, :200] += 0.5
    X[:20] *= 1.4
    coarse = POLICIES["default"]._replace(gram_fraction=10)
    centred = X - X.mean(axis=0)
    scale = (centred**2).sum()
    B = centred / np.sqrt(scale)
    exact = np.linalg.svd(B, full_matrices=False)
    grid = 2.0**-coarse.gram_fraction
    E = np.rint(X / np.sqrt(scale) / grid) * grid - X / np.sqrt(scale)
    rounded = np.linalg.svd(B + E - E.mean(axis=0), full_matrices=False)
    k, theta = 2, exact[1] ** 2
    moved = sum(1 - (exact[2][i] @ rounded[2][i]) ** 2 for i in range(k))
    public = PublicTerms(400, 2, 10, 3, -28.89, row_error=np.sqrt(X.size) * grid / 2)
    assert 0 < moved < rounding(theta[:20], float(theta[12]), k, public)


def test_strict_with_rows_equals_plain_pca() -> None:
    X = table(90, 300, mean=2.0, seed=2)
    blocks = [X[:50], X[50:89], X[89:]]
    found, machine = simulate(lambda m, i, r: strict(m, i, 3, r), blocks)
    assert "P A^T" in machine.largest
    exact = PCA(3).fit(X)
    assert np.abs(np.sum(found.components * exact.components_, axis=1)).min() > 1 - 1e-8
    np.testing.assert_allclose(
        found.offset * 2.0 ** exponent_of(X), found.components @ X.mean(axis=0), atol=1e-6
    )


def test_encrypted_rows_equal_plain_pca_with_an_island_of_one_row() -> None:
    X = table(40, 300, mean=1.0, seed=4)
    blocks = [X[:25], X[25:39], X[39:]]
    assert prefers_rows([len(b) for b in blocks], 300)
    with pytest.warns(PrivacyWarning, match="fewer than"):
        found = atoll.PCA(2, protocol="sfpca", bounds=float(np.abs(X).max())).fit(blocks)
    exact = PCA(2).fit(X)
    assert (
        np.abs(np.sum(found.components_ * exact.components_, axis=1)).min() > 1 - 1e-7
    )  # 26 digits are released
    np.testing.assert_allclose(found.explained_variance_, exact.explained_variance_, rtol=1e-6)


def test_the_choice_of_form_goes_by_public_sizes() -> None:
    assert prefers_rows((417,) * 6, 23770)
    assert prefers_rows((20, 19, 1), 300)
    assert not prefers_rows((10000,) * 6, 717)
    assert not prefers_rows((300, 10), 300)
    assert not prefers_rows((), 300)


@pytest.mark.parametrize("m", [2, 717, 23770, 30000])
def test_blocks_for_many_columns_are_found(m: int) -> None:
    for name in ("wide", "deep"):
        ring = family(name)[0]
        for inner, cols in (((m,), (417, 1)), ((1, 1516, 417), (m,)), ((m,), (m,))):
            y = layout_for(ring, 26, inner, cols, 4)
            assert y.block_rows * y.block_inner * y.block_cols <= ring.degree
            assert sum(-(-part // y.block_inner) for part in inner) <= 4096
