"""A study over the mixing secure sum, from its file: reviewed and run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.example import STUDY
from tests.support.running import atoll

import atoll as package

MIXED = STUDY.replace(
    "[parameters]", 'secure_sum = "mix"\n[sum]\nform = "elgamal"\nsegments = 3\n[parameters]'
)
BROKER = '[[party]]\nname = "broker"\nrole = "mediator"\n[release]'


@pytest.mark.parametrize("own_mediator", [False, True])
def test_a_study_file_runs_over_the_mix(folder: Path, own_mediator: bool) -> None:
    (folder / "plain.toml").write_text(STUDY)
    (folder / "mixed.toml").write_text(MIXED.replace("[release]", BROKER) if own_mediator else MIXED)
    for name in ("plain", "mixed"):
        finished = atoll("run", f"{name}.toml", "--output", name)
        assert finished.code == 0, finished.err
    found = [package.load_result(folder / name / "lab" / "north-south.atoll") for name in ("plain", "mixed")]
    np.testing.assert_array_equal(found[0]["components"], found[1]["components"])
    said = json.loads(atoll("review", "mixed.toml", "--json").out)
    assert "as long as none of the 2 islands works together with it" in said["trust"]
    assert ("mediator" in {role["role"] for role in said["roles"]}) == own_mediator
