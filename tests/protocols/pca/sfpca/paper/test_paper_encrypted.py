"""Whole runs of Algorithm 1, encrypted on slots that protect nothing: as the clear twin, and as it counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.paper_runs import SEED, agreed_intervals, cosines, exact, planned, table, whole
from tests.support.slot_runs import COORDINATOR, clear, encrypted, provider

from atoll.protocols.pca.sfpca.paper.algorithm1 import Own, Plan, Shape
from atoll.protocols.pca.sfpca.paper.intervals import FLOOR
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course
from atoll.protocols.pca.sfpca.paper.sketch import sketch_of, spreading
from atoll.secret_matrices.slots.approximations import agreed
from atoll.secret_matrices.slots.machine import Operation

PAPER = Algorithm(p=2, alpha=1, w=1)
PARTS = np.split(table(), [30, 80])
"""The second island has most rows."""


def compare(plan: Any, given: list[Any], *, verify: bool = False) -> None:
    secret, twin = encrypted(whole(plan), given, verify=verify), clear(whole(plan), given)
    tau, *components = secret.results[provider(0)]
    tau_due, *due = twin.results[provider(0)]
    np.testing.assert_allclose(components, due, atol=1e-4)
    assert abs(tau[0] - tau_due[0]) < 1e-4
    assert abs(tau_due[0]) < 0.01
    for role, tally in twin.tallies.items():
        if not verify:
            assert secret.tallies[role].total == tally.total
        elif role != str(COORDINATOR):  # it has done what the coordinator has done, and its own
            here, there = twin.tallies[str(COORDINATOR)].total, secret.tallies[role].total
            assert there[Operation.ROTATE] == here[Operation.ROTATE] + tally.total[Operation.ROTATE]


@pytest.mark.parametrize("verify", [False, True])
def test_rows_in_several_ciphertexts(verify: bool) -> None:
    """520 columns on 512 slots; with ``verify`` every provider checks the sums of both ciphertexts."""
    rng = np.random.default_rng(3)
    wide = 0.3 + 0.02 * rng.normal(size=(30, 520))
    wide += rng.normal(size=(30, 2)) * [4, 2] @ np.linalg.qr(rng.normal(size=(520, 2)))[0].T
    parts, paper = np.split(wide, [9, 20]), Algorithm(p=1, alpha=1, w=1)
    intervals = agreed_intervals(parts, 1, paper, "seq")
    compare(*planned(parts, 1, paper, intervals, Course("seq", "qr")), verify=verify)


@pytest.mark.parametrize(
    "course", [Course("precomp", "qr"), Course("seq", "qr"), Course("seq", "dqr")], ids=str
)
def test_components_are_those_of_the_twin(course: Course) -> None:
    intervals = agreed_intervals(PARTS, 1, PAPER, course.method, course.qr)
    compare(*planned(PARTS, 1, PAPER, intervals, course))


def test_where_islands_hold_columns() -> None:
    """The paper's D.2, with intervals of the pooled table."""
    X, places = table(), (slice(0, 2), slice(2, 3), slice(3, 5))
    intervals, turn = agreed_intervals([X], 1, PAPER, "seq"), spreading(SEED, 5)
    assert turn is not None
    unit = 2.0 ** (intervals.scale - int(np.ceil(np.log2(np.abs(X).max()))))
    shape, sketch = Shape((len(X),) * 3, 5, 1, 2, vertical=True), sketch_of(SEED, 2, len(X))
    use = agreed(intervals.of, PAPER.degree, FLOOR)
    plan = Plan(shape, Course("seq", "qr"), PAPER, use, intervals.variances, intervals.stretches)
    given: list[Any] = [None]
    for place in places:
        part = X[:, place] @ turn[:, place].T * unit
        means = part.mean(axis=0)
        given.append(Own(part - means, sketch.times(part - means, 0), means))
    compare(plan, given)
    found = np.array(clear(whole(plan), given).results[provider(0)][1:]) @ turn
    assert cosines(found, exact(X, 1)).min() > 0.9999
