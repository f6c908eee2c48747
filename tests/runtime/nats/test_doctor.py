"""The doctor of the network: each thing that can be wrong is found, named, and comes with what to do."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.support.hub import address, admit, free_port, in_background, make_hub, run, running, until
from tests.support.proxy import proxy
from tests.support.running import atoll

from atoll.crypto.identity import Identity
from atoll.runtime.doctor.finding import Finding
from atoll.runtime.nats import certificates, doctor, subjects
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.agent import Agent
from atoll.runtime.nats.doctor import examine
from atoll.runtime.nats.hub_config import HubFolder, Limits
from atoll.runtime.nats.invitations import Invitation, join
from atoll.runtime.nats.site import Site

A, B = Identity(b"a" * 32), Identity(b"b" * 32)
MEASURED = ("delay", "bandwidth")
"""What is found there depends on how busy the machine is."""


def by_check(found: list[Finding]) -> dict[str, Finding]:
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert (one.remedy is None) == (one.state == "ok"), one
    return {one.name: one for one in found}


def only(found: list[Finding], check: str) -> Finding:
    """What is wrong: one thing."""
    wrong = [one for one in found if one.state != "ok" and one.name not in MEASURED]
    assert [one.name for one in wrong] == [check], wrong
    assert wrong[0].remedy
    return wrong[0]


def test_all_is_well_and_measured(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        async with running(hub), proxy(hub.settings.port, delay=0.02) as between:
            way = address(hub)
            found = by_check(await examine(f"tls://localhost:{between.port}", A, way.ca))
        assert {one.state for name, one in found.items() if name not in MEASURED} == {"ok"}
        assert list(found) == [
            *("name", "port", "certificate", "expiry", "login", "limits", "clock", "versions"),
            *MEASURED,
        ]
        # 20 ms each way, to the hub and back.
        assert float(found["delay"].detail.split()[-2]) >= 40
        assert "1024 KB" in found["limits"].detail

    run(course())


def test_an_unknown_name(tmp_path: Path) -> None:
    async def course() -> None:
        said = only(await examine("tls://no-such-host.invalid:4222", A), "name")
        assert "no-such-host.invalid" in said.detail

    run(course())


def test_a_port_where_nothing_listens_and_one_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "PORT_SECONDS", 0.5)

    async def never(*args: object, **kwargs: object) -> None:
        await asyncio.sleep(60)

    async def course() -> None:
        said = only(await examine(f"tls://127.0.0.1:{free_port()}", A), "port")
        assert "nothing listens" in said.detail
        monkeypatch.setattr(asyncio, "open_connection", never)
        said = only(await examine("tls://127.0.0.1:4222", A), "port")
        assert "firewall" in str(said.remedy)
        assert "127.0.0.1:4222" in str(said.remedy)

    run(course())


def test_a_server_that_speaks_no_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def course() -> None:
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        said = only(await examine(f"tls://127.0.0.1:{port}", A), "certificate")
        assert "does not speak TLS" in said.detail
        server.close()

    run(course())


async def shows(pair: certificates.Pair, tmp_path: Path, authority: str) -> list[Finding]:
    """What the doctor says of a server that shows this certificate."""
    certificates.write_pair(pair, tmp_path / "x.pem", tmp_path / "x.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "x.pem", tmp_path / "x.key")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        return await examine(f"tls://localhost:{port}", None, authority)
    finally:
        server.close()


def test_interception_is_told_from_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        ours, scanner = certificates.new_authority("ours"), certificates.new_authority("Virus Scanner Ltd")
        pinned = ours.certificate.decode()
        names = ["localhost"]
        said = only(await shows(certificates.new_server(scanner, names), tmp_path, pinned), "certificate")
        assert "Virus Scanner Ltd" in said.detail
        assert "reads TLS" in str(said.remedy)
        other = certificates.new_server(ours, ["hub.example.org"])
        said = only(await shows(other, tmp_path, pinned), "certificate")
        assert "host name" in str(said.remedy).lower() or "hostname" in said.detail.lower()
        said = only(await shows(certificates.new_server(ours, names, days=5), tmp_path, pinned), "expiry")
        assert "atoll hub renew" in str(said.remedy)
        good = await shows(certificates.new_server(ours, names), tmp_path, pinned)
        assert {one.state for one in good} == {"ok"}
        real = certificates.now
        for days, words in ((-40, "was valid until"), (40, "is valid from")):
            monkeypatch.setattr(certificates, "now", lambda days=days: real() + datetime.timedelta(days=days))
            made = certificates.new_server(ours, names, days=20)
            monkeypatch.setattr(certificates, "now", real)
            assert words in only(await shows(made, tmp_path, pinned), "certificate").detail

    run(course())


def test_a_site_that_the_hub_does_not_know(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        async with running(hub):
            said = only(await examine(hub.settings.url, B, address(hub).ca), "login")
            assert "revoked" in str(said.remedy)

    run(course())


def test_a_clock_that_is_wrong_and_a_hub_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def later(self: Agent, party: str, data: bytes) -> msgspec.Struct:
        return subjects.Told(time.time() + 3600, "9.7.0")

    monkeypatch.setattr(Agent, "_time", later)

    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))
        async with running(hub):
            found = by_check(await examine(hub.settings.url, A, address(hub).ca))
        assert found["clock"].state == "note"
        assert "3600 s behind" in found["clock"].detail
        assert "NTP" in str(found["clock"].remedy)
        assert "9.7.0" in found["versions"].detail
        assert found["versions"].state == "note"

    run(course())


def test_a_hub_that_takes_small_messages_only(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub", limits=Limits(frame_bytes=64 << 10))
        admit(hub, (A,))
        async with running(hub):
            said = only(await examine(hub.settings.url, A, address(hub).ca), "limits")
            assert "64 KB" in said.detail
            assert "max_payload" in str(said.remedy)

    run(course())


def test_a_hub_without_its_agent(tmp_path: Path) -> None:
    async def course() -> None:
        hub = make_hub(tmp_path / "hub")
        admit(hub, (A,))

        async def listening() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", hub.settings.port)) == 0

        process = await asyncio.create_subprocess_exec(
            hubs.find_server(), "-c", str(hub.path("nats.conf")), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await until(listening)
            said = only(await examine(hub.settings.url, A, address(hub).ca), "agent")
            assert "atoll hub up" in str(said.remedy)
        finally:
            process.terminate()
            await process.wait()

    run(course())


def test_slow_ways_are_said() -> None:
    assert doctor._delay(0.9).state == "note"
    assert doctor._delay(0.1).state == "ok"
    assert doctor._bandwidth(0.5).state == "note"
    assert doctor._bandwidth(50.0).state == "ok"


# ---- as the command shows it ----


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HubFolder, Site]]:
    """A hub that runs, and a site that has joined it."""
    folder = tmp_path_factory.mktemp("joined")
    hub = make_hub(folder / "hub")
    site = Site.make(folder / "site")
    A.save(site.identity_file)
    admit(hub, (A,))
    site.set_hub(address(hub))
    with in_background(running(hub)):
        yield hub, site


def test_the_command_looks_at_the_way_to_the_hub(joined: tuple[HubFolder, Site]) -> None:
    folder = str(joined[1].folder)
    found = {one["name"]: one for one in json.loads(atoll("doctor", "--json", "--site", folder).out)}
    assert {"core library", "disk", "name", "port", "login", "clock", "bandwidth"} <= set(found)
    assert found["login"]["state"] == "ok"
    local = {one["name"] for one in json.loads(atoll("doctor", "--json", "--local", "--site", folder).out)}
    assert "port" not in local
    shown = atoll("doctor", "--site", folder).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "the hub knows this site" in shown


def test_the_command_looks_before_joining_and_uses_no_invitation_up(joined: tuple[HubFolder, Site]) -> None:
    hub, _ = joined
    invited = hubs.invite(hub, "south")
    hubs.reload(hub)
    found = {one["name"]: one for one in json.loads(atoll("doctor", "--json", "--hub", str(invited)).out)}
    assert found["invitation"]["state"] == found["certificate"]["state"] == "ok"
    assert "login" not in found
    run(join_quietly(invited))  # it is still good
    forged = replace(invited, authority="00" * 32, expires=int(time.time()) - 5)
    ended = atoll("doctor", "--hub", str(forged))
    assert ended.code == 7
    words = " ".join(ended.out.split())
    assert "it has expired" in words
    assert "another authority than the hub's" in words


async def join_quietly(invited: Invitation) -> None:
    assert (await join(invited, B)).url == invited.url


def test_a_folder_that_is_no_site_is_said_where_it_was_named(tmp_path: Path) -> None:
    ended = atoll("doctor", "--site", str(tmp_path))
    assert (ended.code, "is not a site yet" in ended.err) == (2, True)
