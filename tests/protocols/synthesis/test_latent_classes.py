"""Latent classes: rows are dealt out evenly, and fitted classes say the tables of the rows, not the noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from atoll import randomness
from atoll.privacy.mechanisms import CURATOR
from atoll.protocols.synthesis import latent_classes, moments
from atoll.protocols.synthesis.latent_classes import drawn
from atoll.protocols.synthesis.moments import Plan

SIZES = (3, 4, 2, 3, 5, 4, 2, 5)
SEED = bytes(range(32))


def rows(n: int) -> np.ndarray:
    """Two groups of people, in which columns are independent."""
    rng = np.random.default_rng(6)
    group = rng.random(n) < 0.4
    columns = [
        np.where(group, rng.integers(0, k, n), np.minimum(rng.integers(0, 2, n), k - 1)) for k in SIZES
    ]
    return np.column_stack(columns)


def table(values: dict[str, np.ndarray], a: int, b: int) -> np.ndarray:
    parts = np.split(values["theta"], np.cumsum(SIZES)[:-1], axis=1)
    return np.asarray((parts[a] * values["pi"][:, None]).T @ parts[b])


def counted(codes: np.ndarray, a: int, b: int) -> np.ndarray:
    cells = np.bincount(codes[:, a] * SIZES[b] + codes[:, b], minlength=SIZES[a] * SIZES[b])
    return np.asarray(cells.reshape(SIZES[a], SIZES[b]) / len(codes))


def distance(values: dict[str, np.ndarray], codes: np.ndarray) -> float:
    pairs = itertools.combinations(range(len(SIZES)), 2)
    return float(np.mean([np.abs(table(values, a, b) - counted(codes, a, b)).sum() / 2 for a, b in pairs]))


def released(epsilon: float, n: int, seed: bytes = SEED) -> moments.Moments:
    plan = Plan(SIZES, epsilon, 1e-5, CURATOR)
    return moments.finish(plan, moments.contribution(plan, rows(n)) + plan.stage.draw_share(seed))


def test_every_cell_is_drawn_as_often_as_its_share_says_to_within_one_row() -> None:
    shares = np.array([[0.5, 0.25, 0.25], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
    which = np.repeat([2, 0, 1, 0], [333, 100, 57, 101])
    found = drawn(shares, which, randomness.public(3))
    for line, share in enumerate(shares):
        taken = np.bincount(found[which == line], minlength=3)
        assert np.abs(taken - share * (which == line).sum()).max() <= 1.0
        assert (taken[share == 0.0] == 0).all()
    # The order is drawn: rows of a line do not come cell by cell.
    assert len(set(found[which == 2][:50])) > 1
    assert (drawn(shares, which, randomness.public(3)) == found).all()


def test_classes_say_the_tables_of_the_rows() -> None:
    codes = rows(20_000)
    values = latent_classes.fit(released(5.0, 20_000), classes=8, fits=2)
    assert values["pi"].sum() == pytest.approx(1.0)
    assert len(values["pi"]) == 2 * 8
    assert distance(values, codes) < 0.01


def test_noise_is_not_fitted() -> None:
    """Over several releases whose tables, as released, are far from the rows."""
    codes, fitted, raw = rows(2_000), [], []
    for run in range(2):
        found = released(0.3, 2_000, bytes([run]) * 32)
        fitted.append(distance(latent_classes.fit(found, classes=8, fits=2), codes))
        raw.append(
            np.mean([_noisy(found, a, b, codes) for a, b in itertools.combinations(range(len(SIZES)), 2)])
        )
    assert np.mean(fitted) < 0.9 * np.mean(raw)


def _noisy(found: moments.Moments, a: int, b: int, codes: np.ndarray) -> float:
    A, B = moments.helmert(SIZES[a]), moments.helmert(SIZES[b])
    u, v = (found.mean[found.owner == c] for c in (a, b))
    inner = A @ found.second[np.ix_(found.owner == a, found.owner == b)] @ B.T
    noisy = 1 / (SIZES[a] * SIZES[b]) + (A @ u)[:, None] / SIZES[b] + (B @ v) / SIZES[a] + inner
    return float(np.abs(noisy - counted(codes, a, b)).sum() / 2)


def test_a_condition_tells_the_classes() -> None:
    """Bayes' rule: of the rows in cell 1 of the first column, nine in ten are of the second class."""
    first, second = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    values = {"pi": np.array([0.5, 0.5]), "theta": np.hstack([first, second])}
    weights = [np.array([0.0, 1.0]), np.ones(3)]
    found = latent_classes.sample(values, (2, 3), weights, 1_000, randomness.public(5))
    assert (found[:, 0] == 1).all()
    assert np.bincount(found[:, 1], minlength=3) == pytest.approx([100, 450, 450], abs=1)
