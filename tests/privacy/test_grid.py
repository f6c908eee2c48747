"""Rows on the grid: toward zero, never too long, and multiplied without a rounding error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from atoll.errors import DataError, RangeOverflow
from atoll.privacy import grid

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True),
)


@given(tables, st.sampled_from([1e-3, 0.7, 1.0, 255.0, 1e12]))
@settings(max_examples=200, deadline=None)
def test_no_row_is_longer_than_its_radius(table, radius):
    for integers in (grid.cut_to_grid(table, radius), grid.normalise_to_grid(table)):
        squares = [sum(int(value) ** 2 for value in row) for row in integers]
        assert max(squares) <= grid.MOMENT_UNITS
    assert (grid.row_norms(grid.shorten(table, radius)) <= radius * (1 + 1e-15)).all()


def test_quantised_toward_zero():
    table = np.array([[0.3, -0.3, 1e-9, -1e-9]])
    exact = table * grid.ROW_UNITS
    integers = grid.cut_to_grid(table, 1.0)
    assert np.array_equal(integers, np.trunc(exact).astype(int))
    assert (np.abs(integers) <= np.abs(exact)).all()


def test_rows_within_the_radius_are_left_alone_and_longer_ones_cut():
    table = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    cut = grid.cut_to_grid(table, 2.5) / grid.ROW_UNITS * 2.5
    assert cut == pytest.approx(np.array([[1.5, 2.0], [0.3, 0.4], [0.0, 0.0]]), abs=1e-5)
    unit = grid.normalise_to_grid(table) / grid.ROW_UNITS
    assert unit == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0.0, 0.0]]), abs=1e-5)


def test_rows_made_too_long_by_rounding_are_shortened():
    unit = np.full((1, 4), 0.5)
    unit[0, 0] = np.nextafter(0.5, 1.0) + 2.0**-grid.ROW_BITS
    integers = grid._truncate(unit)
    assert (integers**2).sum() <= grid.MOMENT_UNITS
    assert (integers**2).sum() > 0.999 * grid.MOMENT_UNITS


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-30, 1.0, 1e300, 1.7e308])
@pytest.mark.parametrize("columns", [2, 3, 5, 1000, 8000])
def test_rounding_alone_leaves_no_row_too_long(size, columns, monkeypatch):
    """The proof above ``_truncate``: of whatever size a row is, nothing is left for the last lines to do.

    Divided by its own norm, which has no digits left near 2^-1074, the first row here came out 1.4 times too
    long, and was shortened by a millionth at a time.
    """
    monkeypatch.setattr(grid, "ROW_UNITS", 1 << 26)  # finer, so that truncation hides less
    seen = []
    squared_norms = grid._integer_squared_norms

    def noted(integers):
        seen.append(squared_norms(integers))
        return np.zeros(len(integers), dtype=np.int64)

    monkeypatch.setattr(grid, "_integer_squared_norms", noted)
    rng = np.random.default_rng(columns)
    rows = np.concatenate([np.ones((1, columns)), rng.uniform(-1, 1, (4, columns))]) * size
    grid.normalise_to_grid(rows)
    grid.cut_to_grid(rows, max(size / 3, 2.0**-1022))
    for squares in seen:
        assert (squares <= 2**52 + columns + 6).all()  # 2^52 is 1, and u a half of its last digit
    assert seen[0][rows.any(axis=1)].min() > 0.99 * 2**52  # and every direction has its full length


def test_a_row_does_not_depend_on_its_neighbours_or_place():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((500, 33)) * 10.0 ** rng.integers(-8, 8, (500, 1))
    whole = grid.normalise_to_grid(table)
    order = rng.permutation(500)
    assert np.array_equal(grid.normalise_to_grid(table[order]), whole[order])
    for row in (0, 17, 499):
        assert np.array_equal(grid.normalise_to_grid(table[row : row + 1])[0], whole[row])
    fortran = grid.checked_rows(np.asfortranarray(table), 33)
    assert np.array_equal(grid.normalise_to_grid(fortran), whole)


def test_moments_are_exact_integers_across_blocks():
    rng = np.random.default_rng(1)
    table = grid.normalise_to_grid(rng.standard_normal((20_000, 5)))
    table[:9000] = 0
    table[:9000, 0] = grid.ROW_UNITS  # the largest sums that a block may hold
    exact = table.astype(object).T @ table.astype(object)
    packed = grid.second_moment_triangle(table)
    assert packed.dtype == np.int64
    upper = np.triu_indices(5, 1)
    assert packed.tolist() == [exact[i, i] for i in range(5)] + exact[upper].tolist()
    assert grid.row_sum(table).tolist() == table.astype(object).sum(axis=0).tolist()


def test_float_moments_would_not_be_exact():
    """What the grid is for: the same sum in float64 depends on the order of the rows."""
    rows = np.random.default_rng(2).standard_normal((5000, 3)) / 3
    assert not np.array_equal(rows.T @ rows, rows[::-1].T @ rows[::-1])
    integers = grid.cut_to_grid(rows, 10.0)
    assert np.array_equal(grid.second_moment_triangle(integers), grid.second_moment_triangle(integers[::-1]))


def test_triangle_round_trip():
    matrix = np.arange(16).reshape(4, 4)
    matrix = matrix + matrix.T
    packed = grid.pack_triangle(matrix)
    assert packed.size == grid.triangle_size(4)
    assert np.array_equal(grid.unpack_triangle(packed, 4), matrix)
    # A sum may be wider than int64.
    assert grid.unpack_triangle(np.array([2**70, 1, 2**80], dtype=object), 2)[0, 1] == 2.0**80


def test_bad_tables_are_named():
    with pytest.raises(DataError, match="3 columns"):
        grid.checked_rows(np.zeros((2, 2)), 3)
    with pytest.raises(DataError, match="row 1 "):
        grid.checked_rows([[1.0], [np.nan], [np.inf]], 1)
    huge = np.broadcast_to(np.zeros((1, 1)), (1 << 22, 1))
    with pytest.raises(RangeOverflow, match="4194304 rows"):
        grid.checked_rows(huge, 1)
    grid.checked_rows(huge[1:], 1)
    with pytest.raises(RangeOverflow, match="1048576 columns"):
        grid.checked_rows(np.zeros((0, 1 << 20)), 1 << 20)
    grid.checked_rows(np.zeros((0, (1 << 20) - 1)), (1 << 20) - 1)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 2), (2, 3, 1)])
def test_a_table_has_rows_and_the_columns_that_are_due(shape):
    with pytest.raises(DataError, match="expected a table with 3 columns"):
        grid.checked_rows(np.zeros(shape), 3)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan, 5e-324])
def test_a_radius_is_finite_and_positive(radius):
    for cut in (grid.shorten, grid.cut_to_grid):
        with pytest.raises(DataError, match="rows cannot be cut at a radius"):
            cut(np.ones((1, 2)), radius)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.01, -2.01])
def test_what_is_no_number_on_the_grid_is_made_nothing_of(value):
    """Cast to an integer, it would pass for a short row and stand out beyond any noise."""
    with pytest.raises(DataError, match="it was not used"):
        grid._truncate(np.array([[0.5, value]]))
