"""The way out of a site: directly, or through the HTTP proxy that ``HTTPS_PROXY`` names.

A proxy is asked to pass a connection on (``CONNECT``); TLS is spoken with the hub itself, so the proxy sees
where the connection goes, and no more. One that reads along shows a certificate that is not the hub's.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import urllib.request
from typing import Any, Final
from urllib.parse import ParseResult, unquote, urlsplit

from nats.aio.transport import TcpTransport

READ_BYTES: Final = 1 << 20


def proxy_for(host: str) -> str:
    """The proxy by which a host is reached, as ``http://host:port``; empty for none."""
    given = urllib.request.getproxies().get("https", "")
    if not given or urllib.request.proxy_bypass(host):
        return ""
    return given if "://" in given else f"http://{given}"


def shown(proxy: str) -> str:
    """A proxy's address without the password that may stand in it."""
    parts = urlsplit(proxy)
    return f"{parts.hostname}:{parts.port or 80}"


async def open_way(
    host: str, port: int, limit: int = 1 << 16
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A TCP connection to a host, through the site's proxy if there is one."""
    proxy = proxy_for(host)
    if not proxy:
        return await asyncio.open_connection(host, port, limit=limit)
    parts = urlsplit(proxy)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, limit=limit)
    try:
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{_login(parts)}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.transport.abort()
        raise ConnectionError(f"the proxy {shown(proxy)} does not speak HTTP") from None
    status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
    if status != [b"200"]:
        writer.transport.abort()
        code = status[0].decode(errors="replace") if status else "nothing"
        raise ConnectionError(f"the proxy {shown(proxy)} does not pass on to port {port}: it answered {code}")
    return reader, writer


def _login(parts: Any) -> str:
    if not parts.username:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


class Tunnel(TcpTransport):
    """The client's TCP transport, by :func:`open_way`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        assert uri.hostname is not None
        assert uri.port is not None
        async with asyncio.timeout(connect_timeout):
            reader, writer = await open_way(uri.hostname, uri.port, buffer_size)
        self._bare_io_reader = self._io_reader = reader
        self._bare_io_writer = self._io_writer = writer

    async def connect_tls(
        self, uri: str | ParseResult, ssl_context: ssl.SSLContext, buffer_size: int, connect_timeout: int
    ) -> None:
        await super().connect_tls(uri, ssl_context, buffer_size, connect_timeout)
        # The client would stop and go on reading every 64 KB; frames are larger.
        assert self._io_reader is not None
        self._io_reader._limit = READ_BYTES  # type: ignore[attr-defined]

    async def read(self, buffer_size: int) -> bytes:
        del buffer_size
        assert self._io_reader is not None
        return await self._io_reader.read(READ_BYTES)

    def __bool__(self) -> bool:
        return True  # before it is connected too: the client would otherwise make one of its own


async def open_tls(host: str, port: int, context: ssl.SSLContext) -> asyncio.StreamWriter:
    """TLS with a host, through the site's proxy if there is one."""
    _, writer = await open_way(host, port)
    try:
        await writer.start_tls(context, server_hostname=host)
    except BaseException:
        writer.transport.abort()
        raise
    return writer
