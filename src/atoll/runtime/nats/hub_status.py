"""What a hub's owner wants to know: who is at the hub, who is connected, what waits for whom, what is due."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.js import errors as js_errors

from atoll.errors import RunError
from atoll.runtime.nats import certificates, connection, hub, subjects
from atoll.runtime.nats.hub_config import HubFolder

_SECONDS = 5.0


@dataclass(frozen=True)
class PartyStatus:
    """One party."""

    name: str
    fingerprint: str
    connections: int | None
    """None where the server does not say."""
    waiting_frames: int | None
    waiting_bytes: int | None
    expires: int


@dataclass(frozen=True)
class HubStatus:
    """The hub as it is now."""

    url: str
    web_url: str
    runs: bool
    trouble: str
    """Why the server could not be asked; empty where it could."""
    server: str
    certificate_days: float | None
    parties: list[PartyStatus]
    invitations: list[tuple[str, str, int]]
    """Name of the party, of the invitation, and when it expires."""
    revoked: int


async def status(folder: HubFolder) -> HubStatus:
    """Ask the files, and the server if it runs."""
    members = folder.members().current(time.time())
    counts: dict[str, int] | None = None
    waiting: dict[str, tuple[int, int]] = {}
    trouble = version = ""
    try:
        client = await hub.connect_locally(folder)
        try:
            told = client.connected_server_version
            version = f"{told.major}.{told.minor}.{told.patch}"
            for party in members.parties:
                waiting[party] = await _waiting(client, party)
        finally:
            await connection.abandon(client)
        if not folder.settings.server:
            counts = await _connections(folder)
    except RunError as error:
        trouble = error.message
    except (nats_errors.Error, js_errors.Error, OSError, TimeoutError) as error:
        trouble = f"the server does not answer: {type(error).__name__}"
    return HubStatus(
        url=folder.settings.url,
        web_url=folder.settings.web_url,
        runs=bool(version),
        trouble=trouble,
        server=version,
        certificate_days=_days(folder.path("server.pem")),
        parties=[
            PartyStatus(
                name=one.name,
                fingerprint=party,
                connections=None if counts is None else counts.get(subjects.party_account(party), 0),
                waiting_frames=waiting[party][0] if party in waiting else None,
                waiting_bytes=waiting[party][1] if party in waiting else None,
                expires=one.expires,
            )
            for party, one in sorted(members.parties.items(), key=lambda item: item[1].name)
        ],
        invitations=[(one.name, name, one.expires) for name, one in members.invited.items()],
        revoked=len(members.revoked),
    )


def _days(certificate: Path) -> float | None:
    return certificates.days_left(certificate.read_bytes()) if certificate.exists() else None


async def _waiting(client: Client, party: str) -> tuple[int, int]:
    try:
        info = await client.jetstream(timeout=_SECONDS).stream_info(subjects.stream(party))
    except js_errors.NotFoundError:
        return 0, 0
    return info.state.messages, info.state.bytes


async def _connections(folder: HubFolder) -> dict[str, int]:
    """How many connections each account has."""
    client = await hub.connect_locally(folder, system=True)
    try:
        asked = msgspec.json.encode({"auth": True, "limit": 65536})
        told = await asyncio.wait_for(
            client.request("$SYS.REQ.SERVER.PING.CONNZ", asked, timeout=_SECONDS), _SECONDS
        )
    finally:
        await connection.abandon(client)
    answer: Any = msgspec.json.decode(told.data)
    found: dict[str, int] = {}
    for one in answer.get("data", {}).get("connections", []):
        account = str(one.get("account", ""))
        found[account] = found.get(account, 0) + 1
    return found
