"""What the recipe "opened-sketch" shows: the eigenvalues of the sketch's Gram matrix.

All islands but one know their parts K of the sketch P0 = K + G. The spectrum of P0 C^6 P0^T depends on C's
eigenvalues, which Ritz values say anyway, and on how long P0 is along each eigenvector; of that they know
K's part. So they can test guesses of the covariance, the better the more islands there are. The threat model
says how many bits; here the attack is carried out. And the coordinator, which computes the matrix that
stretches the sketch's rows, cannot make them longer than their masks allow.
"""

from __future__ import annotations

import asyncio
from math import log2
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca
from tests.support.sfpca_runs import simulate, strict

from atoll.errors import MessageError, StudyError
from atoll.protocols.pca.sfpca.disclosure import spectrum_words
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters, check, decide
from atoll.protocols.pca.sfpca.recipes import direct
from atoll.protocols.pca.sfpca.recipes.covariance import OPENED_SKETCH, POLICIES
from atoll.protocols.pca.sfpca.recipes.strict import least_square, longest_square, stretched
from atoll.secret_matrices.rotations import rotation
from atoll.secret_matrices.simulated import Simulated
from atoll.study.model import Party

ROWS, COLUMNS, GUESSES = 12, 40, 60


def spectrum(P0: np.ndarray, C: np.ndarray) -> np.ndarray:
    return np.log(np.linalg.eigvalsh(P0 @ np.linalg.matrix_power(C, 6) @ P0.T))


def rank_of_the_truth(islands: int, known: int, seed: int) -> int:
    """Its place among guesses of the same eigenvalues, by the likelihood of what was opened."""
    rng = np.random.default_rng(seed)
    values = 0.85 ** np.arange(COLUMNS)

    def covariance() -> np.ndarray:
        basis, _ = np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))
        return (basis * values) @ basis.T

    def part() -> np.ndarray:
        return rng.normal(size=(ROWS, COLUMNS)) / np.sqrt(islands)

    parts, truth = [part() for _ in range(islands)], covariance()
    seen, own = spectrum(sum(parts), truth), sum(parts[:known])

    def score(C: np.ndarray) -> float:
        draws = 10 if known < islands else 1
        made = [spectrum(own + sum(part() for _ in range(islands - known)), C) for _ in range(draws)]
        spread = np.std(made, axis=0) + 1e-3
        return float(-(((seen - np.mean(made, axis=0)) / spread) ** 2 / 2 + np.log(spread)).sum())

    true = score(truth)
    return 1 + sum(score(covariance()) > true for _ in range(GUESSES))


def stated_bits(islands: int, directions: int) -> float:
    """The threat model's bound of what all islands but one learn of the hidden directions."""
    a, g = 1 - 1 / islands, 1 / islands
    return directions / 2 * log2(1 + 2 * a**2 / (4 * a * g + 2 * g**2))


def test_whoever_knows_the_whole_sketch_confirms_a_guess() -> None:
    assert [rank_of_the_truth(3, 3, seed) for seed in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("islands", [2, 3])
def test_who_knows_most_of_the_sketch_learns_no_more_bits_than_stated(islands: int) -> None:
    ranks = [rank_of_the_truth(islands, islands - 1, seed) for seed in range(8)]
    learned = np.mean([log2((GUESSES + 1) / rank) for rank in ranks])
    assert learned < stated_bits(islands, ROWS)
    assert np.median(ranks) > 3


def test_of_many_islands_all_but_one_confirm_a_guess() -> None:
    """Why the recipe has to be named, and its page says what it shows."""
    assert [rank_of_the_truth(50, 49, seed) for seed in range(3)] == [1, 1, 1]


# ---- what is opened, and who is told ----


class Tapped(Simulated):
    openings: list[tuple[int, int]]

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        self.openings.append(x.shape)
        return await super().opened(x, smudge_bits=smudge_bits)


def test_it_opens_one_spectrum_more_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.sfpca_runs.Simulated", Tapped)
    Tapped.openings = []
    rows = np.random.default_rng(1).normal(size=(200, 40)) * 0.8 ** np.arange(40)
    found, machine = simulate(
        lambda m, i, r: strict(m, i, 2, r, POLICIES[OPENED_SKETCH]), [rows[:90], rows[90:]]
    )
    triangle = (26 * 27 // 2, 1)
    assert machine.openings == [(1, 1), triangle, triangle, (1, 1)]
    _, _, exact = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    assert np.abs(np.sum(found.components * exact[:2], axis=1)).min() > 0.9999


def test_each_spectrum_is_opened_under_a_rotation_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two matrices opened in one unknown basis say how their eigenvectors lie to each other."""
    seeds: list[bytes] = []

    def noted(seed: bytes, size: int, fraction: int) -> Any:
        seeds.append(seed)
        return rotation(seed, size, fraction)

    monkeypatch.setattr(direct, "rotation", noted)
    rows = np.random.default_rng(2).normal(size=(60, 30)) * 0.8 ** np.arange(30)
    simulate(lambda m, i, r: strict(m, i, 2, r, POLICIES[OPENED_SKETCH]), [rows[:30], rows[30:]])
    first, second = seeds[: len(seeds) // 2], seeds[len(seeds) // 2 :]
    assert first
    assert not set(first) & set(second)


def test_nobody_takes_it_unless_the_study_names_it() -> None:
    named = SFPCAParameters(n_components=2, recipe=OPENED_SKETCH)
    assert decide(named, 1000, 200).recipes == (OPENED_SKETCH, "accurate")
    for recipe in ("auto", "strict", "fast", "accurate"):
        assert OPENED_SKETCH not in decide(SFPCAParameters(n_components=2, recipe=recipe), 1000, 200).recipes
    assert "26 numbers more, the eigenvalues of the Gram matrix of the secret sketch" in spectrum_words(named)
    with pytest.raises(StudyError, match="allows Ritz values only"):
        check(sfpca(n_components=2, recipe=OPENED_SKETCH, spectrum="ritz").study)


# ---- a coordinator that stretches too much ----


class Forging(Simulated):
    factor = 1.0

    async def same(self, values: Any, *, recomputed: bool = True) -> Any:
        return values * self.factor


@pytest.mark.parametrize("factor", [1.0, 1.002, 16.0])
def test_rows_are_never_stretched_beyond_one(factor: float) -> None:
    machine = Forging(3, np.random.default_rng(0).random)
    machine.factor = factor
    basis, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(20, 20)))
    Z = (basis * 2.0 ** -np.linspace(3, 60, 20)) @ basis.T
    Z, least = (Z + Z.T) / 2, least_square(3, 20, 62)
    if factor > 1:
        with pytest.raises(MessageError, match="not that of the opened one"):
            asyncio.run(stretched(machine, Z, least))
        return
    root = asyncio.run(stretched(machine, Z, least))
    assert longest_square(root, Z, least) <= 1 - 2.0**-9
    assert longest_square(root, Z, least) > 0.99


def test_noise_of_all_parties_stays_below_what_is_added() -> None:
    for parties in (2, 6, 50):
        bits = 66
        worst = parties * 29 * 2.0 ** (bits - 1 - 120)
        assert worst <= least_square(parties, 29, bits) / 2


@pytest.mark.parametrize("islands", [7, 8])
def test_islands_of_whom_all_but_one_learn_a_bit_of_each_eigenvector_are_refused(islands: int) -> None:
    a, g = 1 - 1 / islands, 1 / islands
    bits = log2(1 + 2 * a**2 / (4 * a * g + 2 * g**2)) / 2
    study = sfpca().study
    named = tuple(Party(f"island-{i}", ("provider",)) for i in range(islands))
    others = tuple(party for party in study.parties if "provider" not in party.roles)
    parameters = {**study.parameters, "recipe": OPENED_SKETCH}
    study = structs.replace(study, parties=(*named, *others), parameters=parameters)
    if bits < 1:
        check(study)
        return
    with pytest.raises(StudyError, match="is for up to 7 islands"):
        check(study)
