"""atoll.PCA(protocol="sfpca") with an epsilon: utility, options, and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from tests.estimators.test_private_pca import captured, islands

import atoll
from atoll.errors import ParameterError, StudyError
from atoll.privacy import dp_moments as dp
from atoll.privacy.lab.rehearsal import rehearse
from atoll.privacy.ledger import Ledger
from atoll.privacy.mechanisms import Crowd
from atoll.protocols import protocol_of
from atoll.review.budget import review_privacy
from atoll.study.model import Local, Study

OPTIONS: dict[str, Any] = {"protocol": "sfpca", "epsilon": 1.0, "delta": 1e-5, "bounds": (0.0, 1.0)}
DIGITS = load_digits().data
DIGITS = DIGITS / np.linalg.norm(DIGITS, axis=1, keepdims=True)


def test_with_a_huge_epsilon_it_is_the_pca_of_the_same_normalised_rows() -> None:
    rows = DIGITS[:, 20:26] + 0.1
    fitted = atoll.PCA(3, **(OPTIONS | {"epsilon": 5000.0, "bounds": (0.0, 2.0)})).fit(islands(rows, 3))
    centred = rows - rows.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit / (len(rows) - 1))
    assert np.abs(fitted.explained_variance_ - values[::-1][:3]).max() < 3e-3
    assert np.abs(np.abs(np.sum(fitted.components_ * vectors.T[::-1][:3], axis=1)) - 1).max() < 1e-3
    assert np.abs(fitted.offset_ - fitted.components_ @ rows.mean(axis=0)).max() < 3e-3
    assert fitted.n_samples_ == len(rows)
    assert fitted.variances_of_ == "normalised rows"
    assert fitted.total_variance_ == pytest.approx(1.0, abs=0.01)
    scores = np.vstack([fitted.scores_[name] for name in islands(rows, 3)])
    assert np.allclose(scores, fitted.transform(np.vstack(list(islands(rows, 3).values()))))


def test_utility_is_that_of_the_staged_release_with_replaced_rows() -> None:
    plan = dp.Plan(64, 1.0, 1.0, 1e-5, neighbours="replace", crowd=Crowd(3, 1))
    tables = islands(DIGITS, 3)
    expected = [
        captured(rehearse(plan, list(tables.values()), bytes([s]) * 32).spectrum.components[:5], DIGITS)
        for s in range(5)
    ]
    options = OPTIONS | {"bounds": None, "row_norm": 1.0}
    got = captured(atoll.PCA(5, **options).fit(tables).components_, DIGITS)
    assert abs(got - np.mean(expected)) < 0.03
    assert min(expected) > 0.9


@pytest.mark.parametrize("more", [{"rows": "clip"}, {"noise": "local"}, {"delta": None, "epsilon": 50.0}])
def test_other_forms_give_components_too(more: dict[str, Any]) -> None:
    fitted = atoll.PCA(2, **(OPTIONS | more)).fit(islands(DIGITS[:, 20:24], 3))
    assert np.allclose(fitted.components_ @ fitted.components_.T, np.eye(2))


def test_rows_beyond_the_bounds_are_cut_and_not_refused() -> None:
    """Whether any row is beyond them is a question about the data."""
    far = DIGITS[:200, 20:24].copy()
    far[0] = 1e6
    fitted = atoll.PCA(2, **OPTIONS).fit(islands(far, 2))
    assert np.abs(fitted.offset_).max() < 3.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bounds": None}, "needs bounds, the public range"),
        ({"epsilon": None, "delta": None, "row_norm": 1.0}, "cannot be used"),
        ({"epsilon": None, "delta": None, "assume_centered": True}, "assume_centered=True cannot be used"),
        ({"epsilon": -1.0}, "epsilon must be a positive number"),
        ({"delta": 2.0}, "delta must lie strictly between"),
        ({"colluders": 0}, "at least 1 must be assumed"),
        ({"colluders": 4}, "leave nobody whose noise counts"),
        ({"noise": "central"}, "take it away from published components"),
        ({"release": "scores"}, "scores without components are not offered"),
        ({"release": "encrypted"}, "stay encrypted are not offered"),
        ({"standardize": True}, "standardize is not possible with an epsilon"),
        ({"recipe": "strict"}, "may be indefinite"),
        ({"calibration": "paper"}, "calibration='paper' cannot be used"),
    ],
)
def test_options_that_cannot_be_private_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, StudyError), match=said):
        atoll.PCA(2, **(OPTIONS | options)).fit(islands(DIGITS[:40, 20:24], 4))


def test_many_columns_are_refused_with_what_to_do() -> None:
    rows = np.random.default_rng(0).random((20, 257))
    with pytest.raises(ParameterError, match="up to 256 columns") as refused:
        atoll.PCA(2, **OPTIONS).fit(islands(rows, 2))
    assert "pppca" in refused.value.hint


def test_every_fit_is_booked_and_the_review_says_so(tmp_path: Path) -> None:
    path, tables = tmp_path / "ledger.sqlite", islands(DIGITS[:60, 20:24], 3)
    with Ledger.create(path) as ledger:
        for name in tables:
            ledger.set_budget(name, 9.0, 1e-5)
    fitted = atoll.PCA(2, **OPTIONS, ledger=path).fit(tables)
    account = fitted.privacy_spent_["ward-0"]
    assert account.neighbours == "replace"
    assert account.spent.epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)
    with Ledger(path) as ledger:
        assert sorted({debit.identity for debit in ledger.debits()}) == ["ward-0", "ward-1", "ward-2"]
    study: Study = fitted.result_.study
    review = review_privacy(study, Local(ledger=str(path), identities={"ward-0": "ward-0"}))
    assert review is not None
    words = "\n".join(review.words)
    assert "improves a 50:50 guess about one row to at most 73%" in words
    assert "neighbours: replace" in words
    assert "number of rows is released exactly" in words
    assert review.accounts[0].epsilon_before == pytest.approx(1.0, rel=1e-6)
    assert 1.3 < review.accounts[0].epsilon_after < 1.6
    said = " ".join(d.learns for d in protocol_of("sfpca").learns(study))
    assert "noisy second moments" in said
    assert "last island's total variance" not in said
