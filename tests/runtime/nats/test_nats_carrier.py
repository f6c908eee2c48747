"""The carrier on a real server: order, topics, forgetting, restarts, a wiped hub, a cut."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import pytest
from tests.support.hub import (
    address,
    admit,
    carrier,
    connected,
    free_port,
    make_hub,
    run,
    running,
    take,
    until,
)
from tests.support.proxy import proxy

from atoll.crypto.identity import Identity
from atoll.errors import MessageError
from atoll.runtime.nats import connection, nats_carrier, subjects
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.carrier import CONTROL, CarrierClosed
from atoll.runtime.nats.nats_carrier import NatsCarrier

A, B = Identity(b"a" * 32), Identity(b"b" * 32)


def test_frames_come_in_order_with_their_sender_and_by_topic(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A), carrier(hub, B)) as (a, b):
            for i in range(600):
                await a.publish(B.fingerprint, "run1", i.to_bytes(2, "big"))
            await a.publish(B.fingerprint, CONTROL, b"control")
            await b.publish(A.fingerprint, "run1", b"back")
            got = await take(b, "run1", 600)
            assert [x.frame for x in got] == [i.to_bytes(2, "big") for i in range(600)]
            assert {x.sender for x in got} == {A.fingerprint}
            assert [x.position for x in got] == sorted({x.position for x in got})
            assert (await take(b, CONTROL, 1))[0].frame == b"control"
            assert [(x.sender, x.frame) for x in await take(a, "run1", 1)] == [(B.fingerprint, b"back")]

    run(course())


def test_frames_are_kept_until_forgotten_and_only_those_of_the_topic(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A)) as (a,):
            for i in range(4):
                await a.publish(B.fingerprint, "run1", bytes([i]))
                await a.publish(B.fingerprint, CONTROL, bytes([10 + i]))
            # The receiver was not even connected when they were sent.
            async with connected(carrier(hub, B)) as (b,):
                got = await take(b, "run1", 4)
                await b.forget("run1", got[1].position)
                assert [x.frame[0] for x in await take(b, "run1", 2)] == [2, 3]
                assert [x.frame[0] for x in await take(b, CONTROL, 4)] == [10, 11, 12, 13]

    run(course())


def test_large_frames_pass_and_larger_ones_are_refused(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A), carrier(hub, B)) as (a, b):
            assert a.max_frame == 1 << 20
            for i in range(40):
                await a.publish(B.fingerprint, "run1", bytes([i]) * (600 << 10))
            got = await take(b, "run1", 40)
            assert [(x.frame[0], len(x.frame)) for x in got] == [(i, 600 << 10) for i in range(40)]
            with pytest.raises(MessageError, match="larger than the hub's"):
                await a.publish(B.fingerprint, "run1", bytes((1 << 20) + 1))

    run(course())


def test_a_restart_of_the_hub_is_survived_and_told(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub) as up, connected(carrier(hub, A), carrier(hub, B)) as (a, b):
            told = asyncio.Event()
            a.on_reconnect = told.set
            arrivals = b.frames("run1")
            await a.publish(B.fingerprint, "run1", b"before")
            assert (await anext(arrivals)).frame == b"before"
            assert up.process is not None
            up.process.kill()
            await told.wait()
            await a.publish(B.fingerprint, "run1", b"after")
            async for arrived in arrivals:
                if arrived.frame == b"after":
                    break
            await arrivals.aclose()  # type: ignore[attr-defined]

    run(course())


def test_a_hub_that_lost_its_storage_is_survived(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with contextlib.AsyncExitStack() as stack:
            async with running(hub):
                a, b = await stack.enter_async_context(connected(carrier(hub, A), carrier(hub, B)))
                arrivals = await stack.enter_async_context(contextlib.aclosing(b.frames("run1")))
                for i in range(5):
                    await a.publish(B.fingerprint, "run1", bytes([i]))
                old = [(await anext(arrivals)).position for _ in range(5)]
            shutil.rmtree(hub.path("storage"))
            async with running(hub):
                # Published again until it arrives: what goes out before the inbox is made anew is lost.
                waits = asyncio.create_task(anext(arrivals))
                while not waits.done():
                    await a.publish(B.fingerprint, "run1", b"new")
                    await asyncio.sleep(0.05)
                assert waits.result().frame == b"new"
                # A position from before must not remove what came after.
                await b.forget("run1", old[-1])
                assert waits.result().position not in old
                assert (await take(b, "run1", 1))[0].position == waits.result().position

    run(course())


def test_closing_ends_what_waits(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, B)) as (b,):
            waits = asyncio.create_task(take(b, "run1", 1))
            await asyncio.sleep(0.3)
            await b.close()
            with pytest.raises(CarrierClosed):
                await waits
            with pytest.raises(CarrierClosed):
                await b.publish(A.fingerprint, "run1", b"x")

    run(course())


# The client gives aiohttp a timeout in a form that it will drop.
@pytest.mark.filterwarnings("ignore:parameter 'timeout':DeprecationWarning")
def test_frames_travel_over_wss(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub", web_port=free_port())
        admit(hub, (A, B))
        async with running(hub) as up, connected(carrier(hub, A, web=True), carrier(hub, B)) as (a, b):
            await a.publish(B.fingerprint, "run1", bytes(700 << 10))
            await b.publish(A.fingerprint, "run1", bytes(700 << 10))
            assert len((await take(b, "run1", 1))[0].frame) == 700 << 10
            assert len((await take(a, "run1", 1))[0].frame) == 700 << 10
            assert up.process is not None
            up.process.kill()

            async def again() -> bool:
                return a.reconnects > 0 and b.reconnects > 0

            await until(again)
            waits = asyncio.create_task(take(b, "run2", 1))
            while not waits.done():
                await a.publish(B.fingerprint, "run2", b"again")
                await asyncio.sleep(0.05)
            assert waits.result()[0].frame == b"again"

    run(course())


def test_a_cut_that_nobody_is_told_about_is_noticed_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_carrier, "ALIVE_SECONDS", 0.5)
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 3)

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), proxy(hub.settings.port) as between, connected(carrier(hub, B)) as (b,):
            way = address(hub)
            a = NatsCarrier(f"tls://localhost:{between.port}", A, way.ca)
            told = asyncio.Event()
            a.on_reconnect = told.set
            async with connected(a), contextlib.aclosing(a.frames("run1")) as arrivals:
                await b.publish(A.fingerprint, "run1", b"before")
                assert (await anext(arrivals)).frame == b"before"
                between.cut()

                async def noticed() -> bool:
                    return a.trouble is not None

                await until(noticed)
                # Kept by the hub meanwhile; what a publishes waits.
                await b.publish(A.fingerprint, "run1", b"meanwhile")
                waits = asyncio.create_task(a.publish(B.fingerprint, "run1", b"waited"))
                await asyncio.sleep(1)
                assert not waits.done()
                between.mend()
                await told.wait()
                await waits
                assert (await take(b, "run1", 1))[0].frame == b"waited"
                async for arrived in arrivals:
                    if arrived.frame == b"meanwhile":
                        break
                assert a.trouble is None

    run(course())


def test_a_cut_too_short_to_be_noticed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_carrier, "ALIVE_SECONDS", 100)

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(running(hub))
            between = await stack.enter_async_context(proxy(hub.settings.port, 0.02))
            way = NatsCarrier(f"tls://localhost:{between.port}", A, address(hub).ca)
            a, b = await stack.enter_async_context(connected(way, carrier(hub, B)))
            got = asyncio.create_task(take(a, "run1", 50))
            for i in range(50):
                await b.publish(A.fingerprint, "run1", bytes([i]))
                if i == 20:
                    between.cut()
                if i == 40:
                    await asyncio.sleep(1)
                    between.mend()
            assert [x.frame[0] for x in await got] == list(range(50))
            assert a.reconnects == 0

    run(course())


def test_a_consumer_that_vanished_is_asked_for_again(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A), carrier(hub, B)) as (a, b):
            arrivals = b.frames("run1")
            await a.publish(B.fingerprint, "run1", b"1")
            assert (await anext(arrivals)).frame == b"1"
            waits = asyncio.create_task(anext(arrivals))
            await asyncio.sleep(0.1)
            client = await hubs.connect_locally(hub)
            js, name = client.jetstream(), subjects.stream(B.fingerprint)
            for one in await js.consumers_info(name):
                await js.delete_consumer(name, one.name)
            await connection.abandon(client)
            # From the oldest frame on, as carriers may.
            assert (await waits).frame == b"1"
            await arrivals.aclose()

    run(course())
