"""eigen = "encrypted" without its cryptography: vectors by deflation, the verdict's bit, bounds that hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.support.sfpca_runs import exponent_of, own_moments, simulated

from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.recipes import unopened as recipe
from atoll.protocols.pca.sfpca.recipes import verdict
from atoll.protocols.pca.sfpca.recipes.deflation import Course, projectors
from atoll.protocols.pca.sfpca.recipes.direct import Inputs
from atoll.protocols.pca.sfpca.recipes.unopened import EFFORTS, Effort
from atoll.secret_matrices.machine import Shared
from atoll.secret_matrices.simulated import Simulated

PARTIES = 6
FAST = EFFORTS["encrypted"]


def floats(x: Shared) -> np.ndarray:
    return np.array([[float(v / 2**x.fraction) for v in row] for row in x.share])


def found(X: np.ndarray, k: int, effort: Effort = FAST, seed: int = 3) -> tuple[Any, Simulated]:
    m, exponent = X.shape[1], exponent_of(X)
    names = tuple(f"p{i}/provider" for i in range(PARTIES))
    most = m * (np.abs(X).max() / 2.0**exponent) ** 2
    inputs = Inputs(
        *(len(X), m, names, "simulated", own_moments(X, exponent), bytes([seed]) * 32),
        plays=names,
        most_variance=most,
    )
    machine = simulated(PARTIES, seed)
    return asyncio.run(recipe.unopened(machine, inputs, k, effort)), machine


def rows_of(spectrum: list[float], n: int = 120) -> np.ndarray:
    rng, m = np.random.default_rng(5), len(spectrum)
    left, _, _ = np.linalg.svd(rng.normal(size=(n, m)), full_matrices=False)
    return (left * np.sqrt(spectrum)) @ np.linalg.qr(rng.normal(size=(m, m)))[0].T


def worst_cosine(components: np.ndarray, X: np.ndarray) -> float:
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][: len(components)]
    return float(np.abs((components * exact).sum(axis=1)).min())


def test_components_of_few_columns_are_exact_however_different_their_variances() -> None:
    X = rows_of([1.0, 0.05, 2e-3, 1e-4, 1e-6]) + 0.2
    result, _ = found(X, 4)
    W = floats(result.components)
    assert worst_cosine(W, X) > 1 - 1e-9
    np.testing.assert_allclose(W @ W.T, np.eye(4), atol=1e-9)
    offset = floats(result.offset)[:, 0] * result.offset_factor * 2.0 ** exponent_of(X)
    np.testing.assert_allclose(offset, W @ X.mean(axis=0), atol=1e-9)
    assert result.values is None
    assert result.total_variance is None


def test_components_of_a_sketch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "WHOLE_UP_TO", 0)
    X = load_digits().data[:300, 8:40]
    result, _ = found(X, 1)
    assert worst_cosine(floats(result.components), X) > 0.99999


@pytest.mark.parametrize(
    "spectrum",
    [
        [1.0, 1.0, 0.1, 0.01],  # no first vector
        [1.0, 0.3, 0.3 * (1 - 1e-7), 0.01],  # no second one
        [1.0, 0.0, 0.0, 0.0],  # there is no second one
        [1.0, 0.999, 0.998, 0.997],
    ],
)
def test_what_cannot_be_told_apart_is_refused_and_no_bound_breaks(spectrum: list[float]) -> None:
    with pytest.raises(CertificateRefused):
        found(rows_of(spectrum), 2)


def test_rows_that_are_all_alike_are_refused_and_no_bound_breaks() -> None:
    with pytest.raises(CertificateRefused):
        found(np.full((40, 3), 0.7), 2)


def test_bounds_hold_when_nothing_but_rounding_is_left() -> None:
    """Eight vectors of a matrix that has one: what is deflated again and again is noise."""
    machine = simulated(50)
    whole = np.zeros((9, 9), dtype=np.int64)
    whole[0, 0] = 1 << 59
    A = machine.private(None, whole, (9, 9), 60, 1)
    made = asyncio.run(projectors(machine, A, 8, Course(20, (3, 2, 1)), 0.0))
    assert np.abs(floats(made.X)).max() < 1.01
    assert max(machine.largest.values()) < 2.0**21  # the factors of a trace that is raised


def judged(value: float, n: int, seen: Callable[[float], None] = lambda _: None) -> bool:
    machine = simulated(n, seed=int(value * 1e6) % 1000)
    x = machine.private(None, [[int(value * 2**60)]], (1, 1), 60, 1)

    async def program() -> bool:
        said = await verdict.passes(machine, x)
        seen(machine.largest["verdict"])
        return said

    return asyncio.run(program())


@pytest.mark.parametrize("n", [2, 50])
def test_the_verdict_of_clear_cases(n: int) -> None:
    assert [judged(v, n) for v in (0.0, 0.3, 0.55, 0.72, 0.9, 1.0)] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("n", [2, 6, 50])
def test_every_point_of_the_grid_is_decided_to_the_last_digits(n: int) -> None:
    """No number, however near to the threshold, is opened as anything between zero and one."""
    digits = verdict.grid_digits(n)
    slack = 2**digits // 64
    points = [j * 2.0**-digits for j in range(-slack, 2**digits + slack + 1)]
    ends = np.array([15 / 16 * v + verdict.offset(digits) for v in points], dtype=np.longdouble)
    assert ends.min() > 0
    assert ends.max() < 1
    for turn in range(verdict.turns(digits)):
        ends = 1 - (1 - ends) ** 2 if turn % 2 else ends**2
    assert np.minimum(np.abs(ends), np.abs(1 - ends)).max() < 2.0**-55
    below = np.array(points) < verdict.THRESHOLD
    assert abs(int((ends < 0.5).sum()) - int(below.sum())) <= 2**digits // 16


def test_what_is_opened_says_the_bit_and_noise() -> None:
    """Openings of very different evidence on one side of the threshold have the same distribution."""
    opened: dict[float, list[float]] = {}
    for value in (0.7, 0.999):
        for seed in range(8):
            machine = simulated(3, seed)
            values: list[float] = []
            original = machine.opened

            async def noted(x: Shared, *, smudge_bits: int, original: Any = original) -> Any:
                exact = floats(x)
                values.append(float(exact[0, 0]))  # noqa: B023
                assert smudge_bits == 50
                return await original(x, smudge_bits=smudge_bits)

            machine.opened = noted  # type: ignore[method-assign]
            x = machine.private(None, [[int(value * 2**60)]], (1, 1), 60, 1)
            assert asyncio.run(verdict.passes(machine, x))
            opened.setdefault(value, []).extend(values)
    for values in opened.values():
        assert max(abs(v - 1) for v in values) < 2.0**-50
