"""PPCA-DP-MH to the letter: its noise, its components, and that it says what it is."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from tests.support.synthesis_examples import people, published

import atoll
from atoll.errors import DataError, PrivacyError, PrivacyWarning
from atoll.privacy.ledger import Ledger
from atoll.privacy.paper_forms import ppca_noise
from atoll.protocols.own import owned
from atoll.protocols.synthesis import paper
from atoll.randomness import derive
from atoll.review.study import review_study
from atoll.runtime.execute import run_study

SEED = bytes(range(32))
SIZES = (2, 3, 8, 1)


def digits(n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(1)
    return paper.to_digits(np.column_stack([rng.integers(0, k, n) for k in SIZES]), SIZES)


def test_cells_as_binary_digits_and_back() -> None:
    codes = np.column_stack([np.arange(8) % k for k in SIZES])
    X = paper.to_digits(codes, SIZES)
    assert X.shape == (8, 1 + 2 + 3)
    assert set(np.unique(X)) == {0.0, 1.0}
    assert (paper.from_digits(X, SIZES) == codes).all()
    assert (paper.from_digits(np.ones((1, 6)), SIZES) == [[1, 2, 7, 0]]).all()  # 3 is no level


def test_moments_have_the_stated_noise() -> None:
    """Lap(2p/(n epsilon)) has variance 2 (2p/(n epsilon))^2: on the mean and on the whole matrix."""
    X, epsilon = digits(), 0.5
    n, p = X.shape
    runs = [paper.noisy_moments(X, epsilon, derive(SEED, run)) for run in range(4000)]
    mean = np.array([run[0] for run in runs]) - X.mean(axis=0)
    second = np.array([run[1] for run in runs]) - X.T @ X / n
    stated = 2.0 * (2.0 * p / (n * epsilon)) ** 2
    assert second.var() == pytest.approx(stated, rel=0.02)
    assert mean.var() == pytest.approx(stated, rel=0.04)
    assert np.abs(second - second.transpose(0, 2, 1)).max() > 0.0  # as printed, before it is made symmetric


def test_components_are_those_of_a_direct_transcription() -> None:
    tables = [digits(200), digits(301)[1:]]
    noisy = [paper.noisy_moments(X, 2.0, derive(SEED, i)) for i, X in enumerate(tables)]
    local = [paper.local_covariance(*moments) for moments in noisy]
    found = paper.kept(paper.pooled(local, [200, 300]), 0.85, None)
    sigma = sum(n * (S - np.outer(m, m)) for n, (m, S) in zip((200, 300), noisy, strict=True)) / 500
    values, vectors = np.linalg.eigh((sigma + sigma.T) / 2)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    k = next(k for k in range(1, 7) if values[:k].sum() / values.sum() >= 0.85)
    assert len(found.values) == k
    assert found.values == pytest.approx(values[:k])
    assert np.abs(found.vectors) == pytest.approx(np.abs(vectors[:, :k]))
    assert found.rest == pytest.approx(values[k:].sum() / (6 - k))
    W = vectors[:, :k] @ np.diag(np.sqrt(values[:k] - found.rest))
    exact = structs.replace(found, rest=0.0, values=values[:k] - found.rest)
    X = tables[0]
    image = X @ vectors[:, :k] @ W.T + X.mean(axis=0)
    assert paper.published(X, exact, SEED) == pytest.approx(image)


def test_its_noise_is_that_which_the_audit_convicts() -> None:
    """tests/attacks/test_audit.py finds more than the stated epsilon in this very noise."""
    X = digits()
    _, second = paper.noisy_moments(X, 4.0, SEED)
    assert second - X.T @ X / len(X) == pytest.approx(ppca_noise(SEED, *X.shape, 4.0)[0])


def test_a_published_row_is_an_image_of_one_record() -> None:
    X = digits()
    told = paper.kept(np.cov(X.T), 0.9, None)
    changed = X.copy()
    changed[7] = 1.0 - changed[7]
    before, after = (paper.published(T - X.mean(axis=0), told, SEED) for T in (X, changed))
    moved = np.abs(after - before).max(axis=1)
    assert np.argmax(moved) == 7
    assert moved[7] > 10 * np.delete(moved, 7).max()


def test_it_says_what_it_is() -> None:
    columns = {"age": (18, 90), "sex": ["F", "M"], "weight": (40.0, 140.0), "ill": bool}
    tables = [people(200, seed) for seed in range(3)]
    synthesizer = atoll.PPCASynthesizer(2.0, columns=columns, calibration="paper")
    with pytest.warns(PrivacyWarning, match="not differentially private as stated"):
        drawn = synthesizer.fit(tables).sample()
    assert len(drawn) == 600
    assert list(drawn.columns) == list(columns)
    assert drawn["age"].between(18, 90).all()
    privacy = review_study(published().study).privacy
    assert privacy is not None
    assert not privacy.private
    assert "not differentially private as stated" in privacy.words[0]


def test_a_ledger_and_an_owner_with_one_row_are_refused() -> None:
    example = published()
    with Ledger() as ledger, pytest.raises(PrivacyError, match="keeps no privacy promise"):
        run_study(example.study, owned(example.islands, ledger))
    one = published()
    one.islands["hospital-0"] = atoll.Island.from_frame(people(1), name="hospital-0")
    with pytest.raises(DataError, match="hospital-0: 1 row"):
        run_study(one.study, one.own)
