"""Least squares with rows split of which coefficients alone are opened, against scikit-learn's."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from sklearn import linear_model
from sklearn.datasets import load_diabetes
from tests.support.examples import EXAMPLES

import atoll
from atoll.errors import DataError, NotReleased, ParameterError, RunError, StudyError
from atoll.protocols import resolve
from atoll.protocols.learning.encrypted.moments import (
    Moments,
    Scales,
    coefficients,
    own_moments,
    rows_counted,
)
from atoll.secret_matrices.simulated import Simulated

X, Y = load_diabetes(return_X_y=True, scaled=False)
STANDARD = (X - X.mean(axis=0)) / X.std(axis=0)


def cut(values: Any, n: int = 3) -> list[Any]:
    return [values[part] for part in np.array_split(np.random.default_rng(1).permutation(len(values)), n)]


def own_factor_of(share: float) -> Any:
    """The factor that an island draws with so much of its 20 bits."""
    return np.array([[round(2.0 ** (20 * share + 32))]], dtype=object)


def test_coefficients_are_those_of_the_pooled_rows() -> None:
    model = atoll.LinearRegression(solver="encrypted", condition_bits=16).fit(cut(STANDARD), cut(Y))
    pooled = linear_model.LinearRegression().fit(STANDARD, Y)
    np.testing.assert_allclose(model.coef_, pooled.coef_, atol=1e-7)
    assert model.intercept_ == pytest.approx(pooled.intercept_, abs=1e-7)
    assert model.score(STANDARD, Y) == pytest.approx(pooled.score(STANDARD, Y))
    assert model.n_samples_ == len(Y)
    assert "fit" not in model.result_
    with pytest.raises(NotReleased, match="coefficients only"):
        model.summary()


@pytest.mark.parametrize("alpha", [0.0, 3.0, 1e7])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("islands", [2, 8])
def test_columns_as_they_are_within_the_bounds_of_the_program(
    alpha: float, intercept: bool, islands: int
) -> None:
    """On the machine that works in the clear, rounds like a real one, and refuses numbers beyond bounds."""
    table = np.column_stack([X, Y])
    exponents = tuple(int(e) for e in np.ceil(np.log2(np.abs(table).max(axis=0))))
    scales = Scales(len(X), exponents, alpha, intercept).raised()
    largest = own_factor_of(1.0)
    own = [own_moments(part, scales, i == 0, largest) for i, part in enumerate(cut(table, islands))]
    both = Moments(*(sum(parts) for parts in zip(*own, strict=True)))
    machine = Simulated(islands, np.random.default_rng(0).random)

    async def fitted() -> list[Any]:
        await machine.set_up()
        assert await rows_counted(machine, scales.n, both)
        assert not await rows_counted(machine, scales.n + 1, both)
        found = await coefficients(machine, scales, both, 20)
        return [None if x is None else await machine.released(x, frozenset()) for x in found]

    w, c = asyncio.run(fitted())
    kind: Any = linear_model.Ridge(alpha, solver="cholesky") if alpha else linear_model.LinearRegression()
    pooled = kind.set_params(fit_intercept=intercept).fit(X, Y)
    np.testing.assert_allclose(scales.restored(w[:, 0]), pooled.coef_, rtol=1e-7, atol=1e-7)
    if intercept:
        noise = islands * 2.0**-30  # half a unit of 2^-29 for each island, in units of the target
        assert c[0, 0] == pytest.approx(pooled.intercept_ / 2.0 ** exponents[-1], abs=noise)


def test_what_cannot_be_decided_or_read_is_named() -> None:
    doubled = np.column_stack([STANDARD[:, :2], STANDARD[:, 0] - STANDARD[:, 1]])
    fits = atoll.LinearRegression(solver="encrypted", condition_bits=8)
    with pytest.raises(RunError, match="leave a coefficient undecided"):
        fits.fit(cut(doubled), cut(Y))
    with pytest.raises(DataError, match="4 rows for 11 coefficients"):
        fits.fit([STANDARD[:2], STANDARD[2:4]], [Y[:2], Y[2:4]])
    gone = STANDARD.copy()
    gone[7, 2] = np.nan
    with pytest.raises(DataError, match=r"island-0.*'x2'"):
        fits.fit([gone[:200], gone[200:]], [Y[:200], Y[200:]])
    with pytest.raises(DataError, match=r"'target'.*text|text.*'target'"):
        fits.fit([STANDARD[:200], STANDARD[200:]], [["a"] * 200, ["b"] * 242])
    with pytest.raises(ParameterError, match="columns hold numbers"):
        atoll.Ridge(solver="encrypted", missing="drop").fit(cut(STANDARD), cut(Y))
    with pytest.raises(ParameterError, match="condition_bits=99"):
        atoll.Ridge(solver="encrypted", condition_bits=99).fit(cut(STANDARD), cut(Y))


@pytest.mark.parametrize("secure_sum", ["paillier", "lattice"])
def test_a_sum_that_cannot_take_ranges_is_refused_before_the_run(secure_sum: str) -> None:
    """It ended with an overflow, after keys had been made and every table read."""
    example = EXAMPLES["least-squares-encrypted-rows"]()
    study = structs.replace(example.study, secure_sum=secure_sum)
    words = f"secure_sum = '{secure_sum}' needs room for carries.*'shares', 'masks' or 'mix'"
    with pytest.raises(StudyError, match=words):
        resolve(study)
