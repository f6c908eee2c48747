"""A real hub for tests: nats-server with TLS in a folder of the test's, and identities that it knows."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from atoll.crypto.identity import Identity
from atoll.errors import MissingComponent
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.carrier import Arrived, Carrier
from atoll.runtime.nats.connection import Login
from atoll.runtime.nats.hub_config import HubFolder, HubSettings
from atoll.runtime.nats.nats_carrier import NatsCarrier
from atoll.runtime.nats.site import HubAddress

T = TypeVar("T")


def needs_server() -> None:
    """A hub without its server cannot be tested; where everything must run, that is a failure."""
    try:
        hubs.find_server()
    except MissingComponent:
        import os

        if os.environ.get("CI") or os.environ.get("ATOLL_REQUIRE_GO") == "1":
            raise
        pytest.skip("no nats-server on this machine")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def make_hub(folder: Path, **settings: Any) -> HubFolder:
    """A hub on this machine's loopback."""
    needs_server()
    chosen = {"name": "localhost", "listen": "127.0.0.1", "port": free_port(), **settings}
    return hubs.make(folder, HubSettings(**chosen))


def admit(hub: HubFolder, identities: Iterable[Identity]) -> None:
    """Let identities in, as if they had joined."""
    for number, identity in enumerate(identities):
        hubs.add_party(
            hub, f"site {identity.fingerprint[:8]}-{number}", identity.public, Login.of(identity).public
        )


def address(hub: HubFolder, *, web: bool = False) -> HubAddress:
    """What joining would have left behind."""
    return HubAddress(hub.settings.web_url if web else hub.settings.url, hubs.authority(hub))


def carrier(hub: HubFolder, identity: Identity, *, web: bool = False) -> NatsCarrier:
    way = address(hub, web=web)
    return NatsCarrier(way.url, identity, way.ca)


@contextlib.asynccontextmanager
async def connected(*carriers: NatsCarrier) -> AsyncIterator[tuple[NatsCarrier, ...]]:
    """Carriers that are closed at the end, whatever happens."""
    try:
        for one in carriers:
            await one.connect()
        yield carriers
    finally:
        for one in carriers:
            await one.close()


@contextlib.asynccontextmanager
async def running(hub: HubFolder) -> AsyncIterator[hubs.RunningHub]:
    """The hub's server and agent, until the block ends."""
    up = hubs.RunningHub(hub)
    task = asyncio.create_task(up.run())
    answers = asyncio.create_task(up.answers.wait())
    try:
        await asyncio.wait({task, answers}, timeout=120, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        assert up.answers.is_set(), "the hub did not start within 120 seconds"
        yield up
    finally:
        answers.cancel()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def take(carrier: Carrier, topic: str, count: int) -> list[Arrived]:
    """The next frames of a topic."""
    found: list[Arrived] = []
    async with contextlib.aclosing(carrier.frames(topic)) as arrivals:
        async for arrived in arrivals:
            found.append(arrived)
            if len(found) == count:
                break
    return found


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 120) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


def run(course: Coroutine[Any, Any, None], seconds: float = 300) -> None:
    """Run a test's course; one that hangs fails."""
    asyncio.run(asyncio.wait_for(course, seconds))


@contextlib.contextmanager
def in_background(up: contextlib.AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What runs on an event loop, for a test that has none: on one in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    entered = asyncio.run_coroutine_threadsafe(up.__aenter__(), loop).result(180)
    try:
        yield entered
    finally:
        asyncio.run_coroutine_threadsafe(up.__aexit__(None, None, None), loop).result(180)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
