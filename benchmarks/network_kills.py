"""Random ``kill -9`` of workers, nodes and the hub, over all studies of the contract.

    python -m benchmarks.network_kills --kills 1000 --seed 1
    python -m benchmarks.network_kills --only summation-shares --kills 5

Sites and hub are processes on this machine; each site's node takes part in one study after another. While
a study runs, a random one of its workers dies every now and then, at times a whole node, the hub, or the hub
with its storage. Every run must complete, all receipts must tell the same story, and whoever listens at the
hub must never see two payloads under one message id.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import struct
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from tests.support.examples import EXAMPLES, Example

from atoll.cli.one_machine import OneMachine, send_signal, worker_pid
from atoll.errors import AtollError
from atoll.privacy.ledger import Ledger
from atoll.protocols import resolve
from atoll.protocols.own import Own
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats import submit, wire
from atoll.runtime.nats.receipts import contradictions, read_receipt
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder
from atoll.study.model import Study

WAIT = 900.0
DEADLINE = 600.0


@dataclass
class Tally:
    """What was done and found."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: dict[str, str] = field(default_factory=dict)
    doubled: list[str] = field(default_factory=list)
    frames: int = 0
    contradictions: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        finished = all(phase == "finished" for phase in self.runs.values())
        return finished and not self.doubled and not self.contradictions


class Listener(threading.Thread):
    """Whoever has the hub: sees every frame, and notes which payload each message id has."""

    def __init__(self, machine: OneMachine, tally: Tally) -> None:
        super().__init__(daemon=True)
        self._machine, self._tally = machine, tally
        self._seen: dict[tuple[Any, ...], bytes] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                asyncio.run(self._listen())
            except Exception:  # the hub was killed: it comes back
                time.sleep(0.1)

    async def _listen(self) -> None:
        gone = asyncio.Event()

        async def closed() -> None:
            gone.set()

        client = await hubs.connect_locally(self._machine.hub, on_closed=closed)
        try:

            async def note(message: Any) -> None:
                self.note(message.data)

            await client.subscribe("a.in.>", cb=note)
            while not (self.over.is_set() or gone.is_set()):
                await asyncio.sleep(0.2)
        finally:
            await client.close()

    def note(self, frame: bytes) -> None:
        try:
            head = wire.Head._make(struct.unpack_from(wire._HEADER.format, frame))
        except struct.error:
            return
        if (
            head.version != wire.VERSION
            or head.kind != wire.DATA
            or len(frame) != wire.OVERHEAD + head.length
        ):
            return  # a control message
        self._tally.frames += 1
        key = (head.run, head.sender, head.to, head.seq)
        known = self._seen.setdefault(key, head.digest)
        if known != head.digest:
            self._tally.doubled.append(f"run {head.run.hex()} {head.sender}->{head.to} message {head.seq}")


class Campaign:
    """Sites with the tables of all chosen studies, and the killing."""

    def __init__(self, machine: OneMachine, names: list[str], seed: int) -> None:
        self.machine = machine
        self.tally = Tally()
        self.draw = random.Random(seed)
        self.examples: dict[str, Example] = {name: EXAMPLES[name]() for name in names}
        most = max(len(example.study.parties) for example in self.examples.values())
        self.sites = [f"site-{i}" for i in range(most)]
        for name in self.sites:
            machine.add_site(name)
        self.studies = {name: self._pinned(example.study) for name, example in self.examples.items()}
        tables: dict[str, list[str]] = {name: [] for name in self.sites}
        for name, example in self.examples.items():
            self._write_tables(name, example, tables)
        for name in self.sites:
            (machine.folder / f"{name}.toml").write_text("\n".join(tables[name]))

    def _pinned(self, study: Study) -> Study:
        parties = [
            structs.replace(party, fingerprint=self.machine.sites[site].fingerprint)
            for party, site in zip(study.parties, self.sites, strict=False)
        ]
        return resolve(structs.replace(study, parties=tuple(parties)))

    def _write_tables(self, name: str, example: Example, tables: dict[str, list[str]]) -> None:
        for party, site in zip(example.study.parties, self.sites, strict=False):
            for role, share in example.own.get(party.name, Own()).kept.items():
                folder = self.machine.sites[site].kept / name
                folder.mkdir(mode=0o700, exist_ok=True)
                (folder / role).write_bytes(share)
            island = example.islands.get(party.name)
            if island is None:
                continue
            data = island._table
            path = (
                self.machine.folder
                / f"{site}-{name}.{'parquet' if isinstance(data, pd.DataFrame) else 'npz'}"
            )
            if isinstance(data, pd.DataFrame):
                data.to_parquet(path, index=False)
            else:
                np.savez(path, X=data)
            capacity = f"capacity = {island.capacity}\n" if island.capacity else ""
            entry = f'["{name}"]\npath = "{path}"\nidentity = "{name}"\n{capacity}'
            tables[site].append(entry)
            self._open_account(site, name)

    def _open_account(self, site: str, name: str) -> None:
        path = self.machine.sites[site].ledger
        if not path.exists():
            Ledger.create(path).close()
        with Ledger(path) as ledger:
            ledger.set_budget(name, 1e6, 0.5)

    # ---- one study ----

    def run(self, name: str, kills: int) -> None:
        study = self.studies[name]
        sites = self.sites[: len(study.parties)]
        first = self.machine.sites[sites[0]]
        run = submit.submit(
            first, study, "a campaign", deadline=DEADLINE, data_set=self._data_set(name, 0)
        ).name
        folders = [RunFolder(self.machine.sites[site], run) for site in sites]
        for place, folder in enumerate(folders[1:], 1):
            _until(folder.review.exists)
            data_set = self._data_set(name, place)
            submit.asked(folder.site, Request(does="approve", run=run, data_set=data_set), 300)
        self._kill_some(sites, folders, kills)
        for folder in folders:
            state = submit.wait(folder, WAIT)
            if state.phase != "finished":
                self.tally.runs[name] = f"{state.phase} at {folder.site.folder.name}: {state.words}"
                return
        self.tally.runs[name] = "finished"
        self.tally.contradictions += contradictions([read_receipt(folder.receipt) for folder in folders])

    def _kill_some(self, sites: list[str], folders: list[RunFolder], kills: int) -> None:
        """So many, while the run goes on; between two of them there is time to get further."""
        before = sum(self.tally.kills.values())
        until = time.monotonic() + WAIT
        while sum(self.tally.kills.values()) < before + kills and time.monotonic() < until:
            time.sleep(self.draw.expovariate(1.0))
            if all(folder.end() is not None for folder in folders):
                return
            self._kill_one(sites, folders)

    def _data_set(self, name: str, place: int) -> str | None:
        party = self.examples[name].study.parties[place].name
        return name if party in self.examples[name].islands else None

    def _kill_one(self, sites: list[str], folders: list[RunFolder]) -> None:
        chance = self.draw.random()
        if chance < 0.12:
            self._kill_hub(wiped=chance < 0.04)
        elif chance < 0.25:
            site = self.draw.choice(sites)
            self.machine.kill(site)
            self.machine.start_node_again(site)
            self.tally.kills["node"] += 1
        else:
            pid = worker_pid(self.draw.choice(folders))
            if pid is not None and _is_worker(pid) and send_signal(pid, signal.SIGKILL):
                self.tally.kills["worker"] += 1

    def _kill_hub(self, *, wiped: bool) -> None:
        server = hubs.server_pid(self.machine.hub)
        self.machine.kill("hub")
        if server is not None:
            send_signal(server, signal.SIGKILL)
            _until(lambda: not _exists(server))
        if wiped:
            shutil.rmtree(self.machine.hub.path("storage"), ignore_errors=True)
        (self.machine.folder / "hub.log").write_text("")
        self.machine.start_hub()
        self.tally.kills["hub, storage wiped" if wiped else "hub"] += 1


def _is_worker(pid: int) -> bool:
    try:
        return b"atoll.runtime.nats.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


def _until(holds: Any, seconds: float = WAIT) -> None:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("it did not come to pass")
        time.sleep(0.02)


def campaign(
    names: list[str], kills: int, seed: int, folder: Path, *, per_run: int = 4, say: Any = print
) -> Tally:
    """Studies in turn until so many kills were done, each of them at least once."""
    with OneMachine(folder) as machine:
        made = Campaign(machine, names, seed)
        machine.start_hub()
        listener = Listener(machine, made.tally)
        listener.start()
        for site in made.sites:
            machine.start_node(
                site, "--data", str(machine.folder / f"{site}.toml"), "--deadline", str(DEADLINE)
            )
        for site in made.sites:
            _until(machine.sites[site].node_runs)
        number = 0
        try:
            while number < len(names) or sum(made.tally.kills.values()) < kills:
                name = names[number % len(names)]
                began = time.monotonic()
                try:
                    made.run(name, per_run)
                except (AtollError, TimeoutError) as error:
                    made.tally.runs[name] = f"{type(error).__name__}: {error}"
                how, took = made.tally.runs[name], time.monotonic() - began
                say(f"{name}: {how} in {took:.1f} s; {dict(made.tally.kills)}")
                number += 1
                if not made.tally.good:
                    break
        finally:
            listener.over.set()
            listener.join()
        return made.tally


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--per-run", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="studies whose name contains one of these")
    given = parser.parse_args()
    names = [n for n in EXAMPLES if not given.only or any(word in n for word in given.only)]
    with tempfile.TemporaryDirectory(prefix="atoll-kills-") as folder:
        tally = campaign(names, given.kills, given.seed, Path(folder) / "m", per_run=given.per_run)
        if not tally.good:
            kept = Path(tempfile.mkdtemp(prefix="atoll-kills-kept-"))
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            print(f"the folders are kept in {kept}")
    print(
        json.dumps(
            {
                "good": tally.good,
                "kills": dict(tally.kills),
                "frames": tally.frames,
                "doubled": tally.doubled,
                "contradictions": tally.contradictions,
                "not finished": {n: how for n, how in tally.runs.items() if how != "finished"},
            },
            indent=2,
        )
    )
    raise SystemExit(not tally.good)


if __name__ == "__main__":
    main()
