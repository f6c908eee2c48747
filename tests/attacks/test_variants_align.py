"""Further attacks on alignment: islands that return other rows than came, and a matcher that is an island."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from msgspec import structs
from tests.attacks.test_align import ids_of
from tests.attacks.test_told_otherwise import nothing, run
from tests.support.examples import Example, alignment

import atoll
from atoll.codec import Message
from atoll.crypto import intersection
from atoll.crypto.intersection import ELEMENT_BYTES
from atoll.errors import AtollError, DataError, MessageError, StudyError
from atoll.protocols import resolve
from atoll.protocols.alignment import protocol
from atoll.protocols.alignment.protocol import List, OwnIds, Returned, SameIds
from atoll.runtime.engine import Outcome
from atoll.study.address import Address
from atoll.study.model import Party

VICTIM, THIEF = "clinic-0", "clinic-1"


@pytest.fixture(scope="module")
def example() -> Example:
    return alignment()


def pieces(elements: bytes) -> list[bytes]:
    return [elements[i : i + ELEMENT_BYTES] for i in range(0, len(elements), ELEMENT_BYTES)]


def returning(other: Callable[[list[bytes], list[bytes]], list[bytes]]) -> Callable[..., Message]:
    """The thief keeps the victim's list as it came, and returns of it what it likes."""
    came: list[bytes] = []

    def change(to: Address, message: Message) -> Message:
        if isinstance(message, List) and message.owner == 0 and to.party == THIEF:
            came.extend(pieces(message.elements))
        if isinstance(message, Returned) and message.owner == 0 and to.party == VICTIM:
            return Returned(0, b"".join(other(pieces(message.elements), came)))
        return message

    return change


def not_common(due: list[bytes], came: list[bytes]) -> list[bytes]:
    return [next(one for one in came if one not in due), *due[1:]]


def in_another_order(due: list[bytes], came: list[bytes]) -> list[bytes]:
    return [due[1], due[0], *due[2:]]


def found_by(example: Example, outcome: Outcome, party: str) -> list[str]:
    rows = outcome.learned[Address(party, "provider")].outputs["rows"][party]
    return [ids_of(example, party)[row] for row in rows]


@pytest.mark.parametrize("other", [not_common, in_another_order])
def test_rows_of_other_people_were_put_side_by_side(
    example: Example, other: Callable[..., list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_compare_ids", nothing)
    outcome = run(example, "provider", returning(other))
    assert found_by(example, outcome, VICTIM) != found_by(example, outcome, "clinic-2")


@pytest.mark.parametrize("other", [not_common, in_another_order])
def test_an_island_that_returns_other_rows_is_found_out(
    example: Example, other: Callable[..., list[bytes]]
) -> None:
    with pytest.raises(MessageError, match=r"clinic-\d/provider found other rows to be common"):
        run(example, "provider", returning(other))


def test_of_a_row_that_it_returned_an_island_cannot_test_guesses() -> None:
    """The victim shows a G, G the hash of ids of which one is unknown, and a digest of a b' where the thief
    chose b'. With b' = b H(guess) that tells of this guess and of no other: a digest of the ids themselves
    would have told of all."""
    secret, own = b"\1" * 32, b"\2" * 32
    register = [f"p{n:03d}" for n in range(100)]
    shown = intersection.blinded(secret, ["p042"], "run")
    thief, me = Address(THIEF, "provider"), Address(VICTIM, "provider")
    for guess in ("p007", "p042"):
        sent = intersection.blinded(own, [guess], "run")
        key = intersection.raised(secret, sent)
        answer = protocol.confirmation(key, me, shown, thief, sent)
        # What the thief can make: its secret on what the victim showed, or on any guess.
        tried = [intersection.raised(own, shown)]
        tried += [intersection.raised(own, intersection.blinded(own, [one], "run")) for one in register]
        hits = [protocol.confirmation(one, me, shown, thief, sent) == answer for one in tried]
        assert hits == [guess == "p042"] + [False] * len(register)


def reflected(kind: type[Message]) -> Callable[..., Message]:
    """An island that sends back what it got, so that it need know nothing."""
    heard: list[Message] = []

    def change(to: Address, message: Message) -> Message:
        if not isinstance(message, kind):
            return message
        if to.party == THIEF and not heard:
            heard.append(message)  # what the victim sent, which is the first
        return heard[0] if to.party == VICTIM and heard else message

    return change


@pytest.mark.parametrize("kind", [OwnIds, SameIds])
def test_a_proof_that_is_sent_back_or_repeated_proves_nothing(example: Example, kind: type[Message]) -> None:
    with pytest.raises(MessageError, match="found other rows to be common"):
        run(example, "provider", reflected(kind))


def test_a_proof_names_who_made_it_and_for_whom() -> None:
    one, other = Address(VICTIM, "provider"), Address(THIEF, "provider")
    made = {
        protocol.confirmation(b"key", one, b"a", other, b"b"),
        protocol.confirmation(b"key", other, b"b", one, b"a"),
        protocol.confirmation(b"key", one, b"b", other, b"a"),
        protocol.confirmation(b"key", other, b"a", one, b"b"),
    }
    assert len(made) == 4


@pytest.mark.parametrize("element", [b"", bytes(ELEMENT_BYTES), b"\xff" * 32, b"\1" * 64])
def test_a_proof_of_what_is_no_element_is_refused(example: Example, element: bytes) -> None:
    def change(to: Address, message: Message) -> Message:
        return OwnIds(element) if isinstance(message, OwnIds) and to.party == VICTIM else message

    with pytest.raises(AtollError, match=r"one group element was due|identity|malformed"):
        run(example, "provider", change)


def test_an_empty_list_is_refused_by_the_next_island(example: Example) -> None:
    def change(to: Address, message: Message) -> Message:
        return List(0, b"") if isinstance(message, List) and message.owner == 0 else message

    with pytest.raises(MessageError, match="a list without any row came round"):
        run(example, "provider", change)


def test_an_island_is_no_matcher_of_three(example: Example) -> None:
    """It would count what the two others share, which no island is to learn."""

    def with_roles(islands: int) -> Example:
        names = [f"clinic-{i}" for i in range(islands)]
        parties = [
            Party(names[0], ("provider", "matcher")),
            *(Party(name, ("provider",)) for name in names[1:]),
        ]
        study = structs.replace(example.study, parties=tuple(parties))
        return Example(study, {name: example.islands[name] for name in names})

    resolve(with_roles(2).study)  # between two there is nothing that both do not learn
    with pytest.raises(StudyError, match="'clinic-0' is an island and the matcher"):
        resolve(with_roles(3).study)


@pytest.mark.parametrize("strange", ["p-\ud800", "p\0", "p" * 100_000])
def test_ids_at_the_limits_of_text_are_aligned_or_refused_without_being_shown(strange: str) -> None:
    who = pd.Series([strange, "a", "b"], dtype=object)
    tables = [pd.DataFrame({"who": who, f"x{i}": [1.0, 2.0, 3.0]}) for i in range(2)]
    islands = {"north": tables[0], "south": tables[1]}
    if "\ud800" in strange:
        with pytest.raises(DataError, match="no text that can be sent") as refused:
            atoll.align(islands, on="who")
        assert strange[:3] not in str(refused.value)
        return
    found = atoll.align(islands, on="who")
    assert found.common == 3
    np.testing.assert_array_equal(np.sort(found.rows["north"]), [0, 1, 2])
