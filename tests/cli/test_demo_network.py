"""``atoll demo --network``: a hub, three nodes, approvals, a node killed half-way, and the same result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.hub import needs_server
from tests.support.running import atoll

from atoll.runtime.result import load_result


@pytest.mark.timeout(600)
def test_the_demo_between_processes_ends_as_in_one(tmp_path: Path) -> None:
    needs_server()
    done = atoll("demo", "--network", "--json", "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["same_as_local"], said["killed"], said["receipts"]) == (True, "valley-hospital", 4)
    (file,) = [path for path in map(Path, said["files"]) if path.suffix == ".atoll"]
    assert set(load_result(file).outputs) >= {"components", "explained_variance", "n_samples"}
    receipts = sorted(map(str, (tmp_path / "out").glob("receipt-*.jsonl")))
    assert len(receipts) == 4
    verified = atoll("receipt", "verify", *receipts)
    assert verified.code == 0, verified.err
