"""A receiver that sends a centre of its own choosing must not make an owner compute what no noise hides.

The attack on 0.1.0: a radius of 0 around a guessed row. The row, if it is there, is 0/0 on the grid; cast to
an integer that is -2^63 in every column, whose square wraps around to 0 and so passed for a short row. The
sum then tells, at any epsilon, whether the row is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.examples import Example, dpdpca, private_sfpca

import atoll
from atoll.errors import DataError, MessageError, ParameterError
from atoll.privacy import dp_moments as dp
from atoll.privacy import grid
from atoll.protocols import protocol_of
from atoll.protocols.pca import private_release
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address

PLAN = dp.Plan(2, row_norm=10.0, epsilon=0.1, delta=1e-5, rows="clip")


def example(present: bool) -> Example:
    """Four islands at epsilon 0.1; the guessed row is the first row of the first, or its opposite is."""
    built = dpdpca(epsilon=0.1, rows="clip")
    island = built.islands["island-0"]
    rows = np.array(island.features(island.columns))
    rows[0] = GUESS if present else -GUESS
    return Example(built.study, built.islands | {"island-0": atoll.Island.from_array(rows, name="island-0")})


GUESS = np.array([1.0, -2.0, 0.5, 3.0])


# ---- the owner's arithmetic as 0.1.0 had it ----


def old_truncate(unit_rows: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        integers = np.trunc(unit_rows * grid.ROW_UNITS).astype(np.int64)
    too_long = (integers * integers).sum(axis=1) > grid.MOMENT_UNITS
    while too_long.any():
        integers[too_long] = np.trunc(integers[too_long] * (1.0 - 2.0**-grid.ROW_BITS)).astype(np.int64)
        too_long = (integers * integers).sum(axis=1) > grid.MOMENT_UNITS
    return integers


def old_cut_to_grid(table: np.ndarray, radius: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return old_truncate(table / np.maximum(grid.row_norms(table), radius)[:, None])


def old_triangle(integers: np.ndarray) -> np.ndarray:
    block = integers.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return grid.pack_triangle((block.T @ block).astype(np.int64))


def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "cut_to_grid", old_cut_to_grid)
    monkeypatch.setattr(grid, "second_moment_triangle", old_triangle)
    monkeypatch.setattr(dp, "check_centre", lambda *_: None)


# ---- the receiver ----


class Liar:
    """A data user that follows the protocol but for the last centre it sends, and keeps what it opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lie: dp.Centre, after: str = "radius") -> None:
        self.opened: list[Any] = []
        honest, finish_moments = private_release.finish, dp.finish_moments

        def finish(plan: dp.Plan, stage: str, *rest: Any) -> dp.Centre:
            told = honest(plan, stage, *rest)
            return dp.Centre(lie.point, told.count, lie.radius) if stage == after else told

        def keep(plan: dp.Plan, centre: dp.Centre, total: Any, present: int | None = None) -> Any:
            self.opened = list(total)
            return finish_moments(plan, dp.Centre(centre.point, centre.count, 1.0), total, present)

        monkeypatch.setattr(private_release, "finish", finish)
        monkeypatch.setattr(dp, "finish_moments", keep)

    def says_it_is_there(self) -> bool:
        return abs(int(self.opened[0])) > 2**61  # forty rows of norm 2^20 add up to less than 2^46


class Sent(Observer):
    """What each role sent, by the kind of message."""

    def __init__(self) -> None:
        self.kinds: list[tuple[Address, bytes]] = []

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.kinds.append((sender, bytes(data[:40])))


def run(built: Example) -> Sent:
    sent = Sent()
    LocalEngine().run(protocol_of(built.study.protocol), built.study, built.own, observer=sent)
    return sent


@pytest.mark.parametrize("present", [True, False])
def test_membership_was_exact_at_epsilon_a_tenth(present: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    as_before(monkeypatch)
    liar = Liar(monkeypatch, dp.Centre(GUESS, 0.0, 0.0))
    run(example(present))
    assert liar.says_it_is_there() == present


@pytest.mark.parametrize("present", [True, False])
def test_an_owner_refuses_that_centre_whether_or_not_the_row_is_there(
    present: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = Liar(monkeypatch, dp.Centre(GUESS, 0.0, 0.0))
    with pytest.raises(MessageError, match="comes with a radius outside its limits; nothing was computed"):
        run(example(present))
    assert liar.opened == []


def test_the_grid_alone_refuses_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the check of the centre forgotten, the arithmetic still does not wrap."""
    monkeypatch.setattr(dp, "check_centre", lambda *_: None)
    for present in (True, False):
        liar = Liar(monkeypatch, dp.Centre(GUESS, 0.0, 0.0))
        with pytest.raises(DataError, match="cannot be cut at a radius of 0"):
            run(example(present))
        assert liar.opened == []


def test_a_coordinator_of_sfpca_is_not_believed_either(monkeypatch: pytest.MonkeyPatch) -> None:
    Liar(monkeypatch, dp.Centre(np.array([np.nan, 0.0, 0.0, 0.0]), 0.0, 1.0), after="second mean")
    with pytest.raises(MessageError, match="is not 4 finite numbers"):
        run(private_sfpca())


@pytest.mark.parametrize(
    ("point", "count", "radius", "said"),
    [
        ([np.nan, 0.0], 5.0, 10.0, "not 2 finite numbers"),
        ([np.inf, 0.0], 5.0, 10.0, "not 2 finite numbers"),
        ([0.0, 0.0, 0.0], 5.0, 10.0, "not 2 finite numbers"),
        ([8.0, 8.0], 5.0, 10.0, "beyond row_norm"),
        ([1e200, 1e200], 5.0, 10.0, "beyond row_norm"),
        ([0.0, 0.0], np.nan, 10.0, "number of rows"),
        ([0.0, 0.0], np.inf, 10.0, "number of rows"),
        ([0.0, 0.0], 0.0, 10.0, "number of rows"),
        ([0.0, 0.0], 5.0, 0.0, "radius outside"),
        ([0.0, 0.0], 5.0, np.nan, "radius outside"),
        ([0.0, 0.0], 5.0, np.inf, "radius outside"),
        ([0.0, 0.0], 5.0, -10.0, "radius outside"),
        ([0.0, 0.0], 5.0, 0.4, "radius outside"),
        ([0.0, 0.0], 5.0, 10.1, "radius outside"),
    ],
)
def test_what_no_honest_receiver_sends_is_refused(
    point: list[float], count: float, radius: float, said: str
) -> None:
    with pytest.raises(MessageError, match=said):
        dp.check_centre(PLAN, "first mean", None, dp.Centre(np.array(point), count, radius))


def test_a_later_stage_changes_only_what_it_may() -> None:
    before = dp.Centre(np.array([1.0, 2.0]), 5.0, 7.0)
    edge = float(dp.radius_edges(10.0)[12])
    dp.check_centre(PLAN, "second mean", before, dp.Centre(np.array([2.0, 1.0]), 5.0, 7.0))
    dp.check_centre(PLAN, "radius", before, dp.Centre(np.array([1.0, 2.0]), 5.0, edge))
    for stage, told in (
        ("second mean", dp.Centre(np.array([2.0, 1.0]), 6.0, 7.0)),
        ("second mean", dp.Centre(np.array([2.0, 1.0]), 5.0, 8.0)),
        ("radius", dp.Centre(np.array([1.0, 2.1]), 5.0, edge)),
        ("radius", dp.Centre(np.array([1.0, 2.0]), 4.0, edge)),
    ):
        with pytest.raises(MessageError, match=f"changes what the {stage} does not"):
            dp.check_centre(PLAN, stage, before, told)
    with pytest.raises(MessageError, match="radius outside"):
        dp.check_centre(PLAN, "radius", before, dp.Centre(np.array([1.0, 2.0]), 5.0, edge * 1.01))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**43, -(2.0**43), 2.5])
def test_the_grid_makes_no_integer_of_what_is_none(value: float) -> None:
    """2^43 units are 2^63: an integer whose square is 0 modulo 2^64."""
    with pytest.raises(DataError, match="not a finite number after it was scaled"):
        grid._truncate(np.array([[0.1, 0.2], [value, 0.0]]))


@pytest.mark.parametrize("norm", [5e-324, 1e-310, 1.7e308, float("inf"), float("nan"), 0.0, -1.0])
def test_a_row_norm_whose_radius_or_differences_leave_the_numbers_is_refused(norm: float) -> None:
    with pytest.raises(ParameterError, match="public bound on the norm of a row"):
        dp.Plan(2, row_norm=norm, epsilon=1.0, delta=1e-5)
