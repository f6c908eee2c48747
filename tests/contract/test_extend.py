"""docs/howto/extend.md holds: strangers' things run everywhere, and a change touches the files named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.meta.test_docs import ROOT, blocks, save
from tests.support.examples import Example
from tests.support.running import atoll as command
from tests.support.taps import tapped

import atoll
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.report.analyses import renderer_of
from atoll.runtime.execute import run_study
from atoll.runtime.replay import replay
from atoll.runtime.studies import open_study, read_own

PAGE = ROOT / "docs" / "howto" / "extend.md"

TABLES = {"north": "age|dose\n30|1.5\n50|2.5\n", "south": "age|dose\n40|2.0\n", "west": "age|dose\n60|4.0\n"}


@pytest.fixture
def toys(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's package, installed outside the repository, and its study with tables."""
    monkeypatch.chdir(site)
    for block in blocks(PAGE):
        save(block.text)
    for name, text in TABLES.items():
        (site / f"{name}.pipes").write_text(text)
    assert ROOT not in site.parents
    return site


def test_a_review_knows_a_strangers_protocol_and_secure_sum(toys: Path) -> None:
    finished = command("review", "means.toml")
    assert finished.code == 0, finished.err
    for said in (
        "Column means",
        "running sum under a mask",
        "the number of rows and the mean of each column",
    ):
        assert said in re.sub(r"\s+", " ", re.sub("[│┃]", " ", finished.out)), said
    told = json.loads(command("review", "means.toml", "--json").out)
    assert (told["cost"]["messages"], told["cost"]["rounds"]) == (4, 4)
    assessed = command("review", "means.toml", "--markdown")
    assert assessed.code == 0, assessed.err
    assert "the mean of each column" in assessed.out


def test_a_run_on_a_strangers_engine_is_reported_by_its_renderer(toys: Path) -> None:
    finished = command("run", "means.toml", "--engine", "noted", "--output", "out")
    assert finished.code == 0, finished.err
    assert "Means" in finished.out
    assert "45.000" in finished.out
    assert sorted(path.name for path in Path("out").iterdir()) == ["ages-recipients.json", "office"]
    assert sorted(path.name for path in Path("out/office").iterdir()) == ["ages-means.csv", "ages.atoll"]
    assert pd.read_csv("out/office/ages-means.csv").to_dict("list") == {
        "column": ["age", "dose"],
        "mean": [45, 2.5],
    }
    assert Path("sent.csv").read_text().splitlines()[1].startswith("north/island,south/island,")
    result = atoll.load_result("out/office/ages.atoll")
    # A recipient's file has the costs of its own roles: the office sends nothing, and waits for all four.
    assert (result.transcript.messages, result.transcript.rounds) == (0, 4)
    assert result.transcript.of("office/analyst").messages_received == 1
    (table,) = renderer_of(result.study.analysis).tables(result)
    assert list(table.shown()) == [("age", "45.000"), ("dose", "2.500")]
    told = json.loads(command("run", "means.toml", "--json", "--output", "again").out)
    assert (told["n_samples"], told["messages"]) == (4, 4)


def test_a_strangers_roles_replay_and_see_what_they_are_said_to_see(toys: Path) -> None:
    """What the contract tests ask of every example."""
    file = open_study(Path("means.toml"))
    own, protocol = read_own(file), protocol_of("means")
    islands = {name: mine.table for name, mine in own.items() if mine.island is not None}
    tap = tapped(Example(run_study(file.study, own).result.study, islands))
    for address, record in tap.records.items():
        mine = own.get(address.party, Own())
        _, sent = replay(protocol, file.study, address, mine, record.drawn, tap.inboxes[address])
        assert sent == tap.outboxes[address]


# ---- a new output of PPPCA ----

PPPCA = """
[study]
name = "ages"
protocol = "pppca"
[parameters]
n_components = 1
{privacy}
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "west"
role = "provider"
[[party]]
name = "office"
role = "server"
[release]
covariance = ["server"]
[local.data]
north = "north.pipes.csv"
south = "south.pipes.csv"
west = "west.pipes.csv"
"""


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of Atoll with the page's lines in the files that it names, and in no other."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    edits = [block for block in blocks(PAGE) if block.kind.startswith("python in ")]
    assert [edit.kind.rsplit("/")[-1] for edit in edits] == ["protocol.py", "pca.py", "pca.py"]
    for edit in edits:
        path, anchor = tmp_path / edit.kind.removeprefix("python in "), edit.text.splitlines(True)[0]
        assert path.read_text().count(anchor) == 1
        path.write_text(path.read_text().replace(anchor, edit.text))
    for name, text in TABLES.items():
        (tmp_path / f"{name}.pipes.csv").write_text(text.replace("|", ","))
    return tmp_path


def run_changed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "ATOLL_HOME": str(folder / "home")}
    line = [sys.executable, "-m", "atoll", *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_output_of_pppca_is_a_line_in_its_file_and_a_few_in_its_renderer(changed: Path) -> None:
    (changed / "study.toml").write_text(PPPCA.format(privacy=""))
    reviewed = run_changed(changed, "review", "study.toml", "--json")
    assert reviewed.returncode == 0, reviewed.stderr
    assert "the covariance of the columns over all islands" in reviewed.stdout
    finished = run_changed(changed, "run", "study.toml", "--output", "out")
    assert finished.returncode == 0, finished.stderr
    X = pd.concat([pd.read_csv(changed / f"{name}.pipes.csv") for name in TABLES])
    written = pd.read_csv(changed / "out" / "office" / "ages-covariance.csv")
    assert written.to_numpy().ravel() == pytest.approx(X.cov().to_numpy().ravel())
    drawn = (changed / "out" / "office" / "ages-covariance.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")


def test_an_output_without_a_private_form_is_refused_with_an_epsilon(changed: Path) -> None:
    private = "epsilon = 1.0\ndelta = 1e-5\nrow_norm = 100.0"
    (changed / "study.toml").write_text(PPPCA.format(privacy=private))
    refused = run_changed(changed, "review", "study.toml")
    assert refused.returncode != 0
    assert "the output 'covariance' has no private form" in refused.stderr
