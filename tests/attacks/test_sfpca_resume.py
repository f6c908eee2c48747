"""A provider that runs again on other messages, under its recorded draws, ends before it sends other bytes.

Two products under one encryption of zero would give a provider's matrix away; two masked shares, its key.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.examples import sfpca
from tests.support.taps import resumed, tapped

from atoll import codec
from atoll.codec import Decoder, Message
from atoll.data.island import Island
from atoll.errors import MessageError, RunError
from atoll.network import Compared
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.runtime.inbox import Event, Left, Received
from atoll.runtime.replay import ReplayNetwork, replay
from atoll.secret_matrices import messages as machine
from atoll.study.address import Address

ME = Address("island-0", "provider")


def changed(inbox: list[Event], kind: type[Message], decoder: Decoder[Message]) -> list[Event]:
    """The same inbox, with one bit of the first message of this kind turned."""
    events: list[Event] = []
    done = False
    for event in inbox:
        message: Any = None if isinstance(event, Left) else decoder.decode(bytes(event.data))
        if not done and isinstance(message, kind):
            body = bytearray(message.body)
            body[0] ^= 1
            events.append(Received(event.sender, codec.encode(kind(message.step, memoryview(body)))))
            done = True
        else:
            events.append(event)
    assert done
    return events


@pytest.mark.parametrize("kind", [machine.EncryptedMatrix, machine.SecondHalves])
def test_other_messages_under_the_same_draws_end_the_run(
    kind: type[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = sfpca(bounds=64.0)
    tap = tapped(example)
    protocol, study = protocol_of("sfpca"), example.study
    decoder = Decoder[Message](protocol.all_messages(study))
    drawn, inbox = tap.records[ME].drawn, tap.inboxes[ME]
    own = example.own[ME.party]
    _, before = replay(protocol, study, ME, own, drawn, inbox)

    networks: list[ReplayNetwork] = []
    made = ReplayNetwork.__init__

    def kept(self: ReplayNetwork, *args: Any) -> None:
        made(self, *args)
        networks.append(self)

    monkeypatch.setattr(ReplayNetwork, "__init__", kept)
    # Bytes that are found out by comparing with the others are found out before anything is made of them.
    with pytest.raises(
        (RunError, MessageError),
        match=r"is not what the recorded run sent|something else than|not that of the providers' parts",
    ):
        resumed(example, tap, ME, own, changed(inbox, kind, decoder))
    (net,) = networks
    # Accounts say what was received; of everything else the same bytes left, or nothing.
    sent = [item for item in net.sent if not isinstance(decoder.decode(bytes(item[1])), Compared)]
    due = [item for item in before if not isinstance(decoder.decode(bytes(item[1])), Compared)]
    assert sent == due[: len(sent)]
    assert len(sent) < len(due)


def test_other_rows_under_the_same_draws_end_the_run() -> None:
    example = sfpca(bounds=64.0)
    tap, island = tapped(example), example.islands[ME.party]
    rows = island.features(island.columns).copy()
    rows[0, 0] += 1.0
    other = Island(rows, name=island.name, columns=island.columns)
    with pytest.raises(RunError, match="is not what the recorded run sent"):
        resumed(example, tap, ME, Own(other))
