"""Standardised columns in SF-PCA: inverse roots of secret variances, correlations, and what is opened."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from tests.support.examples import sfpca_standardised, sfpca_standardised_scores
from tests.support.sfpca_runs import encrypted, simulated

import atoll
from atoll.data.island import Island
from atoll.errors import ParameterError, StudyError
from atoll.protocols.pca.sfpca import parameters, ranges
from atoll.protocols.pca.sfpca.disclosure import learns
from atoll.protocols.pca.sfpca.planner import Counted
from atoll.protocols.pca.sfpca.recipes import correlation
from atoll.protocols.pca.sfpca.recipes.covariance import POLICIES
from atoll.protocols.pca.sfpca.recipes.direct import DATA_FRACTION, Found, Inputs, direct
from atoll.protocols.pca.sfpca.recipes.moments import exact_moments, on_grid
from atoll.protocols.pca.sfpca.recipes.strict import strict
from atoll.randomness import fresh_seed
from atoll.secret_matrices import entrywise
from atoll.secret_matrices.simulated import Simulated

WINE = load_wine().data


def heavy_tailed() -> np.ndarray:
    """Columns whose largest value is hundreds of standard deviations away, and one far from zero."""
    rng = np.random.default_rng(5)
    shared = rng.normal(size=(3000, 2)) @ rng.normal(size=(2, 6))
    X = np.exp(1.6 * (shared + 0.4 * rng.normal(size=(3000, 6))))
    return np.hstack([X, 1e5 + shared[:, :1] + rng.normal(size=(3000, 1))])


TABLES = {
    "wine": WINE,
    "breast cancer": load_breast_cancer().data,
    "heavy tails": heavy_tailed(),
    "constant columns": np.hstack([WINE, np.full((len(WINE), 2), 0.1), np.zeros((len(WINE), 1))]),
}


class Seen(Simulated):
    """Keeps what was opened."""

    openings: list[np.ndarray]

    async def opened(self, x: Any, *, smudge_bits: int) -> Any:
        self.openings = [*getattr(self, "openings", []), await super().opened(x, smudge_bits=smudge_bits)]
        return self.openings[-1]


def in_range(X: np.ndarray) -> np.ndarray:
    return np.ldexp(X, -np.frexp(np.abs(X).max(axis=0))[1])


def run(X: np.ndarray, k: int, recipe: str, parties: int = 3) -> tuple[Found, np.ndarray, Seen]:
    machine = Seen(parties, np.random.default_rng(0).random)
    moments = exact_moments(on_grid(in_range(X), 0, DATA_FRACTION))
    names = ("a", "b")
    inputs = Inputs(
        len(X), X.shape[1], names, "simulated", moments, fresh_seed(), standardize=True, plays=names
    )

    async def whole() -> tuple[Found, Any]:
        done = (
            direct(machine, inputs, k) if recipe == "direct" else strict(machine, inputs, k, POLICIES[recipe])
        )
        found = await done
        return found, await machine.released(found.components, frozenset())

    return (*asyncio.run(whole()), machine)


def roots(
    v: list[Fraction], name: str = entrywise.LONG_ROOTS, rounds: int = 28
) -> tuple[list[Fraction], list[Fraction]]:
    machine, fraction = simulated(4), 140
    values = np.array([[round(x * 2**fraction)] for x in v], dtype=object)
    column = machine.private(None, values, (len(v), 1), fraction, 1)
    made = asyncio.run(entrywise.inverse_roots(machine, column, name))
    assert machine.rounds == rounds
    found, squares = (([Fraction(int(x), 2**one.fraction) for x in one.share[:, 0]]) for one in made)
    return found, squares


def test_inverse_roots_are_exact_in_their_range_and_bounded_below_it() -> None:
    v = [Fraction(2.0**e) for e in np.linspace(-39, 0, 60)]
    found, squares = roots(v)
    assert max(abs(x * d * d - 1) for x, d in zip(v, found, strict=True)) < Fraction(1, 2**78)
    assert max(found) < 2**entrywise.REACH
    assert max(abs(x - 1) for x in squares) < Fraction(1, 2**78)
    below = [Fraction(0), *(Fraction(1, 2**e) for e in range(40, 128, 2))]
    found, squares = roots(below)
    assert max(found) < 2**entrywise.ROOT_BITS
    # What the trace is opened from is what the roots really make of every variance.
    assert max(abs(s - x * d * d) for s, x, d in zip(squares, below, found, strict=True)) < Fraction(1, 2**70)
    lengths = [x * d * d for x, d in zip(below, found, strict=True)]
    assert max(lengths) < 1 + Fraction(1, 2**78)
    assert lengths[0] == 0
    assert lengths[6] < 0.1  # 2^-50: seen to fall short


@pytest.mark.parametrize(("name", "rounds", "least"), [("narrow", 18, -20.62), ("narrower", 13, -11.22)])
def test_short_schedules_are_as_exact_in_a_narrower_range(name: str, rounds: int, least: float) -> None:
    v = [Fraction(2.0**e) for e in np.linspace(least, 0, 60)]
    found, squares = roots(v, name, rounds)
    assert max(abs(x * d * d - 1) for x, d in zip(v, found, strict=True)) < Fraction(1, 2**78)
    assert max(abs(x - 1) for x in squares) < Fraction(1, 2**78)
    _, squares = roots([Fraction(2.0**e) for e in np.linspace(least - 30, least - 1, 60)], name, rounds)
    assert max(squares) < 1 - Fraction(1, 2**40)  # seen to fall short


def test_the_schedule_follows_from_what_the_study_states() -> None:
    stated = {None: "fast", 1e-3: "fast", 1 / 600: "narrow", 0.03: "narrow", 0.05: "narrower"}
    assert {least: correlation.roots_for(least) for least in stated} == stated


@pytest.mark.parametrize("name", ["fast", "default", *entrywise.SHORT_ROOTS])
def test_every_polynomial_keeps_its_bounds_on_the_whole_range(name: str) -> None:
    # What the masks rely on, for any variance in [0, 1] and any pair of entries.
    M = np.concatenate([[0.0], 2.0 ** np.linspace(-90, 0, 20001), np.linspace(0.001, 1, 20001)])
    grown = 1.0
    for step in entrywise.root_steps(name):
        A = np.polynomial.chebyshev.chebval(2 * M - 1, [float(c) for c in step])
        assert A.min() > 0
        assert A.max() < 2**entrywise.STEP_BITS
        assert (M * A).max() <= 1 + 1e-6
        M = M * A * A
        assert M.max() <= 1 + 1e-6
        grown *= float(A.max())
    assert grown < 2 ** entrywise.root_bits(name)
    assert entrywise.root_bits(name) <= entrywise.ROOT_BITS or name == "default"
    assert entrywise.root_bits("fast") == entrywise.ROOT_BITS


@pytest.mark.parametrize("recipe", ["direct", "default"])
@pytest.mark.parametrize("name", TABLES)
def test_standardised_components_are_those_of_scikit_learn(name: str, recipe: str) -> None:
    X = TABLES[name]
    varying = np.ptp(X, axis=0) > 0
    k = int(varying.sum()) if recipe == "direct" else 3
    found, W, _ = run(X, k, recipe)
    exact = PCA(k).fit(StandardScaler().fit_transform(X))
    assert np.abs(np.sum(W * exact.components_, axis=1)).min() > (1 - 1e-9 if recipe == "direct" else 0.99999)
    n = len(X)
    np.testing.assert_allclose(found.values[:k] * n / (n - 1), exact.explained_variance_, rtol=1e-5)
    assert found.total_variance == varying.sum()
    assert np.abs(W[:, ~varying]).max(initial=0.0) < (1e-12 if recipe == "direct" else 1e-5)


@pytest.mark.parametrize("recipe", ["direct", "default"])
def test_what_is_opened_does_not_depend_on_the_variances(recipe: str) -> None:
    rng = np.random.default_rng(8)
    rows = rng.integers(-1000, 1000, (200, 6)).astype(float) + 0.3 * rng.integers(-1000, 1000, (200, 1))
    shrunk = rows * 2.0 ** -np.arange(0, 12, 2) + 1024  # exact, and within the same range
    first, second = (run(in_range(X), 3, recipe) for X in (rows, shrunk))
    assert first[2].openings[0].shape == (1, 1)
    assert round(float(first[2].openings[0][0, 0])) == round(float(second[2].openings[0][0, 0])) == 6
    assert abs(float(first[2].openings[0][0, 0]) - 6) < 2.0**-40
    spectra = [run_[0].values for run_ in (first, second)]
    np.testing.assert_allclose(*spectra, rtol=0, atol=1e-12 if recipe == "direct" else 1e-5)


@pytest.mark.parametrize(("least", "rounds"), [(None, 90), (1 / 600, 75), (0.05, 60)])
def test_a_stated_least_deviation_takes_fewer_rounds_to_the_same_components(
    least: float | None, rounds: int
) -> None:
    exact = PCA(13).fit(StandardScaler().fit_transform(WINE))
    bounds = list(zip(WINE.min(axis=0), WINE.max(axis=0), strict=True))
    pca = atoll.PCA(
        13,
        protocol="sfpca",
        standardize=True,
        bounds=bounds,
        least_deviation=least,
        digits="full",
        accept_determined=True,
    ).fit(np.array_split(WINE, 3))
    assert np.abs(np.sum(pca.components_ * exact.components_, axis=1)).min() > 1 - 1e-12
    np.testing.assert_allclose(pca.explained_variance_, exact.explained_variance_, rtol=1e-9)
    assert rounds <= pca.transcript_.rounds < rounds + 20


def test_a_column_that_varies_less_than_stated_is_refused() -> None:
    X = WINE.copy()
    X[:, 4] = 1000 + X[:, 4]
    pca = atoll.PCA(2, protocol="sfpca", standardize=True, least_deviation=0.05)
    with pytest.raises(ParameterError, match="less than the study's least_deviation says"):
        pca.fit(np.array_split(X, 2))


@pytest.mark.parametrize(
    "wrong", [{"least_deviation": 0.0}, {"least_deviation": 1.5}, {"standardize": False}]
)
def test_a_least_deviation_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    pca = atoll.PCA(2, protocol="sfpca", **{"standardize": True, "least_deviation": 0.1, **wrong})
    with pytest.raises(StudyError, match="between 0 and 1, for standardize"):
        pca.fit(np.array_split(WINE, 2))


@pytest.mark.parametrize("spread", [1e-7, 1e-9, 1e-12])
def test_a_column_that_hardly_varies_is_refused_and_not_named(spread: float) -> None:
    X = np.random.default_rng(1).normal(size=(100, 3))
    X[:, 1] = 1 + spread * X[:, 1]
    with pytest.raises(ParameterError, match="a column varies by less than") as refused:
        run(X, 2, "direct")
    assert "1'" not in str(refused.value)


@pytest.mark.parametrize("parties", [2, 50])
@pytest.mark.parametrize("recipe", ["direct", "default", "accurate"])
def test_the_rings_hold_many_providers_and_rows(parties: int, recipe: str) -> None:
    machine = Counted([f"p{i}" for i in range(parties)], 60.0)
    inputs = Inputs(10**6, 60, machine.providers, "nobody", None, None, standardize=True)
    asyncio.run(
        direct(machine, inputs, 20) if recipe == "direct" else strict(machine, inputs, 20, POLICIES[recipe])
    )
    assert machine.messages > parties * 100


def test_groups_of_columns_are_put_together_in_order() -> None:
    # More columns than one polynomial holds, encrypted: every group's numbers come back to their place.
    m = 400
    numbers = np.arange(1, m + 1).reshape(m, 1)

    async def square(machine: Any, inputs: Any, receivers: Any) -> Any:
        own = None if inputs.moments is None or inputs.me != "p0/provider" else numbers << 40
        x = machine.private(None, own, (m, 1), 50, 0)
        basis = entrywise.Entries(machine, x, 50)
        squares, cubes = await basis.multiply(x, [x, basis.one], bits=1)
        return await machine.opened(machine.hstack([squares, cubes]), smudge_bits=0)

    results, _ = encrypted(square, [np.ones((2, 2)), np.ones((2, 2))])
    x = numbers[:, 0] / 2**10
    np.testing.assert_allclose(results["p1/provider"], np.stack([x * x, x], axis=1), atol=2.0**-45)


def test_every_column_has_its_own_range() -> None:
    X = np.array([[0.0, -3.0, 1e-30, 4.0], [0.0, 1.0, 0.0, 0.1]])
    island = Island.from_array(X, name="north")
    levels = ranges.exceeded(island.chosen(island.columns), bytes(32), by_column=True)
    assert ranges.smallest_covers(levels) == (-64, 2, -64, 2)
    assert ranges.smallest_covers(ranges.exceeded(island.chosen(island.columns), bytes(32))) == (2,)
    declared = ranges.declared(((0.0, 7.0), (1.0, 1.0), (-0.5, 0.5)), ["a", "b", "c"])
    assert declared is not None
    table = np.array([[0.0, 1.0, -0.5], [7.0, 1.0, 0.5]])
    assert np.abs(declared.units().applied(table)).max() <= 1
    assert (declared.units().applied(table)[:, 1] == 0).all()


def test_a_provider_may_not_have_both_components_and_scores() -> None:
    study = sfpca_standardised().study
    parameters.check(study)
    both = structs.replace(study, release={**study.release, "scores": ("provider",)})
    with pytest.raises(StudyError, match="together say the standard deviations"):
        parameters.check(both)
    kept = structs.replace(study, release={"encrypted": ("provider", "coordinator")})
    with pytest.raises(StudyError, match="do not stay encrypted"):
        parameters.check(kept)


def test_the_disclosure_says_what_standardising_opens() -> None:
    said = " ".join(d.learns for d in learns(sfpca_standardised().study))
    for words in (
        "how many columns are not constant",
        "all eigenvalues of the joint correlation matrix",
        "of each column, the smallest power of two",
        "no variance, mean or standard deviation of a column is opened",
        "a column of zeros is constant",
    ):
        assert words in said
    assert "total variance and, with the offset" not in said
    assert "where a column varies too little to be standardised, how little; the run then ends" in said
    study = sfpca_standardised().study
    stated = structs.replace(study, parameters={**study.parameters, "least_deviation": 0.05})
    said = " ".join(d.learns for d in learns(stated))
    assert (
        "where a column varies by less than 0.05 of its largest value (least_deviation), how little" in said
    )
    scores = " ".join(d.learns for d in learns(sfpca_standardised_scores().study))
    assert "where k(k+1)/2 reaches the number of columns" in scores
