"""Frames at random: nothing raises, nothing grows. The long form is benchmarks/network_fuzz.py."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from tests.support.fuzzing import Target, fuzz

from atoll.errors import AtollError


@pytest.mark.timeout(300)
def test_frames_at_random_are_counted_and_dropped(tmp_path: Path) -> None:
    target = Target(tmp_path)
    fuzz(target, 4_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = fuzz(target, 16_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert target.link.counts["refused"] > 10_000
    assert ended == 0 or isinstance(target.link.cause, AtollError | None)
    assert grown < 20_000  # kilobytes
    assert len(target.peer.ciphers) <= 17
    assert len(target.peer.old) <= 16
    assert target.peer.pending <= 64 << 20
    target.journal.close()
