"""What may be wrong between a site and its hub, looked at step by step; every finding says what to do.

Each step needs the one before it: where a name is not known there is no port to try. Nothing secret is sent
before the hub has proven to be the one that the site joined.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from cryptography import x509

from atoll import __version__, randomness
from atoll.crypto.identity import Identity
from atoll.errors import MissingComponent, RunError
from atoll.runtime.doctor.finding import Finding
from atoll.runtime.nats import certificates, connection, subjects, tunnel
from atoll.runtime.nats.connection import HubNotTrusted, HubRefused
from atoll.runtime.nats.invitations import Invitation, shown_chain
from atoll.runtime.nats.nats_carrier import NatsCarrier

PORT_SECONDS: Final = 5.0
SKEW_SECONDS: Final = 60.0
EXPIRY_DAYS: Final = 14.0
SMALLEST_FRAME: Final = 600 << 10
SLOW_MEGABYTES: Final = 1.0
TRIED_BYTES: Final = 8 << 20
LONG_SECONDS: Final = 0.5
_TOPIC: Final = "doctor"
_PROXY: Final = "ask who runs the proxy to let CONNECT to the hub pass; most do so on port 443 alone"


async def examine(
    url: str, identity: Identity | None = None, authority: str = "", pinned: str = ""
) -> list[Finding]:
    """Everything from the hub's name to its speed, until something keeps the rest from being looked at.

    Without an identity, all but what needs a login. ``pinned``: the fingerprint of the hub's authority, where
    its certificate is not known yet.
    """
    found: list[Finding] = []
    for check in (check_name, check_port):
        found.append(await check(url))
        if found[-1].state == "problem":
            return found
    found += await check_certificate(url, authority, pinned)
    if identity is None or any(one.state == "problem" for one in found):
        return found
    return found + await check_connection(url, identity, authority)


async def examine_invitation(text: str) -> list[Finding]:
    """The way to the hub of an invitation, before it is used up: nothing of it leaves."""
    invitation = Invitation.read(text)
    found = await examine(invitation.url, pinned=invitation.authority)
    left = invitation.expires - time.time()
    said = Finding("invitation", "ok", f"to {invitation.url}, good for {left / 3600:.0f} more hours")
    if left <= 0:
        said = Finding("invitation", "problem", "it has expired", "ask the hub's owner for a new one")
    return [said, *found]


async def check_name(url: str) -> Finding:
    """Is the hub's host name known here?"""
    _, host, port = connection.split_url(url)
    if tunnel.proxy_for(host):
        return Finding(
            "name", "ok", f"{host} is looked up by the proxy {tunnel.shown(tunnel.proxy_for(host))}"
        )
    try:
        known = await asyncio.get_running_loop().getaddrinfo(host, port)
    except OSError:
        return Finding(
            "name",
            "problem",
            f"the name {host} is not known on this machine",
            "check the address for a typing error, or ask who runs your network for an entry in its names",
        )
    addresses = sorted({str(one[4][0]) for one in known})
    return Finding("name", "ok", f"{host} is {', '.join(addresses)}")


async def check_port(url: str) -> Finding:
    """Does anything answer at the hub's port?"""
    _, host, port = connection.split_url(url)
    start, proxy = time.monotonic(), tunnel.proxy_for(host)
    try:
        async with asyncio.timeout(PORT_SECONDS):
            _, writer = await tunnel.open_way(host, port)
    except (OSError, TimeoutError) as error:
        return _no_port(host, port, proxy, error)
    writer.transport.abort()
    by = f" through the proxy {tunnel.shown(proxy)}" if proxy else ""
    return Finding("port", "ok", f"port {port} answers after {1000 * (time.monotonic() - start):.0f} ms{by}")


def _no_port(host: str, port: int, proxy: str, error: Exception) -> Finding:
    if proxy:
        return Finding("port", "problem", str(error) or f"the proxy {tunnel.shown(proxy)} is silent", _PROXY)
    if isinstance(error, ConnectionRefusedError):
        return Finding(
            "port",
            "problem",
            f"{host} is there, but nothing listens on its port {port}",
            "ask the hub's owner whether the hub runs (atoll hub status) and on which port",
        )
    return Finding(
        "port",
        "problem",
        f"port {port} of {host} does not answer",
        f"a firewall is likely: it must let outgoing TCP to {host}:{port} pass. "
        "If there is a proxy for the web, name it in HTTPS_PROXY",
    )


async def check_certificate(url: str, authority: str, pinned: str = "") -> list[Finding]:
    """Is whoever answers the hub, and for how long still?"""
    try:
        chain = await shown_chain(url)
    except RunError:
        return [
            Finding(
                "certificate",
                "problem",
                "whoever answers does not speak TLS",
                "check the address and its port; something in between may cut TLS off",
            )
        ]
    leaf = x509.load_pem_x509_certificate(chain[0].encode())
    if pinned:
        authority = next((one for one in chain if certificates.fingerprint(one.encode()) == pinned), "")
        if not authority:
            return [_another_authority(url, leaf)]
    reason = await _why_not_trusted(url, authority)
    if reason is None:
        return [Finding("certificate", "ok", f"the hub proves to be {_host(url)}"), _expiry(leaf)]
    return [_distrusted(url, authority, chain, leaf, reason)]


async def _why_not_trusted(url: str, authority: str) -> str | None:
    _, host, port = connection.split_url(url)
    try:
        async with asyncio.timeout(connection.CONNECT_SECONDS):
            writer = await tunnel.open_tls(host, port, connection.tls_context(authority))
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, TimeoutError) as error:
        return type(error).__name__
    writer.transport.abort()
    return None


def _distrusted(url: str, authority: str, chain: list[str], leaf: x509.Certificate, reason: str) -> Finding:
    now = certificates.now()
    if now > leaf.not_valid_after_utc:
        return Finding(
            "certificate",
            "problem",
            f"the hub's certificate was valid until {leaf.not_valid_after_utc:%Y-%m-%d}",
            "check this machine's clock; if it is right, ask the hub's owner to run atoll hub renew",
        )
    if now < leaf.not_valid_before_utc:
        return Finding(
            "certificate",
            "problem",
            f"the hub's certificate is valid from {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on",
            "this machine's clock is likely wrong: set it",
        )
    pinned = authority and certificates.fingerprint(authority.encode())
    if pinned and pinned not in {certificates.fingerprint(one.encode()) for one in chain}:
        return _another_authority(url, leaf)
    return Finding(
        "certificate",
        "problem",
        f"the certificate that {_host(url)} shows is not accepted: {reason}",
        "ask the hub's owner whether the certificate is for this host name",
    )


def _another_authority(url: str, leaf: x509.Certificate) -> Finding:
    return Finding(
        "certificate",
        "problem",
        f"another authority than the hub's signed what {_host(url)} shows: {leaf.issuer.rfc4514_string()}",
        "something in between reads TLS (a proxy or a virus scanner): have it leave this address alone. "
        "If the hub was set up anew, its owner says so, and sends a new invitation",
    )


def _expiry(leaf: x509.Certificate) -> Finding:
    left = (leaf.not_valid_after_utc - certificates.now()).total_seconds() / 86400
    if left < EXPIRY_DAYS:
        return Finding(
            "expiry",
            "note",
            f"the hub's certificate is valid for {left:.0f} more days",
            "tell the hub's owner: atoll hub renew",
        )
    return Finding("expiry", "ok", f"the hub's certificate is valid for {left:.0f} more days")


# ---- what needs a login ----


async def check_connection(url: str, identity: Identity, authority: str) -> list[Finding]:
    """Login, clock, limits, versions, delay and bandwidth."""
    carrier = NatsCarrier(url, identity, authority, name="atoll doctor", patience=0)
    try:
        async with _connected(carrier):
            found = [Finding("login", "ok", "the hub knows this site"), _limits(carrier)]
            found += await _agent(carrier)
            if any(one.state == "problem" for one in found):
                return found
            return found + await _speed(carrier)
    except HubRefused as error:
        remedy = "join with a new invitation, or ask the hub's owner whether this site was revoked"
        return [Finding("login", "problem", error.message, remedy)]
    except (HubNotTrusted, MissingComponent, RunError) as error:
        return [Finding("login", "problem", error.message, error.hint or "try again")]


@contextlib.asynccontextmanager
async def _connected(carrier: NatsCarrier) -> AsyncIterator[None]:
    try:
        await carrier.connect()
        yield
    finally:
        await carrier.close()


def _limits(carrier: NatsCarrier) -> Finding:
    if carrier.max_frame < SMALLEST_FRAME:
        return Finding(
            "limits",
            "problem",
            f"the hub takes messages of at most {carrier.max_frame >> 10} KB",
            f"have its owner set max_payload to at least {SMALLEST_FRAME >> 10} KB; 1 MB is usual",
        )
    return Finding("limits", "ok", f"the hub takes messages of up to {carrier.max_frame >> 10} KB")


async def _agent(carrier: NatsCarrier, clock: Callable[[], float] = time.time) -> list[Finding]:
    before = clock()
    try:
        told = await carrier.ask("time", subjects.Who(), subjects.Told)
    except RunError as error:
        return [Finding("agent", "problem", error.message, "the hub's owner starts it: atoll hub up")]
    after = clock()
    skew = told.seconds - (before + after) / 2
    found = [Finding("clock", "ok", f"this clock and the hub's differ by {abs(skew):.1f} s")]
    if abs(skew) > SKEW_SECONDS + (after - before):
        side = "behind" if skew > 0 else "ahead of"
        found = [
            Finding(
                "clock",
                "note",
                f"this clock is {abs(skew):.0f} s {side} the hub's",
                "have this machine set its clock by the network (NTP): approvals and certificates expire",
            )
        ]
    return [*found, _versions(told.atoll)]


def _versions(hub: str) -> Finding:
    mine, theirs = (tuple(one.split(".")[:2]) for one in (__version__, hub))
    if mine != theirs:
        return Finding(
            "versions",
            "note",
            f"the hub runs Atoll {hub}, this site {__version__}",
            "neighbouring versions work together; update whichever is older",
        )
    return Finding("versions", "ok", f"hub and site run Atoll {hub}")


async def _speed(carrier: NatsCarrier) -> list[Finding]:
    """Delay and bandwidth there and back, by frames to oneself."""
    token = randomness.fresh_seed()[:8]
    async with asyncio.timeout(120), contextlib.aclosing(carrier.frames(_TOPIC)) as arrivals:

        async def travel(number: int, size: int) -> None:
            head = token + number.to_bytes(4, "big")
            for _ in range(size // SMALLEST_FRAME or 1):
                await carrier.publish(carrier.me, _TOPIC, head + bytes(min(size, SMALLEST_FRAME)))
            left = size // SMALLEST_FRAME or 1
            async for arrived in arrivals:
                left -= arrived.frame[:12] == head
                if left == 0:
                    await carrier.forget(_TOPIC, arrived.position)
                    return

        await travel(0, 1)  # until the way is open
        times = []
        for number in range(1, 6):
            start = time.monotonic()
            await travel(number, 1)
            times.append(time.monotonic() - start)
        start = time.monotonic()
        await travel(6, TRIED_BYTES)
        seconds = time.monotonic() - start
    return [_delay(statistics.median(times)), _bandwidth(TRIED_BYTES / seconds / 1e6)]


def _delay(seconds: float) -> Finding:
    said = f"a message to the hub and back takes {1000 * seconds:.0f} ms"
    if seconds > LONG_SECONDS:
        return Finding(
            "delay", "note", said, "studies of many rounds will be slow; a hub nearer by would help"
        )
    return Finding("delay", "ok", said)


def _bandwidth(megabytes: float) -> Finding:
    said = f"{megabytes:.1f} MB/s to the hub and back"
    if megabytes < SLOW_MEGABYTES:
        remedy = "large studies will take long: atoll review says how many bytes a study sends"
        return Finding("bandwidth", "note", said, remedy)
    return Finding("bandwidth", "ok", said)


def _host(url: str) -> str:
    _, host, port = connection.split_url(url)
    return connection.host_and_port(host, port)
