"""What ``atoll review`` says of the paper variant beforehand, against what then happens."""

from __future__ import annotations

import time
from typing import Any

import pytest
from msgspec import structs
from tests.support.examples import Example, sfpca_paper, sfpca_paper_columns
from tests.support.slot_runs import INSECURE

from atoll.bench.slot_rates import measured
from atoll.errors import ParameterError
from atoll.protocols.base import Circumstances
from atoll.protocols.pca.sfpca.paper.forecast import forecast
from atoll.protocols.pca.sfpca.paper.planner import expect
from atoll.review.study import Guess, review_study
from atoll.runtime.execute import run_study
from atoll.secret_matrices.slots import rates as slot_rates

OWN_SCORES = {"scores": ("provider",), "explained_variance": ("coordinator",)}
OFFICE = {"components": ("consumer",)}


def variant(
    release: dict[str, tuple[str, ...]] | None = None, *, paper: dict[str, Any] | None = None, **more: Any
) -> Example:
    """Four iterations on three islands, with some letters changed."""
    example = sfpca_paper()
    parameters = example.study.parameters | more
    parameters["paper"] = parameters["paper"] | (paper or {})
    study = structs.replace(example.study, parameters=parameters, release=release or example.study.release)
    return Example(study, example.islands)


CASES: dict[str, Any] = {
    "precomp": variant,
    "bounds": lambda: variant(bounds=32.0),
    "scores": lambda: variant(OWN_SCORES),
    "seq": lambda: variant(paper={"method": "seq"}),
    "dqr": lambda: variant(paper={"qr": "dqr"}),
    "verify": lambda: variant(OWN_SCORES, paper={"verify": True}),
    "threshold": lambda: variant(threshold=2),
    "a consumer alone": lambda: variant(OFFICE),
    "columns": sfpca_paper_columns,
}


def given(example: Example) -> Circumstances:
    return Circumstances(5, tuple(island.n_rows for island in example.islands.values()))


@pytest.mark.parametrize("name", CASES)
def test_messages_and_rounds_are_exact_and_bytes_nearly(name: str) -> None:
    example = CASES[name]()
    expected = forecast(example.study, given(example))[0]
    transcript = run_study(example.study, example.own).result.transcript
    assert expected.messages == transcript.messages
    assert expected.rounds == transcript.rounds
    sent = max(cost.bytes_sent for role, cost in transcript.roles.items() if role.endswith("/provider"))
    assert sent == pytest.approx(expected.bytes_per_provider, rel=0.002)
    assert transcript.bytes == pytest.approx(expected.bytes_total, rel=0.002)


@pytest.mark.parametrize("method", ["precomp", "seq"])
def test_processor_seconds_are_within_a_factor(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """With the rates of these small slots. A ring of 1,024 has Python's own work beside it, which is not
    counted; at the paper's size the forecast is within a quarter."""
    own = measured(INSECURE, for_tests=True).steps
    monkeypatch.setattr(slot_rates, "shipped", lambda: own)
    example = variant(paper={"method": method})
    said = forecast(example.study, given(example))[1]
    before = time.process_time()
    run_study(example.study, example.own)
    took = time.process_time() - before
    assert took / 3 < 3 * said.processor_provider + said.processor_server < 1.5 * took


def test_a_review_says_it() -> None:
    cost = review_study(sfpca_paper().study, 5, guess=Guess((40, 40, 40))).cost
    assert cost is not None
    assert cost.forecast is not None
    assert cost.forecast.course[0].startswith("Precomp, because 5 columns are no more than twice the smaller")
    assert "120 rows in all" in cost.forecast.assumes
    assert cost.projection_bytes_per_row == 0
    seq = review_study(variant(paper={"method": "seq"}).study, 5, guess=Guess((40, 40, 40))).cost
    assert seq is not None
    assert seq.forecast is not None
    assert seq.forecast.course[0] == "Seq with QR^T, because the study asks for it"


def test_what_happens_on_shares_is_not_counted_and_the_review_says_so() -> None:
    review = review_study(variant(paper={"nonlinear": "lss"}).study, 5)
    assert review.cost is None
    assert review.cost_missing == "what nonlinear = 'lss' takes on shares is not counted beforehand"


def test_more_columns_more_rows_and_more_islands_take_more() -> None:
    study = sfpca_paper().study
    few, wide = expect(study, 5), expect(study, 600)
    assert wide.bytes_per_provider > few.bytes_per_provider
    small, large = (
        forecast(variant(paper={"method": "seq"}).study, Circumstances(5, (n,) * 3))[1] for n in (100, 5000)
    )
    assert large.processor_provider > small.processor_provider
    verifying = forecast(variant(paper={"verify": True}).study, Circumstances(5, (100,) * 3))[1]
    assert (
        verifying.processor_provider > 2 * forecast(study, Circumstances(5, (100,) * 3))[1].processor_provider
    )
    assert "compute all that the coordinator computes" in verifying.course[1]


def test_sketches_that_no_table_has_are_refused_before_anything_runs() -> None:
    with pytest.raises(ParameterError, match="sketch of"):
        forecast(variant(paper={"alpha": 9}).study, Circumstances(5, (40,) * 3))
