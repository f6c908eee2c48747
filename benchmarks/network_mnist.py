"""MNIST by SF-PCA over six providers and a coordinator, each with a node and a worker process of its own.

    ATOLL_DATA=FOLDER .venv/bin/python -m benchmarks.network_mnist [--rows N]

FOLDER has ``mnist_train.npz``. One call runs, one after the other: the local engine; raw JetStream with as
many bytes as the messages of the run have; the nodes over a hub with TLS; the nodes again, with the worker of
one provider killed half-way (``kill -9``). Times of nodes count from the last approval to the end of the last
party, starts of worker processes included. Uplink: what the server got on the connections of the coordinator.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from atoll.bench.figure5 import CASES, data_folder, load
from atoll.cli.one_machine import OneMachine, send_signal, worker_pid
from atoll.data.island import as_islands
from atoll.estimators.pca.estimator import PCA
from atoll.estimators.pca.sfpca import SFPCA
from atoll.protocols import resolve
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.nats import connection, subjects, submit, wire
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder
from atoll.study.model import Party, Study
from benchmarks.measure import show
from benchmarks.network_carrier import measured as raw_measured
from benchmarks.network_carrier import raw_server, raw_stream

PROVIDERS, CASE, KILLED, MIDDLE = 6, CASES["mnist"], "site-3", "middle"
WAIT = 280.0
FRAMES = 600


def estimator(engine: Any = None) -> PCA:
    return PCA(CASE.n_components, protocol="sfpca", bounds=CASE.bounds, accept_determined=True, engine=engine)


def blocks(folder: Path, rows: int) -> dict[str, Any]:
    X = load(folder, CASE)[: rows or None]
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    return {f"site-{i}": block for i, block in enumerate(np.array_split(X, PROVIDERS))}


# ---- the local engine, in a process of its own ----


def local(folder: Path, rows: int) -> None:
    given = blocks(folder, rows)
    began = time.perf_counter()
    fitted = estimator(LocalEngine()).fit(given)
    took = time.perf_counter() - began
    said = {"seconds": took, "bytes": fitted.transcript_.bytes, "components": fitted.components_.tolist()}
    print(json.dumps(said))


def raw_seconds(folder: Path, total: int) -> float:
    """Raw JetStream: as many bytes in frames of the same length, through one stream.

    From the rate of the first 300 MB: a server drops what is published faster than it stores.
    """
    process, url, pem = raw_server(folder)
    try:
        asyncio.run(raw_stream(url, pem.read_text()))
        return raw_measured("raw", url, pem, wire.CHUNK, FRAMES) * total / (FRAMES * wire.CHUNK)
    finally:
        process.terminate()
        process.wait()


# ---- nodes ----


class Watch(threading.Thread):
    """Peak memory of every worker, by site, and the largest small journal."""

    def __init__(self, folders: dict[str, RunFolder]) -> None:
        super().__init__(daemon=True)
        self._folders = folders
        self.peak: dict[str, dict[int, float]] = defaultdict(dict)
        self.small: dict[str, int] = defaultdict(int)
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            for name, folder in self._folders.items():
                pid, small = worker_pid(folder), folder.journal / "small"
                try:
                    status = Path(f"/proc/{pid}/status").read_text()
                    self.peak[name][pid or 0] = int(status.split("VmHWM:")[1].split()[0]) / 1024
                    self.small[name] = max(self.small[name], small.stat().st_size)
                except (OSError, IndexError):
                    continue  # it has not begun, or has ended


async def uplink(machine: OneMachine, fingerprint: str) -> int:
    """Bytes that the server got from a party, on open and closed connections."""
    client = await hubs.connect_locally(machine.hub, system=True)
    try:
        asked = msgspec.json.encode({"auth": True, "limit": 4096, "state": 2})
        told = await client.request("$SYS.REQ.SERVER.PING.CONNZ", asked, timeout=10)
    finally:
        await connection.abandon(client)
    found: Any = msgspec.json.decode(told.data)["data"]["connections"]
    account = subjects.party_account(fingerprint)
    return sum(one.get("in_bytes", 0) for one in found if one.get("account") == account)


class Nodes:
    """A hub and seven sites."""

    def __init__(self, machine: OneMachine, given: dict[str, Any]) -> None:
        self.machine = machine
        self.names = [*given, MIDDLE]
        for name in self.names:
            machine.add_site(name)
            options = []
            if name in given:
                path = machine.folder / f"{name}.npz"
                np.savez(path, X=given[name])
                options = ["--data", str(path)]
            machine._options[name] = tuple(options)
        self.study = self._pinned(given)

    def _pinned(self, given: dict[str, Any]) -> Study:
        study = SFPCA().study(estimator(), as_islands(given))
        parties = [Party(name, ("provider",)) for name in given]
        parties.append(Party(MIDDLE, ("coordinator", "consumer")))
        pinned = [structs.replace(p, fingerprint=self.machine.sites[p.name].fingerprint) for p in parties]
        return resolve(structs.replace(study, parties=tuple(pinned)))

    def start(self) -> None:
        self.machine.start_hub()
        for name in self.names:
            self.machine.start_node(name, *self.machine._options[name])
        for name in self.names:
            _until(self.machine.sites[name].node_runs)

    def run(self, kill_after: float | None = None) -> dict[str, Any]:
        """One study; seconds, memory, journals and the coordinator's uplink."""
        sites = self.machine.sites
        fingerprint = sites[MIDDLE].fingerprint
        before = asyncio.run(uplink(self.machine, fingerprint))
        run = submit.submit(sites[MIDDLE], self.study, "a benchmark", deadline=WAIT).name
        folders = {name: RunFolder(sites[name], run) for name in self.names}
        for name, folder in folders.items():
            if name != MIDDLE:
                _until(folder.review.exists)
                submit.asked(folder.site, Request(does="approve", run=run), 120)
        began, watch = time.perf_counter(), Watch(folders)
        watch.start()
        if kill_after is not None:
            time.sleep(kill_after)
            pid = worker_pid(folders[KILLED])
            assert pid is not None
            assert send_signal(pid, signal.SIGKILL)
        for name, folder in folders.items():
            state = submit.wait(folder, WAIT)
            if state.phase != "finished":
                raise SystemExit(f"{name}: {state.phase}, {state.words}")
        took = time.perf_counter() - began
        watch.over.set()
        up = asyncio.run(uplink(self.machine, fingerprint)) - before
        return {
            "seconds": took,
            "uplink": up / 1e9,
            "peak": {name: max(found.values()) for name, found in watch.peak.items()},
            "workers": {name: len(found) for name, found in watch.peak.items()},
            "small": {name: size / 1e6 for name, size in watch.small.items()},
            "result": folders[MIDDLE].result,
        }


def _until(holds: Any, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("it did not come to pass")
        time.sleep(0.02)


def main(folder: Path, rows: int) -> None:
    command = [sys.executable, "-m", "benchmarks.network_mnist", "--local", "--rows", str(rows)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    alone = json.loads(said.splitlines()[-1])
    print(f"local engine: {alone['seconds']:.1f} s, messages of {alone['bytes'] / 1e9:.2f} GB", flush=True)
    with tempfile.TemporaryDirectory(dir=".", prefix="mnist-") as made:
        plain = raw_seconds(Path(made) / "raw", alone["bytes"])
        print(f"raw JetStream, the same bytes: {plain:.1f} s", flush=True)
        with OneMachine(Path(made).absolute() / "m") as machine:
            nodes = Nodes(machine, blocks(folder, rows))
            nodes.start()
            whole = nodes.run()
            print(f"nodes: {whole['seconds']:.1f} s", flush=True)
            killed = nodes.run(kill_after=whole["seconds"] / 2)
    report(alone, plain, whole, killed)


def report(alone: dict[str, Any], plain: float, whole: dict[str, Any], killed: dict[str, Any]) -> None:
    allowed = alone["seconds"] + 2.5 * plain
    memory = killed["peak"][KILLED] / whole["peak"][KILLED]
    small = max(*whole["small"].values(), *killed["small"].values())
    show(
        "MNIST by SF-PCA over six providers' nodes and a coordinator's",
        ["what", "is", "promise <="],
        [
            ["seconds", whole["seconds"], allowed],
            ["one worker killed, of that", killed["seconds"] / whole["seconds"], 1.5],
            ["its workers", killed["workers"][KILLED], "2"],
            ["its peak memory, of an unkilled one", memory, 1.2],
            ["largest small journal, MB", small, 1.0],
            ["coordinator's uplink, GB", whole["uplink"], 0.5],
            ["the same with a kill, GB", killed["uplink"], ""],
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--rows", type=int, default=0)
    asked = parser.parse_args()
    (local if asked.local else main)(data_folder(None), asked.rows)
