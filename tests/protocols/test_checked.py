"""What a role checks of numbers that another one sends, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import pppca

from atoll.errors import MessageError
from atoll.protocols import checked
from atoll.protocols.pca.released import Model, check_released
from atoll.study.address import Address

HUB = Address("hub", "server")
ISLANDS = tuple(Address(name, "provider") for name in ("north", "south", "west"))


def test_variances_fall_are_not_negative_and_stay_within_the_total() -> None:
    checked.check_variances(np.array([3.0, 2.0]), 6.0, 0.5, HUB)
    checked.check_variances(np.array([3.0, 3.0]), 6.0, 0.0, HUB)
    for explained, total in (([2.0, 3.0], 6.0), ([3.0, -0.1], 6.0), ([3.0, 2.0], 4.9)):
        with pytest.raises(MessageError, match="hub/server sent explained variances that do not fall"):
            checked.check_variances(np.array(explained), total, 0.0, HUB)
    for total, rest in ((np.nan, 0.0), (-1.0, 0.0), (6.0, np.inf), (6.0, -0.1)):
        with pytest.raises(MessageError, match="variance that is not finite or is below 0"):
            checked.check_variances(np.array([3.0]), total, rest, HUB)


@pytest.mark.parametrize(
    ("islands", "least", "wrong"),
    [
        (("north", "east"), 1, "which names 'east'"),
        (("north", "north"), 1, "of 2, some of them twice or too few"),
        (("north",), 2, "of 1, some of them twice or too few"),
        ((), 1, "of 0, some of them twice or too few"),
    ],
)
def test_islands_are_some_of_the_studys_none_twice_and_enough(
    islands: tuple[str, ...], least: int, wrong: str
) -> None:
    checked.check_islands(("south", "north"), ISLANDS, 2, HUB)
    with pytest.raises(MessageError, match=f"hub/server sent a list of islands {wrong}"):
        checked.check_islands(islands, ISLANDS, least, HUB)


@pytest.mark.parametrize(
    ("components", "k", "wrong"),
    [
        (np.eye(3)[:2] * 1.001, 2, "components that are not orthonormal"),
        (np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]]), None, "components that are not orthonormal"),
        (np.eye(3)[:1], 2, "where 2 x 3 numbers were due"),
        (np.eye(3, dtype=np.float32)[:2], 2, "where 2 x 3 numbers were due"),
        (np.full((2, 3), np.nan), 2, "components that holds missing or infinite values"),
        (np.zeros((0, 3)), None, "0 components of 3 columns"),
        (np.zeros(3), None, "where 0 x 3 numbers were due"),
        (np.zeros((0, 3, 1)), None, "where 0 x 3 numbers were due"),
        (np.zeros((4, 3)), None, "4 components of 3 columns"),
        (np.zeros((4, 3)), 4, "4 components of 3 columns"),
    ],
)
def test_components_are_orthonormal_and_as_many_as_were_asked_for(
    components: np.ndarray, k: int | None, wrong: str
) -> None:
    checked.check_components(np.eye(3)[:2], 2, 3, HUB)
    checked.check_components(np.eye(3), None, 3, HUB)
    with pytest.raises(MessageError, match=f"hub/server sent .*{wrong}"):
        checked.check_components(components, k, 3, HUB)


def test_more_rows_than_a_double_can_add_up_are_refused() -> None:
    checked.check_counts((5, 2**48 - 1, 0), 0, 5, ISLANDS, HUB)
    with pytest.raises(MessageError, match="281474976710656 as the number of rows of south"):
        checked.check_counts((5, 2**48, 0), 0, 5, ISLANDS, HUB)


@pytest.mark.parametrize(
    ("counts", "wrong"),
    [
        ((5, 2), "2 numbers of rows for 3 islands"),
        ((5, 2, 1, 1), "4 numbers of rows for 3 islands"),
        ((4, 2, 1), "4 as the number of rows of north, which has 5"),
        ((6, 2, 1), "6 as the number of rows of north, which has 5"),
        ((5, 2, -1), "-1 as the number of rows of west"),
    ],
)
def test_every_island_has_its_number_of_rows_and_ones_own_is_as_told(
    counts: tuple[int, ...], wrong: str
) -> None:
    with pytest.raises(MessageError, match=f"hub/server sent {wrong}"):
        checked.check_counts(counts, 0, 5, ISLANDS, HUB)


@pytest.mark.parametrize("divisor", [0.0, -1.0, np.nan])
def test_divisors_are_positive(divisor: float) -> None:
    checked.check_scale(np.array([1.0, 0.5]), 2, HUB)
    with pytest.raises(MessageError, match="hub/server sent divisors that"):
        checked.check_scale(np.array([1.0, divisor]), 2, HUB)


@pytest.mark.parametrize("columns", [("dose", "age"), ("age", "weight"), ("age",)])
def test_a_model_names_the_columns_of_the_study_in_their_order(columns: tuple[str, ...]) -> None:
    asked = pppca().study
    named = structs.replace(asked, parameters={"n_components": 1, "columns": ("age", "dose")})
    right = Model(np.eye(2)[:1], np.zeros(2), None, ("age", "dose"))
    wrong = structs.replace(right, columns=columns)
    check_released(right, named, HUB)
    check_released(right, structs.replace(named, parameters={"n_components": 1}), HUB, ("age", "dose"))
    with pytest.raises(MessageError, match="hub/server sent a model of other columns"):
        check_released(wrong, named, HUB)
    with pytest.raises(MessageError, match="hub/server sent a model of other columns"):
        check_released(wrong, structs.replace(named, parameters={"n_components": 1}), HUB, ("age", "dose"))
