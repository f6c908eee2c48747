"""One connection to a hub: TLS from the first byte, a login by key, and errors that say what to do.

Addresses are ``tls://host:port`` or, through what only lets web traffic pass, ``wss://host:port``. There is
no plain form: the login signs a number that the server chose, which somebody in between could pass on.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import nkeys
from nats import errors as nats_errors
from nats.aio.client import Client

from atoll.crypto.identity import Identity
from atoll.errors import MissingComponent, ParameterError, RunError
from atoll.runtime.nats.tunnel import Tunnel

CONNECT_SECONDS: Final = 10
PING_SECONDS: Final = 5
PENDING_BYTES: Final = 8 << 20
"""How much may wait to be written before publishing waits as well."""

DEFAULT_PORT: Final = 4222
DEFAULT_WEB_PORT: Final = 443
_PORTS: Final = {"tls": DEFAULT_PORT, "wss": DEFAULT_WEB_PORT}
_LOGIN: Final = "nats user"


class _Quiet(logging.Filter):
    """Without what asyncio says whenever a server ends a TLS connection: nobody can do anything about it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "eof_received() has no effect" not in str(record.msg)


_QUIET: Final = _Quiet()


class HubUnreachable(RunError):
    """The hub does not answer; it may later."""


class HubRefused(RunError):
    """The hub does not know this login."""


class HubNotTrusted(RunError):
    """Whoever answers does not prove to be the hub."""


class Login:
    """An NKey: how NATS knows a user. Its text shows the public half only."""

    def __init__(self, raw: bytes) -> None:
        self.seed: str = nkeys.encode_seed(raw, nkeys.PREFIX_BYTE_USER).decode()
        self.public: str = nkeys.from_seed(bytearray(self.seed.encode())).public_key.decode()

    def __repr__(self) -> str:
        return f"<Login {self.public}>"

    @classmethod
    def of(cls, identity: Identity) -> Login:
        """A party's login, which follows from its identity: there is nothing more to keep."""
        return cls(identity.derive(_LOGIN))


def is_login(text: str) -> bool:
    """Whether this is the public half of a user's NKey, its checksum included."""
    if not re.fullmatch(r"U[A-Z2-7]{55}", text):
        return False
    raw = base64.b32decode(text)
    return raw[0] == nkeys.PREFIX_BYTE_USER and bool(nkeys.crc16_checksum(raw[:-2]) == raw[-2:])


def tls_context(authority: str = "") -> ssl.SSLContext:
    """What a hub must prove: a certificate for its name from ``authority`` (PEM), else from the system's."""
    try:
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError:
        raise ParameterError("the hub's certificate authority is not a PEM certificate") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def split_url(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a hub's address."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in _PORTS or not parts.hostname or port == -1 or parts.path.strip("/"):
        raise ParameterError(f"{url!r} is not a hub's address", hint="tls://HOST:PORT or wss://HOST:PORT")
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def host_and_port(host: str, port: int) -> str:
    """As it stands in an address: IPv6 hosts in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def connect(
    url: str,
    login: Login,
    context: ssl.SSLContext,
    *,
    name: str = "",
    certified: str = "",
    on_closed: Callable[[], Awaitable[None]] | None = None,
    on_error: Callable[[Exception], Awaitable[None]] | None = None,
) -> Client:
    """A connection, made once: what keeps one up makes another.

    ``certified`` is the name that the certificate must bear, where it is not the address's.
    """
    logging.getLogger("asyncio").addFilter(_QUIET)  # the same one again does nothing
    scheme, host, port = split_url(url)
    if scheme == "wss":
        _need_aiohttp()
    seen: list[Exception] = []

    async def note(error: Exception) -> None:
        seen.append(error)
        if on_error is not None:
            await on_error(error)

    client = Client()
    if scheme == "tls":
        client._transport = Tunnel()
    try:
        await client.connect(
            f"{scheme}://{host_and_port(host, port)}",
            name=name or None,
            nkeys_seed_str=login.seed,
            tls=context,
            tls_hostname=certified or None,
            tls_handshake_first=scheme == "tls",
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=CONNECT_SECONDS,
            ping_interval=PING_SECONDS,
            pending_size=PENDING_BYTES,
            closed_cb=on_closed,
            error_cb=note,
        )
    except (OSError, nats_errors.Error, TimeoutError, asyncio.IncompleteReadError) as error:
        await abandon(client)
        raise _explained(
            url, seen[-1] if isinstance(error, nats_errors.NoServersError) and seen else error
        ) from None
    except BaseException:
        await abandon(client)
        raise
    heed_cancel()
    return client


async def abandon(client: Client) -> None:
    """Close a connection, whatever state it is in, without waiting for the other side."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(), 2)
    transport: Any = getattr(client, "_transport", None)
    for writer in ("_io_writer", "_bare_io_writer"):
        stream = getattr(transport, writer, None)
        if stream is not None:
            stream.transport.abort()
    heed_cancel()


def heed_cancel() -> None:
    """To be called after the client was awaited, which swallows a cancellation at the wrong moment."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _need_aiohttp() -> None:
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise MissingComponent("wss:// needs the package aiohttp", hint='pip install "atoll[wss]"') from None


def _explained(url: str, error: BaseException) -> RunError:
    """What went wrong, in words; the cause may hold what the other side said and is left out."""
    cause = getattr(error, "certificate_error", None) or error.__cause__ or error
    for one in (error, cause):
        if isinstance(one, ssl.SSLCertVerificationError):
            return HubNotTrusted(
                f"the certificate shown at {url} is not the hub's: {one.verify_message}",
                hint="a proxy that reads TLS, a wrong address, or a hub set up anew; atoll doctor says which",
            )
    if "authorization" in str(error).lower() or "authentication" in str(error).lower():
        return HubRefused(
            f"the hub at {url} does not know this site's key",
            hint="join with an invitation, or ask the hub's owner whether the site was revoked",
        )
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return HubUnreachable(
        f"the hub at {url} cannot be reached: {reason}", hint="atoll doctor looks for the cause"
    )
