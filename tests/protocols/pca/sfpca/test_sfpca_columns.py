"""SF-PCA on columns without its cryptography: exact sums, bounds, pieces of rows, rings for many parties."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from tests.support.sfpca_runs import direct, simulate_columns, strict

from atoll.errors import ParameterError, RangeOverflow
from atoll.protocols.pca.sfpca.planner import Counted
from atoll.protocols.pca.sfpca.recipes import columns, vertical
from atoll.protocols.pca.sfpca.recipes import direct as direct_recipe
from atoll.protocols.pca.sfpca.recipes import strict as strict_recipe
from atoll.protocols.pca.sfpca.recipes.columns import Split, evenly_split, own_columns
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES

DIGITS = load_digits().data[:400]


def cosines(found: Any, X: np.ndarray, k: int) -> np.ndarray:
    return np.abs(np.sum(found.components * PCA(k).fit(X).components_, axis=1))


def test_a_party_takes_its_own_means_away_exactly() -> None:
    A = np.random.default_rng(1).integers(-(2**60), 2**60, (301, 3))
    moments, table = own_columns(A, 2, 7)
    exact = A.astype(object)
    assert list(moments.u) == [0, 0, *exact.sum(axis=0), 0, 0]
    # Half a unit of the grid, which is 2^-60 of the range.
    assert np.abs(301 * table.astype(object) - (301 * exact - exact.sum(axis=0))).max() <= 301 / 2 + 1
    assert moments.squares == pytest.approx((table.astype(object) ** 2).sum(), rel=1e-14)


@pytest.mark.parametrize("recipe", [direct, strict])
def test_pieces_and_groups_of_rows_add_up(recipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = DIGITS[:130, 20:32] * 0.4 ** np.arange(12)
    monkeypatch.setattr(vertical, "_PIECE_ROWS", 16)
    monkeypatch.setattr(columns, "_BATCH_VALUES", 300)
    k = 2
    found, _ = simulate_columns(
        lambda machine, inputs, who: recipe(machine, inputs, k, who), np.array_split(X, 3, axis=1)
    )
    assert cosines(found, X, k).min() > 1 - 1e-8
    np.testing.assert_allclose(found.offset, found.components @ X.mean(axis=0) / 16, atol=1e-12)


@pytest.mark.parametrize("case", ["fewer rows than columns", "rank-deficient", "constant columns"])
def test_the_strict_recipe_takes_awkward_tables(case: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 44)) * 0.6 ** np.arange(44)
    if case == "fewer rows than columns":
        X = X[:33]
    elif case == "rank-deficient":
        X = X[:, :9] @ rng.normal(size=(9, 44))
    else:
        X[:, ::3] = 5.0
    found, _ = simulate_columns(
        lambda machine, inputs, who: strict(machine, inputs, 2, who), np.array_split(X, 3, axis=1)
    )
    assert cosines(found, X, 2).min() > 0.9999


def test_every_bound_holds_by_a_margin() -> None:
    """Bounds that the masks are made for; one column that has nearly all the variance is the worst case."""
    X = DIGITS[:200, 18:60] * np.where(np.arange(42) == 7, 1.0, 0.02)
    _, machine = simulate_columns(
        lambda machine, inputs, who: strict(machine, inputs, 1, who), np.array_split(X, 2, axis=1)
    )
    # Both are declared to stay below two; proven: below one.
    assert machine.largest["P X^T"] < 1
    assert machine.largest["P C"] < 1


def test_columns_of_few_values_are_not_rescaled_by_rounding() -> None:
    values = np.tile([0.3, -0.3], 40_000).reshape(-1, 2)
    rounded = vertical.dithered(values, bytes(32), "test")
    assert set(np.unique(rounded)) == {-1, 0, 1}
    np.testing.assert_allclose(rounded.mean(axis=0), [0.3, -0.3], atol=0.01)


def test_a_table_beyond_the_opened_variance_stops_before_it_is_sent() -> None:
    table = np.full((10, 2), 1 << 58)
    split = Split(10, ("a", "b"), (2, 2), 60, {"a": table})
    vertical.check_norm(split, 2.0**-60 / np.sqrt(10 * 0.125))
    with pytest.raises(RangeOverflow, match="nothing more was sent"):
        vertical.check_norm(split, 2.0**-60 / np.sqrt(10 * 0.124))
    assert repr(split) == "Split(10 rows, 2 owners, 4 columns)"


def test_a_variance_far_below_the_range_is_said() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * [0.0, 2.0**-42, 2.0**-42] + [1.0, 0.0, 0.0]
    with pytest.raises(ParameterError, match="no variance, or too little for its declared range"):
        simulate_columns(lambda machine, inputs, who: direct(machine, inputs, 1, who), [X[:, :1], X[:, 1:]])


RECIPES: dict[str, Callable[[Counted, Any], Any]] = {
    "direct": lambda machine, inputs: direct_recipe.direct(machine, inputs, 20),
    "default": lambda machine, inputs: strict_recipe.strict(machine, inputs, 20, POLICIES["default"]),
    "accurate": lambda machine, inputs: strict_recipe.strict(machine, inputs, 20, POLICIES["accurate"]),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("parties", [2, 50])
def test_a_million_rows_of_many_parties_fit_the_rings(recipe: str, parties: int) -> None:
    machine = Counted([f"p{i}" for i in range(parties)])
    split = evenly_split(machine.providers, 60, 10**6)
    inputs = direct_recipe.Inputs(10**6, 60, machine.providers, "nobody", None, None, split=split)
    asyncio.run(RECIPES[recipe](machine, inputs))
    assert machine.messages > parties * 100
