"""Numbers and comparisons as reports show them."""

from __future__ import annotations

import numpy as np
import pytest

from atoll.report.agreement import cosines, largest_angle
from atoll.report.units import duration, listing, size


def test_agreement_is_that_of_the_worst_direction() -> None:
    same_and_turned = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(0.5), np.sin(0.5)]])
    plane = np.eye(3)[:2]
    assert largest_angle(plane, same_and_turned) == pytest.approx(np.degrees(0.5))
    assert largest_angle(plane, plane[::-1]) == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(cosines(plane, -same_and_turned), [1.0, np.cos(0.5)])


@pytest.mark.parametrize(
    ("count", "said"),
    [(12, "12 B"), (1234, "1.23 kB"), (1_234_567, "1.23 MB"), (2.5e9, "2.5 GB"), (4e12, "4,000 GB")],
)
def test_sizes(count: float, said: str) -> None:
    assert size(count) == said


def test_a_long_list_says_how_many_it_leaves_out() -> None:
    names = [f"p{i}" for i in range(60)]
    assert listing(names) == "p0, p1, p2, p3, p4, p5 and 54 more"
    assert listing(names[:7]) == "p0, p1, p2, p3, p4, p5, p6"
    assert [duration(seconds) for seconds in (5, 754, 7200)] == ["5 s", "13 min", "2 h"]
