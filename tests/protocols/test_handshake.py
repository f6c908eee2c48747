"""Columns: what the checking role refuses of providers, and a provider of the checking role."""

from __future__ import annotations

import numpy as np
import pytest

from atoll.data.island import Island
from atoll.errors import MessageError, SchemaError
from atoll.protocols.handshake import (
    AgreedColumns,
    Columns,
    JoinedColumns,
    agree,
    check_agreed,
    check_own_place,
    describe,
    join,
)
from atoll.study.address import Address

HUB = Address("hub", "server")
NORTH, SOUTH, WEST = (Address(name, "provider") for name in ("north", "south", "west"))


def named(*names: str) -> Columns:
    return Columns(names, True)


def numbered(count: int) -> Columns:
    return Columns(tuple(f"x{i}" for i in range(count)), False)


@pytest.mark.parametrize(
    ("north", "south", "wanted", "said"),
    [
        (named(), named(), None, "north: 0 feature"),
        (named("a", "b"), named("a", "b", "a"), None, "south announces the column 'a' twice"),
        (named("a", "b"), numbered(2), None, "of south are not named, those of north are named"),
        (named("a", "b"), numbered(3), None, "of south are not named, those of north are named"),
        (numbered(2), named("a", "b", "c"), None, "of south are named, those of north are not named"),
        (numbered(2), numbered(3), None, "south has 3 columns, north has 2"),
        (numbered(2), numbered(1), None, "south has 1 columns, north has 2"),
        (named("a", "b"), named("a"), None, "south lacks 'b', which north has"),
        (named("a"), named("a", "b"), None, "south has 'b', which north lacks"),
        (named("a"), named("a"), ("a", "b"), "north lacks 'b', which the study has"),
    ],
)
def test_islands_with_other_columns_are_named(
    north: Columns, south: Columns, wanted: tuple[str, ...] | None, said: str
) -> None:
    with pytest.raises(SchemaError, match=said):
        agree({NORTH: north, SOUTH: south}, wanted)


def test_the_first_five_of_many_columns_are_named() -> None:
    for count, said in ((5, "'d', 'e', which"), (6, "'d', 'e' and 1 more, which")):
        with pytest.raises(SchemaError, match=said):
            agree({NORTH: named(*"abcdef"[:count], "z"), SOUTH: named("z")}, None)


@pytest.mark.parametrize(
    ("columns", "wanted", "agreed"),
    [
        (named("b", "a"), None, (("b", "a"), True)),
        (named("b", "a"), ("a", "b"), (("a", "b"), True)),
        (numbered(2), None, (("x0", "x1"), False)),
        (numbered(2), ("x1", "x0"), (("x1", "x0"), True)),
    ],
)
def test_the_order_is_the_studys_or_the_first_islands(
    columns: Columns, wanted: tuple[str, ...] | None, agreed: tuple[tuple[str, ...], bool]
) -> None:
    answer = agree({NORTH: columns, SOUTH: Columns(columns.names[::-1], columns.named)}, wanted)
    assert (answer.names, answer.named) == agreed


OWN = named("a", "b")


@pytest.mark.parametrize(
    ("agreed", "own", "wanted"),
    [
        (("b", "a"), OWN, None),  # the order is the first island's
        (("b", "a"), OWN, ("b", "a")),
        (("x0", "x1"), numbered(2), ("x0", "x1")),
    ],
)
def test_columns_as_announced_or_as_the_study_names_them_are_taken(
    agreed: tuple[str, ...], own: Columns, wanted: tuple[str, ...] | None
) -> None:
    check_agreed(AgreedColumns(agreed, True), own, wanted, "north", HUB)
    with pytest.raises(MessageError, match="hub/server says of the columns of north that they are named oth"):
        check_agreed(AgreedColumns(agreed, False), own, wanted, "north", HUB)


@pytest.mark.parametrize(
    ("agreed", "own", "wanted", "said"),
    [
        (("a", "b", "c"), OWN, None, "for the column 'c', which was not announced"),
        (("a", "b"), OWN, ("a",), "for the column 'b', which was not named in the study"),
        (("a", "z"), named("a"), ("a", "z"), "for the column 'z', which was not announced"),
        (("a", "b", "a"), OWN, None, "twice for the column 'a'"),
        (("a",), OWN, None, "leaves out the column 'b' of north"),
        (("a", "b"), OWN, ("b", "a"), "in another order than was agreed"),
        (("x1", "x0"), numbered(2), None, "in another order than was agreed"),
    ],
)
def test_columns_that_nobody_agreed_on_are_not_read(
    agreed: tuple[str, ...], own: Columns, wanted: tuple[str, ...] | None, said: str
) -> None:
    with pytest.raises(MessageError, match=said):
        check_agreed(AgreedColumns(agreed, True), own, wanted, "north", HUB)


def test_columns_side_by_side_keep_their_islands_order() -> None:
    joined = join({NORTH: named("b", "a"), SOUTH: named("c")}, None)
    assert (joined.names, joined.widths, joined.named) == (("b", "a", "c"), (2, 1), True)
    unnamed = join({NORTH: numbered(2), SOUTH: numbered(1)}, None)
    assert (unnamed.names, unnamed.widths, unnamed.named) == (("x0", "x1", "x2"), (2, 1), False)


@pytest.mark.parametrize(
    ("south", "wanted", "said"),
    [
        (named(), None, "south: 0 feature"),
        (named("c", "c"), None, "south announces the column 'c' twice"),
        (named("a"), None, "south has the column 'a', which north has too"),
        (numbered(1), None, "of south are not named, those of north are named"),
        (named("c"), ("a", "c", "d"), "no island has 'd', which the study has"),
    ],
)
def test_columns_side_by_side_are_each_on_one_island(
    south: Columns, wanted: tuple[str, ...] | None, said: str
) -> None:
    with pytest.raises(SchemaError, match=said):
        join({NORTH: named("a", "b"), SOUTH: south}, wanted)


ALL = (NORTH, SOUTH, WEST)
UNFIT = "that do not fit the islands or the names"


@pytest.mark.parametrize(
    ("names", "widths", "me", "wanted", "said"),
    [
        ("abcd", (2, 1), SOUTH, None, UNFIT),
        ("abc", (2, 1), SOUTH, None, UNFIT),  # whoever holds the third column is not among them
        ("abcd", (2, 1, 1, 0), SOUTH, None, UNFIT),
        ("abcde", (2, 1, 1, 1), SOUTH, None, UNFIT),
        ("abcde", (2, 1, 1), SOUTH, None, UNFIT),
        ("abc", (2, 1, 1), SOUTH, None, UNFIT),
        ("abc", (2, 1, 0), SOUTH, None, UNFIT),
        ("abcd", (1, 2, 1), SOUTH, None, "says that south has 2 columns; it has 1"),
        ("abcd", (1, 2, 1), NORTH, None, "says that north has 1 columns; it has 2"),
        ("acbd", (2, 1, 1), SOUTH, None, "puts 'b' in the place of the column 'c' of south"),
        ("cbcd", (2, 1, 1), SOUTH, None, "asks south twice for the column 'c'"),
        ("abcd", (2, 1, 1), SOUTH, "abc", "the column 'd', which was not named in the study"),
        ("abcd", (2, 1, 1), SOUTH, "abcde", "leaves out the column 'e'"),
    ],
)
def test_an_islands_own_columns_are_where_and_what_they_are(
    names: str, widths: tuple[int, ...], me: Address, wanted: str | None, said: str
) -> None:
    own = {NORTH: named("a", "b"), SOUTH: named("c")}[me]
    check_own_place(JoinedColumns(tuple("abcd"), (2, 1, 1), True), own, None, me, ALL, HUB)
    check_own_place(JoinedColumns(tuple("abcd"), (2, 1, 1), True), own, "dcba", me, ALL, HUB)
    with pytest.raises(MessageError, match=said):
        check_own_place(JoinedColumns(tuple(names), widths, True), own, wanted, me, ALL, HUB)


def test_columns_without_names_are_numbered_through() -> None:
    own = numbered(1)
    check_own_place(JoinedColumns(("x0", "x1", "x2", "x3"), (2, 1, 1), False), own, None, SOUTH, ALL, HUB)
    with pytest.raises(MessageError, match="sent south names of columns that have none"):
        check_own_place(JoinedColumns(("x0", "x1", "x3", "x2"), (2, 1, 1), False), own, None, SOUTH, ALL, HUB)
    with pytest.raises(MessageError, match="says that south has 1 columns"):  # and that they are named
        check_own_place(JoinedColumns(("x0", "x1", "x0", "x3"), (2, 1, 1), True), own, None, SOUTH, ALL, HUB)


@pytest.mark.parametrize(
    ("north", "south", "said"),
    [
        ("a" * 32, "b" * 32, "south and north come from two different alignments"),
        ("a" * 32, "", "the rows of north were aligned, those of south were not"),
        ("", "a" * 32, "the rows of south were aligned, those of north were not"),
    ],
)
def test_rows_side_by_side_are_in_one_order(north: str, south: str, said: str) -> None:
    """Columns of different people side by side would be a model of nobody."""

    def joined(*orders: str) -> JoinedColumns:
        told = zip((NORTH, SOUTH), ("a", "b"), orders, strict=True)
        return join({who: Columns((name,), True, order) for who, name, order in told}, None)

    assert joined(north, north).order == north
    with pytest.raises(SchemaError, match=said):
        joined(north, south)
    own = Columns(("a",), True, north)
    check_own_place(joined(north, north), own, None, NORTH, (NORTH, SOUTH), HUB)
    with pytest.raises(MessageError, match="that the rows of north are in another order than they are"):
        check_own_place(joined(south, south), own, None, NORTH, (NORTH, SOUTH), HUB)


def test_a_label_that_is_not_there_is_named() -> None:
    island = Island.from_array(np.ones((2, 2)), name="north", columns=("a", "b"))
    assert describe(island, None, "b").names == ("a",)
    with pytest.raises(SchemaError, match="north: there is no label column 'c'"):
        describe(island, None, "c")
    with pytest.raises(SchemaError, match="north: there is no column of row ids 'c'"):
        describe(island, None, None, "c")
