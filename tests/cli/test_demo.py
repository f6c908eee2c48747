"""The demo does what its words say, and the commands that it prints run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.running import atoll

import atoll as package
from atoll.cli.hospitals import STUDY_FILE, hospitals
from atoll.runtime.execute import run_study
from atoll.runtime.studies import open_study, read_own

ATOLL = Path(sys.executable).with_name("atoll")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [str(ATOLL), "demo"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout)
    return folder


def numbers_about_records(value: object, rows: set[int]) -> bool:
    """Whether a value has an entry for each record of somebody."""
    if isinstance(value, dict):
        return any(numbers_about_records(one, rows) for one in value.values())
    return isinstance(value, np.ndarray | list | tuple) and len(value) in rows


def test_nobody_is_given_a_number_about_one_patient(demo: Path) -> None:
    tables = hospitals()
    rows = {len(table) for table in tables.values()} | {sum(map(len, tables.values()))}
    file = open_study(demo / "atoll-demo" / STUDY_FILE)
    run = run_study(file.study, read_own(file))
    for address, learned in run.learned.items():
        for name, value in {**learned.outputs, **learned.inherent}.items():
            assert not numbers_about_records(value, rows), (str(address), name)
    assert "Projection" not in run.result.transcript.kinds
    assert not list(demo.rglob("*projections*"))
    assert "no number about one patient is sent" in " ".join(atoll("demo", "--help").out.split())


def test_what_the_demo_would_say_of_projections_is_not_what_it_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line that releases them is in the study, and off."""
    monkeypatch.chdir(tmp_path)
    said = json.loads(atoll("demo", "--json").out)
    assert "scores" not in said["released"]
    text = Path("atoll-demo/study.toml").read_text()
    Path("atoll-demo/study.toml").write_text(text.replace("# scores", "scores"))
    assert package.load_study("atoll-demo/study.toml").receivers("scores")


def test_printed_commands_run_as_they_stand(demo: Path) -> None:
    """In a shell that knows nothing of the environment in which the demo ran."""
    said = (demo / "said.txt").read_text()
    commands = [line.strip() for line in said.splitlines() if re.search(r"atoll (review|run) ", line)]
    assert len(commands) == 3
    for command in commands:
        assert Path(shlex.split(command)[0]).name == "atoll"
        done = subprocess.run(
            command,
            shell=True,
            cwd=demo,
            env={"PATH": "/usr/bin:/bin", "HOME": str(demo)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def test_where_the_shell_finds_atoll_its_name_is_enough(demo: Path) -> None:
    done = subprocess.run(
        ["atoll", "demo", "-o", "a folder"],
        cwd=demo,
        env={"PATH": f"{ATOLL.parent}:/usr/bin:/bin", "HOME": str(demo)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "  atoll run 'a folder/study.toml'\n" in done.stdout


def test_called_as_a_module_it_is_printed_as_one(demo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "atoll", "demo", "-o", "module"],
        cwd=demo,
        env={"PATH": "/usr/bin:/bin", "HOME": str(demo)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{shlex.quote(sys.executable)} -m atoll run module/study.toml" in done.stdout
