"""The local engine itself: who gets the data, what is counted, what is refused, and in which order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from tests.support.examples import pppca

from atoll.codec import Message
from atoll.data.island import as_islands
from atoll.errors import Deadlock, MessageError, RoleFailed, RunError
from atoll.network import Network, Record
from atoll.protocols import protocol_of
from atoll.protocols.base import Learned, Protocol
from atoll.runtime.local.engine import LocalEngine, Outcome
from atoll.runtime.local.links import Frame, Link
from atoll.study.model import Parameters, Party, Study

pytestmark = pytest.mark.timeout(60)


class Ping(Message, frozen=True):
    n: int


class Big(Message, frozen=True):
    body: bytes


Role = Callable[[Network, Study, Any, Record], Coroutine[Any, Any, Learned]]


def run(owner: Role, helper: Role, messages: tuple[type[Message], ...] = (Ping, Big)) -> Outcome:
    """Two islands, each owner and helper at once: only owners bring data."""
    protocol = Protocol(
        name="two",
        title="",
        roles={"owner": owner, "helper": helper},
        data_roles=frozenset({"owner"}),
        messages=messages,
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset(),
        uses_sum=False,
    )
    study = Study(
        name="t", protocol="two", parties=tuple(Party(name, ("owner", "helper")) for name in ("a", "b"))
    )
    return LocalEngine().run(protocol, study, as_islands({"a": [[1.0]], "b": [[2.0]]}))


async def idle(net: Network, study: Study, island: Any, record: Record) -> Learned:
    return Learned()


def test_only_roles_that_bring_data_are_handed_the_table() -> None:
    async def tell(net: Network, study: Study, island: Any, record: Record) -> Learned:
        return Learned({"has": island is not None})

    has = {str(address): one.outputs["has"] for address, one in run(tell, tell).learned.items()}
    assert has == {"a/owner": True, "a/helper": False, "b/owner": True, "b/helper": False}


def test_data_that_no_party_of_the_study_has_are_refused() -> None:
    example = pppca()
    stranger = {**example.islands, "elsewhere": example.islands["hospital-0"]}
    with pytest.raises(RunError, match="there is data for elsewhere"):
        LocalEngine().run(protocol_of("pppca"), example.study, stranger)
    one_less = {name: island for name, island in example.islands.items() if name != "hospital-0"}
    with pytest.raises(RunError, match="no data for hospital-0"):
        LocalEngine().run(protocol_of("pppca"), example.study, one_less)


def test_messages_bytes_and_rounds_are_counted() -> None:
    """There and back and there: three messages that wait for each other."""

    async def asks(net: Network, study: Study, island: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("helper") if a.party == net.me.party)
        await net.send(other, Ping(1))
        await net.send(other, Big(bytes((await net.receive(Ping, other)).n)))
        return Learned()

    async def answers(net: Network, study: Study, island: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("owner") if a.party == net.me.party)
        await net.receive(Ping, other)
        await net.send(other, Ping(1000))
        await net.receive(Big, other)
        return Learned()

    transcript = run(asks, answers).transcript
    assert transcript.rounds == 3
    assert transcript.messages == 6
    assert transcript.kinds == {"Ping": 4, "Big": 2}
    asked = transcript.of("a/owner")
    assert (asked.messages_sent, asked.messages_received) == (2, 1)
    assert 1000 < asked.bytes_sent < 1100
    assert asked.bytes_sent + transcript.of("a/helper").bytes_sent == transcript.bytes / 2
    assert transcript.of("a/helper").bytes_received == asked.bytes_sent


def test_a_message_that_the_protocol_does_not_have_ends_the_run_and_names_its_sender() -> None:
    async def sends(net: Network, study: Study, island: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("helper") if a.party == net.me.party)
        await net.send(other, Big(b"not declared"))
        return Learned()

    async def waits(net: Network, study: Study, island: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("owner") if a.party == net.me.party)
        await net.receive(Ping, other)
        return Learned()

    with pytest.raises(MessageError, match=r"from (a|b)/owner: malformed message") as caught:
        run(sends, waits, (Ping,))
    assert caught.value.role in ("a/helper", "b/helper")


def test_an_unexpected_error_does_not_quote_what_it_met() -> None:
    async def fails(net: Network, study: Study, island: Any, record: Record) -> Learned:
        raise ValueError("could not convert 'Jane Doe' to a number")

    with pytest.raises(RoleFailed, match="an unexpected ValueError") as caught:
        run(fails, idle)
    assert "Jane" not in str(caught.value)


def test_frames_on_a_slow_link_arrive_in_order() -> None:
    arrived: list[bytes] = []

    async def talk() -> None:
        link = Link(0.005, None, lambda frame: arrived.append(frame.data))
        for i in range(20):
            link.send(Frame(bytes([i]), 1))
        while len(arrived) < 20:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(talk(), 10))
    assert arrived == [bytes([i]) for i in range(20)]


def test_a_time_limit_of_the_callers_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the deadlock check wrong, a run would wait for ever: whoever set an alarm must still be heard."""
    example, protocol = pppca(), protocol_of("pppca")
    mute = replace(protocol, roles={**protocol.roles, "server": idle})
    with pytest.raises(Deadlock):
        LocalEngine().run(mute, example.study, example.islands)
    monkeypatch.setattr("atoll.runtime.local.engine._Run.check_for_deadlock", lambda _: None)

    class TimeIsUp(Exception):
        pass

    def ring(*_: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGUSR1, ring)
    bell = threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
    bell.start()
    try:
        with pytest.raises(TimeIsUp):
            LocalEngine().run(mute, example.study, example.islands)
    finally:
        bell.cancel()
        signal.signal(signal.SIGUSR1, before)
