"""A role's inbox: who may be heard, in which order, and what stays of a sender that left."""

from __future__ import annotations

import pytest

from atoll.codec import Decoder, Message, encode
from atoll.errors import MessageError, PartyLeft
from atoll.runtime.inbox import Inbox, Left, Received
from atoll.study.address import Address


class Question(Message, frozen=True):
    n: int


class Answer(Message, frozen=True):
    n: int


SERVER, ISLAND = Address("server", "server"), Address("st-mary", "provider")


def inbox(*arrived: tuple[Address, Message | None]) -> Inbox:
    made = Inbox(Decoder[Message]((Question, Answer)))
    for sender, message in arrived:
        made.put(Left(sender) if message is None else Received(sender, encode(message)))
    return made


def test_only_those_who_are_asked_are_heard() -> None:
    """An island must not be able to answer in the server's name."""
    box = inbox((ISLAND, Answer(1)), (SERVER, Answer(2)))
    sender, message = box.take(Answer, [SERVER], None) or (None, None)
    assert (sender, message.n) == (SERVER, 2)  # type: ignore[union-attr]
    assert box.take(Answer, [SERVER], None) is None


def test_messages_of_another_kind_wait() -> None:
    box = inbox((SERVER, Question(1)), (SERVER, Answer(2)))
    assert type((box.take(Answer, [SERVER], None) or (None, None))[1]) is Answer
    assert type((box.take(Question, [SERVER], None) or (None, None))[1]) is Question


def test_messages_of_one_kind_come_in_the_order_in_which_they_arrived() -> None:
    box = inbox((SERVER, Answer(1)), (ISLAND, Answer(2)), (SERVER, Answer(3)))
    taken = [box.take(Answer, [SERVER, ISLAND], None) for _ in range(3)]
    assert [one[1].n for one in taken if one] == [1, 2, 3]


def test_what_a_sender_had_sent_outlives_it() -> None:
    box = inbox((ISLAND, Answer(1)), (ISLAND, None))
    assert box.take(Answer, [ISLAND], None) is not None
    with pytest.raises(PartyLeft, match="st-mary/provider left before sending Answer"):
        box.take(Answer, [ISLAND], None)
    absent: set[Address] = set()
    assert box.take(Answer, [ISLAND, SERVER], absent) is None
    assert absent == {ISLAND}
    assert box.everyone_left([ISLAND])
    assert not box.everyone_left([ISLAND, SERVER])


def test_a_malformed_message_names_its_sender() -> None:
    with pytest.raises(MessageError, match="from st-mary/provider: malformed message"):
        inbox().put(Received(ISLAND, b"\xc1"))


def test_one_of_several_that_left_is_an_error_at_once_and_is_named() -> None:
    """Others may send as long as they like: what was due from all cannot be had any more."""
    third = Address("north", "provider")
    box = inbox((ISLAND, None), (third, None))
    with pytest.raises(
        PartyLeft, match="north/provider, st-mary/provider left before sending Answer"
    ) as caught:
        box.take(Answer, [SERVER, ISLAND, third], None)
    assert caught.value.missing == ("north", "st-mary")
    assert box.take(Answer, [SERVER], None) is None


def test_a_role_has_waited_for_the_longest_chain_and_the_latest_arrival() -> None:
    box = inbox()
    for depth, at in ((3, 0.5), (1, 2.0), (2, 1.0)):
        box.put(Received(SERVER, encode(Answer(depth))), depth, at)
        box.take(Answer, [SERVER], None)
    assert (box.depth, box.latest) == (3, 2.0)
