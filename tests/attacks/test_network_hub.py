"""Attacks on a hub and by one: each is refused, and what is logged of it holds no secret.

The attacker is a party with a good login of its own, somebody with an invitation, somebody in between, or the
hub. Frames are sealed between parties, so none of this opens a study; it would cost, delay or impersonate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.aio.client import Client
from tests.support.hub import address, admit, carrier, connected, make_hub, run, running, take, until

from atoll.crypto.identity import Identity
from atoll.errors import ParameterError
from atoll.runtime.nats import certificates, connection, directory, subjects
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.agent import Agent
from atoll.runtime.nats.connection import HubNotTrusted, HubRefused, Login
from atoll.runtime.nats.hub_config import HubFolder, Limits
from atoll.runtime.nats.invitations import Invitation, join

A, B, C = Identity(b"a" * 32), Identity(b"b" * 32), Identity(b"c" * 32)
AGENT_SEED_FILE = "agent.key"


@pytest.fixture(autouse=True)
def nothing_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever an attack made server, agent and sites say, no key is in it."""
    caplog.set_level(logging.DEBUG)
    yield
    secrets = [one.derive("nats user") for one in (A, B, C)] + [b"a" * 32, b"b" * 32, b"c" * 32]
    said = caplog.text
    for folder in tmp_path.glob("hub*"):
        said += (folder / "server.log").read_text() if (folder / "server.log").exists() else ""
        secrets.append(bytes.fromhex((folder / AGENT_SEED_FILE).read_text()))
    for raw in secrets:
        for form in (raw.hex(), Login(raw).seed, repr(raw)):
            assert form not in said
    assert "PRIVATE KEY" not in said


@asynccontextmanager
async def raw(hub: HubFolder, login: Login, errors: list[str]) -> AsyncIterator[Client]:
    """A connection without the carrier's manners."""

    async def note(error: Exception) -> None:
        errors.append(str(error))

    context = connection.tls_context(address(hub).ca)
    client = await connection.connect(hub.settings.url, login, context, on_error=note)
    try:
        yield client
    finally:
        await connection.abandon(client)


def invited(hub: HubFolder, name: str) -> Invitation:
    made = hubs.invite(hub, name)
    hubs.reload(hub)
    return made


def counted(errors: list[str], words: str, wanted: int) -> Callable[[], Awaitable[bool]]:
    """Whether the server has said so often that something is not allowed."""

    async def all_said() -> bool:
        return sum(words in one for one in errors) == wanted

    return all_said


async def waiting(hub: HubFolder, identity: Identity) -> int:
    """How many frames wait for a party, as the hub's own agent sees it."""
    client = await hubs.connect_locally(hub)
    try:
        info = await client.jetstream().stream_info(subjects.stream(identity.fingerprint))
        return info.state.messages
    finally:
        await connection.abandon(client)


# ---- somebody in between ----


def test_another_authority_is_refused_before_the_login(tmp_path: Path) -> None:
    async def course() -> None:
        real, false = make_hub(tmp_path / "hub"), make_hub(tmp_path / "hub2")
        admit(real, (A,))
        admit(false, (A,))
        async with running(false):
            context = connection.tls_context(hubs.authority(real))
            with pytest.raises(HubNotTrusted):
                await connection.connect(false.settings.url, Login.of(A), context)
            with pytest.raises(HubNotTrusted):
                await connection.connect(false.settings.url, Login.of(A), connection.tls_context())
        assert Login.of(A).public not in (tmp_path / "hub2" / "server.log").read_text()

    run(course())


def test_a_certificate_for_another_name_or_out_of_date_is_refused(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        signer = certificates.read_pair(hub.path("ca.pem"), hub.path("ca.key"))
        for names, days in ((["elsewhere.example.org", "127.0.0.1"], 400), (["localhost", "127.0.0.1"], -1)):
            pair = certificates.new_server(signer, names, days=days) if days > 0 else _expired(signer, names)
            certificates.write_pair(pair, hub.path("given.pem"), hub.path("given.key"))
            settings = msgspec.structs.replace(
                hub.settings,
                certificate=str(hub.path("given.pem")),
                key=str(hub.path("given.key")),
                authority=str(hub.path("ca.pem")),
            )
            hub.path("hub.json").write_bytes(msgspec.json.encode(settings))
            process = await _server_alone(HubFolder(hub.folder))
            try:
                with pytest.raises(HubNotTrusted):
                    await carrier(hub, A).connect()
            finally:
                process.terminate()
                await process.wait()

    run(course())


def _expired(signer: certificates.Pair, names: list[str]) -> certificates.Pair:
    import datetime

    real = certificates.now
    certificates.now = lambda: real() - datetime.timedelta(days=30)  # type: ignore[assignment]
    try:
        return certificates.new_server(signer, names, days=20)
    finally:
        certificates.now = real  # type: ignore[assignment]


async def _server_alone(hub: HubFolder) -> asyncio.subprocess.Process:
    """The server without its agent, which would not accept the certificate either."""
    hubs.renew(hub, always=True)
    hub.write_server_files(hub.members())
    process = await asyncio.create_subprocess_exec(
        hubs.find_server(), "-c", str(hub.path("nats.conf")), stderr=asyncio.subprocess.DEVNULL
    )

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", hub.settings.port)
        except OSError:
            return False
        writer.close()
        return True

    await until(listens)
    return process


def test_a_plain_connection_gets_nothing(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.settings.port)
            writer.write(b"CONNECT {}\r\nPING\r\n")
            said = await asyncio.wait_for(reader.read(1000), 10)
            writer.close()
        assert b"PONG" not in said
        assert b"INFO" not in said  # not even its version

    run(course())


# ---- those whose time is over ----


def test_a_revoked_identity_neither_connects_nor_joins_again(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, B)) as (b,):
            hubs.revoke(hub, B.fingerprint)
            hubs.reload(hub)

            async def out() -> bool:
                return isinstance(b.trouble, HubRefused)

            await until(out)
            with pytest.raises(HubRefused, match="revoked"):
                await join(str(invited(hub, "b again")), B)
            with pytest.raises(ParameterError, match="revoked"):
                hubs.add_party(hub, "b", B.public, Login.of(B).public)
            assert B.fingerprint not in hub.members().parties
        assert "authentication error" in hub.path("server.log").read_text()

    run(course())


def test_an_identity_whose_time_is_over_does_not_connect(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        hubs.add_party(hub, "a", A.public, Login.of(A).public, days=1e-9)
        await asyncio.sleep(1.1)
        async with running(hub):
            with pytest.raises(HubRefused):
                await carrier(hub, A).connect()

    run(course())


# ---- invitations ----


def test_an_invitation_works_for_one_site_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            made = invited(hub, "clinic")
            await join(str(made), A)
            with pytest.raises(HubRefused, match=r"does not know this invitation|used, withdrawn"):
                await join(str(made), B)
            assert set(hub.members().parties) == {A.fingerprint}
        said = caplog.text + hub.path("server.log").read_text()
        assert made.secret.hex() not in said
        assert str(made) not in said

    run(course())


def test_two_who_hold_the_same_invitation_at_once_do_not_both_get_in(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            made = str(invited(hub, "clinic"))
            done = await asyncio.gather(join(made, A), join(made, B), return_exceptions=True)
            assert sorted(isinstance(one, HubRefused) for one in done) == [False, True]
            assert len(hub.members().parties) == 1

    run(course())


def test_an_expired_or_withdrawn_invitation_is_refused_by_the_hub(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            # The holder's clock, or the string, is made to say otherwise.
            short = hubs.invite(hub, "short", days=1 / 86400)
            hubs.reload(hub)
            await asyncio.sleep(1.5)
            later = Invitation(short.url, short.authority, short.secret, short.expires + 10**6)
            with pytest.raises(HubRefused):
                await join(str(later), A)
            made = invited(hub, "withdrawn")
            hubs.revoke(hub, "withdrawn")
            hubs.reload(hub)
            with pytest.raises(HubRefused):
                await join(str(made), A)
            assert hub.members().parties == {}

    run(course())


def presented(signer: Identity, shown: Identity, login: str, invitation: str) -> bytes:
    signature = signer.sign(subjects.JOIN, subjects.join_text(invitation, login))
    return msgspec.json.encode(subjects.Presented(shown.public.raw, login, signature))


def test_an_invitation_does_not_bring_in_anothers_identity_or_login(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        async with running(hub):
            made = invited(hub, "attacker")
            good = Login.of(C).public
            mangled = good[:-1] + ("A" if good[-1] != "A" else "B")
            tries = (
                presented(C, B, good, made.name),  # another's identity
                presented(C, C, good, "0" * 16),  # a signature from another invitation
                presented(C, C, Login.of(A).public, made.name),  # a party's login
                presented(C, C, hub.members().agent, made.name),  # the agent's
                presented(C, C, mangled, made.name),  # would stop the server from reading its files
                presented(C, C, 'U" } }', made.name),
                b"{}",
                b"",
                b"\xff" * 3000,
            )
            errors: list[str] = []
            before = hub.path("accounts.conf").read_bytes()
            async with raw(hub, Login(made.secret), errors) as client:
                for one in tries:
                    told = await client.request(subjects.redeem(made.name), one, timeout=5)
                    assert b"refused" in told.data
                # Nor does it do anything else.
                for subject in ("a.join.*", subjects.ask(A.fingerprint, "parties"), "$JS.API.STREAM.NAMES"):
                    await client.publish(subject, b"{}")
                await until(counted(errors, "permissions violation", 3))
            assert hub.path("accounts.conf").read_bytes() == before
            assert set(hub.members().parties) == {A.fingerprint}

    run(course())


# ---- a party against another ----


def test_a_party_publishes_as_itself_only_and_reads_its_own_only(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B, C))
        a, b, c = A.fingerprint, B.fingerprint, C.fingerprint
        async with running(hub), connected(carrier(hub, B)) as (two,):
            errors: list[str] = []
            heard: list[Any] = []

            async def hear(message: Any) -> None:
                heard.append(message)

            async with raw(hub, Login.of(A), errors) as client:
                refused = (
                    subjects.inbox(b, c, "run1"),  # as another
                    subjects.inbox(b, b, "run1"),
                    subjects.ask(b, "open"),  # as another, to the agent
                    subjects.ask(b, "forget"),
                    subjects.next_frames(b, "run1-x"),  # another's frames
                    f"$JS.API.STREAM.PURGE.{subjects.stream(b)}",
                    f"$JS.API.STREAM.PURGE.{subjects.stream(a)}",
                    f"$JS.API.STREAM.DELETE.{subjects.stream(b)}",
                    f"$JS.API.STREAM.MSG.GET.{subjects.stream(b)}",
                    f"$JS.API.DIRECT.GET.{subjects.stream(b)}",
                    f"$JS.API.CONSUMER.CREATE.{subjects.stream(a)}",
                    "$JS.API.STREAM.NAMES",
                    "$JS.API.INFO",
                    "$SYS.REQ.SERVER.PING",
                    subjects.redeem("0" * 16),
                )
                for subject in refused:
                    await client.publish(subject, b"{}")
                await until(counted(errors, "permissions violation for publish", len(refused)))
                for subject in (">", "a.in.>", subjects.inbox(b, "*", "*"), "$JS.>", "$SYS.>", "a.agent.>"):
                    await client.subscribe(subject, cb=hear)
                await until(counted(errors, "permissions violation for subscription", 6))
                await client.publish(subjects.inbox(b, a, "run1"), b"as myself")
                assert [(x.sender, x.frame) for x in await take(two, "run1", 1)] == [(a, b"as myself")]
            assert heard == []
            assert await waiting(hub, B) == 1
        assert "Publish Violation" in hub.path("server.log").read_text()

    run(course())


def test_answers_cannot_be_turned_against_another(tmp_path: Path) -> None:
    """JetStream answers on a request's reply subject: in one shared account that purges another's inbox."""

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        a, b = A.fingerprint, B.fingerprint
        async with running(hub), connected(carrier(hub, A), carrier(hub, B)) as (one, two):
            await one.publish(b, "run1", b"precious")
            await take(two, "run1", 1)
            await one.ask("open", subjects.Open("run1", "mine"), subjects.Opened)
            replies = (
                f"$JS.API.STREAM.PURGE.{subjects.stream(b)}",
                f"$JS.API.STREAM.DELETE.{subjects.stream(b)}",
                subjects.inbox(b, b, "run1"),
                subjects.ask(b, "forget"),
                "_INBOX.>",
            )
            errors: list[str] = []
            async with raw(hub, Login.of(A), errors) as client:
                for reply in replies:
                    for body in (b"", b'{"topic":"run1","position":9223372036854775807}'):
                        await client.publish(subjects.inbox(a, a, "run1"), body)
                        if reply != "_INBOX.>":
                            pull = b'{"batch":9,"expires":100000000}'
                            await client.publish(subjects.next_frames(a, "mine"), pull, reply=reply)
                            await client.publish(subjects.ask(a, "time"), body, reply=reply)
                            await client.publish(subjects.inbox(a, a, "run1"), body, reply=reply)
                await client.flush()
                await asyncio.sleep(0.5)
            assert await waiting(hub, B) == 1
            assert (await take(two, "run1", 1))[0].frame == b"precious"

    run(course())


def test_questions_that_reach_beyond_ones_own_inbox_are_refused(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A)) as (one,):
            questions: tuple[tuple[subjects.Verb, msgspec.Struct], ...] = (
                ("open", subjects.Open("*", "x")),
                ("open", subjects.Open(">", "x")),
                ("open", subjects.Open(f"run1.{B.fingerprint}", "x")),
                ("open", subjects.Open("run1", "x.y")),
                ("open", subjects.Open("run1", f"../{subjects.stream(B.fingerprint)}")),
                ("open", subjects.Open("run1", "x" * 200)),
                ("forget", subjects.Forget("*", 1 << 40)),
                ("forget", subjects.Forget(">", 1 << 40)),
                ("who", subjects.Open("run1", "x")),
            )
            for verb, question in questions:
                with pytest.raises(HubRefused):
                    await one.ask(verb, question, subjects.Done)

    run(course())


def test_an_oversize_message_ends_its_senders_connection_and_nobody_elses(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, B)) as (two,):
            errors: list[str] = []
            async with raw(hub, Login.of(A), errors) as client:
                client._max_payload = 1 << 30  # the client would refuse by itself
                await client.publish(subjects.inbox(B.fingerprint, A.fingerprint, "run1"), bytes(2 << 20))

                async def ended() -> bool:
                    return client.is_closed

                await until(ended)
            assert await waiting(hub, B) == 0
            assert two.reconnects == 0
        assert "maximum payload exceeded" in hub.path("server.log").read_text()

    run(course())


def test_a_flood_fills_one_inbox_and_no_other(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub", limits=Limits(inbox_bytes=1 << 20))
        admit(hub, (A, B, C))
        async with (
            running(hub),
            connected(carrier(hub, A), carrier(hub, B), carrier(hub, C)) as (one, two, three),
        ):
            for i in range(64):
                await one.publish(B.fingerprint, "run1", bytes([i]) * (64 << 10))
            await one.publish(C.fingerprint, "run1", b"unhindered")
            assert (await take(three, "run1", 1))[0].frame == b"unhindered"
            kept = await waiting(hub, B)
            assert 0 < kept < 17
            # What came first is kept; room is made by forgetting.
            got = await take(two, "run1", kept)
            assert [x.frame[0] for x in got] == list(range(kept))
            await two.forget("run1", got[-1].position)
            await one.publish(B.fingerprint, "run1", b"after")
            assert (await take(two, "run1", 1))[0].frame == b"after"

    run(course())


def test_one_party_cannot_use_up_the_connections(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub", limits=Limits(connections=3))
        admit(hub, (A, B))
        async with running(hub), connected(*(carrier(hub, A) for _ in range(3))):
            with pytest.raises(Exception, match=r"maximum|limit|cannot be reached"):
                await connection.connect(
                    hub.settings.url, Login.of(A), connection.tls_context(hubs.authority(hub))
                )
            async with connected(carrier(hub, B)):
                pass

    run(course())


# ---- the hub itself ----


def test_a_hub_that_hands_out_its_own_key_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def lie(self: Agent, party: str, data: bytes) -> msgspec.Struct:
        return subjects.Parties((subjects.Entry("clinic b", C.public.raw),))

    async def nonsense(self: Agent, party: str, data: bytes) -> msgspec.Struct:
        return subjects.Parties((subjects.Entry("clinic b", b"no key"),))

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        for false, match in ((lie, "not that of"), (nonsense, "no public identity")):
            monkeypatch.setattr(Agent, "_who", false)
            async with running(hub), connected(carrier(hub, A)) as (one,):
                with pytest.raises(HubNotTrusted, match=match):
                    await directory.look_up(one, B.fingerprint)

    run(course())
