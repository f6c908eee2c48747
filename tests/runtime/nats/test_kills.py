"""The short form of ``benchmarks/network_kills.py``: some kills of workers, nodes and the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.network_kills import campaign
from tests.support.hub import needs_server

STUDIES = [
    "summation-shares",
    "meta",
    "dpdpca-pairs-padded",  # private: a ledger at every site
    "summation-masks-dropouts",
    "sum-mediated",  # a role that the secure sum brings along
    "sfpca-encrypted",  # shares that are kept
    "sfpca-later-both",  # and used
    "glm",
]
"""One of every kind that asks something else of a node."""


@pytest.mark.timeout(1200)
def test_runs_complete_under_kills_and_no_message_has_two_payloads(tmp_path: Path) -> None:
    """Results, receipts and ledgers are checked as in the campaign."""
    needs_server()
    tally = campaign(STUDIES, 12, 7, tmp_path / "m", per_run=2, together=3)
    assert tally.runs == dict.fromkeys(STUDIES, "finished")
    assert tally.kills.total() >= 12
    assert tally.frames > 100
    assert (tally.doubled, tally.contradictions, tally.misbooked) == ([], [], [])
