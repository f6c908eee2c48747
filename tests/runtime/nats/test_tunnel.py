"""Through an HTTP proxy: joining, frames and the doctor; and a proxy that reads along."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.hub import connected, make_hub, run, running, take

from atoll.crypto.identity import Identity
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats import tunnel
from atoll.runtime.nats.connection import HubUnreachable
from atoll.runtime.nats.doctor import examine
from atoll.runtime.nats.invitations import join
from atoll.runtime.nats.nats_carrier import NatsCarrier

A = Identity(b"a" * 32)


@contextlib.asynccontextmanager
async def http_proxy(allowed: int, seen: list[bytes], password: str = "") -> AsyncIterator[int]:
    """A proxy that passes CONNECT to one port on, by whatever name."""
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                target.write(data)
        target.transport.abort()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        wanted = base64.b64encode(password.encode())
        if password and b"Proxy-Authorization: Basic " + wanted not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        if f":{allowed} HTTP".encode() not in head:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        there, back = await asyncio.open_connection("127.0.0.1", allowed)
        writers.append(back)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, target in ((reader, back), (there, writer)):
            tasks.add(asyncio.create_task(forward(source, target)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def test_a_site_behind_a_proxy_joins_and_talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        # No name server of this machine knows the hub: only the proxy does.
        hub = make_hub(tmp_path / "hub", name="hub.example")
        seen: list[bytes] = []
        async with running(hub), http_proxy(hub.settings.port, seen, "me:pass word") as port:
            monkeypatch.setenv("https_proxy", f"http://me:pass%20word@127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            made = hubs.invite(hub, "a")
            hubs.reload(hub)
            way = await join(str(made), A)
            async with connected(NatsCarrier(way.url, A, way.ca)) as (a,):
                await a.publish(A.fingerprint, "run1", b"through the proxy")
                assert (await take(a, "run1", 1))[0].frame == b"through the proxy"
            found = await examine(way.url, A, way.ca)
            assert {one.state for one in found} == {"ok"}, found
            assert all("pass word" not in one.detail and "pass%20word" not in one.detail for one in found)
        assert seen
        assert all(one.startswith(f"CONNECT hub.example:{hub.settings.port} ".encode()) for one in seen)

    run(course())


def test_a_proxy_that_refuses_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        seen: list[bytes] = []
        async with http_proxy(1, seen) as port:
            monkeypatch.setenv("https_proxy", f"http://me:hidden@127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "")
            with pytest.raises(HubUnreachable, match="it answered 403") as caught:
                await NatsCarrier("tls://hub.example:4222", A, patience=0).connect()
            assert "hidden" not in str(caught.value)
            found = await examine("tls://hub.example:4222", A)
            assert found[-1].state == "problem"
            assert "443" in str(found[-1].remedy)
            assert "hidden" not in found[-1].detail

    run(course())


def test_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert tunnel.proxy_for("hub.example") == ""
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    assert tunnel.proxy_for("hub.example") == "http://proxy.example:3128"
    assert tunnel.shown("http://a:b@proxy.example:3128") == "proxy.example:3128"
    monkeypatch.setenv("no_proxy", "hub.example")
    assert tunnel.proxy_for("hub.example") == ""
