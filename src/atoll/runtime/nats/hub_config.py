"""What a hub knows, and the NATS configuration that follows from it.

The folder of a hub holds its settings (``hub.json``), its parties and open invitations (``members.json``),
keys and certificates, and two files for the server that are written anew at every change: ``nats.conf`` and
``accounts.conf``. Nothing in it opens a study: frames are sealed between the parties.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from atoll.errors import ParameterError, RunError
from atoll.runtime.nats import subjects
from atoll.runtime.nats.connection import host_and_port
from atoll.runtime.result import write_whole

FORMAT: Final = 1


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one party may use of the hub."""

    connections: int = 16
    """Node, workers and commands of one site together."""
    subscriptions: int = 256
    frame_bytes: int = 1 << 20
    inbox_bytes: int = 1 << 30
    """Frames that wait for one party. Publishing to a full inbox is lost, and resent later."""
    inbox_frames: int = 1_000_000
    outbox_bytes: int = 1 << 30
    """Contents of one party for several receivers. What finds no room is sent to each of them instead."""
    age_seconds: int = 14 * 24 * 3600
    consumers: int = 32


class HubSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What ``atoll hub init`` fixed."""

    atoll_hub: int = FORMAT
    name: str
    """The host name or address under which parties reach the hub."""
    listen: str = "0.0.0.0"
    port: int = 4222
    web_port: int = 0
    """A port for wss:// (clients and leaf nodes); 0 for none."""
    certificate: str = ""
    """A given certificate chain (PEM); empty where the hub is its own authority."""
    key: str = ""
    server: str = ""
    """Where another NATS server is used: its address. Empty: the hub starts its own."""
    reload: tuple[str, ...] = ()
    """The command by which another server reads ``accounts.conf`` again."""
    authority: str = ""
    """The PEM file that vouches for a given certificate; empty for the system's."""
    limits: Limits = Limits()

    @property
    def own_authority(self) -> bool:
        return not self.certificate and not self.server

    @property
    def url(self) -> str:
        """What parties connect to."""
        if self.server:
            return self.server
        return f"tls://{host_and_port(self.name, self.port)}"

    @property
    def web_url(self) -> str:
        """The same through a port for web traffic; empty where there is none."""
        return f"wss://{host_and_port(self.name, self.web_port)}" if self.web_port else ""


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A party that joined."""

    name: str
    public: bytes
    login: str
    """The public NKey."""
    joined: int
    expires: int = 0
    """Seconds since 1970 after which the hub refuses it; 0 for never."""


class Invited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation that may still be redeemed."""

    name: str
    login: str
    expires: int
    party_expires: int = 0


class Members(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everyone the hub lets in."""

    agent: str
    """The public NKey of the hub's own agent."""
    system: str = ""
    """The public NKey that may ask the hub's own server who is connected."""
    parties: dict[str, Member] = {}
    """By fingerprint."""
    invited: dict[str, Invited] = {}
    """By the invitation's public name."""
    revoked: dict[str, int] = {}
    """Fingerprints that were shut out, and when. They cannot join again."""
    used: dict[str, int] = {}
    """Invitations that were redeemed or withdrawn, and when."""

    def current(self, now: float) -> Members:
        """Without whoever's time is over."""
        if not self.invited and not any(one.expires for one in self.parties.values()):
            return self
        return msgspec.structs.replace(
            self,
            parties={k: v for k, v in self.parties.items() if not v.expires or v.expires > now},
            invited={k: v for k, v in self.invited.items() if v.expires > now},
        )


class HubFolder:
    """A hub's folder, opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.settings = self._settings()

    def _settings(self) -> HubSettings:
        try:
            settings = msgspec.json.decode((self.folder / "hub.json").read_bytes(), type=HubSettings)
        except (FileNotFoundError, NotADirectoryError):
            raise ParameterError(
                f"there is no hub in {self.folder}",
                hint=f"make one: atoll hub init --folder {self.folder} ...",
            ) from None
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise ParameterError(f"{self.folder / 'hub.json'} cannot be used: {error}") from None
        if settings.atoll_hub > FORMAT:
            raise ParameterError(
                f"the hub in {self.folder} has format {settings.atoll_hub}; this version reads {FORMAT}",
                hint="use the newer version that wrote it",
            )
        return settings

    def path(self, name: str) -> Path:
        """A file of the hub's."""
        return self.folder / name

    # ---- members ----

    def members(self) -> Members:
        """Everyone the hub lets in, as on disk now."""
        try:
            return msgspec.json.decode(self.path("members.json").read_bytes(), type=Members)
        except (FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
            raise RunError(
                f"{self.path('members.json')} is missing or damaged",
                hint="restore the hub's folder from its backup",
            ) from None

    def members_stamp(self) -> tuple[int, int]:
        """Something that differs whenever the members were written; every time makes a new file."""
        try:
            stat = self.path("members.json").stat()
        except FileNotFoundError:
            return 0, -1
        return stat.st_mtime_ns, stat.st_ino

    @contextmanager
    def changing(self) -> Iterator[MemberChange]:
        """Change the members, one process at a time; written, with the server's files, unless it raises."""
        handle = os.open(self.path("members.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            change = MemberChange(self.members())
            yield change
            self.write_members(change.members)
        finally:
            os.close(handle)

    def write_members(self, members: Members) -> None:
        """Members and what the server reads of them. The members are first: the rest follows from them."""
        write_whole(self.path("members.json"), msgspec.json.format(msgspec.json.encode(members)))
        self.write_server_files(members)

    def write_server_files(self, members: Members) -> None:
        """``nats.conf`` and ``accounts.conf``."""
        write_whole(
            self.path("accounts.conf"), accounts(members.current(time.time()), self.settings.limits).encode()
        )
        if not self.settings.server:
            write_whole(self.path("nats.conf"), server(self).encode())


class MemberChange:
    """Members while they are changed."""

    def __init__(self, members: Members) -> None:
        self.members = members

    def set(self, **parts: object) -> None:
        """Replace parts of the members."""
        self.members = msgspec.structs.replace(self.members, **parts)


# ---- the server's configuration ----


def _q(text: str) -> str:
    return json.dumps(text)


def _users(login: str, publish: list[str]) -> str:
    allowed = ", ".join(map(_q, publish))
    return (
        f"users: [{{ nkey: {login}, permissions: {{ publish: {{ allow: [{allowed}] }},"
        f' subscribe: {{ allow: ["{subjects.INBOX}.>"] }} }} }}]'
    )


def _imports(services: list[str]) -> str:
    each = ", ".join(
        f"{{ service: {{ account: {subjects.HUB_ACCOUNT}, subject: {_q(one)} }} }}" for one in services
    )
    return f"imports: [{each}]"


_READ_CONTENTS: Final = f"$JS.API.DIRECT.GET.*.{subjects.content('*', '*', '*', '*')}"


def _party_services(party: str) -> list[str]:
    return [
        subjects.inbox("*", party, "*"),
        subjects.ask(party, "*"),
        subjects.content(party, "*", "*", "*"),
        subjects.next_frames(party, "*"),
        _READ_CONTENTS,
    ]


def accounts(members: Members, limits: Limits) -> str:
    """Who may do what: one account per party and invitation, and the hub's, which alone holds streams."""
    # Only this file says who imports what of these. A request for frames is answered by many messages.
    offers = (*_party_services("*")[:3], _READ_CONTENTS, subjects.redeem("*"))
    exports = [f"{{ service: {_q(one)} }}" for one in offers]
    exports.append(f"{{ service: {_q('$JS.API.CONSUMER.MSG.NEXT.*.*')}, response: stream }}")
    others = []
    if members.system:
        others.append(f"  SYS {{ users: [{{ nkey: {members.system} }}] }}")
    for party, member in sorted(members.parties.items()):
        services, account = _party_services(party), subjects.party_account(party)
        others.append(
            f"  {_q(account)} {{\n"
            f"    limits: {{ max_connections: {limits.connections},"
            f" max_subscriptions: {limits.subscriptions}, max_payload: {limits.frame_bytes} }}\n"
            f"    {_users(member.login, services)}\n    {_imports(services)}\n  }}"
        )
    for name, invited in sorted(members.invited.items()):
        service, account = subjects.redeem(name), subjects.invitation_account(name)
        others.append(
            f"  {_q(account)} {{\n"
            "    limits: { max_connections: 2, max_subscriptions: 8, max_payload: 4096 }\n"
            f"    {_users(invited.login, [service])}\n    {_imports([service])}\n  }}"
        )
    offered = ",\n      ".join(exports)
    return (
        "# Written by atoll hub; changes are lost.\n"
        + ("system_account: SYS\n" if members.system else "")
        + "accounts {\n"
        f"  {subjects.HUB_ACCOUNT} {{\n    jetstream: enabled\n    users: [{{ nkey: {members.agent} }}]\n"
        f"    exports: [\n      {offered}\n    ]\n  }}\n" + "\n".join(others) + "\n}\n"
    )


def server(hub: HubFolder) -> str:
    """The configuration of the hub's own server.

    Room for full inboxes is promised to more parties than the disk may hold (``max_file``): JetStream would
    otherwise set each inbox's limit aside when it is made.
    """
    settings = hub.settings
    tls = (
        f"tls {{ cert_file: {_q(str(hub.path('server.pem')))}, key_file: {_q(str(hub.path('server.key')))},"
        ' min_version: "1.2", timeout: 10'
    )
    web = ""
    if settings.web_port:
        web = (
            f"websocket {{\n  host: {_q(settings.listen)}\n  port: {settings.web_port}\n"
            f"  compression: false\n  {tls} }}\n}}\n"
        )
    return (
        "# Written by atoll hub; changes are lost.\n"
        f'server_name: "atoll-hub"\nhost: {_q(settings.listen)}\nport: {settings.port}\n'
        f"{tls}, handshake_first: true }}\n{web}"
        f"jetstream {{ store_dir: {_q(str(hub.path('storage')))}, max_mem: 64MB, max_file: 100TB }}\n"
        f"max_payload: {settings.limits.frame_bytes}\nmax_control_line: 4096\nmax_connections: 10000\n"
        "max_pending: 32MB\n"
        'write_deadline: "10s"\nping_interval: "20s"\nping_max: 3\nauthorization { timeout: 10 }\n'
        f"pid_file: {_q(str(hub.path('server.pid')))}\nlog_file: {_q(str(hub.path('server.log')))}\n"
        "logfile_size_limit: 16MB\nlogfile_max_num: 8\n"
        "include accounts.conf\n"
    )
