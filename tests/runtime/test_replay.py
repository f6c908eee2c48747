"""A role run again from its record: it may neither draw nor send anything else than it did."""

from __future__ import annotations

import hashlib

import pytest
from tests.support.examples import summation
from tests.support.taps import Tap, tapped

from atoll.errors import RunError
from atoll.protocols import protocol_of
from atoll.runtime.replay import replay
from atoll.study.address import Address

EXAMPLE = summation()
ISLAND = Address("island-0", "contributor")


@pytest.fixture(scope="module")
def tap() -> Tap:
    return tapped(EXAMPLE)


def again(tap: Tap, **changed: object) -> list[tuple[Address, bytes]]:
    record = tap.records[ISLAND]
    given = {"drawn": record.drawn, "inbox": tap.inboxes[ISLAND], "sendings": record.sendings, **changed}
    own = EXAMPLE.own[ISLAND.party]
    return replay(protocol_of("sum"), EXAMPLE.study, ISLAND, own, **given)[1]  # type: ignore[arg-type]


def test_it_sends_the_same_bytes_to_the_same_roles(tap: Tap) -> None:
    sent = again(tap)
    assert sent == tap.outboxes[ISLAND]
    assert tap.records[ISLAND].sendings == [(to, hashlib.sha256(data).digest()) for to, data in sent]


def test_it_may_not_send_anything_else(tap: Tap) -> None:
    """Other bytes under the same draws are a second value under one mask."""
    sendings = tap.records[ISLAND].sendings
    for k, (to, digest) in enumerate(sendings):
        for other in ((to, bytes(32)), (Address("x", "y"), digest)):
            with pytest.raises(RunError, match="is not what the recorded run sent"):
                again(tap, sendings=[*sendings[:k], other, *sendings[k + 1 :]])


def test_it_may_not_draw_anything_new(tap: Tap) -> None:
    drawn = tap.records[ISLAND].drawn
    assert drawn
    for tag in drawn:
        with pytest.raises(RunError, match="the record holds no draw"):
            again(tap, drawn={name: data for name, data in drawn.items() if name != tag})


def test_an_inbox_that_ends_too_early_is_said(tap: Tap) -> None:
    with pytest.raises(RunError, match="the recorded inbox of island-0/contributor ends before"):
        again(tap, inbox=tap.inboxes[ISLAND][:-1])
