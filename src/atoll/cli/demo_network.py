"""``atoll demo --network``: the demo between processes, one of which is killed half-way and goes on."""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from atoll.cli import console
from atoll.cli.one_machine import OneMachine, send_signal, worker_pid
from atoll.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.runtime.nats.runs import RunFolder, State
    from atoll.runtime.result import Result
    from atoll.study.load import StudyFile
    from atoll.study.model import Study

SUBMITTER = "university"
KILLED = "valley-hospital"
SECONDS = 300.0


def demo_network(output: Path, *, shown: bool) -> dict[str, Any]:
    """Run it; what happened as plain data."""
    from atoll.cli.hospitals import hospitals, write_study
    from atoll.cli.outputs import write_result, written_together
    from atoll.runtime.result import load_result
    from atoll.runtime.studies import open_study

    screen = console.out() if shown else None
    with tempfile.TemporaryDirectory(prefix="atoll-network-") as place, written_together(output) as folder:
        file = open_study(write_study(folder))
        with OneMachine(Path(place)) as machine:
            study = _set_up(machine, file, folder, list(hospitals()), screen)
            run, state = _run(machine, study, screen)
            if state.phase != "finished":
                raise RunError(f"the run was {state.phase}: {state.words}")
            result = load_result(run.result)
            agree = _same_as_local(result, file)
            receipts = _receipts(machine, run.name, folder)
            files = [output / path.name for path in write_result(result, folder)]
            _report(result, agree, receipts, output, screen)
    return {
        "digest": study.digest,
        "run": state.run,
        "same_as_local": agree,
        "receipts": len(receipts),
        "killed": KILLED,
        "files": [str(path) for path in files],
    }


def _set_up(
    machine: OneMachine, file: StudyFile, folder: Path, hospitals: list[str], screen: Console | None
) -> Study:
    from atoll.crypto.identity import words

    for name in (*hospitals, SUBMITTER):
        machine.add_site(name)
    study = pinned(file.study, machine)
    if screen:
        screen.print("[bold]A hub and three hospitals, each a process of its own on this machine.[/]")
        screen.print("Every party has keys; the study names their fingerprints, which people compare:\n")
        made = console.table("party", "fingerprint in words")
        for party in study.parties:
            made.add_row(party.name, words(party.fingerprint or "").replace("-", " "))
        screen.print(made)
        screen.print()
    machine.start_hub()
    for name in hospitals:
        machine.start_node(name, "--data", str(folder / f"{name}.csv"), "--deadline", "120")
    return study


def pinned(study: Study, machine: OneMachine) -> Study:
    """The study with everybody's key; the university plays what no hospital plays."""
    import msgspec

    from atoll.protocols import resolve
    from atoll.study.model import Party

    kept = [
        msgspec.structs.replace(party, fingerprint=machine.sites[party.name].fingerprint)
        for party in study.parties
        if party.name in machine.sites and party.name != SUBMITTER
    ]
    rest = [
        role for party in study.parties if party.name not in {k.name for k in kept} for role in party.roles
    ]
    mine = Party(SUBMITTER, tuple(rest), machine.sites[SUBMITTER].fingerprint)
    return resolve(msgspec.structs.replace(study, parties=(*kept, mine)))


def _run(machine: OneMachine, study: Study, screen: Console | None) -> tuple[RunFolder, State]:
    from atoll.runtime.nats import submit
    from atoll.runtime.nats.node import Options

    site = machine.sites[SUBMITTER]
    _say(screen, f"{SUBMITTER} submits the study: “one map of all tumours”")
    with submit.node_of(site, site.identity(), Options(lookup=submit.lookup, deadline=120)):
        run = submit.submit(site, study, "one map of all tumours", deadline=120)
        _approve_all(machine, run.name, screen)
        _kill_half_way(machine, run, screen)
        state = submit.wait(run, SECONDS)
        submit.until_told(site)
    return run, state


def _approve_all(machine: OneMachine, name: str, screen: Console | None) -> None:
    """Each hospital decides for itself, as a person would at its terminal."""
    from atoll.runtime.nats.requests import Request
    from atoll.runtime.nats.runs import RunFolder
    from atoll.runtime.nats.submit import asked

    for place, (hospital, site) in enumerate(machine.sites.items()):
        if hospital == SUBMITTER:
            continue
        folder = RunFolder(site, name)
        _until(lambda folder=folder: folder.review.exists(), f"{hospital} got no proposal")
        if screen and place == 0:
            screen.print(f"\n[dim]— the review that {hospital} reads, its first lines —[/]")
            for line in folder.review.read_text(encoding="utf-8").splitlines()[:24]:
                screen.print(f"│ {line}"[:79], markup=False, style="dim")
            screen.print("[dim]│ ...[/]\n")
        asked(site, Request(does="approve", run=name))
        _say(screen, f"{hospital} approves this one run")


def _kill_half_way(machine: OneMachine, run: RunFolder, screen: Console | None) -> None:
    """Kill one hospital in the middle. The university is held meanwhile, or it would be over too soon."""
    from atoll.runtime.nats.runs import RunFolder

    folder = RunFolder(machine.sites[KILLED], run.name)
    _until(lambda: worker_pid(run) is not None, "the run did not start")
    _until(lambda: folder.progress() is not None, f"{KILLED} did not start")
    held, killed = worker_pid(run), worker_pid(folder)
    assert held is not None
    assert killed is not None
    send_signal(held, signal.SIGSTOP)
    try:
        over = run.end() is not None
        send_signal(killed, signal.SIGKILL)
        machine.kill(KILLED)
        state = "already over" if over else "half-way"
        _say(screen, f"kill -9: node and worker of {KILLED}, {state}")
        time.sleep(1.0)
        machine.start_node_again(KILLED)
        _say(screen, f"{KILLED} starts its node again: the run goes on from its journal")
    finally:
        send_signal(held, signal.SIGCONT)


def _until(holds: Any, otherwise: str) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > until:
            raise RunError(otherwise)
        time.sleep(0.005)


def _say(screen: Console | None, text: str) -> None:
    if screen:
        screen.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {text}")


def _same_as_local(result: Result, file: StudyFile) -> bool:
    """Whether all in one process, on the same tables, gives the same to the last bit."""
    from atoll.runtime.execute import run_study
    from atoll.runtime.studies import read_own

    local = run_study(file.study, read_own(file)).result
    return all(_same(value, local.outputs.get(name)) for name, value in result.outputs.items())


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(np.array_equal(one, other))


def _receipts(machine: OneMachine, name: str, folder: Path) -> list[Path]:
    """Everybody's receipt, checked against the others'; an error if they disagree."""
    from atoll.runtime.nats.receipts import contradictions, read_receipt
    from atoll.runtime.nats.runs import RunFolder

    found = {party: RunFolder(site, name).receipt for party, site in machine.sites.items()}
    for party, path in found.items():
        _until(path.exists, f"{party} left no receipt")
    wrong = contradictions([read_receipt(path) for path in found.values()])
    if wrong:
        raise RunError(f"the receipts contradict each other: {'; '.join(wrong)}")
    copies = []
    for party, path in found.items():
        copy = folder / f"receipt-{party}.jsonl"
        copy.write_bytes(path.read_bytes())
        copies.append(copy)
    return copies


def _report(result: Result, agree: bool, receipts: list[Path], output: Path, screen: Console | None) -> None:
    from atoll.report.analyses import renderer_of

    if screen is None:
        return
    screen.print()
    for table in renderer_of(result.study.analysis).tables(result):
        screen.print(console.drawn(table))
        screen.print()
    same = "[green]the same to the last bit[/]" if agree else "[red]not the same[/]"
    screen.print(f"All roles in one process, on the same tables, give {same}.")
    screen.print(
        f"{len(receipts)} receipts: every signature and chain is good, and what one sent the other received."
    )
    screen.print(
        f"[dim]check them yourself:[/] atoll receipt verify {output}/receipt-*.jsonl", soft_wrap=True
    )
    screen.print(f"[bold]Written to {output}/[/]\n")
