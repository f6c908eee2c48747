"""Recorded frames and control messages: what one version of Atoll said, every later one reads.

``wire.json`` has what nodes of version 2 of the wire format say. It is the first that is released: there is
no previous one to speak yet. A node that speaks a later version as well must pass all of this.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import make_wire
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from make_wire import BOOT, KEY, KINDS, LANE, LONG, NORTH, PAYLOAD, RUN, STATUS, TICKET

from atoll import codec
from atoll.errors import MessageError, RunError
from atoll.runtime.nats import starts, wire

VECTORS = json.loads((Path(__file__).parent / "wire.json").read_text())
FRAMES = {name: bytes.fromhex(data) for name, data in VECTORS["frames"].items()}


def read(name: str) -> tuple[wire.Head, bytes]:
    frame = FRAMES[name]
    cover = wire.read_cover(frame, RUN)
    assert (cover.party, cover.boot) == (2, BOOT)
    head, body = wire.unseal(ChaCha20Poly1305(KEY), cover, frame)
    assert (head.sender, head.to) == LANE
    return head, bytes(body)


def test_the_recorded_version_is_spoken() -> None:
    assert VECTORS["version"] in starts.WIRE_VERSIONS
    assert 1 not in starts.WIRE_VERSIONS  # it showed digests of messages to the hub


def test_recorded_messages_are_read() -> None:
    head, body = read("DATA")
    assert (head.kind, head.seq, head.part, head.depth, body) == (wire.DATA, 6, 0, 7, PAYLOAD)
    assert head.digest == hashlib.sha256(PAYLOAD).digest()
    head, body = read("DATA, part 2 of 2")
    assert (head.seq, head.part, head.total, body) == (8, 1, len(LONG), LONG[wire.CHUNK :])
    head, body = read("SHARED")
    assert (head.kind, wire.read_ticket(memoryview(body))) == (wire.SHARED, TICKET)
    assert bytes(wire.open_content(TICKET, RUN, head, 0, FRAMES["content"])) == PAYLOAD


@pytest.mark.parametrize("name", KINDS)
def test_recorded_words_between_parties_are_read(name: str) -> None:
    head, body = read(name)
    assert head.kind == KINDS[name]
    assert wire.read_status(body) == STATUS


@pytest.mark.parametrize("name", VECTORS["signed"])
def test_recorded_control_messages_are_read(name: str) -> None:
    opened = starts.open_signed(bytes.fromhex(VECTORS["signed"][name]))
    assert codec.encode(opened.message) == codec.encode(make_wire.messages()[name])
    assert opened.signer == NORTH.public


def test_this_version_says_the_same_to_the_last_bit() -> None:
    assert make_wire.vectors() == VECTORS


def test_a_later_node_speaks_this_version_with_one_that_knows_no_other() -> None:
    approval = starts.open_signed(bytes.fromhex(VECTORS["signed"]["Approval"])).message
    assert isinstance(approval, starts.Approval)
    later = (VECTORS["version"], VECTORS["version"] + 1)
    assert starts.common_version({"north": approval.wire, "later": later}) == VECTORS["version"]
    with pytest.raises(RunError, match="no version of the wire format in common"):
        starts.common_version({"north": approval.wire, "much later": (later[1],)})


def test_a_frame_of_version_1_is_dropped() -> None:
    with pytest.raises(MessageError, match="another version"):
        wire.read_cover(b"\1" + FRAMES["NEWS"][1:], RUN)
