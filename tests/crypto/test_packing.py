"""Packing: exact for every sign and width, and it refuses what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll import errors
from atoll.crypto.hazmat import packing
from atoll.crypto.hazmat.packing import (
    Layout,
    integers_from_limbs,
    limbs_from_integers,
    pack,
    signed,
    unpack,
)


def twos_complement(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.sampled_from([low, high, 0, 1, -1]) | st.integers(low, high)


@st.composite
def layouts_and_values(draw: st.DrawFn) -> tuple[Layout, list[int]]:
    value_bits = draw(st.integers(2, 192))
    summands = draw(st.integers(1, 2**60))
    layout = Layout.plan(draw(st.sampled_from([512, 2048, 3072])), value_bits=value_bits, summands=summands)
    return layout, draw(st.lists(twos_complement(value_bits), max_size=3 * layout.slots + 1))


@settings(max_examples=200, deadline=None)
@given(layouts_and_values())
def test_packing_is_the_sum_over_slots_and_unpacks_to_the_values(case: tuple[Layout, list[int]]) -> None:
    layout, values = case
    packed = pack(limbs_from_integers(values), layout)
    rows = [values[i : i + layout.slots] for i in range(0, len(values), layout.slots)]
    assert packed == [sum(v << (layout.slot_bits * j) for j, v in enumerate(row)) for row in rows]
    assert integers_from_limbs(unpack(packed, layout, len(values))) == values


@settings(max_examples=100, deadline=None)
@given(
    st.integers(2, 50).flatmap(
        lambda islands: st.lists(
            st.lists(twos_complement(186), min_size=islands, max_size=islands), min_size=1, max_size=12
        )
    )
)
def test_sums_of_packed_plaintexts_unpack_to_sums(columns: list[list[int]]) -> None:
    islands = len(columns[0])
    layout = Layout.plan(2048, value_bits=186, summands=islands)
    packed = [pack(limbs_from_integers([c[i] for c in columns]), layout) for i in range(islands)]
    total = [sum(plaintexts) for plaintexts in zip(*packed, strict=True)]
    assert integers_from_limbs(unpack(total, layout, len(columns))) == [sum(c) for c in columns]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("islands", [2, 3, 50])
def test_the_extreme_sum_fits_exactly(sign: int, islands: int) -> None:
    layout = Layout.plan(2048, value_bits=64, summands=islands)
    extreme = 2**63 - 1 if sign > 0 else -(2**63)
    one = pack(limbs_from_integers([extreme] * (layout.slots + 1)), layout)
    total = [islands * plaintext for plaintext in one]
    assert integers_from_limbs(unpack(total, layout, layout.slots + 1)) == [islands * extreme] * (
        layout.slots + 1
    )


def test_more_than_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BLOCK_BITS", 10_000)
    values = [(-7) ** i % 2**190 - 2**189 for i in range(503)]
    layout = Layout.plan(2048, summands=3)
    packed = pack(limbs_from_integers(values), layout)
    assert len(packed) == layout.plaintexts(503) == 51
    assert integers_from_limbs(unpack(packed, layout, 503)) == values


def test_layouts_use_the_room_they_have() -> None:
    assert Layout.plan(2048, summands=3) == Layout(192, 194, 10)
    assert Layout.plan(3072, summands=50) == Layout(192, 198, 15)
    assert Layout.plan(2048, summands=1, value_bits=64) == Layout(64, 64, 31)
    assert Layout.plan(2048, summands=3, slots=1) == Layout(192, 194, 1)
    assert Layout.plan(2048, summands=4).capacity == 4


@pytest.mark.parametrize(
    "options",
    [
        {"modulus_bits": 512, "summands": 2**400},
        {"modulus_bits": 512, "summands": 2, "slots": 3},
        {"modulus_bits": 512, "summands": 0},
        {"modulus_bits": 512, "summands": 2, "value_bits": 1},
    ],
)
def test_impossible_layouts_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(errors.ParameterError):
        Layout.plan(**options)


@pytest.mark.parametrize("shape", [(1, 5, 1), (6, 5, 1), (5, 5, 0)])
def test_inconsistent_layouts_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(errors.ParameterError):
        Layout(*shape)


@pytest.mark.parametrize("value", [2**39, -(2**39) - 1, 2**191 - 1, -(2**191)])
def test_a_value_beyond_its_bound_is_refused(value: int) -> None:
    layout = Layout.plan(512, value_bits=40, summands=3)
    with pytest.raises(errors.RangeOverflow, match="40 bits"):
        pack(limbs_from_integers([0, value, 1]), layout)


@pytest.mark.parametrize("value", [2**191, -(2**191) - 1])
def test_a_sum_beyond_the_grid_is_refused(value: int) -> None:
    layout = Layout.plan(512, summands=4)
    plaintext = mpz(value) << layout.slot_bits
    with pytest.raises(errors.RangeOverflow, match="192 bits"):
        unpack([plaintext], layout, 2)
    assert integers_from_limbs(unpack([plaintext], layout, 2, limbs=4)) == [0, value]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_plaintext_wider_than_its_slots_is_refused(sign: int) -> None:
    layout = Layout.plan(512, summands=4)
    with pytest.raises(errors.RangeOverflow, match="wider"):
        unpack([sign * (mpz(1) << layout.plaintext_bits)], layout, 2)


def test_a_filled_slot_that_should_be_empty_is_refused() -> None:
    layout = Layout.plan(512, summands=4)
    with pytest.raises(errors.RangeOverflow, match="empty"):
        unpack([mpz(1) << layout.slot_bits], layout, 1)


@pytest.mark.parametrize(
    "values", [np.zeros(3, np.uint64), np.zeros((3, 2), np.int64), np.zeros((0, 2), np.uint64)]
)
def test_what_is_not_planar_limbs_is_refused(values: np.ndarray) -> None:
    with pytest.raises(errors.ParameterError, match="planar"):
        pack(values, Layout.plan(512, summands=2))


def test_strided_limbs_are_read_right() -> None:
    values = [3**i * (-1) ** i for i in range(40)]
    wide = np.repeat(limbs_from_integers(values), 2, axis=1)
    layout = Layout.plan(512, summands=2)
    assert pack(wide[:, ::2], layout) == pack(limbs_from_integers(values), layout)


def test_integers_that_do_not_fit_limbs_are_refused() -> None:
    with pytest.raises(errors.RangeOverflow):
        limbs_from_integers([2**191])


def test_signed_takes_the_nearest_representative() -> None:
    assert [signed(mpz(x), mpz(15)) for x in (0, 7, 8, 14)] == [0, 7, -7, -1]
