"""The grid: exact, wide, and an error instead of a wrong number."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll import fixedpoint as fp
from atoll.errors import RangeOverflow

LIMIT = fp.bound(1)
doubles = st.floats(-LIMIT / 2, LIMIT / 2, allow_nan=False)
integers = st.integers(-(2**191), 2**191 - 1)


@given(st.lists(doubles, min_size=1, max_size=20))
def test_encoding_rounds_to_the_nearest_unit(values: list[float]) -> None:
    for value, unit in zip(values, fp.to_integers(fp.encode(values)), strict=True):
        assert abs(Fraction(value) * 2**fp.FRACTION_BITS - unit) <= Fraction(1, 2)


@given(st.lists(integers, min_size=1, max_size=20))
def test_decoding_is_right_to_the_last_place(values: list[int]) -> None:
    for value, decoded in zip(values, fp.decode(fp.from_integers(values)), strict=True):
        exact = Fraction(value, 2**fp.FRACTION_BITS)
        assert abs(Fraction(float(decoded)) - exact) <= abs(exact) * Fraction(2, 2**52)


@given(st.lists(st.tuples(integers, integers), min_size=1, max_size=20))
def test_arithmetic_is_modulo_two_to_the_192(pairs: list[tuple[int, int]]) -> None:
    def wrap(value: int) -> int:
        return (value + 2**191) % 2**192 - 2**191

    a, b = fp.from_integers([p[0] for p in pairs]), fp.from_integers([p[1] for p in pairs])
    assert fp.to_integers(fp.add(a, b)) == [wrap(x + y) for x, y in pairs]
    assert fp.to_integers(fp.subtract(a, b)) == [wrap(x - y) for x, y in pairs]
    assert fp.to_integers(fp.negate(a)) == [wrap(-x) for x, _ in pairs]
    many = fp.Accumulator(len(pairs))
    for _ in range(5):
        many.add(a)
        many.subtract(b)
    assert fp.to_integers(many.total()) == [wrap(5 * (x - y)) for x, y in pairs]


def test_a_doubles_precision_survives_squares_of_1e9_beside_1e_minus_6_at_a_million_rows() -> None:
    large, small = 1e9**2 * 1e6, (1e-6) ** 2
    assert fp.decode(fp.encode([large, small], contributors=1000)).tolist() == [large, small]


@pytest.mark.parametrize("value", [LIMIT, -LIMIT, 1e300, np.inf, -np.inf, np.nan])
def test_overflow_is_an_error(value: float) -> None:
    with pytest.raises(RangeOverflow, match="entry 1 is outside") as caught:
        fp.encode([0.0, value])
    assert caught.value.entry == 1


def test_a_bit_stays_free_of_what_contributors_may_add() -> None:
    """Of 192 bits, 100 stand after the point and one is the sign: 2^91 would just not fit, and each value may
    be rounded up by a unit."""
    assert fp.bound(1) == 2.0**90
    assert fp.bound(2) == 2.0**89
    assert fp.bound(3) == 2.0**90 / 3


def test_contributors_share_the_range() -> None:
    values = [np.nextafter(fp.bound(7), 0)] * 7
    total = fp.Accumulator(1)
    for value in values:
        total.add(fp.encode([value], contributors=7))
    assert fp.decode(total.total())[0] == pytest.approx(LIMIT, rel=1e-12)
    with pytest.raises(RangeOverflow):
        fp.encode([fp.bound(7)], contributors=7)


def test_an_integer_beyond_the_width_is_refused() -> None:
    with pytest.raises(RangeOverflow):
        fp.from_integers([2**191])


def test_integers_enter_the_grid_as_they_are() -> None:
    values = np.array([0, 1, -1, 2**62, -(2**63), 2**63 - 1], dtype=np.int64)
    limbs = fp.from_int64(values, contributors=1000)
    assert fp.to_integers(limbs) == values.tolist()
    assert fp.to_integers(fp.add(limbs, limbs)) == [2 * int(v) for v in values]
    with pytest.raises(RangeOverflow, match="64-bit integers"):
        fp.from_int64(np.array([0.5]))


def test_as_many_as_leave_room_for_carries_are_added_and_no_more() -> None:
    one, many = fp.from_integers([1]), fp.Accumulator(1)
    many._added = 2**31 - 2
    many.add(one)
    with pytest.raises(RangeOverflow, match="too many summands"):
        many.subtract(one)
    assert fp.to_integers(fp.from_int64(np.array([-1]), contributors=2**128 - 1)) == [-1]
    with pytest.raises(RangeOverflow, match="too many for a sum of 64-bit integers"):
        fp.from_int64(np.array([-1]), contributors=2**128)


def test_halves_are_rounded_away_from_zero() -> None:
    unit = 2.0**-100
    values = np.array([0.25, 0.5, 0.75, 1.25, 1.5, 1.75, -0.25, -0.5, -0.75, -1.5]) * unit
    assert fp.to_integers(fp.encode(values)) == [0, 1, 1, 1, 2, 2, 0, -1, -1, -2]
