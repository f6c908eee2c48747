"""Random ``kill -9`` of workers, nodes and the hub, over all studies of the contract.

    python -m benchmarks.network_kills --kills 1000 --seed 1
    python -m benchmarks.network_kills --minutes 20 --seed 2 --record kills.jsonl
    python -m benchmarks.network_kills --only summation-shares --kills 5

Sites and hub are processes on this machine; started by root, each has a network namespace, a user and a home
of its own that no other sees. Each site's node takes part in several studies at a time. While
a study runs, a random one of its workers dies every now and then, at times a whole node, the hub, or the hub
with its storage. Every run must complete, all receipts must tell the same story, every ledger must have one
release for each run, and whoever listens at the hub must never see two payloads under one message id.
``--record`` adds a line for this campaign to a file and prints what all of its lines come to.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, same
from tests.support.nursery import ForkedMachine
from tests.support.opening import Opener
from tests.support.organisations import Organisations, organisations

from atoll.cli.one_machine import send_signal, worker_pid
from atoll.data.island import as_islands
from atoll.errors import AtollError
from atoll.privacy.ledger import Ledger
from atoll.protocols import Learned, protocol_of, resolve
from atoll.protocols.own import Own, owned
from atoll.runtime.execute import joined
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.nats import connection, kept, runs, submit, wire
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.receipts import contradictions, read_receipt
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.nats.starts import RunStart, begin
from atoll.runtime.result import load_result
from atoll.study.address import Address
from atoll.study.model import Study

WAIT = 7200.0
"""Seconds; a machine on which others work may stand still for minutes."""
DEADLINE = 600.0
Machines = ForkedMachine | Organisations


@dataclass
class Tally:
    """What was done and found."""

    kills: Counter[str] = field(default_factory=Counter)
    runs: dict[str, str] = field(default_factory=dict)
    doubled: list[str] = field(default_factory=list)
    frames: int = 0
    contradictions: list[str] = field(default_factory=list)
    booked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Finished runs by site and data set."""
    misbooked: list[str] = field(default_factory=list)
    finished: int = 0

    @property
    def good(self) -> bool:
        finished = all(phase == "finished" for phase in self.runs.values())
        return finished and not (self.doubled or self.contradictions or self.misbooked)


class Listener(threading.Thread):
    """Sees every frame at the hub and, with the keys of all parties, notes which payload a message id has."""

    def __init__(self, machine: Machines, tally: Tally) -> None:
        super().__init__(daemon=True)
        self._machine, self._tally = machine, tally
        self._seen: dict[tuple[Any, ...], bytes] = {}
        self._openers: dict[bytes, Opener] = {}
        self._early: list[tuple[str, bytes]] = []
        self.over = threading.Event()

    def run(self) -> None:
        self._machine.at_the_hub()
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
                self.note(message.subject.split(".")[2], message.data)

            await client.subscribe("a.in.>", cb=note)
            closed_ = asyncio.create_task(gone.wait())
            while not (self.over.is_set() or gone.is_set()):
                await asyncio.wait({closed_}, timeout=0.5)
                answered = asyncio.create_task(client.flush(timeout=10))  # not every end is told
                await asyncio.wait({closed_, answered}, return_when=asyncio.FIRST_COMPLETED)
                if answered.done():
                    answered.result()
                answered.cancel()
        finally:
            await connection.abandon(client)  # whatever state it is in

    def know(self, starts: dict[str, RunStart]) -> None:
        """The keys of a run that begins; frames that came before are looked at now."""
        opener = Opener(starts)
        self._openers[opener.run] = opener
        early, self._early = self._early, []
        for to, frame in early:
            self.note(to, frame)

    def note(self, to: str, frame: bytes) -> None:
        run = frame[1:17]
        if run not in self._openers:
            self._early.append((to, frame))
            return
        opened = self._openers[run](to, frame)
        if opened is None or opened[0].kind not in (wire.DATA, wire.SHARED):
            return
        head = opened[0]
        self._tally.frames += 1
        key = (run, head.sender, head.to, head.seq)
        known = self._seen.setdefault(key, head.digest)
        if known != head.digest:
            self._tally.doubled.append(f"run {run.hex()} {head.sender}->{head.to} message {head.seq}")


class Campaign:
    """Sites with the tables of all chosen studies, and the killing."""

    def __init__(self, machine: Machines, names: list[str], seed: int) -> None:
        self.machine = machine
        self.tally = Tally()
        self.listener = Listener(machine, self.tally)
        self.draw = random.Random(seed)
        self._learned: dict[str, Mapping[Address, Learned]] = {}
        self._files: dict[str, dict[str, str]] = {}
        self._calm = threading.RLock()
        """Held while a study is handed in, and while a node or the hub is down: one of the two at a time."""
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
            (machine.home(name) / f"{name}.toml").write_text("\n".join(tables[name]))

    def _pinned(self, study: Study) -> Study:
        parties = [
            structs.replace(party, fingerprint=self.machine.sites[site].fingerprint)
            for party, site in zip(study.parties, self.sites, strict=False)
        ]
        return resolve(structs.replace(study, parties=tuple(parties)))

    def _write_tables(self, name: str, example: Example, tables: dict[str, list[str]]) -> None:
        for party, site in zip(example.study.parties, self.sites, strict=False):
            for role, share in example.own.get(party.name, Own()).kept.items():
                at = self.machine.sites[site]
                kept.keep(at.kept, at.identity().public, name, role, share)
            island = example.islands.get(party.name)
            if island is None:
                continue
            frame = island.frame() if island.named else None
            path = self.machine.home(site) / f"{site}-{name}.{'npz' if frame is None else 'parquet'}"
            if frame is None:
                np.savez(path, X=island.frame().to_numpy())
            else:
                frame.to_parquet(path, index=False)
            self._files.setdefault(name, {})[party.name] = str(path)
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
        with self._calm, self.machine.acting(sites[0]):
            data_set = self._data_set(name, 0)
            run = submit.submit(
                first, study, "a campaign", deadline=DEADLINE, data_set=data_set, patience=WAIT
            ).name
        folders = [RunFolder(self.machine.sites[site], run) for site in sites]
        keys = []
        for place, folder in enumerate(folders[1:], 1):
            # Before the last approval nobody starts; after it the run may end before its key is looked at.
            keys.append((folders[place - 1].path / "key.bin").read_bytes())
            _until(folder.review.exists)
            data_set = self._data_set(name, place)
            with self._calm, self.machine.acting(sites[place]):
                submit.asked(folder.site, Request(does="approve", run=run, data_set=data_set), WAIT)
        _until(lambda: all(len(one.given(one.proposed())) == len(sites) for one in folders))
        starts = [_start(folder, key) for folder, key in zip(folders, keys, strict=False)]
        self.listener.know({start.me: start for start in starts})
        self._kill_some(sites, folders, kills)
        for folder in folders:
            state = submit.wait(folder, WAIT)
            if state.phase != "finished":
                self.tally.runs[name] = f"{state.phase} at {folder.site.folder.name}: {state.words}"
                return
        self.tally.runs.setdefault(name, "finished")
        self.tally.finished += 1
        self.tally.booked.update(
            (site, name) for place, site in enumerate(sites) if self._data_set(name, place)
        )
        self._check_results(name, folders)
        self.tally.contradictions += contradictions([read_receipt(folder.receipt) for folder in folders])

    def _check_results(self, name: str, folders: list[RunFolder]) -> None:
        """Each party has what is released to it and nothing else; where nothing is drawn, to the last bit."""
        study = self.studies[name]
        if name not in self._learned and self.examples[name].is_exact:
            own = owned(as_islands(self._files[name]))
            self._learned[name] = LocalEngine().run(protocol_of(study.protocol), study, own).learned
        for party, folder in zip(study.parties, folders, strict=True):
            due = joined({a: o for a, o in self._learned.get(name, {}).items() if a.party == party.name})
            found = dict(load_result(folder.result).outputs) if folder.result.exists() else {}
            released = {
                o
                for o in study.release
                if o != "encrypted" and any(a.party == party.name for a in study.receivers(o))
            }
            if (name in self._learned and not same(due, found)) or (released and not found):
                self.tally.contradictions.append(f"{name}: {party.name} has another result")

    def _kill_some(self, sites: list[str], folders: list[RunFolder], kills: int) -> None:
        """So many, while the run goes on; between two of them there is time to get further."""
        until = time.monotonic() + WAIT
        while kills and time.monotonic() < until:
            time.sleep(self.draw.expovariate(4.0))
            if all(folder.end() is not None for folder in folders):
                return
            kills -= self._kill_one(sites, folders)

    def _data_set(self, name: str, place: int) -> str | None:
        party = self.examples[name].study.parties[place].name
        return name if party in self.examples[name].islands else None

    def _kill_one(self, sites: list[str], folders: list[RunFolder]) -> bool:
        """Whether there was something to kill."""
        chance = self.draw.random()
        if chance < 0.13:
            with self._calm:
                self._kill_hub(wiped=chance < 0.045)
        elif chance < 0.24:
            site = self.draw.choice(sites)
            with self._calm:
                self.machine.kill(site)
                self.machine.start_node_again(site)
                self.until_it_runs(site)
            self.tally.kills["node"] += 1
        else:
            folder = self.draw.choice(folders)
            pid = worker_pid(folder)
            if pid is None or not _is_worker(pid, folder) or not send_signal(pid, signal.SIGKILL):
                return False
            self.tally.kills["worker"] += 1
        return True

    def until_it_runs(self, site: str) -> None:
        with self.machine.acting(site):
            _until(self.machine.sites[site].node_runs)

    def check_ledgers(self) -> None:
        """One release for each finished run, and nothing held back for one that is over."""
        for site in self.sites:
            path = self.machine.sites[site].ledger
            if not path.exists():
                continue
            with self.machine.acting(site), Ledger(path) as ledger:
                for name in self.examples:
                    found = ledger.debits(name)
                    releases = {debit.release_id for debit in found}
                    due = self.tally.booked[site, name] if releases else 0
                    if len(releases) != due or any(debit.state == "reserved" for debit in found):
                        self.tally.misbooked.append(f"{site}, {name}: {len(releases)} releases in {due} runs")

    def _kill_hub(self, *, wiped: bool) -> None:
        server = hubs.server_pid(self.machine.hub)
        self.machine.kill("hub")
        if server is not None:
            send_signal(server, signal.SIGKILL)
            _until(lambda: not _exists(server))
        if wiped:
            shutil.rmtree(self.machine.hub.path("storage"), ignore_errors=True)
        self.machine.log("hub").write_text("")
        self.machine.start_hub(WAIT)
        self.tally.kills["hub, storage wiped" if wiped else "hub"] += 1


def _start(folder: RunFolder, sealed: bytes) -> RunStart:
    identity, proposed = folder.site.identity(), folder.proposed()
    private = identity.unseal(sealed, runs._SEALED)
    return begin(identity, proposed, folder.given(proposed), private)


def _is_worker(pid: int, folder: RunFolder) -> bool:
    """Whether this process has the run's log open: its number may be another's by now."""
    log = (folder.path / "worker.log").resolve()
    try:
        return any(one.readlink() == log for one in Path(f"/proc/{pid}/fd").iterdir())
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
    names: list[str],
    kills: int,
    seed: int,
    folder: Path,
    *,
    per_run: int = 4,
    together: int = 1,
    seconds: float = 1e9,
    apart: bool = False,
    say: Any = print,
) -> Tally:
    """Studies in turn, some together, until so many kills were done, each of them at least once."""
    until = time.monotonic() + seconds
    sites = max(len(EXAMPLES[name]().study.parties) for name in names)
    with organisations(folder, sites) if apart else ForkedMachine(folder) as machine:
        made = Campaign(machine, names, seed)
        tally = made.tally
        machine.begin()
        machine.start_hub(WAIT)
        made.listener.start()
        for site in made.sites:
            machine.start_node(
                site, "--data", str(machine.home(site) / f"{site}.toml"), "--deadline", str(DEADLINE)
            )
        for site in made.sites:
            made.until_it_runs(site)
        number, turn = 0, threading.Lock()

        def one() -> str | None:
            """The next study; none if it is enough."""
            nonlocal number
            with turn:
                enough = tally.kills.total() >= kills or time.monotonic() > until
                if not tally.good or (number >= len(names) and enough):
                    return None
                number += 1
                return names[(number - 1) % len(names)]

        def work(_: int) -> None:
            while (name := one()) is not None:
                began = time.monotonic()
                try:
                    made.run(name, per_run)
                except (AtollError, TimeoutError) as error:
                    tally.runs[name] = f"{type(error).__name__}: {error}"
                how, took = tally.runs[name], time.monotonic() - began
                say(f"{name}: {how} in {took:.1f} s; {dict(tally.kills)}", flush=True)

        try:
            with ThreadPoolExecutor(together) as threads:
                list(threads.map(work, range(together)))
            made.check_ledgers()
        finally:
            made.listener.over.set()
            made.listener.join()
        return tally


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--per-run", type=int, default=8)
    parser.add_argument("--together", type=int, default=4, help="how many studies run at a time")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further study after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--apart",
        action=argparse.BooleanOptionalAction,
        default=os.geteuid() == 0,
        help="a network namespace and a user for each party; needs root",
    )
    parser.add_argument("--record", type=Path, help="a file to which this campaign's figures are added")
    parser.add_argument("--only", nargs="*", default=[], help="studies whose name contains one of these")
    given = parser.parse_args()
    names = [n for n in EXAMPLES if not given.only or any(word in n for word in given.only)]
    with tempfile.TemporaryDirectory(prefix="atoll-kills-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # every user must get to its own home
        tally = campaign(
            names,
            given.kills,
            given.seed,
            Path(folder) / "m",
            per_run=given.per_run,
            together=given.together,
            seconds=60 * given.minutes,
            apart=given.apart,
        )
        if not tally.good:
            kept_in = Path(tempfile.mkdtemp(prefix="atoll-kills-kept-"))
            shutil.copytree(folder, kept_in, dirs_exist_ok=True, ignore=shutil.ignore_patterns("nursery"))
            print(f"the folders are kept in {kept_in}")
    found = told(tally, given.seed, apart=given.apart)
    print(json.dumps(found, indent=2))
    if given.record:
        with given.record.open("a") as record:
            record.write(json.dumps(found) + "\n")
        print(
            json.dumps(sum_of([json.loads(line) for line in given.record.read_text().splitlines()]), indent=2)
        )
    raise SystemExit(not found["good"])


def told(tally: Tally, seed: int, *, apart: bool) -> dict[str, Any]:
    """One campaign, for a record."""
    return {
        "seed": seed,
        "apart": apart,
        "good": tally.good and tally.frames > 0,
        "kills": dict(tally.kills),
        "finished runs": tally.finished,
        "studies": len(tally.runs),
        "frames": tally.frames,
        "misbooked": tally.misbooked,
        "doubled": tally.doubled,
        "contradictions": tally.contradictions,
        "not finished": {n: how for n, how in tally.runs.items() if how != "finished"},
    }


def sum_of(record: list[dict[str, Any]]) -> dict[str, Any]:
    """What several campaigns come to; good if each was."""
    kills: Counter[str] = Counter()
    for one in record:
        kills.update(one["kills"])
    return {
        "campaigns": len(record),
        "seeds": [one["seed"] for one in record],
        "good": all(one["good"] for one in record),
        "kills": {**kills, "in all": kills.total()},
        **{what: sum(one[what] for one in record) for what in ("finished runs", "frames")},
    }


if __name__ == "__main__":
    main()
