"""Roles that deviate: a run in which messages are changed on their way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from atoll.codec import Message
from atoll.runtime.local import engine as local
from atoll.study.address import Address

Lie = Callable[[Address, Address, Message], Message]
"""Sender, receiver and message: what is sent in its place."""


def lying(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    """From now on every message of the local engine passes through ``lie``."""
    honest = local._LocalNetwork.send

    async def send(self: Any, to: Address, message: Message) -> None:
        await honest(self, to, lie(self.me, to, message))

    monkeypatch.setattr(local._LocalNetwork, "send", send)


def exchanged(message: Any, kind: type[Message], members: int) -> Any:
    """Everybody's parts, those of the last two members in each other's place."""
    if not isinstance(message, kind):
        return message
    parts = np.array(message.body).reshape(members, -1)
    parts[[-1, -2]] = parts[[-2, -1]]
    return structs.replace(message, body=memoryview(parts.tobytes()))
