"""A secure sum by masks among many parties on one real hub: seconds, frames and the hub's memory.

    python -m benchmarks.network_sum                 500 parties, 10,000 values
    python -m benchmarks.network_sum 100 10000 4     parties, values, processes that hold them

Every party has a connection, keys, a journal (not synced) and threads of its own; a few processes hold them.
What is timed is the run: approvals, which each party would check on its own machine, are made before.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.hub import carrier, free_port
from tests.support.networks import identity_of, pinned, starts_of

from atoll.bench.sums import _vector
from atoll.data.island import Island
from atoll.estimators.base import parties
from atoll.protocols import protocol_of
from atoll.protocols.base import resolve
from atoll.protocols.own import Own, owned
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.hub_config import HubFolder, HubSettings
from atoll.runtime.nats.party import PartyOutcome, run_party
from atoll.runtime.nats.sending import Timing
from atoll.runtime.nats.starts import RunStart
from atoll.study.model import Study
from benchmarks.measure import show
from benchmarks.network_carrier import _resident, admit_all

PATIENT = Timing(deadline=600.0, beat=20.0, ask=10.0, grace=0.3, linger=60.0, group=0.05)
"""For many parties that share two cores."""


def study_of(islands: Mapping[str, Island], values: int) -> Study:
    made = Study(
        name="bench",
        analysis="sum",
        protocol="sum",
        secure_sum="masks",
        sum_options={},
        parties=parties(dict(islands), "contributor", "receiver"),
        parameters={"length": values},
        release={"total": ("receiver",)},
    )
    return pinned(resolve(protocol_of("sum"), made))


def hold(hub: HubFolder, starts: Mapping[str, RunStart], own: Mapping[str, Own], told: Connection) -> None:
    """Run some of the parties, each in threads of its own."""

    def one(name: str) -> PartyOutcome:
        start = starts[name]
        folder = Path(tempfile.mkdtemp())
        made = carrier(hub, identity_of(name))
        made._patience = 120
        return asyncio.run(
            run_party(
                start,
                own.get(name, Own()),
                folder,
                lambda: made,
                deadline=PATIENT.deadline,
                timing=PATIENT,
                durable=False,
            )
        )

    told.recv()
    with ThreadPoolExecutor(len(starts)) as threads:
        outcomes = dict(zip(starts, threads.map(one, starts), strict=True))
    totals = [
        learned.outputs["total"]
        for o in outcomes.values()
        for learned in o.learned.values()
        if learned.outputs
    ]
    told.send((totals, sum(o.counts.get("sent", 0) + o.counts.get("resent", 0) for o in outcomes.values())))


def measured(count: int, values: int, processes: int) -> list[Any]:
    islands = {f"island-{i}": Island(_vector(values, i), name=f"island-{i}") for i in range(count)}
    starts, own = starts_of(study_of(islands, values)), owned(islands)
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as stack:
        settings = HubSettings(name="localhost", listen="127.0.0.1", port=free_port())
        hub = hubs.make(Path(made) / "hub", settings)
        admit_all(hub, [identity_of(name) for name in starts])
        up = subprocess.Popen(
            [sys.executable, "-m", "atoll", "hub", "up", "--folder", str(hub.folder)],
            stderr=subprocess.DEVNULL,
        )
        stack.callback(up.wait)
        stack.callback(up.terminate)
        context = multiprocessing.get_context("fork")
        ends = []
        names = list(starts)
        for number in range(processes):
            mine = names[number::processes]
            here, there = context.Pipe()
            work = (hub, {n: starts[n] for n in mine}, {n: own[n] for n in mine if n in own}, there)
            process = context.Process(target=hold, args=work)
            process.start()
            stack.callback(process.kill)
            ends.append(here)
        while hubs.server_pid(hub) is None:
            time.sleep(0.2)
        time.sleep(5 + count / 50)  # the agent makes the inboxes
        start = time.perf_counter()
        for end in ends:
            end.send("go")
        answers = [end.recv() for end in ends]
        took = time.perf_counter() - start
        pid = hubs.server_pid(hub)
        memory = _resident(pid) if pid else float("nan")
    totals = [total for found, _ in answers for total in found]
    wanted = np.sum([_vector(values, number) for number in range(count)], axis=0).ravel()
    exact = len(totals) == 1 and bool(np.allclose(totals[0], wanted, rtol=1e-9))
    return [count, values, took, sum(sent for _, sent in answers), memory, exact]


def main() -> None:
    given = [int(one) for one in sys.argv[1:]]
    count, values, processes = given + [500, 10_000, 4][len(given) :]
    show(
        "A secure sum by masks over one hub, TLS on",
        ["parties", "values", "seconds", "messages sent", "hub MB", "exact"],
        [measured(count, values, processes)],
    )


if __name__ == "__main__":
    main()
