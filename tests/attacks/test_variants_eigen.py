"""eigen = "encrypted", attacked by somebody who did not write it: who deviates chooses which bit is opened.

The bit is that of a threshold which the program adds to a secret number. Honest runs tell two numbers above
it from each other by nothing; a provider that moves its own share of the number moves the threshold, and no
proof says that it did. It still gets one bit, and pays with a certificate that is worth nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.support.sfpca_runs import simulated

from atoll.protocols.pca.sfpca.recipes import verdict

honest = verdict.offset
Judged = Callable[[float, float], bool]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """The bit of a secret number where one provider has added ``moved`` to its share."""

    def judge(value: float, moved: float) -> bool:
        monkeypatch.setattr(verdict, "offset", lambda digits: honest(digits) + moved)
        machine = simulated(3, seed=4)
        x = machine.private(None, [[int(value * 2**60)]], (1, 1), 60, 1)
        return asyncio.run(verdict.passes(machine, x))

    return judge


def test_an_honest_run_does_not_tell_good_evidence_from_better(judged: Judged) -> None:
    assert [judged(value, 0.0) for value in (0.7, 0.8, 0.9, 1.0)] == [True] * 4


@pytest.mark.parametrize("threshold", [0.75, 0.85, 0.95])
def test_a_provider_that_moves_its_share_compares_with_a_threshold_of_its_own(
    threshold: float, judged: Judged
) -> None:
    moved = (verdict.THRESHOLD - threshold) * 15 / 16
    assert not judged(threshold - 0.05, moved)
    assert judged(threshold + 0.05, moved)


def test_a_provider_that_moves_its_share_vouches_for_what_does_not_hold(judged: Judged) -> None:
    assert not judged(0.4, 0.0)
    assert judged(0.4, 0.3)


def test_however_many_runs_say_a_point_of_the_grid_and_no_more(judged: Judged) -> None:
    """A provider that moves its share from run to run finds the number by halving, as far as its grid goes:
    two numbers that are rounded to one point stay alike for every threshold."""
    grid = 2.0 ** -verdict.grid_digits(3)
    point = round(0.7 / grid) * grid
    low, high = point - 0.3 * grid, point + 0.3 * grid  # rounding of the machine is less than the rest
    moves = [-15 / 16 * grid * step for step in range(16)]
    said = [(judged(low, moved), judged(high, moved)) for moved in moves]
    assert {one == other for one, other in said} == {True}
    assert {one for one, _ in said} == {True, False}  # it does find out where the number lies
    assert verdict.grid_digits(256) == 14
