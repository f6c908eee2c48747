"""A review says where the tables are when a study runs, and claims nothing that a rehearsal does not keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs
from tests.cli.example import STUDY
from tests.support.examples import pppca, sfpca
from tests.support.running import atoll

from atoll.report.assessment import as_markdown
from atoll.review.study import review_study
from atoll.study.model import Study

ONLY_BETWEEN_MACHINES = (
    "never leave an island",
    "there is no central copy",
    "without bringing the records together",
)


def with_keys(study: Study, without: int = 0) -> Study:
    """All parties have a key but the last ``without`` ones."""
    keyed = len(study.parties) - without
    parties = tuple(
        structs.replace(party, fingerprint=f"{i:064x}" if i < keyed else None)
        for i, party in enumerate(study.parties)
    )
    return structs.replace(study, parties=parties)


@pytest.mark.parametrize("study", [pppca().study, sfpca().study])
def test_a_study_runs_between_machines_if_every_party_has_a_key(study: Study) -> None:
    for one, between in ((study, False), (with_keys(study, without=1), False), (with_keys(study), True)):
        review = review_study(one, 4)
        assert review.between_machines is between
        text = as_markdown(review)
        for claim in ONLY_BETWEEN_MACHINES:
            assert (claim in text) is between, claim
        assert ("one machine that has every island's table" in text) is not between
        assert ("In a rehearsal all records are on one machine" in text) is not between


def test_a_run_in_one_process_says_that_it_was_a_rehearsal(folder: Path) -> None:
    assert json.loads(atoll("run", "study.toml", "--json").out)["way"] == "rehearsal in one process"
    keyed = STUDY
    for i, party in enumerate(("north", "south", "office", "lab")):
        keyed = keyed.replace(f'name = "{party}"', f'name = "{party}"\nfingerprint = "{i:064x}"')
    (folder / "study.toml").write_text(keyed)
    assert json.loads(atoll("review", "study.toml", "--json").out)["between_machines"] is True
    # The local engine has all tables here, whatever keys the parties have.
    assert json.loads(atoll("run", "study.toml", "--json").out)["way"] == "rehearsal in one process"


def test_one_party_without_a_key_keeps_a_study_on_one_machine() -> None:
    study = sfpca().study
    assert with_keys(study).between_machines
    assert not with_keys(study, without=1).between_machines


def test_a_name_with_markup_stays_text_in_an_assessment() -> None:
    text = as_markdown(review_study(structs.replace(pppca().study, name="<b>wards</b> | beds"), 4))
    assert text.splitlines()[0] == "# Privacy review of the study “\\<b>wards\\</b> \\| beds”"
