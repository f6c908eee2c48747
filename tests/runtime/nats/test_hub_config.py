"""What a hub's server is told, word for word, and whom the hub lets in: no server is started here."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from atoll.crypto.identity import Identity
from atoll.errors import AtollError, ParameterError
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats import subjects
from atoll.runtime.nats.agent import Agent, inbox_config, outbox_config
from atoll.runtime.nats.connection import Login
from atoll.runtime.nats.hub_config import (
    HubFolder,
    HubSettings,
    Invited,
    Limits,
    Member,
    Members,
    accounts,
    server,
)

A = "ab" * 32
NORTH, SOUTH = Identity.new(), Identity.new()

ACCOUNTS = """\
# Written by atoll hub; changes are lost.
system_account: SYS
accounts {
  HUB {
    jetstream: enabled
    users: [{ nkey: UAGENT }]
    exports: [
      { service: "a.in.*.*.*" },
      { service: "a.agent.*.*" },
      { service: "a.out.*.*.*.*" },
      { service: "$JS.API.DIRECT.GET.*.a.out.*.*.*.*" },
      { service: "a.join.*" },
      { service: "$JS.API.CONSUMER.MSG.NEXT.*.*", response: stream }
    ]
  }
  SYS { users: [{ nkey: USYS }] }
  "P-{A}" {
    limits: { max_connections: 16, max_subscriptions: 256, max_payload: 1048576 }
    users: [{ nkey: UNORTH, permissions: { publish: { allow: [{ALLOWED}] }, {LISTENS} } }]
    imports: [{IMPORTED}]
  }
  "I-0f1e" {
    limits: { max_connections: 2, max_subscriptions: 8, max_payload: 4096 }
    users: [{ nkey: UINV, permissions: { publish: { allow: ["a.join.0f1e"] }, {LISTENS} } }]
    imports: [{ service: { account: HUB, subject: "a.join.0f1e" } }]
  }
}
"""
SERVICES = (
    f"a.in.*.{A}.*",
    f"a.agent.{A}.*",
    f"a.out.{A}.*.*.*",
    f"$JS.API.CONSUMER.MSG.NEXT.IN-{A}.*",
    "$JS.API.DIRECT.GET.*.a.out.*.*.*.*",
)
SERVER = """\
# Written by atoll hub; changes are lost.
server_name: "atoll-hub"
host: "0.0.0.0"
port: 4222
{TLS}, handshake_first: true }
websocket {
  host: "0.0.0.0"
  port: 443
  compression: false
  {TLS} }
}
jetstream { store_dir: "HUB/storage", max_mem: 64MB, max_file: 100TB }
max_payload: 1048576
max_control_line: 4096
max_connections: 10000
max_pending: 32MB
write_deadline: "10s"
ping_interval: "20s"
ping_max: 3
authorization { timeout: 10 }
pid_file: "HUB/server.pid"
log_file: "HUB/server.log"
logfile_size_limit: 16MB
logfile_max_num: 8
include accounts.conf
"""
TLS = 'tls { cert_file: "HUB/server.pem", key_file: "HUB/server.key", min_version: "1.2", timeout: 10'


@pytest.fixture
def hub(tmp_path: Path) -> HubFolder:
    return hubs.make(tmp_path / "hub", HubSettings(name="hub.example", web_port=443))


# ---- the server's files ----


def test_a_party_may_publish_as_itself_and_read_what_is_its_own() -> None:
    """Every right that anybody has at a hub."""
    members = Members(
        "UAGENT", "USYS", {A: Member("north", b"", "UNORTH", 1)}, {"0f1e": Invited("south", "UINV", 1 << 40)}
    )
    imported = (f'{{ service: {{ account: HUB, subject: "{one}" }} }}' for one in SERVICES)
    due = ACCOUNTS.replace("{ALLOWED}", ", ".join(map(json.dumps, SERVICES)))
    due = due.replace("{IMPORTED}", ", ".join(imported)).replace("{A}", A)
    due = due.replace("{LISTENS}", 'subscribe: { allow: ["_INBOX.>"] }')
    assert accounts(members, Limits()) == due


def test_a_server_listens_with_tls_alone(hub: HubFolder) -> None:
    assert server(hub).replace(str(hub.folder), "HUB") == SERVER.replace("{TLS}", TLS)


def test_nobody_whose_time_is_over_stands_in_the_servers_files(hub: HubFolder) -> None:
    now = int(time.time())
    parties = {A: Member("north", b"", "UNORTH", 1, now - 5), "cd" * 32: Member("south", b"", "USOUTH", 1)}
    hub.write_members(Members("UAGENT", parties=parties, invited={"0f1e": Invited("west", "UWEST", now - 5)}))
    written = hub.path("accounts.conf").read_text()
    assert "USOUTH" in written
    assert "UNORTH" not in written
    assert "UWEST" not in written


def test_streams_take_what_a_party_may_use_and_no_more() -> None:
    """A full one refuses, nothing is deleted but by its owner's wish, and nobody asks for frames past it."""
    common = {
        "max_bytes": 1 << 30,
        "max_msg_size": 1 << 20,
        "max_age": 14 * 86400 * 10**9,
        "discard": "new",
        "storage": "file",
        "deny_delete": True,
        "num_replicas": 1,
    }
    inbox = {
        "name": f"IN-{A}",
        "subjects": [f"a.in.{A}.*.*"],
        "max_msgs": 1_000_000,
        "max_consumers": 32,
        "allow_direct": False,
    }
    outbox = {
        "name": f"OUT-{A}",
        "subjects": [f"a.out.{A}.*.*.*"],
        "max_consumers": 1,
        "allow_direct": True,
    }
    for made, due in ((inbox_config(A, Limits()), inbox), (outbox_config(A, Limits()), outbox)):
        told = made.as_dict()
        wanted = common | due
        assert {name: getattr(told[name], "value", told[name]) for name in wanted} == wanted


# ---- invitations ----


@pytest.mark.parametrize(("days", "good"), [(0, False), (-1, False), (0.01, True), (365, True), (366, False)])
def test_an_invitation_is_for_a_year_at_the_most(days: float, good: bool, hub: HubFolder) -> None:
    if not good:
        with pytest.raises(ParameterError, match="more than 0 and at most 365 days"):
            hubs.invite(hub, "north", days=days)
        assert hub.members().invited == {}
        return
    made = hubs.invite(hub, "north", days=days, party_days=3)
    (noted,) = hub.members().invited.values()
    assert made.expires == noted.expires
    assert abs(made.expires - (time.time() + 86400 * days)) < 60
    assert abs(noted.party_expires - (time.time() + 86400 * 3)) < 60
    assert len(made.authority) == 64


@pytest.mark.parametrize("name", ["", " north", "north\n", "a/b", "x" * 65, "nörd", '"'])
def test_a_partys_name_is_plain(name: str, hub: HubFolder) -> None:
    with pytest.raises(ParameterError, match="cannot be a party's name"):
        hubs.invite(hub, name)


def test_one_name_is_one_party(hub: HubFolder) -> None:
    hubs.invite(hub, "north")
    with pytest.raises(ParameterError, match="there is a party 'north', or an open invitation"):
        hubs.invite(hub, "north")
    hubs.add_party(hub, "south", SOUTH.public, Login.of(SOUTH).public)
    with pytest.raises(ParameterError, match="there is a party 'south'"):
        hubs.invite(hub, "south")


def test_who_was_shut_out_is_not_let_in_again(hub: HubFolder) -> None:
    hubs.add_party(hub, "north", NORTH.public, Login.of(NORTH).public)
    assert hubs.revoke(hub, "north") == "shut out"
    assert hub.members().parties == {}
    assert NORTH.public.fingerprint in hub.members().revoked
    with pytest.raises(AtollError, match="was revoked at this hub"):
        hubs.add_party(hub, "north", NORTH.public, Login.of(NORTH).public)
    made = hubs.invite(hub, "south")
    assert hubs.revoke(hub, "south") == "withdrew the invitation"
    assert hub.members().invited == {}
    assert made.name in hub.members().used


def test_a_hub_is_made_once(hub: HubFolder) -> None:
    """A second one in its folder would have another authority, and shut everybody out."""
    with pytest.raises(ParameterError, match="there is a hub"):
        hubs.make(hub.folder, HubSettings(name="other.example"))


def test_the_hubs_logins_are_two(hub: HubFolder) -> None:
    """Whoever asks the server about connections has no right on streams."""
    members = hub.members()
    assert members.agent == hubs.agent_login(hub).public
    assert members.system == hubs.agent_login(hub, system=True).public
    assert members.agent != members.system


# ---- who redeems one ----


class Client:
    """Stands for the agent's connection, which admission does not use."""

    def jetstream(self, **_: Any) -> None:
        return None


def agent_of(hub: HubFolder) -> Agent:
    async def nothing() -> None:
        return

    return Agent(hub, Client(), nothing)  # type: ignore[arg-type]


def presented(by: Identity, invitation: str, login: str = "", signer: Identity | None = None) -> Any:
    login = login or Login.of(by).public
    signature = (signer or by).sign(subjects.JOIN, subjects.join_text(invitation, login))
    return subjects.Presented(by.public.raw, login, signature)


def test_an_invitation_lets_one_in_once(hub: HubFolder) -> None:
    made, agent = hubs.invite(hub, "north", party_days=2), agent_of(hub)
    assert agent._admit(made.name, presented(NORTH, made.name)) == NORTH.public.fingerprint
    members = hub.members()
    joined = members.parties[NORTH.public.fingerprint]
    assert (joined.name, joined.login) == ("north", Login.of(NORTH).public)
    assert abs(joined.expires - (time.time() + 2 * 86400)) < 60
    assert members.invited == {}
    assert made.name in members.used
    # Its answer may have been lost: the same again does no harm. Nobody else comes in by it.
    assert agent._admit(made.name, presented(NORTH, made.name)) == NORTH.public.fingerprint
    with pytest.raises(AtollError, match="was used, withdrawn or has expired"):
        agent._admit(made.name, presented(SOUTH, made.name))
    other = presented(NORTH, made.name, Login.of(SOUTH).public)
    with pytest.raises(AtollError, match="was used, withdrawn or has expired"):
        agent._admit(made.name, other)
    assert hub.members() == members


def test_an_invitation_brings_in_no_other_identity_and_no_login_twice(hub: HubFolder) -> None:
    made, agent = hubs.invite(hub, "north"), agent_of(hub)
    taken = (
        *(hub.members().agent, hub.members().system),
        next(iter(hub.members().invited.values())).login,
    )
    before = hub.members()
    with pytest.raises(AtollError, match="a signature is not that of"):
        agent._admit(made.name, presented(SOUTH, made.name, signer=NORTH))
    for login in taken:
        with pytest.raises(AtollError, match="another party has this login"):
            agent._admit(made.name, presented(NORTH, made.name, login))
    for login in ("", "X", "U" * 56, Login.of(NORTH).public[:-1] + "!"):
        shown = presented(NORTH, made.name, login or " ")
        with pytest.raises(AtollError, match="a login is a public NKey"):
            agent._admit(made.name, shown)
    assert hub.members() == before


def test_neither_the_revoked_nor_those_too_late_come_in(hub: HubFolder) -> None:
    hubs.add_party(hub, "north", NORTH.public, Login.of(NORTH).public)
    hubs.revoke(hub, "north")
    made, agent = hubs.invite(hub, "north again"), agent_of(hub)
    with pytest.raises(AtollError, match="was revoked at this hub"):
        agent._admit(made.name, presented(NORTH, made.name))
    with hub.changing() as change:
        late = msgspec.structs.replace(change.members.invited[made.name], expires=int(time.time()) - 1)
        change.set(invited={made.name: late})
    with pytest.raises(AtollError, match="was used, withdrawn or has expired"):
        agent._admit(made.name, presented(SOUTH, made.name))
    assert hub.members().parties == {}


class Asked:
    """A question to the agent, and what it answered."""

    def __init__(self, party: str, verb: str, **fields: Any) -> None:
        self.subject = subjects.ask(party, verb)
        self.data = json.dumps(fields).encode()
        self.reply = "there"
        self.told: dict[str, Any] = {}

    async def respond(self, data: bytes) -> None:
        self.told = json.loads(data)


@pytest.mark.parametrize("verb", ["open", "forget", "share", "unshare", "who", "parties", "time"])
def test_a_stranger_is_told_nothing(verb: str, hub: HubFolder) -> None:
    """Nor whoever's time is over, until the server has closed its connection."""
    now = int(time.time())
    hub.write_members(Members("UAGENT", parties={A: Member("north", b"", "UNORTH", 1, now - 5)}))
    for party in (A, "cd" * 32):
        asked = Asked(party, verb, topic="ctl", consumer="c", position=1)
        asyncio.run(agent_of(hub)._answer(asked))  # type: ignore[arg-type]
        assert asked.told == {"refused": "the hub does not know this party"}


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        *(
            ("open", {"topic": t, "consumer": "c"})
            for t in ("", "*", ">", "ctl.*", "a b", "-x", "ctl\n", "x" * 65)
        ),
        *(("open", {"topic": "ctl", "consumer": c}) for c in ("", "*", "a.b", "a\n", "-a", "x" * 97)),
        ("open", {"topic": "ctl", "consumer": "c", "instead_of": "a.b"}),
        *(("forget", {"topic": t, "position": 1}) for t in ("*", ">", "ctl.>")),
        *(("unshare", {"topic": t}) for t in ("*", ">", "ctl.>")),
        *(("unshare", {"topic": "ctl", "names": [n]}) for n in (">", "a.b", "a.>", "-")),
        ("open", {"topic": "ctl"}),
        ("who", {"nonsense": 1}),
        ("every", {}),
    ],
)
def test_a_question_reaches_no_further_than_its_own_inbox(
    verb: str, fields: dict[str, Any], hub: HubFolder
) -> None:
    """A name with a dot or a star in it would be a subject of more than is its own."""
    hub.write_members(Members("UAGENT", parties={A: Member("north", b"", "UNORTH", 1)}))
    asked = Asked(A, verb, **fields)
    asyncio.run(agent_of(hub)._answer(asked))  # type: ignore[arg-type]
    assert list(asked.told) == ["refused"]
    assert "storage" not in asked.told["refused"]


def test_who_is_asked_for_by_no_name_is_nobody(hub: HubFolder) -> None:
    hub.write_members(Members("UAGENT", parties={A: Member("", b"k", "UNORTH", 1)}))
    for fields, count in (({}, 0), ({"fingerprint": "cd" * 32}, 0), ({"fingerprint": A}, 1)):
        asked = Asked(A, "who", **fields)
        asyncio.run(agent_of(hub)._answer(asked))  # type: ignore[arg-type]
        assert len(asked.told["parties"]) == count
