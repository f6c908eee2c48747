"""The hub in this process: what it keeps, and that its knobs do what they say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from atoll.errors import MessageError, ParameterError
from atoll.runtime.nats.carrier import CONTROL, Arrived, Carrier, CarrierClosed, MemoryHub

A, B = "a" * 64, "b" * 64


def run(course: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(course(), 20))


async def take(carrier: Carrier, topic: str, count: int) -> list[Arrived]:
    found: list[Arrived] = []
    async for arrived in carrier.frames(topic):
        found.append(arrived)
        if len(found) == count:
            break
    return found


async def pair(hub: MemoryHub) -> tuple[Carrier, Carrier]:
    a, b = hub.carrier(A), hub.carrier(B)
    await a.connect()
    await b.connect()
    return a, b


def test_frames_come_in_order_with_their_sender_and_by_topic() -> None:
    async def course() -> None:
        hub = MemoryHub()
        a, b = await pair(hub)
        for i in range(5):
            await a.publish(B, "run", bytes([i]))
            await a.publish(B, CONTROL, bytes([100 + i]))
        assert [(x.sender, x.frame) for x in await take(b, "run", 5)] == [(A, bytes([i])) for i in range(5)]
        assert [x.frame[0] for x in await take(b, CONTROL, 5)] == [100, 101, 102, 103, 104]

    run(course)


def test_frames_are_kept_until_they_are_forgotten() -> None:
    async def course() -> None:
        hub = MemoryHub()
        a, b = await pair(hub)
        for i in range(4):
            await a.publish(B, "run", bytes([i]))
        await a.publish(B, CONTROL, b"stays")
        first = await take(b, "run", 4)
        await b.forget("run", first[1].position)
        assert [x.frame[0] for x in await take(b, "run", 2)] == [2, 3]
        await b.forget("run", first[3].position)
        assert hub.kept(B) == 1
        assert (await take(b, CONTROL, 1))[0].frame == b"stays"

    run(course)


def test_one_that_waits_is_woken_from_another_thread() -> None:
    hub = MemoryHub()
    found: list[bytes] = []

    async def reads() -> None:
        b = hub.carrier(B)
        await b.connect()
        found.extend(x.frame for x in await take(b, "run", 3))

    async def writes() -> None:
        a = hub.carrier(A)
        await a.connect()
        for i in range(3):
            await asyncio.sleep(0.02)
            await a.publish(B, "run", bytes([i]))

    reader = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(reads(), 10)))
    reader.start()
    asyncio.run(writes())
    reader.join(10)
    assert found == [b"\0", b"\1", b"\2"]


def test_loss_and_duplication_are_as_told() -> None:
    async def course() -> None:
        lossy = MemoryHub(loss=0.3)
        a, _ = await pair(lossy)
        doubling = MemoryHub(duplication=0.3)
        c, _ = await pair(doubling)
        for _ in range(1000):
            await a.publish(B, "run", b"x")
            await c.publish(B, "run", b"x")
        assert 600 < lossy.kept(B) < 800
        assert 1200 < doubling.kept(B) < 1400

    run(course)


def test_reordered_frames_all_come() -> None:
    async def course() -> None:
        hub = MemoryHub(reorder=0.3)
        a, b = await pair(hub)
        for i in range(100):
            await a.publish(B, "run", bytes([i]))
        got = [x.frame[0] for x in await take(b, "run", 100)]
        assert sorted(got) == list(range(100))
        assert got != sorted(got)

    run(course)


def test_a_delayed_frame_comes_later() -> None:
    async def course() -> None:
        hub = MemoryHub(delay=0.2, seed=1)
        a, b = await pair(hub)
        for i in range(20):
            await a.publish(B, "run", bytes([i]))
        assert hub.kept(B) < 20
        assert sorted(x.frame[0] for x in await take(b, "run", 20)) == list(range(20))

    run(course)


def test_a_cut_loses_what_is_published_and_its_end_is_told() -> None:
    async def course() -> None:
        hub = MemoryHub()
        a, b = await pair(hub)
        told = asyncio.Event()
        a.on_reconnect = told.set
        hub.cut(A)
        await a.publish(B, "run", b"lost")
        await b.publish(A, "run", b"kept")
        assert hub.kept(B) == 0
        hub.mend(A)
        await told.wait()
        assert (await take(a, "run", 1))[0].frame == b"kept"

    run(course)


def test_wiping_loses_everything_and_positions_still_grow() -> None:
    async def course() -> None:
        hub = MemoryHub()
        a, b = await pair(hub)
        await a.publish(B, "run", b"1")
        old = (await take(b, "run", 1))[0].position
        hub.wipe()
        await a.publish(B, "run", b"2")
        await b.forget("run", old)
        assert (await take(b, "run", 1))[0].frame == b"2"

    run(course)


def test_a_hostile_hub_alters_drops_and_forges() -> None:
    async def course() -> None:
        hub = MemoryHub()
        a, b = await pair(hub)

        def alter(sender: str, to: str, topic: str, frame: bytes) -> bytes | None:
            return None if frame == b"drop" else frame + b"!"

        hub.alter = alter
        await a.publish(B, "run", b"drop")
        await a.publish(B, "run", b"said")
        hub.put(B, B, "run", b"forged")
        assert [x.frame for x in await take(b, "run", 2)] == [b"said!", b"forged!"]

    run(course)


def test_closing_ends_what_waits() -> None:
    async def course() -> None:
        hub = MemoryHub()
        _, b = await pair(hub)
        waits = asyncio.create_task(take(b, "run", 1))
        await asyncio.sleep(0.01)
        await b.close()
        with pytest.raises(CarrierClosed):
            await waits
        with pytest.raises(CarrierClosed):
            await b.publish(A, "run", b"x")

    run(course)


def test_what_does_not_fit_a_subject_is_refused() -> None:
    async def course() -> None:
        hub = MemoryHub(max_frame=10)
        a, _ = await pair(hub)
        for to, topic in ((B[:-1], "run"), (B.upper(), "run"), (B, "r.n"), (B, "*"), (B, ">"), (B, "")):
            with pytest.raises(ParameterError):
                await a.publish(to, topic, b"x")
        with pytest.raises(MessageError, match="larger than"):
            await a.publish(B, "run", bytes(11))

    run(course)
