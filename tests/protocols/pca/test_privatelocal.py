"""PrivateLocalPCA: the noise that each owner adds, what it guarantees, and what comes out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import cut, privatelocal, table

import atoll
from atoll.errors import AtollError, PrivacyWarning
from atoll.privacy.calibration import classic_gaussian_sigma, gdp_epsilon, gdp_mu
from atoll.privacy.grid import MOMENT_UNITS
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of
from atoll.protocols.pca import privatelocal as pl
from atoll.randomness import fresh_seed


def parameters(**options: object) -> pl.PrivateLocalParameters:
    return pl.PrivateLocalParameters.read({"epsilon": 1.0, "delta": 1e-5} | options, ())


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_an_owners_releases_cost_the_stated_epsilon(neighbours: str) -> None:
    p = parameters(neighbours=neighbours, epsilon=0.7)
    mu = math.hypot(pl.moments_stage(p, 5).cost.mu, pl.count_stage(p).cost.mu)  # type: ignore[union-attr]
    assert gdp_epsilon(mu, p.delta) == pytest.approx(0.7, rel=1e-9)


def test_the_published_noise_costs_more_than_stated_when_a_row_is_replaced() -> None:
    stage = pl.moments_stage(parameters(calibration="paper", neighbours="replace", epsilon=2.0), 5)
    assert stage.cost.mu == pytest.approx(  # type: ignore[union-attr]
        math.sqrt(2) * 1.001 / classic_gaussian_sigma(2.0, 1e-5)
    )
    assert gdp_epsilon(stage.cost.mu, 1e-5) > 2.0  # type: ignore[union-attr]


def test_the_noise_of_an_owner_is_as_wide_as_said() -> None:
    p, d = parameters(rows="clip", row_norm=3.0), 40
    X = np.zeros((2, d))
    drawn = np.array([pl.noisy_moments(X, p, fresh_seed()) for _ in range(20)]) / 9.0
    expected = pl.moments_stage(p, d).noise.deviation_of_sum(0) / MOMENT_UNITS
    diagonal = np.einsum("nii->ni", drawn)
    upper = drawn[:, *np.triu_indices(d, 1)]
    assert diagonal.std() == pytest.approx(expected, rel=0.15)
    assert upper.std() == pytest.approx(expected / math.sqrt(2), rel=0.05)
    assert expected == pytest.approx(1.001 / (gdp_mu(1.0, 1e-5) * math.sqrt(1 - pl.COUNT_SHARE)))


def test_the_number_of_rows_carries_its_noise_where_it_is_private() -> None:
    """A twentieth of mu^2 is spent on it: the deviation follows."""
    X, p = np.zeros((100, 2)), parameters()
    drawn = np.array([pl.noisy_count(X, p, fresh_seed()) for _ in range(400)])
    assert drawn.std() == pytest.approx(1.001 / (gdp_mu(1.0, 1e-5) * math.sqrt(0.05)), rel=0.2)
    assert drawn.mean() == pytest.approx(100, abs=5 * drawn.std() / 20)
    assert pl.noisy_count(X, parameters(neighbours="replace"), fresh_seed()) == 100.0


def test_with_little_noise_it_is_the_uncentred_pca_of_the_rows() -> None:
    X = table(400, 4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fitted = atoll.PCA(4, protocol="privatelocal", epsilon=1e4, delta=0.1).fit(cut(X, 4))
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    assert np.allclose(fitted.explained_variance_, values[::-1], atol=2e-3)
    assert np.abs(np.sum(fitted.components_[:2] * vectors.T[::-1][:2], axis=1)).min() > 0.999
    assert np.array_equal(fitted.mean_, np.zeros(4))
    assert fitted.n_samples_ == pytest.approx(400, abs=2)


def test_rows_that_are_cut_keep_the_units_of_the_data() -> None:
    X = 10.0 * table(300, 3)
    bound = float(2 * np.linalg.norm(X, axis=1).max())
    fitted = atoll.PCA(
        3,
        protocol="privatelocal",
        epsilon=1e5,
        delta=0.1,
        rows="clip",
        row_norm=bound,
        neighbours="replace",
    ).fit(cut(X, 3))
    assert fitted.n_samples_ == 300
    assert fitted.total_variance_ == pytest.approx(np.sum(X * X) / 300, rel=1e-2)


def test_merging_everything_is_exact() -> None:
    one, two = table(30, 5, 1), table(20, 5, 2)
    parts = [pl.Subspace(pl.local_subspace(X.T @ X, 5), float(np.sum(X * X)), len(X)) for X in (one, two)]
    merged = pl.merge(*parts).weighted
    assert np.allclose(merged.T @ merged, one.T @ one + two.T @ two)


def test_more_noise_reaches_the_result_with_more_owners() -> None:
    """The weakness that the published comparison shows: local noise adds up, owner by owner."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 8)) * np.array([3.0, 2.5, 1, 1, 1, 1, 1, 1])
    exact = np.linalg.eigh(X.T @ X)[1].T[::-1][:2]

    def overlap(owners: int) -> float:
        runs = [
            atoll.PCA(2, protocol="privatelocal", epsilon=0.2, delta=1e-5).fit(cut(X, owners)).components_
            for _ in range(5)
        ]
        return float(np.mean([np.sum((exact @ found.T) ** 2) / 2 for found in runs]))

    assert overlap(2) > overlap(60) + 0.1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 1.0}, "both epsilon and delta"),
        ({"delta": 1e-5}, "both epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1e-5, "rows": "clip"}, "needs a public bound"),
        ({"epsilon": 1.0, "delta": 1e-5, "rows": "clip", "row_norm": 0.0}, "needs a public bound"),
        ({"epsilon": 1.0, "delta": 1e-5, "rows": "clip", "row_norm": math.inf}, "needs a public bound"),
        ({"epsilon": 1.0, "delta": 1e-5, "row_norm": 2.0}, "cannot be used when every row"),
        ({"epsilon": 1.0, "delta": 1e-5, "colluders": 3}, "cannot be used with"),
        ({"epsilon": -1.0, "delta": 1e-5}, "epsilon must be a positive number"),
        ({"epsilon": 1.0, "delta": 1e-5, "n_components": 9}, "must be between 1 and"),
        ({"epsilon": 1.0, "delta": 1e-5, "n_components": 0}, "not possible"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(options: dict[str, object], said: str) -> None:
    with pytest.raises(AtollError, match=said):
        atoll.PCA(**({"n_components": 2} | options), protocol="privatelocal").fit(cut(table(), 2))


def test_the_published_form_says_what_it_is() -> None:
    example = privatelocal()
    published = structs.replace(
        example.study, parameters=dict(example.study.parameters) | {"calibration": "paper"}
    )
    words = " ".join(d.learns for d in protocol_of("privatelocal").learns(published))
    assert "as published" in words
    assert "exact number of rows" in words


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_terms_say_what_they_mean_for_one_row(neighbours: str) -> None:
    study = privatelocal().study
    asked = study.parameters | {"epsilon": 1.0, "delta": 1e-5, "neighbours": neighbours}
    terms = protocol_of("privatelocal").privacy(structs.replace(study, parameters=asked))
    assert terms is not None
    assert terms.words[0].startswith(
        "epsilon 1, delta 1e-05: an attacker who knows all other rows improves a 50:50 guess about one row "
        "to at most 73%"
    )
    assert f"neighbours: {neighbours}" in terms.words[1]


def test_every_owner_books_its_release_and_refuses_beyond_its_budget() -> None:
    islands = dict(zip("ab", cut(table(), 2), strict=True))
    with Ledger() as ledger:
        ledger.set_budget("a", 9.0, 1e-5)
        ledger.set_budget("b", 1.2, 1e-5)
        pca = atoll.PCA(2, protocol="privatelocal", epsilon=1.0, delta=1e-5, ledger=ledger)
        spent = pca.fit(islands).privacy_spent_
        assert spent["a"].spent.epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(AtollError, match="b: "):
            pca.fit(islands)


def test_the_published_form_warns_and_books_nothing() -> None:
    pca = atoll.PCA(2, protocol="privatelocal", epsilon=1.0, delta=1e-5, calibration="paper")
    with pytest.warns(PrivacyWarning, match="not differentially private as stated"):
        pca.fit(cut(table(), 2))
    assert not hasattr(pca, "privacy_spent_")
