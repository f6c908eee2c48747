"""Columns and levels of islands that split rows: what the server refuses of islands, and they of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from atoll.data.levels import MAX_LEVELS
from atoll.errors import MessageError, SchemaError
from atoll.protocols.fields import AgreedFields, FieldParameters, Fields, agree, check_agreed

PLAIN = FieldParameters(target="y")
WARD = Fields(("age", "ward"), True, {"ward": ("a", "b")})


@pytest.mark.parametrize(
    ("south", "said"),
    [
        (Fields(("age",), True, {}), "south lacks 'ward', which north has"),
        (Fields(("age", "ward", "dose"), True, {}), "north lacks 'dose', which south has"),
        (Fields(("age", "ward"), False, {}), "of south and of north are not both named"),
    ],
)
def test_islands_with_other_columns_are_named(south: Fields, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        agree({"north": WARD, "south": south}, PLAIN)


def test_a_study_has_a_column() -> None:
    with pytest.raises(SchemaError, match="north: there is no column to use"):
        agree({"north": Fields((), True, {})}, PLAIN)


def test_what_differs_in_every_row_is_no_category() -> None:
    """A list of all islands' values would tell each the others' ids."""

    def told(start: int, count: int) -> Fields:
        return structs.replace(WARD, levels={"ward": tuple(map(str, range(start, start + count)))})

    half = MAX_LEVELS // 2
    agreed = agree({"north": told(0, half), "south": told(half, MAX_LEVELS - half)}, PLAIN)
    assert len(agreed.levels["ward"]) == MAX_LEVELS
    with pytest.raises(SchemaError, match=r"'ward' holds .* different values on all islands"):
        agree({"north": told(0, half), "south": told(half, MAX_LEVELS - half + 1)}, PLAIN)


def _agreed(**changed: Any) -> AgreedFields:
    right = AgreedFields(("age", "ward"), True, {"ward": ("a", "b", "c")})
    return structs.replace(right, **changed)


@pytest.mark.parametrize(
    ("agreed", "said"),
    [
        (_agreed(names=("age",)), "asks north for other columns than were announced"),
        (_agreed(names=("age", "name")), "asks north for other columns than were announced"),
        (_agreed(names=("age", "ward", "name")), "asks north for other columns than were announced"),
        (_agreed(names=("age", "ward", "ward")), "asks north for other columns than were announced"),
        (_agreed(levels={}), "levels of other columns than those with categories"),
        (_agreed(levels={"ward": ("a", "b"), "age": ()}), "levels of other columns"),
        (_agreed(levels={"ward": ("a", "c")}), "leaves out levels of 'ward' that north has"),
        (_agreed(levels={"ward": ("a", "b", "b")}), "leaves out levels of 'ward' that north has"),
        (_agreed(levels={"ward": tuple("ab") + tuple(map(str, range(MAX_LEVELS)))}), "sent north .* levels"),
    ],
)
def test_an_island_reads_no_other_columns_and_levels(agreed: AgreedFields, said: str) -> None:
    check_agreed(_agreed(), WARD, PLAIN, "north", "hub")
    with pytest.raises(MessageError, match=said):
        check_agreed(agreed, WARD, PLAIN, "north", "hub")


def test_levels_that_the_study_names_are_those() -> None:
    asked = FieldParameters(target="y", categorical=("ward",), levels={"ward": ("a", "b")})
    own = structs.replace(WARD, levels={})
    check_agreed(_agreed(levels={"ward": ("a", "b")}), own, asked, "north", "hub")
    for levels in (("a", "b", "c"), ("b", "a"), ("a",)):
        with pytest.raises(MessageError, match="sent north other levels of 'ward' than the study says"):
            check_agreed(_agreed(levels={"ward": levels}), own, asked, "north", "hub")
