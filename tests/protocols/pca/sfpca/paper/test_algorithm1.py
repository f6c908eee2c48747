"""Algorithm 1 on the clear twin: the right components, from intervals that it simulates."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.support.paper_runs import agreed_intervals, cosines, exact, run_clear, table

from atoll.errors import CertificateRefused
from atoll.protocols.pca.sfpca.paper.certificate import refuse_above
from atoll.protocols.pca.sfpca.paper.intervals import Intervals
from atoll.protocols.pca.sfpca.paper.parameters import Algorithm, Course, Factorisation, course

PAPER = Algorithm(p=6, alpha=1, w=5)
X = table()
PARTS = np.array_split(X, 3)


@pytest.fixture(scope="module")
def intervals() -> Intervals:
    return agreed_intervals(PARTS, 2, PAPER)


@pytest.mark.parametrize("seed", range(4))
def test_components_are_those_of_the_joint_table(intervals: Intervals, seed: int) -> None:
    ran = run_clear(PARTS, 2, PAPER, intervals, seed=bytes([seed]) * 32)
    assert cosines(ran.components, exact(X, 2)).min() > 0.9999
    assert abs(ran.tau) < 1e-3
    np.testing.assert_allclose(np.linalg.norm(ran.components, axis=1), 1.0, atol=5e-3)


@pytest.mark.parametrize("qr", ["qr", "dqr"])
def test_seq_finds_the_same(qr: Factorisation) -> None:
    intervals = agreed_intervals(PARTS, 2, PAPER, "seq", qr)
    ran = run_clear(PARTS, 2, PAPER, intervals, method="seq", qr=qr)
    assert cosines(ran.components, exact(X, 2)).min() > 0.9999
    assert abs(ran.tau) < 1e-3


def test_islands_that_factorise_apart_may_be_of_any_size() -> None:
    """The first has fewer rows than the sketch, and so nothing in some of the first coordinates."""
    parts = np.split(X, [2, 100])
    intervals = agreed_intervals(parts, 2, PAPER, "seq", "dqr")
    ran = run_clear(parts, 2, PAPER, intervals, method="seq", qr="dqr")
    assert cosines(ran.components, exact(X, 2)).min() > 0.9999
    assert abs(ran.tau) < 1e-3


WIDE = 100_000


@pytest.mark.parametrize(
    ("rows", "columns", "paper", "due"),
    [
        ((20, 9), WIDE, Algorithm(), Course("seq", "dqr")),  # 20^3 < 100,000
        ((50, 9), WIDE, Algorithm(), Course("seq", "qr")),
        ((50, 9), WIDE, Algorithm(xi=2.0), Course("seq", "dqr")),
        ((5, 5), WIDE, Algorithm(), Course("seq", "qr")),  # fewer than rho
        ((50, 9), 5, Algorithm(), Course("precomp", "qr")),
        ((50, 9), 5, Algorithm(qr="dqr"), Course("seq", "dqr")),
    ],
)
def test_when_islands_factorise_apart(
    rows: tuple[int, ...], columns: int, paper: Algorithm, due: Course
) -> None:
    assert course(rows, columns, paper, 6) == due


def test_the_mean_does_not_matter() -> None:
    parts = [part + np.array([0.0, 50.0, -20.0, 0.0, 7.0]) for part in PARTS]
    ran = run_clear(parts, 2, PAPER, agreed_intervals(parts, 2, PAPER))
    assert cosines(ran.components, exact(X, 2)).min() > 0.999


@pytest.mark.parametrize("place", ["components/0/inverse", "components/1/length", "power/3/0/inverse"])
def test_a_wrong_interval_shows_in_the_certificate(intervals: Intervals, place: str) -> None:
    low, high = intervals.of[place]
    wrong = {**intervals.of, place: (low * 2.0**14, high * 2.0**14)}
    ran = run_clear(PARTS, 2, PAPER, intervals._replace(of=wrong))
    assert place in ran.outside
    right = cosines(ran.components, exact(X, 2)).min() > 0.999
    lengths = np.abs(np.linalg.norm(ran.components, axis=1) - 1).max() < 0.05
    assert not ran.tau <= PAPER.tolerance**2 or (right and lengths)
    if place.startswith("components"):
        assert not ran.tau <= PAPER.tolerance**2


def test_a_certificate_that_is_small_is_of_components_that_hold(intervals: Intervals) -> None:
    """Every interval in turn, wrong: whatever passes is right."""
    passed = 0
    for place, (low, high) in list(intervals.of.items())[::9]:
        wrong = {**intervals.of, place: (low * 2.0**8, high * 2.0**8)}
        ran = run_clear(PARTS, 2, PAPER, intervals._replace(of=wrong))
        if ran.tau <= PAPER.tolerance**2:
            passed += 1
            assert cosines(ran.components, exact(X, 2)).min() > 0.99, place
    assert passed > 0


@pytest.mark.parametrize("tau", [1.0, -1.0, float("nan"), float("inf")])
def test_what_is_far_from_zero_on_either_side_is_refused(tau: float) -> None:
    with pytest.raises(CertificateRefused):
        refuse_above(0.1, tau)
    refuse_above(0.1, 0.005)
    refuse_above(0.1, -0.005)


def test_what_is_told_is_powers_of_two(intervals: Intervals) -> None:
    ends = np.abs([end for interval in intervals.of.values() for end in interval])
    assert set(np.frexp(ends)[0]) == {0.5}


def test_intervals_of_another_margin_are_wider(intervals: Intervals) -> None:
    wide = agreed_intervals(PARTS, 2, msgspec.structs.replace(PAPER, margin=8.0))
    narrower = [
        place
        for place, (low, high) in intervals.of.items()
        if place.endswith("length") and wide.of[place][1] / wide.of[place][0] < high / low
    ]
    assert not narrower
