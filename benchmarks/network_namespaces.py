"""One study of every protocol and secure sum between organisations that share nothing but a hub.

    sudo .venv/bin/python -m benchmarks.network_namespaces [NAME ...]

Every party has a network namespace, an address, a user and a home of its own that no other sees; TLS is on,
and the hub is 20 ms away (40 ms between parties). Each site runs its node as its owner would; a script in the
owner's place approves what is proposed. Results must be those of one process to the last bit where nothing is
drawn; every role, run again from its journal, must send and learn the same; and all receipts must tell the
same story.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec import structs
from tests.support.examples import EXAMPLES, Example, same
from tests.support.kept_journals import KeptJournal
from tests.support.namespaces import HUB_NAME, Machine, machines

from atoll.data.island import as_islands
from atoll.privacy.ledger import Ledger
from atoll.protocols import protocol_of, resolve
from atoll.protocols.own import Own, owned
from atoll.runtime.execute import joined
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.nats import kept
from atoll.runtime.nats.receipts import contradictions, read_receipt
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.nats.site import Site
from atoll.runtime.result import load_result
from atoll.study.model import Study

DELAY = 0.02
SITE = ".local/share/atoll"

OWNER = """
import json, sys, time
from pathlib import Path
from atoll.errors import AtollError
from atoll.runtime.nats import submit
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder, every_run
from atoll.runtime.nats.site import Site
from atoll.runtime.nats.starts import read_study
site, tables = Site(), json.loads(Path("tables.json").read_text())
for path in sys.argv[1:]:
    study = read_study(Path(path).read_bytes())
    data_set = study.name if study.name in tables else None
    folder = submit.submit(site, study, "a benchmark", data_set=data_set, patience=600)
    print(study.name, folder.name, submit.wait(folder, 3000).phase, flush=True)
while not sys.argv[1:]:
    for folder, state in every_run(site):
        if state.phase == "proposed" and folder.review.exists():
            data_set = state.study if state.study in tables else None
            submit.asked(site, Request(does="approve", run=folder.name, data_set=data_set), 600)
    time.sleep(0.2)
"""


def chosen() -> list[str]:
    """The first example of every protocol, and of every secure sum."""
    found: dict[tuple[str, str, bool], str] = {}
    for name in sorted(EXAMPLES, key=lambda name: (name.startswith("dpdpca"), list(EXAMPLES).index(name))):
        study = EXAMPLES[name]().study
        added = study.secure_sum if study.protocol == "sum" else ""
        found.setdefault((study.protocol, added, study.partition == "vertical"), name)
    return list(found.values())


class Organisations:
    """As many machines as the largest study has parties, with the tables of all studies."""

    def __init__(self, hosts: dict[str, Machine], names: list[str]) -> None:
        self.hub, *self.sites = hosts.values()
        self.examples = {name: EXAMPLES[name]() for name in names}
        self._join()
        for site in self.sites:
            (site.home / "tables.json").write_text("{}")
        self.studies = {name: self._placed(name, example) for name, example in self.examples.items()}
        for site in self.sites:
            self._own(site)

    def _own(self, site: Machine) -> None:
        user = site.home.stat()
        for path in (site.home, *site.home.rglob("*")):
            with contextlib.suppress(FileNotFoundError):  # the node is at work, and files come and go
                shutil.chown(path, user.st_uid, user.st_gid)

    def _join(self) -> None:
        self.hub.run(f"atoll hub init {HUB_NAME}")
        self.hub.leave_running("atoll hub up")
        _until(lambda: "the agent answers" in self.hub.log(), "the hub is not up")
        invitations = {site: self.hub.run(f"atoll hub invite {site.name}").strip() for site in self.sites}
        for site in self.sites:
            site.run("atoll identity new")
        for site, invitation in invitations.items():
            site.run(f"atoll node join {invitation} --name {site.name}")

    def _site(self, machine: Machine) -> Site:
        return Site(machine.home / SITE)

    def _placed(self, name: str, example: Example) -> Study:
        """The study with everybody's fingerprint, and each table where its owner is."""
        parties = []
        for party, machine in zip(example.study.parties, self.sites, strict=False):
            site = self._site(machine)
            parties.append(structs.replace(party, fingerprint=site.fingerprint))
            for role, share in example.own.get(party.name, Own()).kept.items():
                kept.keep(site.kept, site.identity().public, name, role, share)
            if party.name in example.islands:
                self._write_table(machine, site, name, example, party.name)
        return resolve(structs.replace(example.study, name=name, parties=tuple(parties)))

    def _write_table(self, machine: Machine, site: Site, name: str, example: Example, party: str) -> None:
        island = example.islands[party]
        frame = island.frame() if island.named else None
        path = machine.home / f"{name}.{'npz' if frame is None else 'parquet'}"
        if frame is None:
            np.savez(path, X=island.frame().to_numpy())
        else:
            frame.to_parquet(path, index=False)
        known = json.loads((machine.home / "tables.json").read_text())
        (machine.home / "tables.json").write_text(json.dumps({**known, name: str(path)}))
        capacity = f"capacity = {island.capacity}\n" if island.capacity else ""
        with (machine.home / "tables.toml").open("a") as listed:
            listed.write(f'["{name}"]\npath = "{path}"\nidentity = "{name}"\n{capacity}')
        if not site.ledger.exists():
            Ledger.create(site.ledger).close()
        with Ledger(site.ledger) as ledger:
            ledger.set_budget(name, 1e6, 0.5)

    def run(self) -> list[str]:
        """All studies, one after the other; returns what is wrong."""
        for machine in self.sites:
            (machine.home / "owner.py").write_text(OWNER)
            data = "--data tables.toml" if (machine.home / "tables.toml").exists() else ""
            machine.leave_running(f"atoll node run --no-ask {data}")
        for machine in self.sites:
            log = machine.home / SITE / "node.log"  # a look at the lock by root would make it root's
            _until(lambda log=log: log.exists() and "is up" in log.read_text(), f"no node on {machine.name}")
        for machine in self.sites[1:]:
            machine.leave_running("exec python owner.py")
        first, wrong = self.sites[0], []
        for name, study in self.studies.items():
            (first.home / f"{name}.study").write_bytes(study.canonical())
            self._own(first)
            began = time.perf_counter()
            with self._journals(study) as journals:
                said = first.run(f"python owner.py {name}.study", timeout=3600).split()
            seconds = time.perf_counter() - began
            found = self._wrong(name, said[1], journals) if said[2] == "finished" else [f"{name} {said[2]}"]
            print(f"{name:28} {said[2]} in {seconds:5.1f} s  {'; '.join(found) or 'good'}", flush=True)
            wrong += found
        return wrong

    @contextmanager
    def _journals(self, study: Study) -> Iterator[dict[str, KeptJournal]]:
        """Those of every party in whatever run begins now."""
        sites = dict(zip((party.name for party in study.parties), self.sites, strict=False))
        before = {run.name for run in self._site(self.sites[0]).runs.iterdir()}
        journals: dict[str, KeptJournal] = {}
        over = threading.Event()

        def hold() -> None:
            while not (
                over.wait(0.05) or (journals and sum(one.hold() for one in journals.values()) == len(sites))
            ):
                new = {run.name for run in self._site(self.sites[0]).runs.iterdir()} - before
                for run in new if not journals else ():
                    for party, machine in sites.items():
                        site = self._site(machine)
                        place = machine.home.parent.parent / "journals" / run / party
                        journals[party] = KeptJournal(RunFolder(site, run), site.identity(), place)

        holding = threading.Thread(target=hold)
        holding.start()
        try:
            yield journals
        finally:
            over.set()
            holding.join()

    def _wrong(self, name: str, run: str, journals: dict[str, KeptJournal]) -> list[str]:
        study, example = self.studies[name], self.examples[name]
        parties = [party.name for party in study.parties]
        folders = [self._site(machine).runs / run for machine in self.sites[: len(parties)]]
        for folder in folders:
            _until((folder / "end.json").exists, f"{name} did not end at {folder}")
        wrong = contradictions([read_receipt(folder / "receipt" / "receipt.jsonl") for folder in folders])
        homes = dict(zip(parties, self.sites, strict=False))
        files = {p: json.loads((homes[p].home / "tables.json").read_text())[name] for p in example.islands}
        islands = as_islands(files)
        learned = {}
        if example.is_exact:
            learned = LocalEngine().run(protocol_of(study.protocol), study, owned(islands)).learned
        for party, folder in zip(parties, folders, strict=True):
            path = folder / "result.atoll"
            result = dict(load_result(path).outputs) if path.exists() else {}
            due = joined({a: one for a, one in learned.items() if a.party == party})
            if example.is_exact and not same(due, result):
                wrong.append(f"{party} has another result")
            own = replace(example.own.get(party, Own()), island=islands.get(party))
            wrong += journals[party].differences(own, result)
        return wrong


def _until(holds: object, words: str, seconds: float = 3600) -> None:
    until = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError(words)
        time.sleep(0.1)


def campaign(names: list[str]) -> list[str]:
    """Run them all; returns what is wrong."""
    most = max(len(EXAMPLES[name]().study.parties) for name in names)
    hosts = ("hub", *(f"site-{i}" for i in range(most)))
    with (
        tempfile.TemporaryDirectory(prefix="atoll-machines-", ignore_cleanup_errors=True) as folder,
        machines(Path(folder), hosts, hub="hub", delay=DELAY) as made,
    ):
        return Organisations(made, names).run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names or chosen()
    wrong = campaign(names)
    print("all is well" if not wrong else f"{len(wrong)} things are wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
