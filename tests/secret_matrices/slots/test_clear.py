"""The machine on plain numbers: levels, whereabouts, meetings; and the series that it evaluates."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from atoll.errors import ParameterError, RunError
from atoll.secret_matrices.slots.approximations import HIGHEST, MOST_RAISED, Recording, agreed, series
from atoll.secret_matrices.slots.clear import Clear, together
from atoll.secret_matrices.slots.levelled import polynomial_operations, rotations_of, whole
from atoll.secret_matrices.slots.machine import Operation, Slots, Where

SLOTS = 16
ONES = np.ones(SLOTS)


def run(program: Any, *, noise: float = 0.0) -> list[Any]:
    machines = Clear.machines(2, slots=SLOTS, noise=noise)
    return asyncio.run(together(program, machines, [None, 1.0, 2.0]))


async def encrypted(m: Slots, own: Any) -> Any:
    [x] = await m.encrypted_total(None if own is None else [own * np.arange(4.0)], 1)
    return x


def test_a_role_holds_what_the_encrypted_machine_would() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        [y] = await m.broadcast([x])
        o = m.own_inner([(y, None if own is None else own * ONES)])
        return [(v.where, v.level, v.held is not None) for v in (x, y, o, m.add(x, y))]

    coordinator, provider, _ = run(program)
    assert coordinator == [
        (Where.COORDINATOR, 9, True),
        (Where.EVERYBODY, 9, True),
        (Where.OWN, 8, False),
        (Where.COORDINATOR, 9, True),
    ]
    assert [held for _, _, held in provider] == [False, True, True, False]


def test_sums_and_openings_reach_whom_they_should() -> None:
    async def program(m: Slots, own: Any) -> Any:
        [x] = await m.broadcast([await encrypted(m, own)])
        mine = m.own_inner([(x, None if own is None else own * ONES)])
        [total] = await m.total([mine])
        return [await m.opened([total], [4], frozenset({"p1"})), await m.opened_own([mine], [4])]

    coordinator, first, second = run(program)
    assert coordinator == [None, None]
    assert first[0] is None
    np.testing.assert_allclose(first[1], [3.0 * np.arange(4)])
    np.testing.assert_allclose(second[0], [9.0 * np.arange(4)])
    np.testing.assert_allclose(second[1], [6.0 * np.arange(4)])


def test_a_program_out_of_levels_is_refused() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        for _ in range(10):
            x = m.times(x, x)

    with pytest.raises(RunError, match="a step needs 1 levels, and 0 are left"):
        run(program)


def test_too_low_for_a_refresh_is_refused() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        for _ in range(8):
            x = m.weighted(x, ONES)
        await m.refresh([x])

    with pytest.raises(RunError, match="a vector at level 1 cannot be refreshed: 2 is the lowest"):
        run(program)


def test_what_lies_apart_is_not_computed_on() -> None:
    async def mixed(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        [y] = await m.broadcast([x])
        m.times(m.own_inner([(y, ONES)]), x)

    async def unsent(m: Slots, own: Any) -> Any:
        m.own_inner([(await encrypted(m, own), ONES)])

    with pytest.raises(RunError, match="nowhere together"):
        run(mixed)
    with pytest.raises(RunError, match="only the coordinator has"):
        run(unsent)


def test_only_what_everybody_has_is_a_providers_to_go_on_with() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        with pytest.raises(RunError, match="not everybody has"):
            m.at_providers(x)
        [y] = await m.broadcast([x])
        o = m.rotate(m.at_providers(y), 1)
        return o.where, o.held is not None, m.tally.total[Operation.ROTATE]

    coordinator, provider, _ = run(program)
    assert coordinator == (Where.OWN, False, 0)
    assert provider == (Where.OWN, True, 1)


def test_whole_factors_cost_no_level() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        return [m.scaled(x, -2).level, m.scaled(x, 0.5).level, m.scaled(x, 2048).level]

    assert run(program)[0] == [9, 8, 8]
    assert whole(-2)
    assert not whole(1025)


def test_rotations_are_made_of_powers_of_two() -> None:
    assert [rotations_of(k, 8192) for k in (0, 1, 3, 8191, -1, -4096)] == [0, 1, 2, 13, 13, 1]


def test_a_series_of_degree_31_takes_eleven_products() -> None:
    assert polynomial_operations(31)[Operation.MULTIPLY] == 11
    assert polynomial_operations(63)[Operation.MULTIPLY] == 16


def test_noise_is_of_the_size_that_is_asked_for() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = await encrypted(m, own)
        return await m.opened([m.weighted(x, ONES)], [4], frozenset({"coordinator"}))

    [[noisy], *_] = run(program, noise=1e-6)
    error = np.abs(noisy - 3.0 * np.arange(4)).max()
    assert 1e-8 < error < 1e-5


# ---- series ----


@pytest.mark.parametrize(("ratio", "error"), [(4.0, 1e-12), (30.0, 1e-5), (100.0, 3e-3)])
def test_how_far_a_series_reaches(ratio: float, error: float) -> None:
    """At degree 31 the relative error of an inverse root rests on the ratio of the interval's ends."""
    made = series("x/inverse", (0.1, 0.1 * ratio), 31)
    x = np.linspace(0.1, 0.1 * ratio, 1000)
    scaled = (2 * x - (made.low + made.high)) / (made.high - made.low)
    values = np.polynomial.chebyshev.chebval(scaled, made.coefficients)
    worst = np.abs(values * np.sqrt(x) - 1).max()
    assert worst < error
    assert made.depth == 6


def test_a_sign_on_one_side_is_a_constant_that_stays_a_ciphertext() -> None:
    for side, interval in ((-1.0, (-3.0, 0.0)), (1.0, (0.0, 3.0))):
        constant, slope, *others = series("a/sign", interval, 31).coefficients
        assert constant == side
        assert 2.0**-36 < slope < 2.0**-25  # not lost at a scale of 2^38
        assert others == [0.0] * 30


def test_a_sign_on_both_sides_changes_beside_zero() -> None:
    """A row that is hardly there has a number near zero, and a side like any other."""
    both = series("a/sign", (-1.0, 1.0), 31)
    x = np.array([-1.5, -1.0, -0.95, -0.5, 0.0, 0.5, 1.0, 1.5])
    found = np.polynomial.chebyshev.chebval(x / both.high, both.coefficients)
    np.testing.assert_allclose(found, np.where(x < -0.75, -1, 1), atol=0.04)


@pytest.mark.parametrize("side", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)])
def test_u_is_never_nothing(side: tuple[float, float]) -> None:
    """|u|^2 of rows of length one, but of those along the axis where the sign is constant; and of no row."""
    made = series("a/sign", side, 31)
    x = np.linspace(-0.94 if side[0] == 0 else -1.0, 0.94 if side[1] == 0 else 1.0, 400)
    sigma = np.polynomial.chebyshev.chebval(x / made.high, made.coefficients)
    k = 1 + 2 * sigma * x + sigma**2
    assert k.min() > 0.119
    assert k.max() <= HIGHEST
    nothing = float(np.polynomial.chebyshev.chebval(0.0, made.coefficients))
    assert nothing**2 == pytest.approx(1.0, abs=0.02)


def test_intervals_are_what_was_seen_and_more() -> None:
    async def program(m: Slots, own: Any) -> Any:
        x = m.plus(m.scaled(await encrypted(m, own), 0), 0.25 * ONES)
        inner = use.inside("here")
        m.polynomial(x, inner["length"])
        m.polynomial(m.scaled(x, -1), inner["sign"])

    use = Recording()
    run(program)
    assert use.intervals(2.0) == {"here/length": (0.125, 0.5), "here/sign": (-1.0, 0.0)}
    table = agreed(use.intervals())
    assert table.inside("here")["length"].low == 0.125 * 4**4
    with pytest.raises(ParameterError, match="no interval was agreed for there/length"):
        table.inside("there")["length"]


def test_rows_are_raised_towards_one_interval() -> None:
    """By powers of two, as far as these cost no level; told is the interval before."""
    for high, power in ((2.0**10, 0), (2.0**7, 0), (2.0**6, 1), (2.0**-4, 6), (2.0**-60, MOST_RAISED)):
        use = agreed({"a/length": (high / 64, high)}).inside("a")
        assert use.raised(None, 4) == power  # type: ignore[arg-type]
        assert use["length"].high == high * 4.0**power
    assert whole(2**MOST_RAISED)


def test_a_value_outside_its_interval_is_noted() -> None:
    async def program(m: Any, own: Any) -> Any:
        x = m.plus(m.scaled(await encrypted(m, own), 0), 3.0 * ONES)
        m.polynomial(x, series("here/length", (0.5, 2.0), 31))
        return dict(m.outside)

    assert run(program)[0] == {"here/length": 3.0}


def test_empty_and_negative_intervals_are_refused() -> None:
    with pytest.raises(ParameterError, match="is empty"):
        series("a/length", (1.0, 1.0), 31)
    with pytest.raises(ParameterError, match="no values below zero"):
        series("a/length", (-1.0, 1.0), 31)
