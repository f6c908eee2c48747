"""What ``atoll review`` predicts for SF-PCA against what then happens."""

from __future__ import annotations

import pytest
from tests.examples import Example, sfpca, sfpca_scores

from atoll.protocols.sfpca.planner import expect
from atoll.runtime.execute import run_study


@pytest.mark.parametrize(
    "example", [sfpca(), sfpca_scores(), sfpca(recipe="strict")], ids=["direct", "scores", "strict"]
)
def test_messages_and_rounds_are_exact_and_bytes_close(example: Example) -> None:
    expected = expect(example.study, 4)
    transcript = run_study(example.study, example.islands).result.transcript
    assert expected.messages == transcript.messages
    assert expected.rounds == transcript.rounds
    sent = max(cost.bytes_sent for role, cost in transcript.roles.items() if role.endswith("/provider"))
    assert sent / 1.25 < expected.bytes_per_provider < 1.25 * sent
    assert transcript.bytes / 1.25 < expected.bytes_total < 1.25 * transcript.bytes


def test_the_prediction_for_a_large_study_takes_no_time() -> None:
    study = sfpca(n_components=5, bounds=255.0).study
    expected = expect(study, 717)
    assert 2e8 < expected.bytes_per_provider < 4e8
    assert 200 < expected.rounds < 300
