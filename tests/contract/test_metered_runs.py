"""A run that does one thing at a time: whose work it was, and what it would take on many machines."""

from __future__ import annotations

import time

import pytest
from tests.support.examples import pppca, sfpca

from atoll.errors import ParameterError
from atoll.runtime.execute import run_study
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.local.meter import Meter
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address

A, B = Address("a", "provider"), Address("b", "server")


def busy(seconds: float) -> None:
    """Work of this thread alone: other threads of the process could make its clock run faster than time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_is_booked_to_whoever_does_it_and_clocks_wait() -> None:
    transcript = Transcript()
    meter = Meter(transcript)
    with meter.of(A):
        busy(0.02)
        with meter.of(B):
            busy(0.05)
        busy(0.02)
    assert transcript.of(A).cpu_seconds >= 0.04
    assert transcript.of(B).cpu_seconds >= 0.05
    assert transcript.of(A).cpu_seconds < 0.09, "the server's work was booked to the provider"
    assert meter.now(B) >= 0.05
    meter.wait(A, 7.0)
    meter.wait(A, 5.0)
    assert meter.now(A) == 7.0


def test_links_count_without_anybody_waiting_for_them() -> None:
    example = pppca()
    quick = LocalEngine(one_at_a_time=True)
    slow = LocalEngine(latency=1.0, bandwidth=1e6, one_at_a_time=True)
    costs = [
        run_study(example.study, example.own, engine=engine).result.transcript for engine in (quick, slow)
    ]
    assert costs[1].wall_seconds < 1.0 < costs[1].rounds < costs[1].apart_seconds
    assert costs[0].apart_seconds < 1.0
    assert all(cost.cpu_seconds > 0 for cost in costs[0].roles.values())
    assert sum(cost.cpu_seconds for cost in costs[0].roles.values()) < 2 * costs[0].wall_seconds
    assert costs[0].bytes == costs[1].bytes


def test_a_failing_role_fails_the_metered_run() -> None:
    example = sfpca(n_components=99)
    with pytest.raises(ParameterError, match="n_components"):
        run_study(example.study, example.own, engine=LocalEngine(one_at_a_time=True))


def test_faults_cannot_be_metered() -> None:
    with pytest.raises(ParameterError, match="one_at_a_time cannot be used with faults"):
        LocalEngine(faults=Faults(), one_at_a_time=True)
