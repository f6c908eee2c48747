"""What every engine must keep: who gets the data, what is counted, what is refused, and in which order.

Every registered engine passes through the tests that take ``engine``; the rest is the local engine's own.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.examples import pppca
from tests.support.packages import install

from atoll.codec import Message
from atoll.data.island import as_islands
from atoll.errors import Deadlock, MessageError, MissingComponent, ParameterError, RoleFailed, RunError
from atoll.network import Network, Record
from atoll.protocols import protocol_of
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import owned
from atoll.runtime.engine import Engine, Observer, Outcome
from atoll.runtime.engines import ENGINES, engine_of
from atoll.runtime.inbox import Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.local.links import Frame, Link
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study

pytestmark = pytest.mark.timeout(60)


class Ping(Message, frozen=True):
    n: int


class Big(Message, frozen=True):
    body: bytes


Role = Callable[[Network, Study, Any, Record], Coroutine[Any, Any, Learned]]


# Engines whose tables stay elsewhere carry the caller's roles only: tests/contract/test_network_engine.py.
@pytest.fixture(params=[name for name in ENGINES.names() if not ENGINES[name].elsewhere])
def engine(request: pytest.FixtureRequest) -> Engine:
    return engine_of(request.param)


def run(
    engine: Engine,
    owner: Role,
    helper: Role,
    messages: tuple[type[Message], ...] = (Ping, Big),
    **options: Any,
) -> Outcome:
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
    return engine.run(protocol, study, owned(as_islands({"a": [[1.0]], "b": [[2.0]]})), **options)


async def idle(net: Network, study: Study, own: Any, record: Record) -> Learned:
    return Learned()


def test_only_roles_that_bring_data_are_handed_the_table(engine: Engine) -> None:
    async def tell(net: Network, study: Study, own: Any, record: Record) -> Learned:
        return Learned({"has": own.island is not None})

    has = {str(address): one.outputs["has"] for address, one in run(engine, tell, tell).learned.items()}
    assert has == {"a/owner": True, "a/helper": False, "b/owner": True, "b/helper": False}


def test_data_that_no_party_of_the_study_has_are_refused(engine: Engine) -> None:
    example = pppca()
    stranger = {**example.own, "elsewhere": example.own["hospital-0"]}
    with pytest.raises(RunError, match="there is data for elsewhere"):
        engine.run(protocol_of("pppca"), example.study, stranger)
    one_less = {name: own for name, own in example.own.items() if name != "hospital-0"}
    with pytest.raises(RunError, match="no data for hospital-0"):
        engine.run(protocol_of("pppca"), example.study, one_less)


def test_messages_bytes_and_rounds_are_counted(engine: Engine) -> None:
    """There and back and there: three messages that wait for each other."""

    async def asks(net: Network, study: Study, own: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("helper") if a.party == net.me.party)
        await net.send(other, Ping(1))
        await net.send(other, Big(bytes((await net.receive(Ping, other)).n)))
        return Learned()

    async def answers(net: Network, study: Study, own: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("owner") if a.party == net.me.party)
        await net.receive(Ping, other)
        await net.send(other, Ping(1000))
        await net.receive(Big, other)
        return Learned()

    transcript = run(engine, asks, answers).transcript
    assert transcript.rounds == 3
    assert transcript.messages == 6
    assert transcript.kinds == {"Ping": 4, "Big": 2}
    asked = transcript.of("a/owner")
    assert (asked.messages_sent, asked.messages_received) == (2, 1)
    assert 1000 < asked.bytes_sent < 1100
    assert asked.bytes_sent + transcript.of("a/helper").bytes_sent == transcript.bytes / 2
    assert transcript.of("a/helper").bytes_received == asked.bytes_sent


def test_a_message_that_the_protocol_does_not_have_ends_the_run_and_names_its_sender(engine: Engine) -> None:
    async def sends(net: Network, study: Study, own: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("helper") if a.party == net.me.party)
        await net.send(other, Big(b"not declared"))
        return Learned()

    async def waits(net: Network, study: Study, own: Any, record: Record) -> Learned:
        (other,) = (a for a in study.who("owner") if a.party == net.me.party)
        await net.receive(Ping, other)
        return Learned()

    with pytest.raises(MessageError, match=r"from (a|b)/owner: malformed message") as caught:
        run(engine, sends, waits, (Ping,))
    assert caught.value.role in ("a/helper", "b/helper")


def test_an_unexpected_error_does_not_quote_what_it_met(engine: Engine) -> None:
    async def fails(net: Network, study: Study, own: Any, record: Record) -> Learned:
        raise ValueError("could not convert 'Jane Doe' to a number")

    with pytest.raises(RoleFailed, match="an unexpected ValueError") as caught:
        run(engine, fails, idle)
    assert "Jane" not in str(caught.value)


def test_a_broadcast_is_one_sending_to_each(engine: Engine) -> None:
    async def tells(net: Network, study: Study, own: Any, record: Record) -> Learned:
        await net.broadcast(study.who("helper"), Big(bytes(1000)))
        return Learned()

    async def hears(net: Network, study: Study, own: Any, record: Record) -> Learned:
        told = await net.gather(Big, study.who("owner"))
        return Learned({"told": len(told)})

    outcome = run(engine, tells, hears)
    assert outcome.learned[Address("a", "helper")].outputs == {"told": 2}
    assert outcome.transcript.messages == 4
    asked = outcome.transcript.of("a/owner")
    assert asked.messages_sent == 2
    assert 2000 < asked.bytes_sent < 2200


def test_a_role_is_handed_what_its_party_owns_and_nothing_else(engine: Engine) -> None:
    seen: dict[str, Any] = {}

    async def look(net: Network, study: Study, own: Any, record: Record) -> Learned:
        seen[str(net.me)] = own
        return Learned()

    run(engine, look, look)
    assert {name: own.island and own.island.name for name, own in seen.items()} == {
        "a/owner": "a",
        "a/helper": None,
        "b/owner": "b",
        "b/helper": None,
    }


def test_the_record_is_told_of_every_message_before_it_leaves() -> None:
    """By a broadcast too, in order, with the digest of the bytes that travel."""
    told: list[tuple[Address, bytes]] = []
    left: list[tuple[Address, bytes]] = []

    async def tells(net: Network, study: Study, own: Any, record: Any) -> Learned:
        honest = record.sent

        def sent(to: Address, digest: bytes) -> None:
            assert len(told) == len(left)  # nothing that was not told has left
            told.append((to, digest))
            honest(to, digest)

        if net.me.party == "a":
            record.sent = sent
            await net.broadcast(study.who("helper"), Ping(1))
            await net.send(study.who("helper")[0], Big(bytes(3 << 20)))
        return Learned()

    class Wire(Observer):
        def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
            left.append((receiver, hashlib.sha256(data).digest()))

    run(LocalEngine(), tells, idle, observer=Wire())
    assert len(told) == 3
    assert told == left


def test_a_sending_that_the_record_refuses_does_not_leave() -> None:
    left: list[bytes] = []

    async def tells(net: Network, study: Study, own: Any, record: Any) -> Learned:
        if net.me.party == "a":
            record.sendings.append((study.who("helper")[0], b"the digest of another message"))
            await net.send(study.who("helper")[0], Ping(1))
        return Learned()

    class Wire(Observer):
        def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
            left.append(data)

    with pytest.raises(RunError, match="what would be sent to a/helper is not what the recorded run sent"):
        run(LocalEngine(), tells, idle, observer=Wire())
    assert left == []


ENGINE = """
from atoll.runtime.local.engine import LocalEngine


class Elsewhere(LocalEngine):
    pass
"""


def test_an_engine_is_found_by_name(site: Path) -> None:
    (site / "engine_of_a_stranger.py").write_text(ENGINE)
    points = "elsewhere = engine_of_a_stranger:Elsewhere\nno-engine = collections:OrderedDict\n"
    assert ENGINES.names() == ["local", "nats"]
    install(site, "stranger", "[atoll.engines]\n" + points)
    assert ENGINES.names() == ["local", "nats", "elsewhere", "no-engine"]
    assert type(engine_of("elsewhere")).__name__ == "Elsewhere"
    assert type(engine_of("local")) is LocalEngine
    with pytest.raises(MissingComponent, match="OrderedDict of the package 'stranger' is not an engine"):
        engine_of("no-engine")
    with pytest.raises(ParameterError, match="there is no engine called 'locla'"):
        engine_of("locla")


def test_an_engine_of_this_package_is_never_anothers(site: Path) -> None:
    (site / "engine_of_a_stranger.py").write_text(ENGINE)
    points = "elsewhere = engine_of_a_stranger:Elsewhere\nlocal = engine_of_a_stranger:Elsewhere\n"
    install(site, "thief", "[atoll.engines]\n" + points)
    assert type(engine_of("local")) is LocalEngine
    with pytest.raises(MissingComponent, match="'thief' brings an engine called 'local', which Atoll has"):
        engine_of("elsewhere")


def test_what_is_on_its_way_is_no_deadlock() -> None:
    """Every role waits while a message travels."""
    example = pppca()
    outcome = LocalEngine(latency=0.002).run(protocol_of("pppca"), example.study, example.own)
    assert outcome.transcript.rounds > 3


def test_a_metered_run_has_no_faults() -> None:
    with pytest.raises(ParameterError, match="one_at_a_time cannot be used with faults"):
        LocalEngine(faults=Faults(drop=0.1), one_at_a_time=True)


def test_frames_on_a_slow_link_arrive_in_order() -> None:
    arrived: list[bytes] = []

    async def talk() -> None:
        link = Link(0.005, None, lambda frame: arrived.append(frame.event.data))  # type: ignore[union-attr]
        for i in range(20):
            link.send(Frame(Received(Address("a", "owner"), bytes([i])), 1))
        while len(arrived) < 20:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(talk(), 10))
    assert arrived == [bytes([i]) for i in range(20)]


def test_a_time_limit_of_the_callers_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the deadlock check wrong, a run would wait for ever: whoever set an alarm must still be heard."""
    example, protocol = pppca(), protocol_of("pppca")
    mute = replace(protocol, roles={**protocol.roles, "server": idle})
    with pytest.raises(Deadlock):
        LocalEngine().run(mute, example.study, example.own)
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
            LocalEngine().run(mute, example.study, example.own)
    finally:
        bell.cancel()
        signal.signal(signal.SIGUSR1, before)
