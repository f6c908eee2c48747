"""The how-to for three machines, followed literally: its own code blocks, in four network namespaces.

Each machine has an address, a user and a home that no other sees; TLS is on, and the hub is 20 ms away.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.hub import needs_server
from tests.support.namespaces import Machine, machines, needs_namespaces

from atoll.data.island import as_islands
from atoll.protocols.own import owned
from atoll.runtime.execute import run_study
from atoll.runtime.nats.receipts import contradictions, read_receipt
from atoll.runtime.result import load_result

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "three-machines.md"
NAMES = ("hub", "north", "south", "office")
DELAY = 0.02

_FENCE = re.compile(r"^```([^\n`]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ON = re.compile(r"sh on (\w+)(, left running)?")
_AS = re.compile(r"toml on (\w+) as (\S+)")
_CARRIED = re.compile(r"(\S+) from (\w+) to (\w+)")


def blocks() -> list[tuple[str, str]]:
    return [(kind.strip(), text) for kind, text in _FENCE.findall(PAGE.read_text())]


def follow(hosts: dict[str, Machine]) -> None:
    """Every block in its turn, on its machine."""
    for kind, text in blocks():
        on, file = _ON.fullmatch(kind), _AS.fullmatch(kind)
        if on and on[2]:
            hosts[on[1]].leave_running(text)
            wait_for(hosts[on[1]], text)
        elif on:
            typed(hosts[on[1]], text)
        elif file:
            hosts[file[1]].run(f"cat > {file[2]} <<'END'\n{text}END\n")
        elif kind == "text carried":
            for name, one, other in _CARRIED.findall(text):
                carry(hosts[one], hosts[other], name)
        else:
            assert kind in ("sh by hand", "toml") or " as " in kind, f"a block of the kind {kind!r}"


def typed(machine: Machine, text: str) -> None:
    """Whoever approves does so once the study has arrived."""
    until = time.monotonic() + 120
    while "atoll node approve" in text and "proposed" not in _phases(machine):
        assert time.monotonic() < until, f"no study arrived on {machine.name}"
        time.sleep(0.5)
    machine.run(text)


def _phases(machine: Machine) -> set[str]:
    return {run["phase"] for run in json.loads(machine.run("atoll node runs --json"))}


def wait_for(machine: Machine, text: str) -> None:
    """A person looks whether it is up before going on."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if "hub up" in text and "the agent answers" in machine.log():
            return
        if "node run" in text and '"node": true' in machine.run("atoll node status --json"):
            return
        assert all(process.poll() is None for process in machine.running), machine.log()
        time.sleep(0.3)
    pytest.fail(f"{text} on {machine.name} is not up:\n{machine.log()}")


def carry(one: Machine, other: Machine, name: str) -> None:
    """By mail, by hand, or read out on the telephone."""
    target = other.home / Path(name).name
    shutil.copy(one.home / name, target)
    shutil.chown(target, other.home.stat().st_uid, other.home.stat().st_gid)


def tables(hosts: dict[str, Machine]) -> None:
    draw = np.random.default_rng(11)
    frame = pd.DataFrame(
        draw.normal(size=(80, 4)) @ draw.normal(size=(4, 4)), columns=["age", "pulse", "lactate", "stay"]
    )
    for name, rows in (("north", slice(0, 50)), ("south", slice(50, 80))):
        path = hosts[name].home / "patients.csv"
        frame.iloc[rows].to_csv(path, index=False)
        shutil.chown(path, hosts[name].home.stat().st_uid, hosts[name].home.stat().st_gid)


@pytest.mark.timeout(1200)
def test_the_page_ends_in_a_finished_study_with_verified_receipts() -> None:
    needs_namespaces()
    needs_server()
    # Not pytest's own folder, which every session closes to all other users.
    with (
        tempfile.TemporaryDirectory(prefix="atoll-machines-", ignore_cleanup_errors=True) as folder,
        machines(Path(folder), NAMES, hub="hub", delay=DELAY) as hosts,
    ):
        tables(hosts)
        follow(hosts)
        results = {name: hosts[name].home / "results" for name in ("north", "south", "office")}
        result = load_result(results["office"] / "icu.atoll")
        receipts = [read_receipt(folder / f"icu-receipt-{name}.jsonl") for name, folder in results.items()]
        assert contradictions(receipts) == []
        assert [one.end.ended for one in receipts] == ["finished"] * 3
        with pytest.raises(AssertionError):  # nobody sees another's home
            hosts["north"].run(f"ls {hosts['south'].home}/patients.csv")
        islands = as_islands({name: str(hosts[name].home / "patients.csv") for name in ("north", "south")})
        joint = run_study(result.study, owned(islands)).result
        assert np.array_equal(result["mean"], joint["mean"])  # of exact sums
        # LAPACK's last digit is not that of every process, on some processors.
        np.testing.assert_allclose(result["components"], joint["components"], rtol=0, atol=4.5e-16)
        assert result["n_samples"] == 80
        assert "explained_variance" not in load_result(results["north"] / "icu.atoll")


def test_the_units_can_be_read_and_name_commands_that_exist() -> None:
    units = {kind.split(" as ")[1]: text for kind, text in blocks() if kind.startswith("ini as ")}
    assert set(units) == {"atoll-hub.service", "atoll-node.service"}
    for text in units.values():
        unit = configparser.ConfigParser()
        unit.optionxform = str  # type: ignore[method-assign,assignment]
        unit.read_string(text)
        command = unit["Service"]["ExecStart"].split()[1:]
        assert command[:2] in (["hub", "up"], ["node", "run"])
        assert unit["Service"]["Restart"] == "always"
        assert unit["Service"]["User"] == "atoll"
    container = next(text for kind, text in blocks() if kind.startswith("dockerfile as "))
    assert "USER atoll" in container
