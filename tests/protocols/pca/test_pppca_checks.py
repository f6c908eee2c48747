"""What PPPCA's roles refuse: too few rows, deviations below the grid, divisors that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from atoll.data.statistics import Moments
from atoll.errors import MessageError, ParameterError, RangeOverflow
from atoll.protocols.pca.pppca.grid import check_grid
from atoll.protocols.pca.pppca.protocol import _check_rows
from atoll.protocols.pca.pppca.told import JointMean, Transfer, check_transfer
from atoll.study.address import Address

HUB = Address("hub", "server")


@pytest.mark.parametrize("n", [0, 1])
def test_a_joint_table_has_two_rows(n: int) -> None:
    _check_rows(2, 1, 3)
    with pytest.raises(ParameterError, match=f"the joint table has {n} sample"):
        _check_rows(n, 1, 3)


@pytest.mark.parametrize(
    ("variances", "standardize", "wrong"),
    [
        ((1e-20, 1.0), False, False),  # small beside another column
        ((1e-20, 1.0), True, True),
        ((1e-20, 1e-20), False, True),
        ((0.0, 1.0), True, False),  # constant
        ((0.0, 0.0), False, False),
        ((1.0, 2.0), True, False),
    ],
)
def test_deviations_that_the_grid_cannot_hold_are_refused(
    variances: tuple[float, float], standardize: bool, wrong: bool
) -> None:
    """Below 2^-60 a sum of squares has fewer than 40 bits."""
    C, mean = np.diag(variances), np.zeros(2)
    if not wrong:
        check_grid(C, mean, 10, ("age", "dose"), standardize)
        return
    with pytest.raises(RangeOverflow, match="column 'age' deviates by less than the fixed-point grid"):
        check_grid(C, mean, 10, ("age", "dose"), standardize)


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        (None, "no divisors"),
        ((2.0, 0.0), "divisors that are not all positive"),
        ((0.5, 2.0), "smaller than the rows here make them"),
    ],
)
def test_divisors_are_no_smaller_than_ones_own_rows_make_them(
    scale: tuple[float, float] | None, said: str
) -> None:
    # Two rows, (3, 1) and (-3, -1).
    local = Moments(2, np.zeros(2), np.zeros(2), np.array([[18.0, 6.0], [6.0, 2.0]]))
    joint = JointMean(4, None, np.zeros(2))
    right = Transfer(np.eye(2)[:1], np.array([3.0, 1.0]))
    check_transfer(right, 1, True, local, joint, HUB)
    check_transfer(Transfer(np.eye(2)[:1], None), 1, False, local, joint, HUB)
    with pytest.raises(MessageError, match="divisors where none were due"):
        check_transfer(right, 1, False, local, joint, HUB)
    told = Transfer(np.eye(2)[:1], None if scale is None else np.array(scale))
    with pytest.raises(MessageError, match=said):
        check_transfer(told, 1, True, local, joint, HUB)
