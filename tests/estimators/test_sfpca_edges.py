"""The strict recipe at its edges, encrypted: right, or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.attacks.test_sfpca_reuse import slow_spectrum

import atoll
from atoll.errors import CertificateRefused, ParameterError, PrivacyWarning
from atoll.runtime.execute import run_study

RNG = np.random.default_rng(0)
TALL = RNG.normal(size=(60, 8)) * 0.7 ** np.arange(8)
RANK_3 = RNG.normal(size=(60, 3)) * [3, 2, 1] @ RNG.normal(size=(3, 8))
FAR = 1e5 + RNG.normal(size=(60, 4)) * 0.5 ** np.arange(4)


def exact(X: np.ndarray, k: int) -> np.ndarray:
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:k]


def fitted(X: np.ndarray, k: int | None, cut: int, **options: Any) -> atoll.PCA:
    asked = {"recipe": "strict", "digits": "full", "accept_determined": True} | options
    return atoll.PCA(k, protocol="sfpca", **asked).fit([X[:cut], X[cut:]])


@pytest.mark.parametrize(
    ("X", "k", "cut"),
    [
        (TALL[:, :2], 1, 30),
        (TALL[:, :2], 2, 30),
        (TALL, 2, 1),
        (TALL[:6], 2, 1),
        (RANK_3, 3, 30),
        (FAR, 2, 30),
    ],
    ids=["two columns", "all of two", "an island of one row", "fewer rows than columns", "rank", "far means"],
)
@pytest.mark.filterwarnings("ignore::atoll.errors.PrivacyWarning")
def test_small_tables_are_right(X: np.ndarray, k: int, cut: int) -> None:
    found = fitted(X, k, cut)
    assert np.abs(np.sum(found.components_ * exact(X, k), axis=1)).min() > 0.9999
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(k), atol=1e-9)
    assert found.certificate_["bound"] < 0.014


def test_components_beyond_the_rank_are_refused_with_what_to_try() -> None:
    with pytest.raises(
        CertificateRefused, match="cannot be certified: the data have fewer components"
    ) as refused:
        fitted(RANK_3, 5, 30)
    assert "another n_components" in str(refused.value.hint)
    assert "recipe='direct'" in str(refused.value.hint)
    # And direct gives them, as some basis of what has no variance.
    found = fitted(RANK_3, 5, 30, recipe="direct")
    assert np.abs(np.sum(found.components_ * exact(RANK_3, 5), axis=1))[:3].min() > 1 - 1e-9
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(5), atol=1e-12)


def test_rows_that_are_all_alike_have_no_components() -> None:
    with pytest.raises(ParameterError, match="no variance"):
        fitted(np.ones((60, 8)), 2, 30)


def test_a_study_may_forbid_the_second_try() -> None:
    example = slow_spectrum()
    once = structs.replace(example.study, parameters={**example.study.parameters, "retry": False})
    with pytest.raises(CertificateRefused, match="certified") as refused:
        run_study(once, example.own)
    assert "recipe='accurate'" in str(refused.value.hint)


def test_the_rows_that_an_island_needs_follow_the_components_that_were_found() -> None:
    """All 20 components: 44 rows, not the 30 that one component needs."""
    rows = np.random.default_rng(5).normal(size=(90, 20))
    with pytest.warns(PrivacyWarning, match="^island-0: fewer than 44 rows"):
        fitted(rows, None, 40, recipe="direct")
