"""Declared ranges: every value inside the bounds is accepted, the ends included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atoll.data.island import Island
from atoll.errors import ParameterError, RangeOverflow, SchemaError
from atoll.protocols.pca.sfpca import ranges
from atoll.protocols.pca.sfpca.recipes.moments import on_grid
from atoll.protocols.pca.sfpca.schema import check_common_rows
from atoll.study.address import Address

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


@pytest.mark.parametrize(
    "bounds",
    [
        (),
        {},
        ((-np.inf, 1.0),),
        ((0.0, np.inf),),
        ((np.nan, 1.0),),
        ((1.0, 0.5),),
        ((0.0, 1.0), (1.0, 0.5)),
        {"a": (0.0, 1.0), "b": (0.0, np.nan)},
        np.inf,
        -1.0,
    ],
)
def test_bounds_are_finite_and_the_lower_comes_first(bounds: Any) -> None:
    with pytest.raises(ParameterError, match="two finite numbers, the lower first"):
        ranges.check_bounds(bounds)


@pytest.mark.parametrize("bounds", [0.0, ((1.0, 1.0),), {"a": (2.0, 2.0), "b": (3.0, 3.0)}])
def test_bounds_leave_room_for_some_value(bounds: Any) -> None:
    with pytest.raises(ParameterError, match="no room for any value"):
        ranges.check_bounds(bounds)


def test_a_column_may_be_constant_where_another_is_not() -> None:
    for bounds in (None, 0.5, ((1.0, 1.0), (0.0, 0.5)), {"a": (2.0, 2.0), "b": (0.0, 0.25)}):
        ranges.check_bounds(bounds)


def test_every_column_has_its_own_bounds_or_all_have_one() -> None:
    for bounds in (2.0, ((-2.0, 2.0),), {"b": (-2.0, 2.0), "a": (-2.0, 2.0), "more": (0.0, 9.0)}):
        declared = ranges.declared(bounds, ["a", "b"])
        assert declared is not None
        assert (declared.low.tolist(), declared.high.tolist()) == ([-2.0, -2.0], [2.0, 2.0])
    named = ranges.declared({"b": (3.0, 4.0), "a": (1.0, 2.0)}, ["a", "b"])
    assert named is not None
    assert (named.low.tolist(), named.high.tolist()) == ([1.0, 3.0], [2.0, 4.0])
    with pytest.raises(SchemaError, match="the study's bounds lack the column 'b'"):
        ranges.declared({"a": (0.0, 1.0)}, ["a", "b"])
    for count in (2, 4):
        with pytest.raises(SchemaError, match=f"bounds for {count} columns, the tables have 3"):
            ranges.declared(((0.0, 1.0),) * count, ["a", "b", "c"])


@pytest.mark.parametrize("rows", [(5, 5, 4), (5, 6, 5)])
def test_islands_that_hold_columns_hold_them_of_the_same_rows(rows: tuple[int, ...]) -> None:
    islands = [Address(name, "provider") for name in ("north", "south", "west")]
    check_common_rows(islands, (5, 5, 5))
    with pytest.raises(SchemaError, match=r"(south|west) has [46] rows, north has 5"):
        check_common_rows(islands, rows)


def test_the_widest_column_counts() -> None:
    declared = ranges.declared(((0.7, 2.7), (-8.0, 8.0), (3.0, 3.0)), ["a", "b", "c"])
    assert declared is not None
    assert declared.range().exponent == 3
    assert declared.units().exponents.tolist() == [1, 3, 0]
