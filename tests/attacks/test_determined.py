"""Exact outputs on whole-number data are knapsacks: the attack, with an independent lattice reduction, on
both sides of the line that a study is refused at.

Below the line even an attacker who knows the population that the rows come from fails; one component beyond
it all sums and second moments come back.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.attacks.lattices import ignorant, knows_population, second_moments
from tests.support.sfpca_runs import simulate

import atoll
from atoll.errors import PrivacyError, StudyError
from atoll.protocols.pca.determined import Given, Table, line
from atoll.protocols.pca.sfpca import digits as released_digits
from atoll.protocols.pca.sfpca.parameters import SFPCAParameters
from atoll.protocols.pca.sfpca.recipes.direct import direct
from atoll.secret_matrices.simulated import Simulated

N, R = 910, 3
VALUES = np.arange(R + 1)


def independent(columns: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).choice(VALUES, size=(N, columns)).astype(float)


def related(columns: int) -> np.ndarray:
    """Answers of 0 to 3 that share four factors."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(N, 4)) @ rng.normal(size=(4, columns)) + rng.normal(size=(N, columns))
    middle, spread = rng.uniform(0.6, R - 0.6, columns), rng.uniform(0.5, 1.3, columns)
    return np.clip(np.rint(middle + spread * Y / Y.std(axis=0)), 0, R)


def simulated(X: np.ndarray, k: int, digits: Any) -> Any:
    """What the release code of a run hands out: components, offset, variances, total."""
    p = SFPCAParameters(digits=digits, accept_determined=True)

    async def program(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        found = released_digits.smudged(machine, p, await direct(machine, inputs, k))
        components = await machine.released(found.components, receivers)
        offset = await machine.released(found.offset, receivers)
        unit = 2.0**2
        whole = offset[:, 0] * found.offset_factor * unit
        return components, whole, found.values[:k] * unit**2, found.total_variance * unit**2

    return simulate(program, [X[: len(X) // 2], X[len(X) // 2 :]], exponent=2)[0]


def found_again(X: np.ndarray, outputs: Any, bits: int, prior: Any, tries: int = 1) -> float:
    """The part of the second moments and sums that the attack finds."""
    G, u = second_moments(outputs, len(X), R, bits, prior, tries)
    return float(np.mean(np.append((X.T @ X == G).ravel(), X.sum(axis=0) == u)))


def test_the_line_for_columns_of_0_to_3() -> None:
    at = {bits: line(Table(12, N, R), Given(bits)) for bits in (16, 20, 26, 52)}
    assert at == {16: 3, 20: 3, 26: 2, 52: 1}
    assert line(Table(8, N, R), Given(20)) == 2


def test_full_digits_give_all_moments_away() -> None:
    """As 0.1.0 released them: all 144 second moments and 12 sums from four components, with no knowledge."""
    X = related(12)
    assert found_again(X, simulated(X, 4, "full"), 52, ignorant(N, R)) == 1.0


def test_fewer_digits_hide_the_moments_that_full_ones_give_away() -> None:
    X = related(8)
    assert found_again(X, simulated(X, 2, "full"), 52, ignorant(N, R)) == 1.0
    assert found_again(X, simulated(X, 2, 16), 16, ignorant(N, R)) < 0.2


@pytest.mark.parametrize(("columns", "digits", "bits"), [(12, None, 26), (8, 20, 20)])
def test_whoever_knows_the_population_fails_below_the_line_and_not_above(
    columns: int, digits: Any, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reduction of 12 columns succeeds about every third time, for some signs and noise and not for
    others. Whoever tries several orders of the unknowns knows from the fit when it has succeeded."""
    monkeypatch.setattr("tests.support.sfpca_runs.fresh_seed", lambda: bytes(32))
    X, prior = independent(columns), knows_population(N, VALUES)
    at = line(Table(columns, N, R), Given(bits))
    below = found_again(X, simulated(X, at - 1, digits), bits, prior, tries=12)
    above = found_again(X, simulated(X, at + 1, digits), bits, prior, tries=12)
    assert below < 0.2
    assert above == 1.0


def test_two_studies_below_the_line_do_not_reach_it_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight columns, and of seven of them: a run cannot know of the other. Whole numbers that are not the
    moments fit the relations of both, so that no reduction tells them from the moments."""
    monkeypatch.setattr("tests.support.sfpca_runs.fresh_seed", lambda: bytes(32))
    X, prior, bits = independent(8), knows_population(N, VALUES), 18
    assert line(Table(8, N, R), Given(bits)) == line(Table(7, N, R), Given(bits)) == 2
    whole, seven = simulated(X, 1, bits), simulated(X[:, :7], 1, bits)
    G, _ = second_moments(whole, N, R, bits, prior, 12, [seven])
    assert np.mean(X.T @ X == G) < 0.2


def test_sixteen_runs_of_one_study_give_two_more_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is drawn once in a run, and anew in the next: it averages out as any noise does."""
    X = independent(4)[:200]
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:1]
    runs = []
    for seed in range(64):
        monkeypatch.setattr("tests.support.sfpca_runs.simulated", partial(machine_with, seed))
        W = simulated(X, 1, 20)[0]
        runs.append(W * np.sign(W @ exact.T))
    off = np.array(runs)[:, 0] - exact
    one, sixteen = np.sqrt(np.mean(off**2)), np.sqrt(np.mean(off.reshape(4, 16, 4).mean(axis=1) ** 2))
    assert 2.0**-20 * 0.3 < one < 2.0**-20 * 0.5  # of two providers: sqrt(2 / 12)
    assert 2 < one / sixteen < 8


def machine_with(seed: int, parties: int, _: int = 0) -> Any:
    return Simulated(parties, np.random.default_rng(seed).random)


# ---- the same with everything encrypted ----


def test_an_encrypted_run_is_refused_beyond_the_line_and_gives_the_moments_where_that_is_accepted() -> None:
    X = independent(8)
    islands = {"north": X[:400], "south": X[400:]}
    options: dict[str, Any] = {"protocol": "sfpca", "bounds": (0, R), "digits": 20}
    with pytest.raises(PrivacyError, match="say all second moments") as refused:
        atoll.PCA(3, **options).fit(islands)
    assert "n_components=1 or fewer" in str(refused.value.hint)
    pca = atoll.PCA(3, **options, accept_determined=True).fit(islands)
    unit = (N - 1) / N
    outputs = (pca.components_, pca.offset_, pca.explained_variance_ * unit, pca.total_variance_ * unit)
    assert found_again(X, outputs, 20, knows_population(N, VALUES)) == 1.0
    # Every entry is off by noise of two providers, each uniform over 2^-20.
    exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3]
    off = np.abs(np.abs(pca.components_) - np.abs(exact))
    assert 2.0**-23 < off.mean() < 2.0**-20
    assert off.max() < 2.0**-20 * 1.01


def test_one_component_of_common_rows_gives_binary_columns_back() -> None:
    """Where islands hold columns: every row of the other island's 14, whatever the digits."""
    rng = np.random.default_rng(4)
    mine = rng.normal(size=(30, 2))
    theirs = rng.integers(0, 2, size=(30, 14)).astype(float)
    options: dict[str, Any] = {"protocol": "sfpca", "partition": "vertical", "bounds": 8.0}
    with pytest.raises(StudyError, match="scores of common rows"):
        atoll.PCA(1, release="scores", **options).fit([mine, theirs])
    pca = atoll.PCA(1, release="scores", accept_determined=True, **options)
    scores = pca.fit_transform([mine, theirs])[0][:, 0]
    components = atoll.PCA(1, accept_determined=True, **options).fit([mine, theirs])
    w, offset = components.components_[0], components.offset_[0]
    scores = scores * np.sign(scores @ (np.hstack([mine, theirs]) @ w - offset))  # signs are public
    candidates = np.array(list(product([0.0, 1.0], repeat=14)))
    sums = candidates @ w[2:]
    left = scores + offset - mine @ w[:2]
    back = candidates[np.abs(sums[None, :] - left[:, None]).argmin(axis=1)]
    np.testing.assert_array_equal(back, theirs)
