"""Five islands, three of which open the outputs: runs in which some stop, and what was sent as a share."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
from msgspec import structs
from tests.support.examples import Example, sfpca, table
from tests.support.taps import Tap

from atoll.codec import Decoder, Message
from atoll.data.island import as_islands
from atoll.errors import AtollError
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address

PARTIES, ENOUGH = 5, 3
NAMES = [f"island-{i}" for i in range(PARTIES)]


def five(**parameters: Any) -> Example:
    """Five islands, three of which are enough."""
    islands = as_islands(np.array_split(table(), PARTIES))
    study = sfpca(bounds=64.0, threshold=ENOUGH, **parameters).study
    roles = parties(islands, "provider", "coordinator", "consumer")
    return Example(structs.replace(study, parties=roles), islands)


def provider(name: str) -> Address:
    return Address(name, "provider")


class Shares(Tap):
    """Everything that a role ever sent as its share of something, by what it is a share of."""

    def __init__(self, example: Example) -> None:
        super().__init__()
        self.decoder = Decoder[Message](protocol_of("sfpca").all_messages(example.study))
        self.shares: dict[tuple[Any, ...], set[bytes]] = defaultdict(set)

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        super().sent(sender, receiver, data)
        message: Any = self.decoder.decode(bytes(data))
        kind = type(message)
        if kind in (mm.MaskedShare, mm.OpenedShare):
            self.shares[kind, sender, message.step].add(bytes(data))
        elif kind is mm.ReleasedPoint:
            self.shares[kind, sender, message.which].add(bytes(data))
        elif kind is mm.DealtShare:  # one for each receiver
            self.shares[kind, sender, message.step, receiver].add(bytes(data))


def stopped(example: Example, crash: dict[str, int]) -> tuple[Any, AtollError | None, Shares]:
    """What the consumer has, or the error."""
    tap = Shares(example)
    engine = LocalEngine(faults=Faults(crash={f"{name}/provider": at for name, at in crash.items()}))
    try:
        outcome = engine.run(protocol_of("sfpca"), example.study, example.own, observer=tap)
    except AtollError as error:
        return None, error, tap
    return outcome.learned[Address("consumer", "consumer")].outputs, None, tap


@cache
def whole() -> tuple[Any, Shares]:
    outputs, error, tap = stopped(five(), {})
    assert error is None
    return outputs, tap


def first(kind: type[Message], name: str) -> int:
    """Which of a provider's messages, counted from 1, is its first of a kind."""
    _, tap = whole()
    kinds = [type(tap.decoder.decode(data)) for _, data in tap.outboxes[provider(name)]]
    return kinds.index(kind) + 1
