"""A secure sum by masks among many parties on one real hub: seconds, frames, and the hub's memory.

    python -m benchmarks.network_500                  500 parties, 10,000 values, sparse graph
    python -m benchmarks.network_500 --leave 10       and 10 are lost on their way, which the study allows
    python -m benchmarks.network_500 --parties 40     fewer
    python -m benchmarks.network_500 --local          all in one process: the sparse graph and the full one

Every party has a connection, keys and a journal (not synced) of its own; a few processes hold them.
What is timed runs from the moment at which all parties begin to connect until all have heard that everybody
is done. Approvals, which each party would check on its own machine, are made before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tests.support.hub import carrier, free_port
from tests.support.networks import identity_of, pinned, starts_of

import atoll
from atoll.bench.sums import _vector
from atoll.data.island import Island
from atoll.errors import AtollError
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.base import resolve
from atoll.protocols.own import Own, owned
from atoll.runtime.nats import connection
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.hub_config import HubFolder, HubSettings
from atoll.runtime.nats.network import Tap
from atoll.runtime.nats.party import PartyOutcome, run_party
from atoll.runtime.nats.sending import Timing
from atoll.runtime.nats.starts import RunStart
from atoll.secure_sums.masks import MaskedInput
from atoll.study.address import Address
from atoll.study.model import Study
from benchmarks.measure import seconds, show
from benchmarks.network_carrier import admit_all

PATIENT = Timing(deadline=600.0, beat=5.0, ask=10.0, grace=0.3, linger=60.0, group=0.05)
"""For many parties that share two cores."""
IMPATIENT = 20.0
"""The deadline where some are lost on purpose."""


class Lost(BaseException):
    """A party is lost: nothing more leaves it, and nobody is told."""


class LostBeforeItsInput(Tap):
    """Of a party that is lost when its keys and backups are with its neighbours, and its input is due."""

    def sent(self, sender: Address, to: Address, kind: str, size: int, digest: bytes) -> None:
        del sender, to, size, digest
        if kind == MaskedInput.__name__:
            raise Lost


def study_of(islands: Mapping[str, Island], values: int, options: Mapping[str, Any]) -> Study:
    made = Study(
        name="bench",
        analysis="sum",
        protocol="sum",
        secure_sum="masks",
        sum_options=options,
        parties=parties(dict(islands), "contributor", "receiver"),
        parameters={"length": values},
        release={"total": ("receiver",)},
    )
    return pinned(resolve(protocol_of("sum"), made))


@dataclass
class Held:
    """What one process says of the parties that it held."""

    totals: list[tuple[float, Any, tuple[str, ...]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    bytes_sent: int = 0
    failed: list[str] = field(default_factory=list)
    cpu: float = 0.0

    def note(self, outcome: PartyOutcome) -> None:
        self.counts.update(outcome.counts)
        self.bytes_sent += outcome.transcript.bytes
        for learned in outcome.learned.values():
            if learned.outputs:
                found = learned.outputs
                self.totals.append((time.time(), found["total"], tuple(found["islands"])))


def hold(
    hub: HubFolder,
    starts: Mapping[str, RunStart],
    own: Mapping[str, Own],
    lost: frozenset[str],
    told: Connection,
) -> None:
    """Run some of the parties: their links in one thread, their roles in another."""
    held, timing = Held(), PATIENT._replace(deadline=told.recv())
    links = asyncio.new_event_loop()
    threading.Thread(target=links.run_forever, daemon=True).start()

    async def one(name: str) -> None:
        made = carrier(hub, identity_of(name))
        made._patience = 120
        try:
            outcome = await run_party(
                starts[name],
                own.get(name, Own()),
                Path(tempfile.mkdtemp(dir=folder)),
                lambda: made,
                deadline=timing.deadline,
                timing=timing,
                durable=False,
                tap=LostBeforeItsInput() if name in lost else None,
                links=links,
            )
        except (AtollError, Lost) as error:
            held.failed.append(f"{name}: {type(error).__name__}: {error}"[:200])
        else:
            held.note(outcome)

    async def all_of_them() -> None:
        await asyncio.gather(*map(one, starts))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(all_of_them())
    held.cpu = time.process_time()
    told.send(held)


# ---- the hub ----


def peak(pid: int | None) -> float:
    """Megabytes that a process had at most."""
    if pid is None:
        return float("nan")
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


async def traffic(hub: HubFolder) -> dict[str, int]:
    """Connections, messages and bytes, as the hub's server counts them."""
    client = await hubs.connect_locally(hub, system=True)
    try:
        told = await client.request("$SYS.REQ.SERVER.PING.VARZ", b"", timeout=10)
    finally:
        await connection.abandon(client)
    answer = msgspec.json.decode(told.data)["data"]
    return {key: answer[key] for key in ("total_connections", "in_msgs", "out_msgs", "in_bytes", "out_bytes")}


@contextlib.contextmanager
def hub_for(names: list[str], folder: Path) -> Any:
    hub = hubs.make(folder, HubSettings(name="localhost", listen="127.0.0.1", port=free_port()))
    admit_all(hub, [identity_of(name) for name in names])
    up = subprocess.Popen(
        [sys.executable, "-m", "atoll", "hub", "up", "--folder", str(hub.folder)], stderr=subprocess.DEVNULL
    )
    try:
        while hubs.server_pid(hub) is None:
            time.sleep(0.2)
        time.sleep(5 + len(names) / 50)  # the agent makes the inboxes
        yield hub, up.pid
    finally:
        up.terminate()
        up.wait()


# ---- one run ----


def measured(count: int, values: int, processes: int, options: Mapping[str, Any], leave: int) -> list[Any]:
    islands = {f"island-{i}": Island(_vector(values, i), name=f"island-{i}") for i in range(count)}
    study = study_of(islands, values, options)
    starts, own = starts_of(study), owned(islands)
    names = list(starts)
    lost = frozenset(f"island-{7 + 3 * i}" for i in range(leave))
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        hub, agent = stack.enter_context(hub_for(names, Path(made) / "hub"))
        context = multiprocessing.get_context("fork")
        ends = []
        for number in range(processes):
            mine = names[number::processes]
            here, there = context.Pipe()
            work = (hub, {n: starts[n] for n in mine}, {n: own[n] for n in mine if n in own})
            process = context.Process(target=hold, args=(*work, lost, there))
            process.start()
            stack.callback(process.kill)
            ends.append(here)
        start, began = time.perf_counter(), time.time()
        for end in ends:
            end.send(IMPATIENT if leave else PATIENT.deadline)
        held = [end.recv() for end in ends]
        took = time.perf_counter() - start
        said = asyncio.run(traffic(hub))
        memory = peak(hubs.server_pid(hub)), peak(agent)
    failed = [one for h in held for one in h.failed if one.split(":")[0] not in lost]
    for one in failed[:5]:
        print(one)
    totals = [total for h in held for total in h.totals]
    at, total, present = totals[0] if totals else (float("nan"), None, ())
    wanted = np.sum([_vector(values, int(name.split("-")[1])) for name in present], axis=0).ravel()
    exact = total is not None and bool(np.allclose(total, wanted, rtol=1e-9))
    counts = sum((h.counts for h in held), Counter())
    return [
        count,
        len(present),
        at - began,
        took,
        *memory,
        said["total_connections"],
        counts["sent"] + counts["resent"],
        said["in_msgs"],
        (said["in_bytes"] + said["out_bytes"]) / 1e6,
        sum(h.cpu for h in held),
        exact and not failed,
    ]


COLUMNS = [
    "parties",
    "in the sum",
    "total after s",
    "all done after s",
    "server MB",
    "agent MB",
    "connections",
    "messages",
    "hub messages",
    "hub MB moved",
    "CPU s of parties",
    "exact",
]


# ---- in one process ----


def locally(count: int, values: int) -> None:
    vectors = [_vector(values, number).ravel() for number in range(count)]
    wanted, rows = np.sum(vectors, axis=0), []
    for shape in ("sparse", "full"):
        took, total = seconds(lambda shape=shape: atoll.secure_sum(vectors, "masks", graph=shape))  # type: ignore[misc]
        rows.append([shape, count, values, took, bool(np.allclose(total, wanted, rtol=1e-9))])
    show("A secure sum by masks, in one process", ["graph", "islands", "values", "seconds", "exact"], rows)


def show_all(row: list[Any]) -> None:
    """One line each: there are too many for a screen's width."""
    show(
        "A secure sum by masks over one hub, TLS on (promised: 60 s and 512 MB)",
        ["what", "is"],
        [list(one) for one in zip(COLUMNS, row, strict=True)],
    )


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--parties", type=int, default=500)
    given.add_argument("--values", type=int, default=10_000)
    given.add_argument("--processes", type=int, default=2)
    given.add_argument("--leave", type=int, default=0)
    given.add_argument("--colluders", type=int)
    given.add_argument("--local", action="store_true")
    asked = given.parse_args()
    if asked.local:
        locally(asked.parties, asked.values)
        return
    options: dict[str, Any] = {"graph": "sparse"}
    if asked.colluders is not None:
        options["colluders"] = asked.colluders
    if asked.leave:
        options["dropouts"] = asked.leave
    show_all(measured(asked.parties, asked.values, asked.processes, options, asked.leave))


if __name__ == "__main__":
    main()
