"""Sites as processes on this machine, for tests: whole studies through nodes and workers, over a real hub."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec import structs
from tests.support.hub import needs_server

from atoll.cli.one_machine import OneMachine
from atoll.protocols import resolve
from atoll.runtime.nats import submit
from atoll.runtime.nats.node import Options
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder, State
from atoll.study.model import Party, Study

SECONDS = 240.0
OFFICE = "office"


def until(holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def tables(folder: Path, names: tuple[str, ...]) -> None:
    """A table for each site, of a joint one."""
    draw = np.random.default_rng(5)
    frame = pd.DataFrame(draw.normal(size=(60, 4)) @ draw.normal(size=(4, 4)), columns=list("abcd"))
    for name, rows in zip(names, np.array_split(np.arange(60), len(names)), strict=True):
        frame.iloc[rows].to_csv(folder / f"{name}.csv", index=False)


def study_of(machine: OneMachine, islands: tuple[str, ...], **changes: object) -> Study:
    """A small PCA between islands and the office."""
    parties = [Party(name, ("provider",), machine.sites[name].fingerprint) for name in islands]
    office = Party(OFFICE, ("server", "consumer"), machine.sites[OFFICE].fingerprint)
    study = Study(
        name="small",
        protocol="pppca",
        parties=(*parties, office),
        parameters={"n_components": 2, "accept_determined": True},
        release={
            "components": ("provider", "consumer"),
            "explained_variance": ("consumer",),
            "n_samples": ("consumer",),
        },
    )
    return resolve(structs.replace(study, **changes))


@contextmanager
def sites(
    folder: Path, islands: tuple[str, ...] = ("north", "south"), deadline: int = 60, identity: str = ""
) -> Iterator[OneMachine]:
    """A hub, a node for each island, and an office without one; ``identity``: of each site's data set, where
    releases from it are booked."""
    needs_server()
    tables(folder, islands)
    with OneMachine(folder / "machine") as machine:
        for name in (*islands, OFFICE):
            machine.add_site(name)
        machine.start_hub(SECONDS)
        for name in islands:
            data = folder / f"{name}.csv"
            if identity:
                named = f"[{identity}]\npath = '{data}'\nidentity = '{identity}'\n"
                data = folder / f"{name}.toml"
                data.write_text(named)
            machine.start_node(name, "--data", str(data), "--deadline", str(deadline))
        yield machine


@contextmanager
def office(machine: OneMachine) -> Iterator[None]:
    """The office's node, in this process."""
    site = machine.sites[OFFICE]
    with submit.node_of(site, site.identity(), Options(lookup=submit.lookup, deadline=60)):
        yield


def decide(machine: OneMachine, name: str, run: str, does: str = "approve", **more: str) -> None:
    """As a person does at a site, once the proposal is there."""
    folder = RunFolder(machine.sites[name], run)
    until(lambda: folder.review.exists(), f"{name} got no proposal")
    submit.asked(machine.sites[name], Request(does=does, run=run, **more), 120)  # type: ignore[arg-type]


def state_at(machine: OneMachine, name: str, run: str) -> State:
    return RunFolder(machine.sites[name], run).state()


def ended(machine: OneMachine, name: str, run: str) -> State:
    """How a run ended at one site."""
    return submit.wait(RunFolder(machine.sites[name], run), SECONDS)
