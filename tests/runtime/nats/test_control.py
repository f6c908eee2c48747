"""What waits in a node's outbox: for whom, for how long, and who may say that it has arrived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.examples import pppca
from tests.support.sites import identities, pinned

from atoll.crypto.identity import PublicIdentity
from atoll.errors import MessageError
from atoll.runtime.nats import control as module
from atoll.runtime.nats.carrier import CONTROL
from atoll.runtime.nats.control import Control, Known
from atoll.runtime.nats.site import Site
from atoll.runtime.nats.starts import Proposal, Seen, open_signed, propose, sign, unseal

STUDY = pinned(pppca(n_islands=2).study)
KEYS = identities(STUDY)
ME, TO, OTHER = KEYS["consumer"], KEYS["server"], KEYS["hospital-0"]
NOW = 1_800_000_000.0


class Carrier:
    """Notes what is handed over."""

    def __init__(self) -> None:
        self.handed: list[tuple[str, str, bytes]] = []

    async def publish(self, to: str, topic: str, frame: bytes) -> None:
        self.handed.append((to, topic, frame))


class Clock:
    """A time that tests set."""

    def __init__(self) -> None:
        self.now = NOW

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def control_of(folder: Path) -> tuple[Control, Carrier, Site]:
    site, carrier = Site.make(folder / "site"), Carrier()
    known = Known(site)
    known.learn(TO.public)
    return Control(site, ME, carrier, known), carrier, site  # type: ignore[arg-type]


def message() -> bytes:
    return propose(ME, STUDY, "", now=int(NOW)).signed


def test_a_message_is_sealed_to_its_receiver_and_sent_ever_more_rarely(tmp_path: Path, clock: Clock) -> None:
    control, carrier, site = control_of(tmp_path)
    signed = message()
    control.send(TO.fingerprint, signed, NOW + 1000)
    control.send(TO.fingerprint, signed, NOW + 1000)  # once is enough
    assert len(list(site.outbox.iterdir())) == 1
    sent = []
    for second in range(100):
        clock.now = NOW + second
        before = len(carrier.handed)
        asyncio.run(control.resend())
        sent += [second] * (len(carrier.handed) - before)
    assert sent == [0, 1, 3, 7, 15, 31, 61, 91]  # never more than 30 seconds apart
    to, topic, frame = carrier.handed[0]
    assert (to, topic) == (TO.fingerprint, CONTROL)
    assert unseal(TO, frame).signed == signed
    with pytest.raises(MessageError):
        unseal(OTHER, frame)
    control.hurry()
    asyncio.run(control.resend())
    assert len(carrier.handed) == len(sent) + 1


def test_nothing_is_sent_when_its_time_is_over(tmp_path: Path, clock: Clock) -> None:
    control, carrier, site = control_of(tmp_path)
    control.send(TO.fingerprint, message(), NOW + 10)
    clock.now = NOW + 11
    asyncio.run(control.resend())
    assert carrier.handed == []
    assert list(site.outbox.iterdir()) == []
    assert control.unseen(Proposal) == set()


def test_what_waits_is_there_after_a_restart_and_goes_when_its_receiver_has_it(
    tmp_path: Path, clock: Clock
) -> None:
    control, _, site = control_of(tmp_path)
    signed = message()
    control.send(TO.fingerprint, signed, NOW + 1000)
    again = Control(site, ME, Carrier(), Known(site))  # type: ignore[arg-type]
    assert again.unseen(Proposal) == {TO.fingerprint}
    digest = open_signed(signed).digest
    for by, what in ((OTHER, digest), (TO, bytes(32))):
        said = Seen(what)
        again._seen(open_signed(sign(by, said)), said)
        assert again.unseen(Proposal) == {TO.fingerprint}
    said = Seen(digest)
    again._seen(open_signed(sign(TO, said)), said)
    assert again.unseen(Proposal) == set()
    assert list(site.outbox.iterdir()) == []


def test_an_identity_is_believed_for_its_own_fingerprint_alone(tmp_path: Path) -> None:
    site = Site.make(tmp_path / "site")

    async def wrong(_: str) -> PublicIdentity:
        return OTHER.public

    async def right(_: str) -> PublicIdentity:
        return TO.public

    assert asyncio.run(Known(site, wrong).of(TO.fingerprint)) is None
    assert asyncio.run(Known(site).of(TO.fingerprint)) is None  # it was not kept
    assert asyncio.run(Known(site, right).of(TO.fingerprint)) == TO.public
    asked: Any = Known(site, wrong)
    assert asyncio.run(asked.of(TO.fingerprint)) == TO.public  # from memory
