"""A study file that takes rows in pairs: run, reviewed, and refused where it means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_ledger import BOOKED, LEDGER, budgets, spent
from tests.support.running import atoll

from atoll.errors import DataError, StudyError
from atoll.runtime.studies import open_study

PAIRED = BOOKED.replace("row_norm = 4.0", 'centre = "pairs"')
PADDED = PAIRED.replace('centre = "pairs"', 'centre = "pairs"\npadded = true')
CAPACITIES = "capacities = { north = 7331, south = 11 }\n"


def told(text: str) -> str:
    return " ".join(text.split())


def test_a_study_in_pairs_runs_and_spends_what_it_says(folder: Path) -> None:
    Path("study.toml").write_text(PAIRED)
    budgets()
    finished = atoll("run", "study.toml", "--quiet")
    assert finished.code == 0, finished.err
    # The whole of the study's epsilon, in one Gaussian release.
    assert spent() == pytest.approx({"north-icu": 1.0, "south-icu": 1.0}, rel=1e-6)


def test_the_review_says_what_pairs_are(folder: Path) -> None:
    Path("study.toml").write_text(PAIRED)
    said = told(atoll("review", "study.toml").out)
    assert "a pair counts by the direction of its difference: nothing is spent on a mean" in said
    assert "how the islands' means differ is not part of the components" in said
    assert "no capacity is declared" in said
    assert "the components without a centre" in said
    assert "are cut to it" not in said
    assert "private centre, noisy row count" not in said
    Path("study.toml").write_text(PADDED + CAPACITIES)
    said = told(atoll("review", "study.toml").out)
    assert "as many places as it declared (its capacity, which nobody else learns)" in said
    assert "7331" not in said.replace(",", "")


def test_capacities_are_local_and_a_padded_study_needs_them(folder: Path) -> None:
    Path("study.toml").write_text(PADDED)
    budgets()
    without = open_study("study.toml").study.digest
    refused = atoll("run", "study.toml", "--quiet")
    assert refused.code == DataError.exit_code
    assert "h declares no capacity" in told(refused.err)  # north or south, whichever comes first
    assert not json.loads(atoll("ledger", "export", *LEDGER).out)["debits"]  # nobody paid
    Path("study.toml").write_text(PADDED + CAPACITIES)
    assert open_study("study.toml").study.digest == without
    assert atoll("run", "study.toml", "--quiet").code == 0
    Path("study.toml").write_text(PADDED + CAPACITIES.replace("11", "9"))
    refused = atoll("run", "study.toml", "--quiet", "-o", "second")
    assert refused.code == DataError.exit_code
    assert "south has more rows than the capacity that was declared for it" in told(refused.err)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAIRED.replace("centre", "row_norm = 4.0\ncentre"), "row_norm cannot be used with centre='pairs'"),
        (PAIRED.replace("centre", "assume_centered = true\ncentre"), "assume_centered cannot be used"),
        (PAIRED.replace("centre", 'rows = "clip"\ncentre'), "rows='clip' cannot be used"),
        (PADDED.replace("centre", 'neighbours = "replace"\ncentre'), "padded can only be used"),
        (BOOKED.replace("row_norm", "padded = true\nrow_norm"), "padded can only be used"),
        (PAIRED.replace('"pairs"', '"median"'), "invalid enum value 'median'"),
        (PADDED + CAPACITIES.replace("11", "0"), "the capacity of 'south' must be a whole number from 1"),
        (PADDED + CAPACITIES.replace("south", "west"), "[local] gives a capacity for 'west'"),
        (PADDED + CAPACITIES.replace("7331", '"7331"'), "capacities"),
    ],
)
def test_what_means_nothing_is_refused_with_its_line(folder: Path, text: str, said: str) -> None:
    Path("study.toml").write_text(text)
    refused = atoll("review", "study.toml")
    assert refused.code == StudyError.exit_code
    assert said in told(refused.err)
    assert "study.toml:" in told(refused.err)
