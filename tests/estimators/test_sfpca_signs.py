"""Scores and components have the same signs, whoever holds them.

How closely they fit follows from the digits. Own scores are made of the very components and offset that are
released, noise included: what is left is the rounding of rows (2^-41 of the range for each entry, times
components whose four entries add up to at most two) and of the result (2^-44, and half of that for each
party), together below 2^-39 of the range.

Where islands hold columns, scores are about the exact mean and have noise of their own: up to 2^-27 of the
range from each provider. The offset that they are compared with is computed as a sum over 2^6 rows, of which
there are 40: its noise is 64/40 of that. The noise of the components, 2^-27 in every entry, meets the mean
in one and not in the other.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca, sfpca_columns, table

import atoll
from atoll.runtime.execute import run_study

RANGE = 64
ROUNDING = RANGE * 2.0**-39


@pytest.mark.parametrize("seed", range(3))  # the run's own signs are random
def test_scores_of_owners_fit_the_components_of_a_consumer(seed: int) -> None:
    example = sfpca(bounds=64.0)
    release = {"components": ("consumer",), "scores": ("provider",)}
    result = run_study(structs.replace(example.study, release=release), example.own).result
    for name, island in example.islands.items():
        scores = island.features(island.columns) @ result["components"].T - result["offset"]
        np.testing.assert_allclose(result["scores"][name], scores, rtol=0, atol=ROUNDING, err_msg=str(seed))


def test_common_scores_fit_the_components_of_some() -> None:
    example = sfpca_columns({"scores": ("provider",), "components": ("island-1",)}, bounds=64.0)
    result = run_study(example.study, example.own).result
    scores = table() @ result["components"].T - result["offset"]
    noise = 3 * 2.0**-27 * ((1 + 64 / len(table())) * RANGE + np.abs(table().mean(axis=0)).sum())
    for name in example.islands:
        np.testing.assert_allclose(result["scores"][name], scores, rtol=0, atol=noise + ROUNDING)


def test_components_that_are_opened_later_fit_scores_from_before() -> None:
    X = table(80)
    islands = {"a": X[:40], "b": X[40:]}
    kept = atoll.PCA(2, protocol="sfpca", release="encrypted", bounds=64.0, accept_determined=True)
    kept = kept.fit(islands).encrypted_
    scores, opened = kept.project(islands), kept.open()
    for name, rows in islands.items():
        expected = rows @ opened["components"].T - opened["offset"]
        np.testing.assert_allclose(scores[name], expected, rtol=0, atol=ROUNDING)


def test_scores_without_components_have_the_same_signs_in_every_fit() -> None:
    """The run's own signs are random; what the estimator shows is not."""
    X = table(80)
    islands = {"a": X[:40], "b": X[40:]}
    pca = atoll.PCA(3, protocol="sfpca", release="scores", bounds=64.0, accept_determined=True)
    fits = [pca.fit(islands).scores_ for _ in range(4)]
    for scores in fits:
        together = np.vstack(list(scores.values()))
        assert (together[np.abs(together).argmax(axis=0), range(3)] > 0).all()
        np.testing.assert_allclose(together, np.vstack(list(fits[0].values())), atol=1e-4)
