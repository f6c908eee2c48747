"""Randomised PCA in the clear: right where power iterations settle, and the same as the routines on slots."""

from __future__ import annotations

import numpy as np
from tests.support.slot_routines import decomposed, inputs, symmetric
from tests.support.slot_runs import clear, provider

from atoll.protocols.pca.sfpca.paper.reference import eigenvectors, rpca
from atoll.secret_matrices.slots.approximations import Recording


def test_components_are_the_exact_ones_once_iterations_settle() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 9)) @ np.diag(2.0 ** -np.arange(9)) + 5.0
    sketch = np.zeros((6, 400))
    sketch[rng.integers(0, 6, 400), np.arange(400)] = rng.choice([-1, 1], 400)
    exact = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :3].T
    W = rpca(X, sketch, iterations=8, components=3, steps=1)
    np.testing.assert_allclose(W @ W.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(W * exact, axis=1)), 1.0, atol=1e-6)


def test_few_iterations_may_find_the_second_component_first() -> None:
    """So does the paper's algorithm: an eigenvector's place is where a shifted step found it."""
    M = np.array([[1.73, 0.01], [0.01, 2.09]])
    first, second = eigenvectors(M, 5)
    assert abs(first @ M @ first) < abs(second @ M @ second)


def test_eigenvectors_are_those_of_the_routine_on_slots() -> None:
    M = symmetric(5)
    given = inputs(M)
    Q = np.array(clear(decomposed(5, 8, Recording()), given).results[provider(0)])[:5]
    np.testing.assert_allclose(Q @ Q.T, np.eye(5), atol=1e-9)
    overlap = np.abs(Q @ eigenvectors(M, 8).T)
    np.testing.assert_allclose(overlap.max(axis=1), 1.0, atol=1e-6)
