"""A coordinator that tells providers something else than it should is found out at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import sfpca_scores
from tests.support.lying import Lie, lying

from atoll.codec import Message
from atoll.errors import MessageError
from atoll.runtime.execute import run_study
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address

pytestmark = pytest.mark.timeout(300)


def told(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> list[type[Message]]:
    """Run with a lying coordinator; the kinds of messages that left before somebody noticed."""
    sent: list[type[Message]] = []

    def noted(sender: Address, to: Address, message: Message) -> Message:
        sent.append(type(message))
        return lie(sender, to, message)

    lying(monkeypatch, noted)
    example = sfpca_scores()
    with pytest.raises(MessageError):
        run_study(example.study, example.own)
    return sent


def test_a_session_that_was_not_made_with_ones_own_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old session's seeds would bring its common polynomials back."""

    def lie(sender: Address, to: Address, message: Any) -> Message:
        return mm.SessionSeed((bytes(32),) * 3) if type(message) is mm.SessionSeed else message

    assert mm.KeyParts not in told(monkeypatch, lie)


def test_a_session_with_a_part_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is not mm.SessionSeed or to.party == "island-2":
            return message
        return mm.SessionSeed((*message.seeds[:2], b""))

    told(monkeypatch, lie)


def test_eigenvectors_of_another_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say which rows of the secret rotation are released: any others would be linear queries."""

    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is not mm.PublicNumbers:
            return message
        values = np.array(message.values)
        values[1:] = np.eye(values.shape[1])
        return structs.replace(message, values=values)

    assert mm.ReleasedShare not in told(monkeypatch, lie)


@pytest.mark.parametrize("kind", [mm.EncryptedMatrix, mm.SecondHalves, mm.OpenedMatrix, mm.PublicNumbers])
def test_a_message_of_another_step(monkeypatch: pytest.MonkeyPatch, kind: type[Message]) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        return structs.replace(message, step=message.step + 1) if type(message) is kind else message

    told(monkeypatch, lie)
