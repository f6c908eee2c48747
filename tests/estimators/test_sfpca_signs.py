"""Scores and components have the same signs, whoever holds them.

Both are released with 26 bits of the range, 64, under the noise of three providers: they fit to 1e-5.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca, sfpca_columns, table

import atoll
from atoll.runtime.execute import run_study


@pytest.mark.parametrize("seed", range(3))  # the run's own signs are random
def test_scores_of_owners_fit_the_components_of_a_consumer(seed: int) -> None:
    example = sfpca(bounds=64.0)
    release = {"components": ("consumer",), "scores": ("provider",)}
    result = run_study(structs.replace(example.study, release=release), example.own).result
    for name, island in example.islands.items():
        scores = island.features(island.columns) @ result["components"].T - result["offset"]
        assert np.allclose(result["scores"][name], scores, atol=1e-5), seed


def test_common_scores_fit_the_components_of_some() -> None:
    example = sfpca_columns({"scores": ("provider",), "components": ("island-1",)}, bounds=64.0)
    result = run_study(example.study, example.own).result
    scores = table() @ result["components"].T - result["offset"]
    for name in example.islands:
        assert np.allclose(result["scores"][name], scores, atol=1e-5)


def test_components_that_are_opened_later_fit_scores_from_before() -> None:
    X = table(80)
    islands = {"a": X[:40], "b": X[40:]}
    kept = atoll.PCA(2, protocol="sfpca", release="encrypted", bounds=64.0, accept_determined=True)
    kept = kept.fit(islands).encrypted_
    scores, opened = kept.project(islands), kept.open()
    for name, rows in islands.items():
        assert np.allclose(scores[name], rows @ opened["components"].T - opened["offset"], atol=1e-5)
