"""SF-PCA runs kept in a file, and every role run again from it: one process for each vector path.

``python -m tests.support.vector_runs record FILE`` runs the examples and keeps draws and messages;
``python -m tests.support.vector_runs replay FILE`` plays every role from them. Both print the path that the
library took and the digest of every message sent.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.support.examples import (
    Example,
    private_sfpca,
    sfpca,
    sfpca_columns,
    sfpca_encrypted,
    sfpca_scores,
    sfpca_standardised,
)

from atoll.crypto.products import vector_path
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.runtime.engine import Observer
from atoll.runtime.inbox import Left, Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.records import MemoryRecord
from atoll.runtime.replay import replay
from atoll.study.address import Address

RUNS: dict[str, Callable[[], Example]] = {
    "direct": lambda: sfpca(recipe="direct"),
    "strict": lambda: sfpca(recipe="strict"),
    "fast": lambda: sfpca(recipe="fast"),
    "private": private_sfpca,
    "scores": sfpca_scores,
    "encrypted": sfpca_encrypted,
    "standardised": sfpca_standardised,
    "columns": sfpca_columns,
}
"""Every recipe and every layout of the data."""


class Role(msgspec.Struct):
    """What a role drew and received, in order, and where it sent what."""

    drawn: dict[str, bytes]
    inbox: list[tuple[tuple[str, str], bytes | None]]
    sent: list[str]


Runs = dict[str, dict[str, Role]]


class Kept(Observer):
    """Everything that a run needs to be played again."""

    def __init__(self) -> None:
        self.inboxes: dict[Address, list[tuple[tuple[str, str], bytes | None]]] = defaultdict(list)
        self.outboxes: dict[Address, list[tuple[Address, bytes]]] = defaultdict(list)
        self.drawn: dict[Address, dict[str, bytes]] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.outboxes[sender].append((receiver, bytes(data)))

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.inboxes[receiver].append(((sender.party, sender.role), bytes(data)))

    def left(self, receiver: Address, sender: Address) -> None:
        self.inboxes[receiver].append(((sender.party, sender.role), None))

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.drawn[address] = dict(record.drawn)


def digests(sent: list[tuple[Address, bytes]]) -> list[str]:
    return [f"{receiver} {hashlib.sha256(data).hexdigest()}" for receiver, data in sent]


def recorded(build: Callable[[], Example]) -> dict[str, Role]:
    example, kept = build(), Kept()
    protocol = protocol_of(example.study.protocol)
    LocalEngine().run(protocol, example.study, example.own, observer=kept)
    return {
        "/".join(address): Role(drawn, kept.inboxes[address], digests(kept.outboxes[address]))
        for address, drawn in kept.drawn.items()
    }


def replayed(build: Callable[[], Example], roles: dict[str, Role]) -> dict[str, list[str]]:
    example = build()
    protocol = protocol_of(example.study.protocol)
    found = {}
    for name, role in roles.items():
        address = Address(*name.split("/"))
        inbox = [
            Left(Address(*sender)) if data is None else Received(Address(*sender), data)
            for sender, data in role.inbox
        ]
        own = example.own.get(address.party, Own())
        _, sent = replay(protocol, example.study, address, own, role.drawn, inbox)
        found[name] = digests(sent)
    return found


def main(action: str, file: Path) -> None:
    if action == "record":
        runs = {name: recorded(build) for name, build in RUNS.items()}
        file.write_bytes(msgspec.msgpack.encode(runs))
        sent = {name: {role: kept.sent for role, kept in roles.items()} for name, roles in runs.items()}
    else:
        read = msgspec.msgpack.decode(file.read_bytes(), type=Runs)
        sent = {name: replayed(RUNS[name], roles) for name, roles in read.items()}
    print(json.dumps({"path": vector_path(), "sent": sent}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
