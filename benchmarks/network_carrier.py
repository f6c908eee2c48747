"""Frames through a hub: raw JetStream, Atoll's carrier, and whole messages of a run, TLS on for all.

    python -m benchmarks.network_carrier             the carrier against raw JetStream
    python -m benchmarks.network_carrier connections 500 connections on one hub: time and the server's memory

Sender and receiver are processes of their own. Raw JetStream is what a program without Atoll would do with
the same client: publish into a stream, pull from it, one account. Name the processor beside the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.js import errors as js_errors
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from tests.support.hub import address, admit, carrier, free_port, running

from atoll.crypto.identity import Identity
from atoll.runtime.nats import certificates, connection
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.connection import Login
from atoll.runtime.nats.hub_config import HubFolder, HubSettings
from atoll.runtime.nats.nats_carrier import NatsCarrier
from benchmarks.measure import show

SIZES = ((512 << 10, 600), (300, 40_000))
RAW = Login(b"r" * 32)
A, B = Identity(b"a" * 32), Identity(b"b" * 32)


# ---- one end, in a process of its own ----


async def raw_end(what: str, url: str, authority: str, size: int, count: int) -> None:
    client = await connection.connect(url, RAW, connection.tls_context(authority))
    if what == "send":
        await _wait_for_go()
        data = bytes(size)
        for _ in range(count):
            await client.publish("raw.frames", data)
        await client.flush(timeout=600)
    else:
        sub = await client.jetstream().pull_subscribe(
            "", stream="RAW", config=ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
        )
        print("ready", flush=True)
        got = 0
        while got < count:
            # More at once than the server lets wait for a client (64 MB) would end the connection.
            got += len(await sub.fetch(min(64, count - got), timeout=60))
        print("done", flush=True)
    await connection.abandon(client)


async def our_end(what: str, url: str, authority: str, size: int, count: int) -> None:
    me, other = (A, B) if what == "send" else (B, A)
    one = NatsCarrier(url, me, authority)
    await one.connect()
    if what == "send":
        await _wait_for_go()
        data = bytes(size)
        for _ in range(count):
            await one.publish(other.fingerprint, "bench", data)
        client = await one._connected()
        await client.flush(timeout=600)
    else:
        got = last = 0
        opened = one.frames("bench")
        print("ready", flush=True)
        async for arrived in opened:
            got += 1
            last = arrived.position
            if got == count:
                break
        print("done", flush=True)
        await opened.aclose()
        await one.forget("bench", last)
    await one.close()


async def _wait_for_go() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def end(kind: str, what: str, *rest: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.network_carrier", "end", kind, what, *map(str, rest)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def measured(kind: str, url: str, authority: Path, size: int, count: int) -> float:
    """Seconds from the first byte sent to the last received."""
    ends = [end(kind, what, url, authority, size, count) for what in ("receive", "send")]
    receiver, sender = ends
    try:
        for one in ends:
            _expect(one, "ready")
        time.sleep(0.5)  # the receiver's first request is on its way
        start = time.perf_counter()
        assert sender.stdin is not None
        sender.stdin.write("go\n")
        sender.stdin.flush()
        _expect(receiver, "done")
        took = time.perf_counter() - start
        for one in ends:
            one.wait(60)
        return took
    finally:
        for one in ends:
            one.kill()


def _expect(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != word:
        raise SystemExit(f"one end said {said!r} and not {word!r}")


# ---- the hubs ----


def raw_server(folder: Path) -> tuple[subprocess.Popen[bytes], str, Path]:
    """The same server with the same TLS, one account and one user."""
    folder.mkdir()
    own, port = certificates.new_authority("raw"), free_port()
    certificates.write_pair(own, folder / "ca.pem", folder / "ca.key")
    certificates.write_pair(certificates.new_server(own, ["localhost"]), folder / "s.pem", folder / "s.key")
    tls = f'tls {{ cert_file: "{folder}/s.pem", key_file: "{folder}/s.key", handshake_first: true }}'
    (folder / "raw.conf").write_text(
        f'listen: "127.0.0.1:{port}"\n{tls}\njetstream {{ store_dir: "{folder}/js" }}\n'
        f"authorization {{ users: [{{ nkey: {RAW.public} }}] }}\n"
    )
    process = subprocess.Popen([hubs.find_server(), "-c", folder / "raw.conf"], stderr=subprocess.DEVNULL)
    time.sleep(1)
    return process, f"tls://localhost:{port}", folder / "ca.pem"


async def raw_stream(url: str, authority: str) -> None:
    client: Client = await connection.connect(url, RAW, connection.tls_context(authority))
    js = client.jetstream()
    with contextlib.suppress(js_errors.NotFoundError):
        await js.delete_stream("RAW")
    await js.add_stream(StreamConfig(name="RAW", subjects=["raw.>"]))
    await connection.abandon(client)


async def our_hub(folder: Path) -> list[list[Any]]:
    hub = hubs.make(folder, HubSettings(name="localhost", listen="127.0.0.1", port=free_port()))
    admit(hub, (A, B))
    pem = folder / "ca.pem"
    rows = []
    async with running(hub):
        for size, count in SIZES:
            rows.append([await asyncio.to_thread(measured, "ours", address(hub).url, pem, size, count)])
    return rows


def compare() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        process, url, pem = raw_server(folder / "raw")
        raw = []
        try:
            for size, count in SIZES:
                asyncio.run(raw_stream(url, pem.read_text()))
                raw.append(measured("raw", url, pem, size, count))
        finally:
            process.terminate()
            process.wait()
        ours = asyncio.run(our_hub(folder / "hub"))
    rows = []
    for (size, count), plain, (took,) in zip(SIZES, raw, ours, strict=True):
        rates = [count / one for one in (plain, took)]
        megabytes = [size * rate / 1e6 for rate in rates]
        rows.append([f"{size:,} B x {count:,}", *rates, *megabytes, rates[1] / rates[0]])
    show(
        "Raw JetStream against the carrier, TLS on, two processes",
        ["frames", "raw msg/s", "ours msg/s", "raw MB/s", "ours MB/s", "ours / raw"],
        rows,
    )


# ---- many connections ----


async def connections(count: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        hub = hubs.make(
            Path(made) / "hub", HubSettings(name="localhost", listen="127.0.0.1", port=free_port())
        )
        sites = [Identity(number.to_bytes(32, "big")) for number in range(1, count + 1)]
        start = time.perf_counter()
        admit_all(hub, sites)
        admitted = time.perf_counter() - start
        start = time.perf_counter()
        async with running(hub) as up:
            up_after = time.perf_counter() - start
            carriers = [carrier(hub, one) for one in sites]
            start = time.perf_counter()
            await asyncio.gather(*(one.connect() for one in carriers))
            took = time.perf_counter() - start
            start = time.perf_counter()
            await asyncio.gather(*(_one_frame(carriers, number) for number in range(count)))
            reading = time.perf_counter() - start
            assert up.process is not None
            memory = _resident(up.process.pid)
            show(
                f"{count} parties connected to one hub",
                ["config s", "hub up s", "connect s", "a frame to each s", "server MB", "promise <="],
                [[admitted, up_after, took, reading, memory, 512]],
            )
            await asyncio.gather(*(one.close() for one in carriers))


def admit_all(hub: HubFolder, sites: list[Identity]) -> None:
    """All at once: one by one, the files would be written as often."""
    from atoll.runtime.nats.hub_config import Member

    with hub.changing() as change:
        change.set(
            parties={
                one.fingerprint: Member(f"site {number}", one.public.raw, Login.of(one).public, 0)
                for number, one in enumerate(sites)
            }
        )


async def _one_frame(carriers: list[NatsCarrier], number: int) -> None:
    me, other = carriers[number], carriers[number - 1]
    arrivals = me.frames("bench")
    await other.publish(me.me, "bench", b"x" * 100)
    await anext(arrivals)
    await arrivals.aclose()


def _resident(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def main() -> None:
    match sys.argv[1:]:
        case ["end", kind, what, url, authority, size, count]:
            run = raw_end if kind == "raw" else our_end
            asyncio.run(run(what, url, Path(authority).read_text(), int(size), int(count)))
        case ["connections", *rest]:
            asyncio.run(connections(int(rest[0]) if rest else 500))
        case _:
            compare()


if __name__ == "__main__":
    main()
