"""Whole studies between processes: a hub, a node for each site, a worker for each run."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.support.network_sites import (
    OFFICE,
    decide,
    ended,
    office,
    sites,
    state_at,
    study_of,
    until,
)
from tests.support.running import atoll

import atoll as package
from atoll.cli.one_machine import OneMachine, send_signal, worker_pid
from atoll.data.island import as_islands
from atoll.errors import PartyLeft, RunError
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study
from atoll.runtime.nats import submit
from atoll.runtime.nats.receipts import contradictions, read_receipt
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.result import load_result
from atoll.study.model import Study

pytestmark = pytest.mark.timeout(600)
ISLANDS = ("north", "south")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nodes")


@pytest.fixture(scope="module")
def machine(place: Path):  # type: ignore[no-untyped-def]
    with sites(place) as made:
        yield made


def local(machine: OneMachine, place: Path, study) -> package.Result:  # type: ignore[no-untyped-def]
    islands = as_islands({name: str(place / f"{name}.csv") for name in ISLANDS})
    return run_study(study, owned(islands)).result


def folders(machine: OneMachine, run: str) -> dict[str, RunFolder]:
    return {name: RunFolder(site, run) for name, site in machine.sites.items()}


def test_a_study_between_processes_gives_what_one_process_gives(machine: OneMachine, place: Path) -> None:
    study = study_of(machine, ISLANDS)
    with office(machine):
        run = submit.submit(machine.sites[OFFICE], study, "a test").name
        for name in ISLANDS:
            decide(machine, name, run)
        assert ended(machine, OFFICE, run).phase == "finished"
        for name in ISLANDS:
            assert ended(machine, name, run).phase == "finished"
            until(lambda name=name: state_at(machine, name, run).answers[OFFICE].state == "finished", "told")
    at = folders(machine, run)
    joint, one = local(machine, place, study), load_result(at[OFFICE].result)
    assert np.array_equal(one["components"], joint["components"])
    assert np.array_equal(one["explained_variance"], joint["explained_variance"])
    # Every party has what the study releases to it, and nothing else.
    assert "explained_variance" not in load_result(at["north"].result)
    assert contradictions([read_receipt(folder.receipt) for folder in at.values()]) == []
    review = at["north"].review.read_text()
    assert "Reason given: a test" in review
    assert "Who learns what" in review
    for folder in at.values():
        # An ended run cannot start again, and its journal cannot be read.
        until(lambda folder=folder: not folder.has_key, "the run's key stays")
        assert sorted(path.name for path in folder.journal.iterdir()) == ["lock", "tombstone"]
        assert json.loads((folder.journal / "tombstone").read_text())["ended"] == "finished"
        assert not (folder.path.stat().st_mode & 0o077)
        assert not (folder.receipt.stat().st_mode & 0o077)


class Caught(NamedTuple):
    """A run whose parties have begun to exchange messages; the office's worker stands still."""

    study: Study
    run: str
    at: dict[str, RunFolder]
    held: int
    worker: int
    """At the island for which it was caught."""


def caught(machine: OneMachine, island: str, name: str, deadline: float = 60) -> Caught:
    """In the midst of a run; one that was too quick for this process is followed by another."""
    for attempt in range(20):
        study = study_of(machine, ISLANDS, name=f"{name} {attempt}")
        run = submit.submit(machine.sites[OFFICE], study, "a test", deadline=deadline).name
        for one in ISLANDS:
            decide(machine, one, run)
        at = folders(machine, run)
        until(lambda at=at: worker_pid(at[OFFICE]) is not None, "no worker at the office")  # type: ignore[misc]
        until(lambda at=at: at[island].progress() is not None, f"no worker at {island}")  # type: ignore[misc]
        held, worker = worker_pid(at[OFFICE]), worker_pid(at[island])
        assert held is not None
        assert worker is not None
        send_signal(held, signal.SIGSTOP)
        if at[OFFICE].end() is None and at[island].end() is None:
            return Caught(study, run, at, held, worker)
        send_signal(held, signal.SIGCONT)
        assert ended(machine, OFFICE, run).phase == "finished"
    raise AssertionError("no run was caught")


def test_a_run_goes_on_after_kill_9_of_node_and_worker(machine: OneMachine, place: Path) -> None:
    with office(machine):
        study, run, at, held, killed = caught(machine, "north", "killed")
        machine.kill("north")
        until(lambda: not send_signal(killed, 0), "a worker outlived its node")  # type: ignore[arg-type]
        machine.start_node_again("north")
        send_signal(held, signal.SIGCONT)
        assert ended(machine, OFFICE, run).phase == "finished"
        assert ended(machine, "north", run).starts == 2
    assert np.array_equal(
        load_result(at[OFFICE].result)["components"], local(machine, place, study)["components"]
    )
    assert contradictions([read_receipt(folder.receipt) for folder in at.values()]) == []


def test_a_declined_study_ends_for_everybody_and_says_who(machine: OneMachine) -> None:
    study = study_of(machine, ISLANDS, name="declined")
    with office(machine):
        run = submit.submit(machine.sites[OFFICE], study, "").name
        decide(machine, "north", run)
        decide(machine, "south", run, "decline", words="not this year")
        state = ended(machine, OFFICE, run)
        assert (state.phase, state.words) == ("declined", "south declined")
        assert state.answers["south"].words == "not this year"
        assert ended(machine, "north", run).phase == "declined"
    with pytest.raises(RunError, match="is declined"):
        decide(machine, "north", run)


def test_a_cancelled_study_ends_for_everybody(machine: OneMachine) -> None:
    study = study_of(machine, ISLANDS, name="cancelled")
    with office(machine):
        run = submit.submit(machine.sites[OFFICE], study, "").name
        decide(machine, "north", run)
        with pytest.raises(RunError, match="submitted elsewhere"):
            submit.asked(machine.sites["north"], Request(does="cancel", run=run))
        submit.asked(machine.sites[OFFICE], Request(does="cancel", run=run))
        assert ended(machine, "north", run).phase == "cancelled"


def test_a_silent_partner_is_named_within_the_deadline_everywhere(machine: OneMachine) -> None:
    """One dies for good in the middle of a run."""
    with office(machine):
        _, run, at, held, _ = caught(machine, "south", "silent", deadline=12)
        machine.kill("south")
        send_signal(held, signal.SIGCONT)
        state = ended(machine, OFFICE, run)
        assert state.phase == "failed"
        assert state.error == PartyLeft.__name__
        assert state.missing == ("south",)
        north = ended(machine, "north", run)
        assert (north.phase, north.missing) == ("failed", ("south",))
    machine.start_node_again("south")
    assert "south" in (machine.folder / "north.log").read_text().split("missing:")[-1]
    receipt = read_receipt(at["north"].receipt)
    assert (receipt.end.ended, receipt.end.missing) == ("failed", ("south",))


def test_unattended_nodes_approve_a_digest_once(machine: OneMachine, place: Path) -> None:
    study = study_of(machine, ISLANDS, name="unattended")
    for name in ISLANDS:
        machine.end(name)
        machine.start_node(name, "--data", str(place / f"{name}.csv"), "--approve", study.digest)
    with office(machine):
        run = submit.submit(machine.sites[OFFICE], study, "").name
        assert ended(machine, OFFICE, run).phase == "finished"
        again = submit.submit(machine.sites[OFFICE], study, "").name
        folder = RunFolder(machine.sites["north"], again)
        until(folder.review.exists, "no proposal")
        time.sleep(2)
        assert folder.state().phase == "proposed"
        submit.asked(machine.sites[OFFICE], Request(does="cancel", run=again))


def test_a_rehearsal_reads_no_data(machine: OneMachine, place: Path) -> None:
    """The rows of one table cannot be used: names and types of its columns are all that is taken of them."""
    table = place / "north.csv"
    kept = table.read_text()
    table.write_text(kept.splitlines()[0] + "\n" + "1.5,,2.5,0.5\n" * 20)
    try:
        with office(machine):
            run = submit.submit(machine.sites[OFFICE], study_of(machine, ISLANDS), "", rehearse=True).name
            for name in ISLANDS:
                decide(machine, name, run)
            assert ended(machine, OFFICE, run).phase == "finished"
    finally:
        table.write_text(kept)
    at = folders(machine, run)
    assert not any(folder.result.exists() for folder in at.values())
    assert read_receipt(at["north"].receipt).header.rehearse


def test_estimators_run_on_named_islands(machine: OneMachine, place: Path) -> None:
    site = machine.sites[OFFICE]
    for name in ISLANDS:
        site.set_partner(name, machine.sites[name].fingerprint)
    engine = package.NatsEngine(identity=site.folder, timeout=200, reason="from Python", deadline=60)
    here = package.PCA(2, accept_determined=True).fit(_arrays(place))
    study = engine.pinned(here.result_.study, site)
    assert [party.name for party in study.parties] == [*ISLANDS, OFFICE]
    import threading

    def approve() -> None:
        known: set[str] = set()
        while len(known) < len(ISLANDS):
            for name in ISLANDS:
                for path in machine.sites[name].runs.iterdir():
                    folder = RunFolder(machine.sites[name], path.name)
                    if name not in known and folder.review.exists() and folder.state().phase == "proposed":
                        decide(machine, name, path.name)
                        known.add(name)
            time.sleep(0.1)

    thread = threading.Thread(target=approve, daemon=True)
    thread.start()
    fitted = package.PCA(2, accept_determined=True, engine=engine).fit(list(ISLANDS))
    thread.join()
    assert np.array_equal(fitted.components_, here.components_)
    assert fitted.n_samples_ == 60
    assert {address.party for address in fitted.learned_} == {OFFICE}


def _arrays(place: Path) -> dict[str, str]:
    return {name: str(place / f"{name}.csv") for name in ISLANDS}


def test_commands_show_what_nodes_do_and_logs_have_no_secrets(machine: OneMachine, tmp_path: Path) -> None:
    north = str(machine.sites["north"].folder)
    shown = json.loads(atoll("node", "status", "--json", "--site", north).out)
    assert shown["node"] is True
    runs = json.loads(atoll("node", "runs", "--json", "--site", north).out)
    finished = [run for run in runs if run["phase"] == "finished" and run["result"]]
    assert finished
    assert atoll("node", "runs", "--site", north).code == 0
    verified = atoll("receipt", "verify", finished[0]["receipt"])
    assert verified.code == 0, verified.err
    written = atoll("study", "results", finished[0]["name"], "--site", north, "-o", str(tmp_path / "out"))
    assert written.code == 0, written.err
    assert list((tmp_path / "out").glob("*.atoll"))
    logged = atoll("node", "logs", "--site", north).out
    for line in logged.splitlines():
        assert set(json.loads(line)) <= {"at", "level", "from", "says", "process", "error"}
    secret = json.loads((machine.sites["north"].identity_file).read_text())["secret"]
    for path in machine.sites["north"].folder.rglob("*.log"):
        assert secret not in path.read_text()
