"""A rotation coarser than what is opened after it gives the matrix away, up to a yes or no per guess.

Z = H C H^T is opened to about 2^-52. Were H on a grid of 2^-30, a guess at C would be right or wrong
visibly: H is then known up to a few grid units (from the eigenvectors of Z and C), and the digits of Z
below 2^-30 are linear equations for those units, which lattice reduction solves in small whole numbers for
the true C and for no other matrix of the same spectrum.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.support.sfpca_runs import direct, encrypted, exponent_of

from atoll.protocols.pca.sfpca.recipes import direct as direct_recipe
from atoll.secret_matrices import rotations

GRID = 30
EQUATION_BITS = 16
"""Digits of Z below the grid that the attack uses; the opened matrix has 21 of them."""
SMALL = 64.0
"""Grid units: the true rotation is a few away from the guess, any other solution hundreds (for m up to 4)."""


def reduced(basis: np.ndarray) -> np.ndarray:
    """LLL: a basis of short vectors of the same lattice."""
    rows, k = basis.astype(float), 1
    while k < len(rows):
        for j in range(k - 1, -1, -1):
            r = np.linalg.qr(rows[: k + 1].T, mode="r")
            rows[k] -= round(r[j, k] / r[j, j]) * rows[j]
        r = np.linalg.qr(rows[: k + 1].T, mode="r")
        if r[k, k] ** 2 + r[k - 1, k] ** 2 >= 0.75 * r[k - 1, k - 1] ** 2:
            k += 1
        else:
            rows[[k - 1, k]] = rows[[k, k - 1]]
            k = max(k - 1, 1)
    return rows


def distance(Z: np.ndarray, C: np.ndarray, signs: tuple[int, ...], bits: int) -> float:
    """How far (in grid units) a rotation on the grid is that turns C into Z, if these signs are right."""
    m = len(C)
    U, V = np.linalg.eigh(Z)[1], np.linalg.eigh(C)[1]
    near = np.rint((U * np.array(signs)) @ V.T * 2.0**bits) * 2.0**-bits
    upper = np.triu_indices(m)
    # J C H^T + H C J^T = (Z - H C H^T) 2^bits for the unknown units J.
    known = (Z - near @ C @ near.T)[upper] * 2.0**bits
    columns = []
    for place in range(m * m):
        J = np.zeros((m, m))
        J.flat[place] = 1
        turned = J @ C @ near.T
        columns.append((turned + turned.T)[upper])
    scale = 2.0**EQUATION_BITS
    units = np.hstack([np.eye(m * m), np.rint(np.array(columns) * scale), np.zeros((m * m, 1))])
    target = np.hstack([np.zeros(m * m), np.rint(known * scale), [SMALL / 4]])
    short = reduced(np.vstack([units, target]))
    hits = [np.linalg.norm(row) for row in short if abs(row[-1]) == SMALL / 4]
    return float(min(hits, default=np.inf))


def fits(Z: np.ndarray, C: np.ndarray, bits: int = GRID) -> bool:
    """The attacker's verdict on a guess: some choice of signs leads to a rotation on the grid."""
    return any(distance(Z, C, (1, *signs), bits) < SMALL for signs in product((1, -1), repeat=len(C) - 1))


def coarse_rotation(seed: bytes, size: int, fraction: int) -> Any:
    """What must not be done: the digits below 2^-30 left out."""
    return rotations.rotation(seed, size, GRID) << (fraction - GRID)


def opened_matrix(X: np.ndarray, monkeypatch: pytest.MonkeyPatch, rotation: Any) -> tuple[Any, Any]:
    """What a coalition has after a run: C's rotation by the other island's H alone, and (to compare) C."""
    made: dict[str, Any] = {}

    def remembered(seed: bytes, size: int, fraction: int) -> Any:
        made[seed.hex()] = rotation(seed, size, fraction)
        return made[seed.hex()]

    async def tapped(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        opened = machine.opened_symmetric
        seen: list[Any] = []

        async def tap(x: Any, *, smudge_bits: int) -> Any:
            seen.append(await opened(x, smudge_bits=smudge_bits))
            return seen[-1]

        machine.opened_symmetric = tap
        await direct(machine, inputs, 1, receivers)
        seed = inputs.rotation_seed
        return seen[-1], None if seed is None else made[seed.hex()].astype(float) / 2.0**120

    monkeypatch.setattr(direct_recipe, "rotation", remembered)
    results, _ = encrypted(tapped, [X[:50], X[50:]])
    Z, first = results["p0/provider"]
    centred = X / 2.0 ** exponent_of(X)
    scatter = len(X) * centred.T @ centred - np.outer(centred.sum(axis=0), centred.sum(axis=0))
    power = 2.0 ** np.rint(np.log2(np.trace(Z) / np.trace(scatter)))
    # Island 0 takes its own rotation off: H = H_0 H_1.
    return np.linalg.solve(first, np.linalg.solve(first, Z).T), power * scatter


def other_of_the_same_spectrum(C: np.ndarray, seed: int) -> np.ndarray:
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=C.shape))
    return np.asarray(turn @ C @ turn.T)


def table(m: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(100, m)) * np.linspace(1, 2, m) @ rng.normal(size=(m, m))


@pytest.mark.parametrize("m", [2, 3])
def test_a_coarse_rotation_gives_the_matrix_away(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Z, C = opened_matrix(table(m, m), monkeypatch, coarse_rotation)
    assert fits(Z, C)
    assert not any(fits(Z, other_of_the_same_spectrum(C, seed)) for seed in range(3))


@pytest.mark.parametrize("m", [2, 3])
def test_our_rotation_does_not(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Z, C = opened_matrix(table(m, m), monkeypatch, rotations.rotation)
    np.testing.assert_allclose(np.linalg.eigvalsh(Z), np.linalg.eigvalsh(C), rtol=1e-9)
    for bits in (GRID, 34):  # no grid fits the true matrix any better than another
        assert not fits(Z, C, bits)
        assert not fits(Z, other_of_the_same_spectrum(C, 1), bits)
