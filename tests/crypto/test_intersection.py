"""Ids as elements of a group: bound to a purpose, under everybody's secrets, in no order of anybody's."""

from __future__ import annotations

import pytest

from atoll.crypto import intersection
from atoll.errors import AtollError, MessageError

A, B = bytes(range(32)), bytes(range(100, 132))
IDS = ["anna", "bert", "carl", "dora"]


def test_equal_ids_are_equal_elements_under_both_secrets_and_for_one_purpose_only() -> None:
    one = intersection.raised(B, intersection.blinded(A, IDS, "study"))
    two = intersection.raised(A, intersection.blinded(B, IDS, "study"))
    assert one == two
    other = intersection.raised(B, intersection.blinded(A, IDS, "another study"))
    elements = {*intersection.elements_of(one).tolist(), *intersection.elements_of(other).tolist()}
    assert len(elements) == 8


def test_an_id_and_its_purpose_do_not_run_together() -> None:
    assert intersection.blinded(A, ["xanna"], "study") != intersection.blinded(A, ["anna"], "studyx")


def test_sorted_elements_say_nothing_of_the_rows() -> None:
    forwards = intersection.blinded(A, IDS, "study")
    backwards = intersection.blinded(A, IDS[::-1], "study")
    assert forwards != backwards
    assert intersection.sorted_bytes(forwards) == intersection.sorted_bytes(backwards)
    parts = [forwards[i : i + 32] for i in range(0, len(forwards), 32)]
    assert intersection.sorted_bytes(forwards) == b"".join(sorted(parts))


def test_what_is_no_list_of_elements_is_refused() -> None:
    with pytest.raises(MessageError, match="cut off"):
        intersection.elements_of(intersection.blinded(A, IDS, "study")[:-1])
    for bad in (bytes(32), b"\xff" * 32, bytes(31)):
        with pytest.raises(AtollError):
            intersection.raised(A, bad)
