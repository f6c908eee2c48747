"""The paper's D.3: noise of a shuffled list, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, sfpca_paper
from tests.support.paper_runs import cosines, exact, table

from atoll.errors import ParameterError, StudyError
from atoll.protocols import resolve
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.paper.forecast import forecast
from atoll.protocols.pca.sfpca.paper.noise import GRID_BITS, list_of
from atoll.protocols.pca.sfpca.paper.parameters import Noise
from atoll.protocols.pca.sfpca.paper.protocol import PROTOCOL
from atoll.review.study import review_study
from atoll.runtime.execute import run_study

TO_PROVIDERS = {"components": ("provider",), "explained_variance": ("provider",)}


def noisy(paper: dict[str, Any], release: dict[str, tuple[str, ...]] | None = None, **more: Any) -> Example:
    example = sfpca_paper()
    parameters = example.study.parameters | more
    parameters["paper"] = parameters["paper"] | paper
    return Example(
        structs.replace(example.study, parameters=parameters, release=release or TO_PROVIDERS),
        example.islands,
    )


@pytest.mark.parametrize("count", [2, 7, 1000])
def test_the_list_is_of_the_distribution_that_it_says(count: int) -> None:
    scale = 0.05
    values = np.array(list_of(Noise(scale, count), 1))
    assert len(values) == count
    np.testing.assert_array_equal(values, -values[::-1])
    assert (values * 2**GRID_BITS == np.round(values * 2**GRID_BITS)).all()
    # Quantiles: the empirical distribution is within half a step of Laplace's at each of its numbers.
    due = np.where(values < 0, np.exp(values / scale) / 2, 1 - np.exp(-values / scale) / 2)
    np.testing.assert_allclose(due, (np.arange(count) + 0.5) / count, atol=1e-3)


def test_outputs_carry_numbers_of_the_list_and_nothing_else() -> None:
    """What is opened differs from the exact run by twelve different numbers of a list of twelve."""
    noise, drawn = {"scale": 0.01, "values": 12}, 8
    exactly, noisily = (
        run_study(e.study, e.own).result for e in (noisy({"p": 6}), noisy({"p": 6, "noise": noise}))
    )
    unit = exactly["offset"], noisily["offset"]
    assert cosines(noisily["components"], exact(table(), 1)).min() > 0.9
    assert np.abs(noisily["components"] - exactly["components"]).max() > 1e-4
    values = np.array(list_of(Noise(**noise), drawn))
    # A public rotation stands between what is opened and the table's columns: it keeps lengths.
    moved = float(np.linalg.norm(noisily["components"] - exactly["components"]))
    squares = np.sort(values**2)
    assert squares[:5].sum() * 0.99 < moved**2 < squares[-5:].sum() * 1.01
    assert not np.allclose(*unit)


def test_messages_are_as_the_forecast_says() -> None:
    example = noisy({"noise": {"scale": 0.01}})
    rows = tuple(island.n_rows for island in example.islands.values())
    expected = forecast(example.study, Circumstances(5, rows))[0]
    transcript = run_study(example.study, example.own).result.transcript
    assert (expected.messages, expected.rounds) == (transcript.messages, transcript.rounds)
    assert transcript.bytes == pytest.approx(expected.bytes_total, rel=0.002)


def test_nothing_is_promised_and_the_review_says_so() -> None:
    study = noisy({"noise": {"scale": 0.5}}).study
    assert PROTOCOL.privacy(resolve(study)) is None
    review = review_study(study, 5)
    assert review.privacy is None
    said = " ".join(word for role in review.roles for word in (*role.learns, *role.caveats))
    assert "noise of scale 0.5 from a public list" in said
    assert "this is no differential privacy, and is booked as an exact release" in said


@pytest.mark.parametrize(
    ("paper", "release", "words"),
    [
        ({"noise": {"scale": 0.0}}, TO_PROVIDERS, "noise of scale 0.0"),
        ({"noise": {"scale": 2.0}}, TO_PROVIDERS, "noise of scale 2.0"),
        ({"noise": {"scale": 0.1, "values": 0}}, TO_PROVIDERS, "from 0 values"),
        ({"noise": {"scale": 0.1}, "verify": True}, TO_PROVIDERS, "whose order nobody knows"),
        ({"noise": {"scale": 0.1}}, {"scores": ("provider",)}, "exact scores would undo it"),
    ],
    ids=str,
)
def test_what_a_list_cannot_be_had_with(paper: Any, release: Any, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        resolve(noisy(paper, release).study)


def test_a_list_that_is_too_short_is_refused_before_there_are_keys() -> None:
    example = noisy({"noise": {"scale": 0.1, "values": 7}})
    with pytest.raises(ParameterError, match="take 8 numbers of noise, the list has 7"):
        run_study(example.study, example.own)
