"""Alignment: what islands and the matcher can read, and deviations that are refused.

The form that many projects use, ids sent as hashes that all can compute, is played first: whoever has a list
of names reads it all.
"""

from __future__ import annotations

import hashlib
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_told_otherwise import run
from tests.support.examples import Example, alignment
from tests.support.taps import Tap, tapped

from atoll.codec import Decoder, Message
from atoll.crypto import intersection
from atoll.crypto.intersection import ELEMENT_BYTES, elements_of
from atoll.data.ids import normalised
from atoll.errors import MessageError
from atoll.protocols import protocol_of, resolve
from atoll.protocols.alignment.protocol import Common, List, Returned, own_rows
from atoll.study.address import Address


def ids_of(example: Example, name: str) -> tuple[str, ...]:
    return normalised(example.islands[name], "person", ("trim", "case"))


def lists_seen(example: Example, tap: Tap, address: Address) -> dict[str, list[bytes]]:
    """Every list that reached a role, by the kind of message and its owner."""
    decoder = Decoder[Message](protocol_of("align").messages)
    found: dict[str, list[bytes]] = {}
    for _, data in tap.received(address):
        message: Any = decoder.decode(data)
        if isinstance(message, List | Common | Returned):
            name = f"{type(message).__name__} {getattr(message, 'owner', '')}"
            found.setdefault(name, []).append(bytes(message.elements))
    return found


@pytest.fixture(scope="module")
def example() -> Example:
    return alignment()


@pytest.fixture(scope="module")
def tap(example: Example) -> Tap:
    return tapped(example)


EVERYBODY = [f"p{n:03d}" for n in range(100)]
"""A register of all who could be there."""


def test_hashes_that_all_can_compute_are_read_with_a_register(example: Example) -> None:
    sent = {
        hashlib.sha256(f"salt of the study{one}".encode()).digest() for one in ids_of(example, "clinic-1")
    }
    read = {one for one in EVERYBODY if hashlib.sha256(f"salt of the study{one}".encode()).digest() in sent}
    assert read == set(ids_of(example, "clinic-1"))


def test_nobody_reads_a_list_with_a_register(example: Example, tap: Tap) -> None:
    context = resolve(example.study).digest
    for address in example.study.addresses():
        own = tap.records[address].drawn.get("secret of the intersection")
        seen = {
            e
            for lists in lists_seen(example, tap, address).values()
            for one in lists
            for e in elements_of(one)
        }
        # All that a role can make of the register: with its own secret once or twice, or with another.
        for seed in (own, b"\1" * 32):
            if seed is None:
                continue
            once = intersection.blinded(seed, EVERYBODY, context)
            twice = intersection.raised(seed, once)
            tried = {*elements_of(once), *elements_of(twice)}
            common = set(ids_of(example, "clinic-0")).intersection(
                *(ids_of(example, f"clinic-{i}") for i in (1, 2))
            )
            # An island finds its own common rows, which is what it is to learn, and nothing else.
            assert len(seen & tried) == (len(common) if seed is own else 0)


def test_an_island_cannot_compare_two_others(example: Example, tap: Tap) -> None:
    """clinic-1 and clinic-2 share more than all three do. In what clinic-0 sees, their lists have no element
    in common, whatever clinic-0 does with its secret."""
    me = example.study.who("provider")[0]
    seed = tap.records[me].drawn["secret of the intersection"]
    seen = lists_seen(example, tap, me)
    lists = [seen["List 1"][0], seen["List 2"][0]]
    shared = set(ids_of(example, "clinic-1")) & set(ids_of(example, "clinic-2"))
    assert len(shared) > len(shared & set(ids_of(example, "clinic-0")))
    forms = [[one, intersection.raised(seed, one)] for one in lists]
    for a in forms[0]:
        for b in forms[1]:
            assert not set(elements_of(a)) & set(elements_of(b))


def test_the_matcher_counts_and_follows_no_row(example: Example, tap: Tap) -> None:
    """It sees how many rows any islands share, and lists whose order is that of their elements."""
    matcher, providers = example.study.the("matcher"), example.study.who("provider")
    seen = lists_seen(example, tap, matcher)
    assert sorted(seen) == ["List 0", "List 1", "List 2"]
    for i, j in combinations(range(3), 2):
        shared = set(elements_of(seen[f"List {i}"][0])) & set(elements_of(seen[f"List {j}"][0]))
        assert len(shared) == len(set(ids_of(example, f"clinic-{i}")) & set(ids_of(example, f"clinic-{j}")))
    for address in (matcher, *providers):
        for name, lists in lists_seen(example, tap, address).items():
            if not name.startswith("Returned"):  # in the common order, which all have
                assert all((np.sort(elements_of(one)) == elements_of(one)).all() for one in lists)


def refused(example: Example, role: str, change: Any, words: str) -> None:
    with pytest.raises(MessageError, match=words):
        run(example, role, change)


def test_a_matcher_that_adds_a_row_is_found_out(example: Example) -> None:
    """A row of two islands, called common, would show the third that they have one more."""
    strange = intersection.blinded(b"\2" * 32, ["nobody"], "")

    def change(to: Address, message: Message) -> Message:
        if not isinstance(message, Common):
            return message
        return Common(strange + message.elements[ELEMENT_BYTES:])

    refused(example, "matcher", change, "rows that it was never sent")


def test_a_matcher_that_names_a_row_twice_is_found_out(example: Example) -> None:
    def change(to: Address, message: Message) -> Message:
        if not isinstance(message, Common):
            return message
        return Common(message.elements[:ELEMENT_BYTES] + message.elements[:-ELEMENT_BYTES])

    refused(example, "matcher", change, "rows that it does not have")


def test_a_matcher_that_tells_two_islands_different_rows_is_found_out(example: Example) -> None:
    def change(to: Address, message: Message) -> Message:
        if isinstance(message, Common) and to.party == "clinic-1":
            return Common(message.elements[ELEMENT_BYTES:])
        return message

    refused(example, "matcher", change, "was told something else")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (bytes(ELEMENT_BYTES), "identity"),
        (b"\xff" * ELEMENT_BYTES, "malformed"),
        (b"\1" * 31, "whole elements|cut off|do not"),
    ],
)
def test_what_is_no_element_is_refused_by_the_next_island(example: Example, bad: bytes, words: str) -> None:
    def change(to: Address, message: Message) -> Message:
        if isinstance(message, List) and message.owner == 0 and to.party == "clinic-1":
            return List(0, bad + message.elements[ELEMENT_BYTES:])
        return message

    with pytest.raises(Exception, match=words) as caught:
        run(example, "provider", change)
    assert "p0" not in str(caught.value)


def test_a_list_of_another_island_or_length_is_refused(example: Example) -> None:
    def other(to: Address, message: Message) -> Message:
        return List(2, message.elements) if isinstance(message, List) and message.owner == 0 else message

    refused(example, "provider", other, "another island than was due")

    def shorter(to: Address, message: Message) -> Message:
        return Returned(message.owner, message.elements[32:]) if isinstance(message, Returned) else message

    refused(example, "provider", shorter, "another number of rows")


def test_a_list_with_a_row_twice_is_refused_by_the_matcher(example: Example) -> None:
    """Twice in one list, a row would count as common to as many lists as hold it."""

    def change(to: Address, message: Message) -> Message:
        if isinstance(message, List) and to.role == "matcher" and message.owner == 1:
            return List(1, message.elements[:ELEMENT_BYTES] + message.elements[:-ELEMENT_BYTES])
        return message

    refused(example, "provider", change, "not sorted, or has a row twice")


def test_rows_that_are_not_ones_own_are_refused_where_they_come_back() -> None:
    """Before ids are compared: the nearest of one's own would be taken for them."""
    mine = intersection.blinded(b"s" * 32, ["a", "b", "c"], "study")
    strange = intersection.blinded(b"s" * 32, ["d"], "study")
    me = Address("clinic-0", "provider")
    assert sorted(own_rows(mine, mine[ELEMENT_BYTES:], me)) == [1, 2]
    with pytest.raises(MessageError, match="clinic-0/provider was sent rows that it does not have"):
        own_rows(mine, mine[:ELEMENT_BYTES] + strange, me)


def test_ids_and_their_comparison_are_hashed_apart(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown of all ids together must never be what one id would be, nor that of another study."""
    honest, contexts = intersection.blinded, set[str]()

    def blinded(seed: bytes, ids: Any, context: str) -> bytes:
        contexts.add(context)
        return honest(seed, ids, context)

    monkeypatch.setattr(intersection, "blinded", blinded)
    tapped(example)
    digest = resolve(example.study).digest
    assert contexts == {digest, f"{digest}/common ids"}
    one, other = (honest(bytes(32), ["an id"], context) for context in sorted(contexts))
    assert one != other
