"""Every field of every message of a run, altered on its way: which alterations does nobody notice?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example
from tests.support.lying import Lie, lying

from atoll.codec import Message
from atoll.errors import AtollError
from atoll.protocols import protocol_of
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address

Alter = Callable[[Any], Any]


def alterations(value: Any) -> Iterator[tuple[str, Alter]]:
    """What whoever carries a message may make of one field: a name for each, and how it is made."""
    if isinstance(value, bool):
        yield "turned", lambda v: not v
    elif isinstance(value, int):
        yield "one more", lambda v: v + 1
        yield "one less", lambda v: v - 1
    elif isinstance(value, str):
        yield "other words", lambda v: v + "#1"
    elif isinstance(value, bytes | bytearray | memoryview) and len(value):
        yield "a bit", lambda v: bytes([bytes(v)[0] ^ 1]) + bytes(v)[1:]
        yield "cut", lambda v: bytes(v)[:-1]
        yield "longer", lambda v: bytes(v) + b"\0"
    elif isinstance(value, np.ndarray) and value.size:
        yield "cut", lambda v: v[..., :-1]
        yield "longer", lambda v: np.concatenate([v, v[..., :1]], axis=-1)
        yield "other numbers", lambda v: v.astype(np.int32)
    elif isinstance(value, tuple | list) and len(value):
        yield "one fewer", lambda v: type(v)(v[:-1])
        yield "one twice", lambda v: type(v)([*v, v[-1]])
        if len(value) > 1:
            yield "first for last", lambda v: type(v)([v[0], *v[1:-1], v[0]])
        for name, alter in alterations(value[0]):
            yield f"first: {name}", lambda v, alter=alter: type(v)([alter(v[0]), *v[1:]])
    elif isinstance(value, dict) and value:
        yield "one fewer", lambda v: dict(list(v.items())[:-1])
        first = next(iter(value))
        for name, alter in alterations(value[first]):
            yield (
                f"first: {name}",
                lambda v, alter=alter: {k: alter(x) if k == next(iter(v)) else x for k, x in v.items()},
            )
    elif isinstance(value, msgspec.Struct):
        for field in structs.fields(value):
            for name, alter in alterations(getattr(value, field.name)):
                yield (
                    f"{field.name}: {name}",
                    lambda v, f=field.name, alter=alter: structs.replace(v, **{f: alter(getattr(v, f))}),
                )


def unnoticed(example: Example) -> list[str]:
    """Alterations of one message of each kind after which the run ends as if nothing had been."""
    protocol = protocol_of(example.study.protocol)
    sent: dict[tuple[type[Message], str, str], Message] = {}

    def run(lie: Lie) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            lying(patch, lie)
            try:
                LocalEngine().run(protocol, example.study, example.own)
            except AtollError:
                return False
        return True

    def noted(sender: Address, to: Address, message: Message) -> Message:
        sent.setdefault((type(message), sender.role, to.role), message)
        return message

    assert run(noted)
    return [
        f"{kind.__name__} {said_by}>{said_to} {name}"
        for (kind, said_by, said_to), first in sent.items()
        for name, alter in alterations(first)
        if run(_once((kind, said_by, said_to), alter))
    ]


def _once(way: tuple[type[Message], str, str], alter: Alter) -> Lie:
    """The first message of this kind between these roles is altered, and no other."""
    waiting = [alter]

    def lie(sender: Address, to: Address, message: Message) -> Message:
        if not waiting or (type(message), sender.role, to.role) != way:
            return message
        altered: Message = waiting.pop()(message)
        return altered

    return lie
