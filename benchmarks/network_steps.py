"""What a step and a megabyte cost between two parties over a real hub with TLS.

    .venv/bin/python -m benchmarks.network_steps

*Step*: a message of 300 bytes to the other party and its answer, halved, with the journal synced and without.
*Throughput*: messages of 8 MB one way, until they are acknowledged, journal synced.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.networks import ThreadedParties, nats_carriers

from atoll.codec import Message
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own
from atoll.runtime.nats.sending import Timing
from atoll.study.model import Parameters, Party, Study

STEPS, SIZE, MESSAGES = 400, 8 << 20, 24


class Ping(Message, frozen=True):
    """Either way."""

    body: bytes


@dataclass
class Measured:
    steps: list[float] = field(default_factory=list)
    seconds: float = 0.0


def protocol_of_two(measured: Measured) -> Protocol:
    async def first(net: Network, study: Study, _: Own, __: Record) -> Learned:
        other = study.the("second")
        for _ in range(STEPS):
            began = time.perf_counter()
            await net.send(other, Ping(bytes(300)))
            await net.receive(Ping, other)
            measured.steps.append((time.perf_counter() - began) / 2)
        body, began = bytes(SIZE), time.perf_counter()
        for _ in range(MESSAGES):
            await net.send(other, Ping(body))
        await net.receive(Ping, other)
        measured.seconds = time.perf_counter() - began
        return Learned()

    async def second(net: Network, study: Study, _: Own, __: Record) -> Learned:
        other = study.the("first")
        for _ in range(STEPS):
            await net.send(other, await net.receive(Ping, other))
        for _ in range(MESSAGES):
            await net.receive(Ping, other)
        await net.send(other, Ping(b""))
        return Learned()

    return Protocol(
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


def main() -> None:
    from atoll.protocols import PROTOCOLS

    for durable in (True, False):
        measured = Measured()
        protocol = protocol_of_two(measured)
        PROTOCOLS._loaded["two"] = protocol  # starts look protocols up by name
        study = Study(name="two", protocol="two", parties=(Party("a", ("first",)), Party("b", ("second",))))
        with (
            tempfile.TemporaryDirectory() as hub,
            tempfile.TemporaryDirectory(dir=".") as folder,
            nats_carriers(Path(hub), ["a", "b"]) as carriers,
        ):
            engine = ThreadedParties(carriers, folder=Path(folder), durable=durable, timing=Timing())
            engine.run(protocol, study, {})
        steps = sorted(measured.steps)
        synced = "synced" if durable else "not synced"
        rate = SIZE * MESSAGES / measured.seconds / 1e6
        p50, p99 = statistics.median(steps), steps[int(0.99 * len(steps))]
        print(f"{synced:10}: step p50 {1e3 * p50:.2f} ms, p99 {1e3 * p99:.2f} ms; {rate:.0f} MB/s")


if __name__ == "__main__":
    main()
