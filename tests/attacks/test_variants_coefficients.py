"""Coefficients of whole-number columns as a knapsack, on both sides of the line, by an independent lattice
reduction (FLINT's): every normal equation is a relation between whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.attacks.lattices import retried
from tests.support.examples import EXAMPLES, Example, learning_columns

import atoll
from atoll.data.island import as_islands
from atoll.protocols import protocol_of
from atoll.protocols.learning.encrypted import prepared
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address

ROWS, MIDDLE, VARIANCE = 300, 1.5, 1.25
"""Columns hold 0 to 3, each as often; the target is the first column and as much again by chance."""


def table(d: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(d)
    X = draw.integers(0, 4, (ROWS, d)).astype(float)
    return X, X[:, 0] + draw.integers(0, 4, ROWS)


class Unknown:
    """Products of columns, their sums, their products with the target, and its sum: whole numbers."""

    def __init__(self, d: int) -> None:
        self.d, self.pairs = d, [(i, j) for i in range(d) for j in range(i, d)]
        self.size = len(self.pairs) + 2 * d + 1
        self.rows: list[Any] = []
        self.targets: list[Any] = []

    def true(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        P = X.T @ X
        return np.array([*(P[i, j] for i, j in self.pairs), *X.sum(axis=0), *(X.T @ y), y.sum()])

    def row(self, P: Any = (), s: Any = (), q: Any = (), sy: float = 0.0) -> Any:
        """Coefficients by place: products (i, j), sums i, products with the target i, the target's sum."""
        row = np.zeros(self.size, dtype=np.longdouble)
        for (i, j), value in dict(P).items():
            row[self.pairs.index((min(i, j), max(i, j)))] += value
        for start, given in ((len(self.pairs), s), (len(self.pairs) + self.d, q)):
            for i, value in dict(given).items():
                row[start + i] += value
        row[-1] = sy
        return row

    def add(self, row: Any, value: float, width: float) -> None:
        self.rows.append(row / width)
        self.targets.append(np.longdouble(value) / width)

    def suppose(self) -> None:
        """For whoever knows the population: only what chance made of the rows is unknown."""
        n, m, chance, y = ROWS, MIDDLE, np.sqrt(ROWS), 2 * MIDDLE
        for i, j in self.pairs:
            s = {i: -2 * m} if i == j else {i: -m, j: -m}
            row = self.row({(i, j): 1.0}, s)
            self.add(row, n * VARIANCE * (i == j) - n * m * m, chance * (1.0 if i == j else VARIANCE))
        for i in range(self.d):
            self.add(self.row(s={i: 1.0}), n * m, chance * np.sqrt(VARIANCE))
            row = self.row(s={i: -y}, q={i: 1.0}, sy=-m)
            self.add(row, n * VARIANCE * (i == 0) - n * m * y, chance * 1.5 * VARIANCE)
        self.add(self.row(sy=1.0), n * y, chance * 1.5 * np.sqrt(VARIANCE))

    def released(self, w: np.ndarray, c: float, bits: int) -> None:
        """The normal equations, with coefficients and intercept of so many bits after the point."""
        width = 6 * ROWS * 2.0**-bits
        for i in range(self.d):
            P = {(i, j): np.longdouble(w[j]) for j in range(self.d)}
            self.add(self.row(P, {i: np.longdouble(c)}, {i: -1.0}), 0.0, width)
        s = {j: np.longdouble(w[j]) for j in range(self.d)}
        self.add(self.row(s=s, sy=-1.0), -ROWS * np.longdouble(c), width)

    def solved(self, tries: int) -> np.ndarray:
        return retried(np.array(self.rows), np.array(self.targets, dtype=np.longdouble), tries)


def share_found(w: np.ndarray, c: float, bits: int, tries: int) -> float:
    X, y = table(len(w))
    unknown = Unknown(len(w))
    unknown.suppose()
    unknown.released(w, c, bits)
    return float((unknown.solved(tries) == unknown.true(X, y)).mean())


def rounded(d: int, bits: int) -> tuple[np.ndarray, float]:
    """Least squares with noise over the digits that encrypted least squares does not release."""
    X, y = table(d)
    solved = np.linalg.lstsq(np.column_stack([X, np.ones(ROWS)]), y, rcond=None)[0]
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, d + 1) * 2.0**-bits
    return solved[:-1] + noise[:-1], float(solved[-1] + noise[-1])


@pytest.mark.parametrize(
    ("d", "bits", "all_of_them"), [(3, 30, True), (5, 30, False), (6, 44, True), (9, 44, False)]
)
def test_the_line_is_where_the_threat_model_says(d: int, bits: int, all_of_them: bool) -> None:
    """Encrypted least squares releases 30 to 44 bits: all sums and products of up to three and seven columns
    of 0 to 3 come back, and of a few more next to none, even for whoever knows the population."""
    found = share_found(*rounded(d, bits), bits, tries=2)
    assert found == 1.0 if all_of_them else found < 0.2


def test_coefficients_of_a_plain_fit_say_all_sums_and_products() -> None:
    """Doubles, to a consumer that is given the model alone; its server has the products anyway."""
    X, y = table(4)
    model = atoll.LinearRegression().fit(np.array_split(X, 3), np.array_split(y, 3))
    assert share_found(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), 44, tries=2) == 1.0
    said = [one.learns for one in protocol_of("least-squares").learns(EXAMPLES["least-squares"]().study)]
    assert any("whole numbers" in words for words in said)


# ---- the intercept alone ----


def sums_that_fit(released: list[float]) -> np.ndarray:
    """All sums of three columns of zeros and ones that make the target's sum a whole number, to within what
    a double's digits leave open."""
    c, *w = released
    at = np.arange(BINARY_ROWS + 1.0)
    total = (w[0] * at)[:, None, None] + (w[1] * at)[:, None] + w[2] * at + BINARY_ROWS * c
    return np.argwhere(np.abs(total - np.rint(total)) < 1e-10)


BINARY_ROWS = 200


def fitted_by_columns() -> tuple[np.ndarray, list[float]]:
    """Three islands with a column of zeros and ones each; all sums, and the model as a consumer has it."""
    draw = np.random.default_rng(1)
    X = (draw.random((BINARY_ROWS, 3)) < [0.3, 0.5, 0.6]).astype(float)
    y = X[:, 0] + 2 * X[:, 1] + draw.integers(0, 3, BINARY_ROWS)
    example = learning_columns("least-squares-encrypted", condition_bits=20, y_holder="hospital-0")
    frames = {f"hospital-{i}": pd.DataFrame({f"c{i}": X[:, i]}) for i in range(3)}
    frames["hospital-0"]["stay"] = y
    study = Example(example.study, as_islands(frames))
    outcome = LocalEngine().run(protocol_of(study.study.protocol), study.study, study.own)
    model = outcome.learned[Address("consumer", "consumer")].outputs["model"]
    return X.sum(axis=0), [float(value) for value in model["coefficients"]]


def test_an_intercept_with_a_doubles_digits_said_the_sums_of_all_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Coefficients had noise; the intercept was made from them, as they were released, to the last digit."""
    monkeypatch.setattr(prepared, "blurred", lambda offset, *_: offset)
    sums, released = fitted_by_columns()
    np.testing.assert_array_equal(sums_that_fit(released), [sums])


def test_an_intercept_has_no_more_digits_than_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, blurred = list[bytes](), prepared.blurred
    monkeypatch.setattr(prepared, "blurred", lambda *given: (seeds.append(given[-1]), blurred(*given))[1])
    sums, released = fitted_by_columns()
    assert sums.tolist() not in sums_that_fit(released).tolist()
    assert len(set(seeds)) == 3  # every island adds its own


def test_the_intercepts_noise_is_as_wide_as_it_should_be() -> None:
    """A target of 2^6 in 64 rows: 8 in a row; 2^-29 of that at 20 bits, 2^-39 at 12."""
    for limit, bits in ((20, 29), (12, 39)):
        seeds = (i.to_bytes(32, "little") for i in range(400))
        noise = [float(prepared.blurred(np.zeros(1), 6, 64, limit, seed)[0]) for seed in seeds]
        assert 0.45 < np.max(np.abs(noise)) / (8 * 2.0**-bits) <= 0.5
        assert abs(np.mean(noise)) < 0.05 * 8 * 2.0**-bits
