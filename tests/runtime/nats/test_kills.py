"""The short form of ``benchmarks/network_kills.py``: some kills of workers, nodes and the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.network_kills import campaign
from tests.support.hub import needs_server


@pytest.mark.timeout(1200)
def test_runs_complete_under_kills_and_no_message_has_two_payloads(tmp_path: Path) -> None:
    needs_server()
    tally = campaign(["summation-shares", "meta"], 6, 7, tmp_path / "machine", per_run=4)
    assert tally.runs == {"summation-shares": "finished", "meta": "finished"}
    assert sum(tally.kills.values()) >= 6
    assert tally.frames > 20
    assert tally.doubled == []
    assert tally.contradictions == []
