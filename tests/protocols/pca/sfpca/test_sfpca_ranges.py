"""Declared ranges: every value inside the bounds is accepted, the ends included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atoll.data.island import Island
from atoll.errors import RangeOverflow
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.recipes.moments import on_grid

ends = st.floats(-1e100, 1e100)


@given(ends, ends, st.floats(0, 1))
@example(0.7, 2.7, 0.5)
@example(-1.0, 1.0, 0.5)
@example(0.0, 5e-324, 0.5)
@example(1e100, float(np.nextafter(1e100, 2e100)), 0.5)
def test_every_value_inside_the_bounds_is_accepted(a: float, b: float, at: float) -> None:
    low, high = min(a, b), max(a, b)
    between = min(high, max(low, low + at * (high / 2 - low / 2) * 2))
    X = np.array([[low], [between], [high]])
    declared = ranges.declared(((low, high),), ["a"])
    assert declared is not None
    declared.check(Island.from_array(X, name="north", columns=["a"]).chosen(["a"]))
    exponent, centre = declared.range()
    on_grid(X - centre, exponent, 60)
    # And no power of two is wasted.
    assert low == high or np.abs(X - centre).max() > 2.0 ** (exponent - 1)
    units = declared.units()
    assert np.abs(units.applied(X)).max() <= 1
    assert units.exponents.tolist() == [exponent]


@pytest.mark.parametrize("beyond", [-0.25, 3.25])
def test_a_value_beyond_either_bound_is_refused_though_the_power_of_two_covers_it(beyond: float) -> None:
    X = np.array([[0.0, 1.0], [3.0, beyond]])
    declared = ranges.declared(((0.0, 3.0), (0.0, 3.0)), ["age", "dose"])
    assert declared is not None
    assert abs(beyond - 1.5) < 2.0 ** declared.range().exponent
    with pytest.raises(
        RangeOverflow, match=r"north: column 'dose' holds a value beyond .* at row 1; no number"
    ):
        declared.check(Island.from_array(X, name="north", columns=["age", "dose"]).chosen(["age", "dose"]))


def test_the_widest_column_counts() -> None:
    declared = ranges.declared(((0.7, 2.7), (-8.0, 8.0), (3.0, 3.0)), ["a", "b", "c"])
    assert declared is not None
    assert declared.range().exponent == 3
    assert declared.units().exponents.tolist() == [1, 3, 0]
