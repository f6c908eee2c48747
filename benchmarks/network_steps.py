"""What a step, a message and a megabyte cost between two parties over a hub, beside raw JetStream, TLS on.

    .venv/bin/python -m benchmarks.network_steps [synced|unsynced]

Each party is a process of its own, as is the hub's server. *Step*: a message of 300 bytes to the other
party and its answer, halved, with the journal synced and without. *Messages*: 300 bytes one way, as fast as
they go; *megabytes*: 8 MB each, until all are acknowledged. Raw JetStream is what a program without Atoll
would do with the same client and frames of the same lengths (``network_carrier``), in the same run.
"""

from __future__ import annotations

import asyncio
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from tests.support.hub import address, admit, free_port, running
from tests.support.networks import identity_of, pinned, starts_of

from atoll.codec import Message
from atoll.network import Network, Record
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Learned, Protocol, resolve
from atoll.protocols.own import Own
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats import wire
from atoll.runtime.nats.hub_config import HubSettings
from atoll.runtime.nats.nats_carrier import NatsCarrier
from atoll.runtime.nats.party import run_party
from atoll.study.model import Parameters, Party, Study
from benchmarks.measure import show
from benchmarks.network_carrier import measured as raw_measured
from benchmarks.network_carrier import raw_server, raw_stream

STEPS, SMALL, MANY, SIZE, MESSAGES = 400, 300, 10_000, 8 << 20, 40
FIGURES: dict[str, Any] = {}


class Ping(Message, frozen=True):
    """Either way."""

    body: bytes


async def first(net: Network, study: Study, _: Own, __: Record) -> Learned:
    other, steps = study.the("second"), []
    for _ in range(STEPS):
        began = time.perf_counter()
        await net.send(other, Ping(bytes(SMALL)))
        await net.receive(Ping, other)
        steps.append((time.perf_counter() - began) / 2)
    for name, size, count in (("many", SMALL, MANY), ("large", SIZE, MESSAGES)):
        body, began = bytes(size), time.perf_counter()
        for _ in range(count):
            await net.send(other, Ping(body))
        await net.receive(Ping, other)
        FIGURES[name] = time.perf_counter() - began
    steps.sort()
    FIGURES["p50"], FIGURES["p99"] = statistics.median(steps), steps[int(0.99 * len(steps))]
    return Learned()


async def second(net: Network, study: Study, _: Own, __: Record) -> Learned:
    other = study.the("first")
    for _ in range(STEPS):
        await net.send(other, await net.receive(Ping, other))
    for count in (MANY, MESSAGES):
        for _ in range(count):
            await net.receive(Ping, other)
        await net.send(other, Ping(b""))
    return Learned()


PROTOCOL = Protocol(
    name="two",
    title="",
    roles={"first": first, "second": second},
    data_roles=frozenset(),
    messages=(Ping,),
    parameters=Parameters,
    outputs={},
    learns=lambda _: [],
    adversary="",
    single_roles=frozenset({"first", "second"}),
    uses_sum=False,
)
PROTOCOLS._loaded["two"] = PROTOCOL  # starts look protocols up by name


# ---- one party, in a process of its own ----


def end(given: Path) -> None:
    name, start, url, authority, folder, durable = pickle.loads(given.read_bytes())  # noqa: S301 - from below

    def carrier() -> NatsCarrier:
        return NatsCarrier(url, identity_of(name), authority)

    asyncio.run(run_party(start, Own(), folder, carrier, protocol=PROTOCOL, durable=durable))
    if FIGURES:
        print(msgspec.json.encode(FIGURES).decode(), flush=True)


async def ours(folder: Path, *, durable: bool) -> dict[str, float]:
    study = Study(name="two", protocol="two", parties=(Party("a", ("first",)), Party("b", ("second",))))
    starts = starts_of(pinned(resolve(PROTOCOL, study)))
    settings = HubSettings(name="localhost", listen="127.0.0.1", port=free_port())
    hub = hubs.make(folder / "hub", settings)
    admit(hub, [identity_of(name) for name in starts])
    async with running(hub):
        at, ends = address(hub), []
        for name, start in starts.items():
            given = folder / f"{name}.pickle"
            given.write_bytes(pickle.dumps((name, start, at.url, at.ca, folder / name, durable)))
            command = [sys.executable, "-m", "benchmarks.network_steps", "end", given]
            ends.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        try:
            said = [(await asyncio.to_thread(one.communicate))[0] for one in ends]
        finally:
            for one in ends:
                one.kill()
    figures: dict[str, float] = msgspec.json.decode(b"".join(said))
    return figures


def raw(folder: Path) -> dict[str, float]:
    """The same frames through one stream of the same server."""
    process, url, pem = raw_server(folder)
    took = {}
    try:
        for name, size, count in (
            ("many", wire.frame_bytes(SMALL + 20), MANY),
            ("large", wire.frame_bytes(wire.CHUNK), MESSAGES * SIZE // wire.CHUNK),
        ):
            asyncio.run(raw_stream(url, pem.read_text()))
            took[name] = raw_measured("raw", url, pem, size, count)
    finally:
        process.terminate()
        process.wait()
    return took


def main(kinds: list[str]) -> None:
    rows = []
    with tempfile.TemporaryDirectory(dir=".") as made:
        plain = raw(Path(made) / "raw")
        for kind in kinds or ["synced", "unsynced"]:
            (Path(made) / kind).mkdir()
            got = asyncio.run(ours(Path(made) / kind, durable=kind == "synced"))
            rates = MANY / got["many"], SIZE * MESSAGES / got["large"] / 1e6
            shares = [plain[name] / got[name] for name in ("many", "large")]
            rows.append([kind, 1e3 * got["p50"], 1e3 * got["p99"], rates[0], shares[0], rates[1], shares[1]])
    show(
        f"Two parties over a hub with TLS; raw JetStream {MANY / plain['many']:,.0f} msg/s and"
        f" {SIZE * MESSAGES / plain['large'] / 1e6:,.0f} MB/s",
        ["journal", "step p50 ms", "p99 ms", "msg/s", "of raw", "MB/s", "of raw"],
        rows,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["end"]:
        from benchmarks import network_steps

        network_steps.end(Path(sys.argv[2]))  # its messages must be those of the module, not of __main__
    else:
        from benchmarks import network_steps

        network_steps.main(sys.argv[1:])
