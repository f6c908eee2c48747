"""A threshold of the providers: who lies about its shares once outputs have been dealt."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.lying import lying
from tests.support.threshold_runs import PARTIES, first, five, provider, stopped, whole

from atoll.codec import Message
from atoll.crypto import shamir
from atoll.errors import MessageError
from atoll.network import Compared
from atoll.secret_matrices import messages as mm
from atoll.secret_matrices import threshold
from atoll.study.address import Address


def other_number(message: Any) -> Any:
    values = shamir.numbers_from_bytes(message.body, len(message.body) // shamir.SHARE_BYTES)
    values[0] = (values[0] + 1) % shamir.PRIME
    return structs.replace(message, body=memoryview(shamir.numbers_to_bytes(values)))


def lied(monkeypatch: pytest.MonkeyPatch, kind: type[Message], liar: str, to: str | None, change: Any) -> Any:
    def lie(sender: Address, receiver: Address, message: Message) -> Message:
        mine = isinstance(message, kind) and sender == provider(liar) and to in (None, receiver.party)
        return change(message) if mine else message

    lying(monkeypatch, lie)
    return stopped(five(), {})[1]


def test_a_share_that_was_not_committed_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    error = lied(monkeypatch, mm.ReleasedPoint, "island-2", "consumer", other_number)
    assert isinstance(error, MessageError)
    assert "island-2/provider sent a share of an output that is not the one it committed to" in str(error)


def test_a_share_with_a_commitment_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sender says of its own hash does not count: the others were told another."""

    def fitting(message: Any) -> Any:
        changed = other_number(message)
        values = shamir.numbers_from_bytes(changed.body, message.rows * message.cols)
        own = threshold._commitment(message.which, message.point, message.nonce, values)
        hashes = bytearray(message.commitments)
        hashes[32 * (message.point - 1) : 32 * message.point] = own
        return structs.replace(changed, commitments=bytes(hashes))

    error = lied(monkeypatch, mm.ReleasedPoint, "island-2", "consumer", fitting)
    assert isinstance(error, MessageError)
    assert "that is not the one it committed to" in str(error)


def gone_after_dealing(*names: str) -> dict[str, int]:
    """They have dealt, and commit to nothing."""
    return {name: first(mm.DealtShare, name) + PARTIES - 1 for name in names}


def test_a_share_at_the_place_of_a_member_that_left_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody committed to it, so whoever sends it could choose it when it has seen the others' shares."""

    def lie(sender: Address, receiver: Address, message: Any) -> Any:
        mine = isinstance(message, mm.ReleasedPoint) and sender == provider("island-2")
        return structs.replace(other_number(message), point=5) if mine else message

    crash = gone_after_dealing("island-3", "island-4")
    lying(monkeypatch, lie)
    _, error, _ = stopped(five(), crash)
    assert isinstance(error, MessageError)
    assert "island-2/provider sent a share for place 5, not for its own" in str(error)


def test_who_said_that_it_has_no_share_sends_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, receiver: Address, message: Any) -> Any:
        if sender != provider("island-2"):
            return message
        if isinstance(message, Compared) and message.topic.startswith("the shares dealt"):
            return structs.replace(message, note=threshold._NONE * 2)
        if isinstance(message, mm.ReleasedPoint):
            own = slice(32 * (message.point - 1), 32 * message.point)
            said = bytearray(message.commitments)
            said[own] = bytes(32)
            return structs.replace(other_number(message), commitments=bytes(said))
        return message

    crash = gone_after_dealing("island-4")
    lying(monkeypatch, lie)
    _, error, _ = stopped(five(), crash)
    assert isinstance(error, MessageError)
    assert "island-2/provider sent a share of an output that is not the one it committed to" in str(error)


def test_a_share_whose_hash_a_member_was_not_told_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be true, but it need not: with the others' in sight it could be chosen."""

    def lie(sender: Address, receiver: Address, message: Any) -> Any:
        if isinstance(message, mm.ReleasedPoint) and sender == provider("island-0"):
            said = bytearray(message.commitments)
            said[64:96] = bytes(32)
            return structs.replace(message, commitments=bytes(said))
        return message

    few = gone_after_dealing("island-3", "island-4")
    enough = gone_after_dealing("island-4")
    known, _ = whole()
    lying(monkeypatch, lie)
    _, error, _ = stopped(five(), few)
    assert isinstance(error, MessageError)
    assert "2 members have shares of an output whose hash all others were told, 3 are needed" in str(error)
    outputs, error, _ = stopped(five(), enough)
    assert error is None
    assert np.abs(outputs["components"] - known["components"]).max() < 1e-6


def test_a_wrong_dealing_is_noticed_by_the_shares_beyond_the_threshold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = lied(monkeypatch, mm.DealtShare, "island-2", "island-4", other_number)
    assert isinstance(error, MessageError)
    assert "do not belong together" in str(error)


def test_hashes_that_differ_from_member_to_member_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A liar that told one member another hash, to say later that its other share was the true one."""

    def other_note(message: Any) -> Any:
        due = message.topic.startswith("the shares dealt")
        return structs.replace(message, note=hashlib.sha256(message.note).digest() * 2) if due else message

    error = lied(monkeypatch, Compared, "island-0", "island-3", other_note)
    assert isinstance(error, MessageError)
    assert (
        "island-0/provider sent a share of an output that is not the one it committed to, as island-3"
        in str(error)
    )
