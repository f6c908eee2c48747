"""What a consumer checks of models, variances and projections, number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import pppca

from atoll.errors import MessageError, SchemaError, StudyError
from atoll.privacy.noise_statement import NoiseStatement
from atoll.protocols import check_study, protocol_of
from atoll.protocols.pca.released import (
    Model,
    Projection,
    SampleCount,
    Variances,
    check_released,
    joined_scores,
    named,
)
from atoll.study.address import Address

HUB = Address("hub", "server")
STUDY = structs.replace(pppca().study, parameters={"n_components": 1})
RIGHT = Model(np.eye(2)[:1], np.zeros(2), None, ("age", "dose"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"columns": ("age",)}, "a model of other columns"),
        ({"columns": ("age", "dose", "weight")}, "a model of other columns"),
        ({"mean": None}, "none where there is one"),
        ({"mean": np.zeros(3)}, "a mean of shape"),
        ({"scale": np.array([1.0, 0.0])}, "divisors that are not all positive"),
        ({"components": np.zeros(2)}, "components of shape"),
        ({"components": np.ones((1, 2, 1))}, "components of shape"),
    ],
)
def test_a_model_fits_its_own_components(changed: dict[str, Any], said: str) -> None:
    check_released(RIGHT, STUDY, HUB)
    check_released(structs.replace(RIGHT, columns=None), STUDY, HUB)
    with pytest.raises(MessageError, match=f"hub/server sent .*{said}"):
        check_released(structs.replace(RIGHT, **changed), STUDY, HUB)


def test_differences_of_rows_have_no_mean() -> None:
    pairs = structs.replace(STUDY, parameters={"n_components": 1, "centre": "pairs"})
    check_released(structs.replace(RIGHT, mean=None), pairs, HUB)
    with pytest.raises(MessageError, match="a mean where there is none"):
        check_released(RIGHT, pairs, HUB)


@pytest.mark.parametrize("variances", [[3.0, 2.0], []])
def test_there_are_as_many_variances_as_components(variances: list[float]) -> None:
    check_released(Variances(np.array([3.0]), 6.0, 0.5), STUDY, HUB)
    with pytest.raises(MessageError, match="variances of 1 components"):
        check_released(Variances(np.array(variances), 6.0, 0.5), STUDY, HUB)


SAID = NoiseStatement((1,), np.array([12.0]), np.array([7.0]), "normalise", 0.1, 0.2)


@pytest.mark.parametrize(
    "changed",
    [
        {"angles": np.array([91.0])},
        {"angles": np.array([-1.0])},
        {"angles": np.array([np.nan])},
        {"typical": np.array([1.0, 2.0])},
        {"leading": (2,)},
        {"rows": "anyhow"},
        {"centre": -0.1},
        {"centre_share": 1.5},
    ],
)
def test_a_statement_of_the_noise_is_one(changed: dict[str, Any]) -> None:
    right = Variances(np.array([3.0]), 6.0, 0.5, SAID)
    check_released(right, STUDY, HUB)
    assert named(right)["noise"]["leading"] == (1,)
    assert "noise" not in named(Variances(np.array([3.0]), 6.0, 0.5))
    with pytest.raises(MessageError, match="hub/server sent"):
        check_released(structs.replace(right, noise=structs.replace(SAID, **changed)), STUDY, HUB)


def test_a_number_of_rows_is_at_least_one_and_of_some_island() -> None:
    check_released(SampleCount(1, ("hospital-0",)), STUDY, HUB)
    with pytest.raises(MessageError, match="a number of rows that is not finite or is below 1"):
        check_released(SampleCount(0, ("hospital-0",)), STUDY, HUB)
    with pytest.raises(MessageError, match="a list of islands of 0"):
        check_released(SampleCount(1, ()), STUDY, HUB)


TWO = np.array([[1.0, 2.0], [3.0, 4.0]])
OTHERS = "south sent projections that are not those|north sent projections that are not those"


@pytest.mark.parametrize(
    "scores", [np.zeros((2, 3)), np.zeros(2), np.array(1.0), np.zeros((2, 2, 1)), TWO * np.nan, TWO * np.inf]
)
def test_projections_have_finite_numbers_for_the_same_components(scores: np.ndarray) -> None:
    right = Projection(TWO, None, ())
    assert list(joined_scores({"north": right, "south": right})["scores"]) == ["north", "south"]
    for arrived in (
        {"north": right, "south": Projection(scores, None, ())},
        {"south": Projection(scores, None, ())},
    ):
        if scores.shape == (2, 3) and len(arrived) == 1:
            continue  # alone, three components are as good as two
        with pytest.raises(MessageError, match=OTHERS):
            joined_scores(arrived)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([0]), ("ill", "well")),
        (np.array([0, 1, 1]), ("ill", "well")),
        (np.array([0, 2]), ("ill", "well")),
        (np.array([0, -1]), ("ill", "well")),
        (np.array([0.0, 1.0]), ("ill", "well")),
        (np.array([1.5]), ()),
        (np.array([[1.5], [2.5]]), ()),
    ],
)
def test_every_row_has_one_of_the_labels(labels: np.ndarray, classes: tuple[str, ...]) -> None:
    with pytest.raises(MessageError, match="north sent labels that are not those of its 2 rows"):
        joined_scores({"north": Projection(TWO, labels, classes)})


def test_labels_come_back_as_they_were_and_of_one_kind() -> None:
    text = Projection(TWO, np.array([1, 0]), ("ill", "well"))
    numbers = Projection(TWO, np.array([7, 8]), ())
    assert joined_scores({"north": text})["labels"] == {"north": ["well", "ill"]}
    assert joined_scores({"north": numbers})["labels"] == {"north": [7, 8]}
    assert joined_scores({"north": Projection(TWO, None, ())})["labels"] is None
    for other, said in (
        (numbers, "whole numbers"),
        (Projection(TWO, np.array([7.5, 8.5]), ()), "numbers"),
        (Projection(TWO, np.array([True, False]), ()), "true or false"),
        (Projection(TWO, None, ()), "missing"),
    ):
        with pytest.raises(SchemaError, match=f"the labels of south are {said}, those of north are text"):
            joined_scores({"north": text, "south": other})


@pytest.mark.parametrize("k", [True, False, 0, -1, 0.0, 1.0, 1.5, -0.5])
def test_components_are_a_number_from_one_or_a_share_below_one(k: Any) -> None:
    for possible in (1, 0.01, 0.99, None):
        study = structs.replace(STUDY, parameters={"n_components": possible, "accept_determined": True})
        check_study(protocol_of("pppca"), study)
    with pytest.raises(StudyError, match="n_components"):
        check_study(protocol_of("pppca"), structs.replace(STUDY, parameters={"n_components": k}))


@pytest.mark.parametrize("columns", [(), ("a", "a"), ("a", "b", "a"), ("a", "outcome")])
def test_columns_are_some_distinct_and_not_the_label(columns: tuple[str, ...]) -> None:
    def asked(columns: tuple[str, ...]) -> None:
        parameters = {"n_components": 1, "label": "outcome", "columns": columns, "accept_determined": True}
        check_study(protocol_of("pppca"), structs.replace(STUDY, parameters=parameters))

    asked(("a", "b"))
    with pytest.raises(
        StudyError, match="columns must name at least one column, none twice, and neither the la"
    ):
        asked(columns)
