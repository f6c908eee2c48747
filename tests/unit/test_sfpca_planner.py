"""What ``atoll review`` predicts for SF-PCA against what then happens."""

from __future__ import annotations

import asyncio

import pytest
from tests.examples import (
    Example,
    private_sfpca,
    sfpca,
    sfpca_scores,
    sfpca_standardised,
    sfpca_standardised_scores,
)

from atoll.protocols.sfpca.covariance import POLICIES
from atoll.protocols.sfpca.direct import Inputs, direct, joint_rotation
from atoll.protocols.sfpca.planner import Counted, expect
from atoll.protocols.sfpca.strict import strict
from atoll.runtime.execute import run_study


@pytest.mark.parametrize(
    "example",
    [
        sfpca(),
        sfpca_scores(),
        sfpca(recipe="strict"),
        sfpca_standardised(),
        sfpca_standardised_scores(),
        sfpca(recipe="strict", standardize=True),
        private_sfpca(),
    ],
    ids=[
        "direct",
        "scores",
        "strict",
        "standardised",
        "standardised-scores",
        "standardised-strict",
        "private",
    ],
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


@pytest.mark.parametrize("recipe", ["direct", "default", "accurate"])
def test_fifty_providers_with_a_million_rows_fit_the_rings(recipe: str) -> None:
    machine = Counted([f"p{i}" for i in range(50)])
    inputs = Inputs(10**6, 60, machine.providers, "nobody", None, None)
    run = direct(machine, inputs, 20) if recipe == "direct" else strict(machine, inputs, 20, POLICIES[recipe])
    asyncio.run(run)
    assert machine.messages > 50 * 40


def test_rotations_cost_a_provider_the_logarithm_of_their_number() -> None:
    sent = []
    for count in (2, 4, 16):
        machine = Counted([f"p{i}" for i in range(count)])
        asyncio.run(joint_rotation(machine, Inputs(100, 8, machine.providers, "nobody", None, None), 8))
        sent.append(machine.provider_bytes)
    assert sent[1] < 2.2 * sent[0]
    assert sent[2] < 4.4 * sent[0]
