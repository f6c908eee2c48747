"""A hub from its making to its upgrade: joining, revoking, renewing, its directory and its status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import structs
from tests.support.hub import admit, carrier, connected, free_port, make_hub, run, running, take, until

from atoll.crypto.identity import Identity
from atoll.errors import ParameterError
from atoll.runtime.nats import certificates, directory, hub_status, invitations
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.connection import HubNotTrusted, HubRefused
from atoll.runtime.nats.hub_config import HubFolder
from atoll.runtime.nats.invitations import Invitation, join, shown_chain
from atoll.runtime.nats.nats_carrier import NatsCarrier

A, B, C = Identity(b"a" * 32), Identity(b"b" * 32), Identity(b"c" * 32)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time."""
    monkeypatch.setattr(invitations, "REDEEM_SECONDS", 120.0)
    monkeypatch.setattr(invitations, "LOGIN_SECONDS", 120.0)


def test_two_sites_join_by_invitation_and_talk(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            ways = []
            for identity, name in ((A, "clinic a"), (B, "clinic b")):
                made = hubs.invite(hub, name)
                assert hubs.reload(hub)
                ways.append(await join(str(made), identity))
            # Joining again after its answer was lost changes nothing.
            assert await join(str(made), B) == ways[1]
            a, b = (NatsCarrier(way.url, one, way.ca) for way, one in zip(ways, (A, B), strict=True))
            async with connected(a, b):
                await a.publish(B.fingerprint, "run1", b"hello")
                assert (await take(b, "run1", 1))[0].frame == b"hello"
                listed = await directory.everyone(a)
                assert {(one.name, one.public.fingerprint) for one in listed} == {
                    ("clinic a", A.fingerprint),
                    ("clinic b", B.fingerprint),
                }
                assert await directory.look_up(a, B.fingerprint) == B.public
                assert await directory.look_up(a, C.fingerprint) is None
                assert [one.public for one in await directory.named(a, "clinic b")] == [B.public]

    run(course())


def test_many_join_at_once(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        sites = [Identity(bytes([i]) * 32) for i in range(1, 9)]
        invitations = [str(hubs.invite(hub, f"site {i}")) for i in range(len(sites))]
        async with running(hub):
            await asyncio.gather(*(join(text, one) for text, one in zip(invitations, sites, strict=True)))
        assert set(hub.members().parties) == {one.fingerprint for one in sites}
        assert hub.members().invited == {}

    run(course())


def test_an_invitation_survives_a_mail_and_nothing_else() -> None:
    made = Invitation("tls://hub.example.org:4222", "ab" * 32, b"s" * 32, 1_900_000_000)
    text = str(made)
    assert Invitation.read(f"  {text[:40]}\n  {text[40:].upper()} ") == made
    assert "s" * 8 not in repr(made)
    assert made.secret.hex() not in repr(made)
    for broken in (
        text[:-1],
        text[:20] + ("a" if text[20] != "a" else "b") + text[21:],
        "atoll1-",
        "",
        "x" + text,
    ):
        with pytest.raises(ParameterError, match="not an invitation"):
            Invitation.read(broken)


def test_adding_a_party_drops_nobody_and_revoking_drops_one(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        async with running(hub), connected(carrier(hub, A), carrier(hub, B)) as (a, b):
            waits = asyncio.create_task(take(b, "run1", 1))
            await asyncio.sleep(0.2)
            await join(str(_invited(hub, "late")), C)
            await a.publish(B.fingerprint, "run1", b"still here")
            assert (await waits)[0].frame == b"still here"
            assert (a.reconnects, b.reconnects) == (0, 0)
            assert hubs.revoke(hub, B.fingerprint) == "shut out"
            hubs.reload(hub)

            async def shut_out() -> bool:
                return isinstance(b.trouble, HubRefused)

            await until(shut_out)
            assert a.reconnects == 0
            with pytest.raises(HubRefused):
                await carrier(hub, B).connect()

    run(course())


def _invited(hub: HubFolder, name: str) -> Invitation:
    made = hubs.invite(hub, name)
    hubs.reload(hub)
    return made


def test_a_party_whose_time_is_over_is_shut_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "TEND_SECONDS", 0.1)

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        hubs.add_party(hub, "for a moment", A.public, hubs.Login.of(A).public, days=1)
        async with running(hub), connected(carrier(hub, A)) as (a,):
            with hub.changing() as change:
                member = change.members.parties[A.fingerprint]
                assert member.expires > time.time()
                change.set(parties={A.fingerprint: structs.replace(member, expires=int(time.time()))})

            async def shut_out() -> bool:
                return isinstance(a.trouble, HubRefused)

            await until(shut_out)

    run(course())


def test_a_certificate_is_renewed_while_the_hub_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        signer = certificates.read_pair(hub.path("ca.pem"), hub.path("ca.key"))
        short = certificates.new_server(signer, ["localhost", "127.0.0.1"], days=100)
        certificates.write_pair(short, hub.path("server.pem"), hub.path("server.key"))
        async with running(hub), connected(carrier(hub, A)) as (a,):
            assert 99 < certificates.days_left(hub.path("server.pem").read_bytes()) < 101
            monkeypatch.setattr(certificates, "RENEW_DAYS", 200)
            assert hubs.renew(hub)
            hubs.reload(hub)

            async def is_shown() -> bool:
                shown = (await shown_chain(hub.settings.url))[0].encode()
                return shown in hub.path("server.pem").read_bytes()

            await until(is_shown)
            # Who is connected stays so; who comes later sees the new one, under the same authority.
            assert a.reconnects == 0
            async with connected(carrier(hub, A)):
                pass
        assert certificates.days_left(hub.path("server.pem").read_bytes()) > 360

    run(course())


def test_a_running_hub_renews_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "TEND_SECONDS", 0.1)

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            signer = certificates.read_pair(hub.path("ca.pem"), hub.path("ca.key"))
            short = certificates.new_server(signer, ["localhost", "127.0.0.1"], days=59)
            certificates.write_pair(short, hub.path("server.pem"), hub.path("server.key"))

            async def renewed() -> bool:
                return certificates.days_left(hub.path("server.pem").read_bytes()) > 360

            await until(renewed)

    run(course())


def test_a_given_certificate_is_used_and_followed(tmp_path: Path) -> None:
    async def course() -> None:
        ours = certificates.new_authority("of the organisation")
        pem, key, root = tmp_path / "given.pem", tmp_path / "given.key", tmp_path / "root.pem"
        certificates.write_pair(certificates.new_server(ours, ["localhost"]), pem, key)
        root.write_bytes(ours.certificate)
        hub = make_hub(tmp_path / "hub", certificate=str(pem), key=str(key), authority=str(root))
        async with running(hub):
            way = await join(str(_invited(hub, "a")), A)
            assert way.ca.strip() == ours.certificate.decode().strip()
            # Whoever gave it replaces it.
            certificates.write_pair(certificates.new_server(ours, ["localhost"], days=500), pem, key)
            assert hubs.renew(hub)
            hubs.reload(hub)
            async with connected(NatsCarrier(way.url, A, way.ca)):
                pass

    run(course())


async def waits_for(hub: HubFolder, identity: Identity) -> bool:
    """Whether the hub holds something for a party."""
    found = {one.fingerprint: one for one in (await hub_status.status(hub)).parties}
    return bool(found[identity.fingerprint].waiting_frames)


def test_an_upgrade_keeps_everyone(tmp_path: Path) -> None:
    """What a hub of this format wrote is enough for a newer version to go on: nobody joins again."""

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            way = await join(str(_invited(hub, "a")), A)
            b = await join(str(_invited(hub, "b")), B)
            async with connected(NatsCarrier(way.url, A, way.ca)) as (a,):
                await a.publish(B.fingerprint, "run1", b"kept over the upgrade")
                await until(lambda: waits_for(hub, B))
        # What the server reads is written anew by whichever version starts.
        hub.path("nats.conf").unlink()
        hub.path("accounts.conf").unlink()
        async with running(HubFolder(tmp_path / "hub")), connected(NatsCarrier(b.url, B, b.ca)) as (two,):
            assert (await take(two, "run1", 1))[0].frame == b"kept over the upgrade"

    run(course())


def test_a_hub_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    make_hub(tmp_path / "hub")
    place = tmp_path / "hub" / "hub.json"
    settings = msgspec.json.decode(place.read_bytes())
    place.write_bytes(msgspec.json.encode({**settings, "atoll_hub": 2}))
    with pytest.raises(ParameterError, match="format 2"):
        HubFolder(tmp_path / "hub")


def test_the_status_says_who_is_there_and_what_waits(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A, B))
        hubs.invite(hub, "to come")
        before = await hub_status.status(hub)
        assert not before.runs
        async with running(hub), connected(carrier(hub, A)) as (a,):
            await a.publish(B.fingerprint, "run1", b"x" * 1000)
            await until(lambda: waits_for(hub, B))
            now = await hub_status.status(hub)
        assert now.runs
        assert now.trouble == ""
        assert now.server.startswith("2.")
        assert now.certificate_days is not None
        assert 360 < now.certificate_days < 370
        found = {one.fingerprint: one for one in now.parties}
        assert (found[A.fingerprint].connections, found[B.fingerprint].connections) == (1, 0)
        assert (found[A.fingerprint].waiting_frames, found[B.fingerprint].waiting_frames) == (0, 1)
        assert (found[B.fingerprint].waiting_bytes or 0) > 1000
        assert [one[0] for one in now.invitations] == ["to come"]

    run(course())


def test_what_a_hub_owner_gets_wrong_is_said(tmp_path: Path) -> None:
    hub = make_hub(tmp_path / "hub")
    with pytest.raises(ParameterError, match="already"):
        make_hub(tmp_path / "hub")
    with pytest.raises(ParameterError, match="no hub in"):
        HubFolder(tmp_path / "elsewhere")
    with pytest.raises(ParameterError, match="cannot be a party's name"):
        hubs.invite(hub, 'x" } ]')
    with pytest.raises(ParameterError, match="at most 365"):
        hubs.invite(hub, "a", days=400)
    with pytest.raises(ParameterError, match="no port for wss"):
        hubs.invite(hub, "a", web=True)
    hubs.invite(hub, "a")
    with pytest.raises(ParameterError, match="open invitation"):
        hubs.invite(hub, "a")
    with pytest.raises(ParameterError, match="no party or invitation"):
        hubs.revoke(hub, "nobody")
    assert hubs.revoke(hub, "a") == "withdrew the invitation"
    hubs.invite(hub, "a")


def test_a_second_hub_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            with pytest.raises(Exception, match="running already"):
                await hubs.RunningHub(hub).run()

    run(course())


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async def course() -> None:
        first = make_hub(tmp_path / "one")
        second = make_hub(tmp_path / "two", port=first.settings.port)
        async with running(first):
            with pytest.raises(Exception, match="does not start"):
                await hubs.RunningHub(second).run()

    run(course())


def test_only_private_files_hold_secrets(tmp_path: Path) -> None:
    hub = make_hub(tmp_path / "hub", web_port=free_port())
    hubs.invite(hub, "a")
    for path in hub.folder.iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path.name
    assert hub.folder.stat().st_mode & 0o077 == 0


@pytest.mark.filterwarnings("ignore:parameter 'timeout':DeprecationWarning")
def test_a_site_joins_by_wss(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub", web_port=free_port())
        async with running(hub):
            made = hubs.invite(hub, "a", web=True)
            hubs.reload(hub)
            way = await join(str(made), A)
            assert way.url.startswith("wss://")
            async with connected(NatsCarrier(way.url, A, way.ca)) as (a,):
                await a.publish(A.fingerprint, "run1", b"to myself")
                assert (await take(a, "run1", 1))[0].frame == b"to myself"

    run(course())


def test_an_expired_invitation_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async def course() -> None:
        old = Invitation("tls://localhost:1", "ab" * 32, b"s" * 32, int(time.time()) - 1)
        with pytest.raises(ParameterError, match="expired"):
            await join(str(old), A)

    run(course())


def test_an_invitation_to_another_authority_is_refused(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        async with running(hub):
            made = _invited(hub, "a")
            other = Invitation(made.url, "ab" * 32, made.secret, made.expires)
            with pytest.raises(HubNotTrusted, match="not the hub of the invitation"):
                await join(str(other), A)
            assert hub.members().used == {}

    run(course())


def test_a_nats_server_of_ones_own_is_used_by_its_address(tmp_path: Path) -> None:
    """The server is not the hub's: it includes the accounts, and is told to read them by a command."""

    async def course() -> None:
        ours, port = certificates.new_authority("of the organisation"), free_port()
        pem, key, root = tmp_path / "s.pem", tmp_path / "s.key", tmp_path / "root.pem"
        certificates.write_pair(certificates.new_server(ours, ["localhost"]), pem, key)
        root.write_bytes(ours.certificate)
        pid = tmp_path / "nats.pid"
        reload = ("sh", "-c", f"kill -HUP $(cat {pid})")
        hub = make_hub(tmp_path / "hub", server=f"tls://localhost:{port}", reload=reload, authority=str(root))
        assert not hub.path("server.pem").exists()
        conf = tmp_path / "nats.conf"
        conf.write_text(
            f'listen: "127.0.0.1:{port}"\npid_file: "{pid}"\njetstream {{ store_dir: "{tmp_path}/js" }}\n'
            f'tls {{ cert_file: "{pem}", key_file: "{key}", handshake_first: "30s", timeout: 60 }}\n'
            "authorization { timeout: 60 }\n"
            "include hub/accounts.conf\n"
        )
        process = await asyncio.create_subprocess_exec(
            hubs.find_server(), "-c", str(conf), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await until(_written(pid))
            admit(hub, (B,))
            assert hubs.reload(hub)
            assert await hubs.make_inboxes(hub) == 1
            assert await hubs.make_inboxes(hub) == 0
            async with running(hub):
                way = await join(str(_invited(hub, "a")), A)
                assert way.url == f"tls://localhost:{port}"
                async with connected(NatsCarrier(way.url, A, way.ca), carrier(hub, B)) as (a, b):
                    await a.publish(B.fingerprint, "run1", b"over a server of one's own")
                    assert (await take(b, "run1", 1))[0].sender == A.fingerprint
                now = await hub_status.status(hub)
                assert now.runs
                assert [one.connections for one in now.parties] == [None, None]
        finally:
            process.terminate()
            await process.wait()

    run(course())


def _written(path: Path) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return path.exists() and path.read_text() != ""

    return there
