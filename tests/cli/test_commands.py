"""The commands as a user meets them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from tests.cli.example import STUDY, everything_in
from tests.support.running import atoll

import atoll as package
from atoll.cli.console import drawn
from atoll.privacy.ledger import Ledger
from atoll.report.analyses.pca import variance_table

# ---- atoll run ----


def test_run_writes_what_is_released(folder: Path) -> None:
    finished = atoll("run", "study.toml")
    assert finished.code == 0, finished.err
    assert "PC2" in finished.out
    names = {path.name for path in (folder / "atoll-run" / "lab").iterdir()}
    base = "north-south"  # a study's name never becomes a path
    assert names == {
        f"{base}{end}" for end in (".atoll", "-projections.csv", "-projections.png", "-scree.png")
    }
    frame = pd.read_csv(folder / "atoll-run" / "lab" / f"{base}-projections.csv")
    assert list(frame.columns) == ["island", "PC1", "PC2", "label"]
    assert frame.groupby("island").size().to_dict() == {"north": 20, "south": 10}
    result = package.load_result(folder / "atoll-run" / "lab" / f"{base}.atoll")
    assert result["components"].shape == (2, 4)
    with pytest.raises(package.AtollError, match="n_samples"):
        result["n_samples"]


def test_results_are_readable_by_their_owner_only(folder: Path) -> None:
    atoll("run", "study.toml")
    written = [path for path in (folder / "atoll-run").glob("*/*") if path.is_file()]
    assert len(written) == 6
    for path in written:
        assert path.stat().st_mode & 0o077 == 0, path


def test_run_without_scores_writes_no_projections(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace('scores = ["consumer"]\n', ""))
    assert atoll("run", "study.toml", "-o", "out").code == 0
    assert {path.suffix for path in (folder / "out").glob("*/*")} == {".atoll", ".png"}


def test_run_again_replaces_and_leaves_other_files_alone(folder: Path) -> None:
    atoll("run", "study.toml", "-o", "out")
    (folder / "out" / "notes.txt").write_text("mine")
    assert atoll("run", "study.toml", "-o", "out").code == 0
    assert (folder / "out" / "notes.txt").read_text() == "mine"
    assert not [name for name in everything_in(folder) if ".atoll-" in name]


def test_run_prints_json(folder: Path) -> None:
    finished = atoll("run", "study.toml", "--json", "--output", "deep/er")
    said = json.loads(finished.out)
    assert finished.err == ""
    assert said["digest"] == package.load_study("study.toml").digest
    assert len(said["explained_variance_ratio"]) == 2
    assert "n_samples" not in said
    assert all(Path(path).is_file() for path in said["files"])


def test_shares_of_the_variance_are_added_up_in_the_table() -> None:
    """Of a total that counts components that are not shown: 4 + 3 + 1 of 10."""
    shown = io.StringIO()
    Console(file=shown, width=80).print(drawn(variance_table([4.0, 3.0, 1.0], 10.0)))
    lines = [line.split() for line in shown.getvalue().splitlines() if line.startswith("PC")]
    assert lines == [
        ["PC1", "4", "40.0%", "40.0%"],
        ["PC2", "3", "30.0%", "70.0%"],
        ["PC3", "1", "10.0%", "80.0%"],
    ]


def test_names_are_text_and_never_markup(folder: Path) -> None:
    """A study called [/] must not hide a part of its review."""
    named = STUDY.replace('name = "north south/.."', 'name = "[dim]north[/] [bold"')
    (folder / "study.toml").write_text(named)
    assert "[dim]north[/] [bold" in atoll("review", "study.toml").out
    (folder / "study.toml").write_text(named.replace("pppca", "[/]pppca"))
    said = atoll("review", "study.toml")
    assert said.code == 4
    assert "'[/]pppca'" in said.err


def test_quiet_says_nothing(folder: Path) -> None:
    assert atoll("run", "study.toml", "--quiet") == (0, "", "")


def test_few_rows_are_warned_of(folder: Path) -> None:
    pd.read_csv("north.csv")[:2].to_csv("north.csv", index=False)
    pd.read_parquet("south.parquet")[:2].to_parquet("south.parquet")
    finished = atoll("run", "study.toml", "--json")
    assert finished.code == 0
    assert finished.err.startswith("warning: the joint table has 4 rows for 4 columns")
    json.loads(finished.out)


# ---- atoll run with SF-PCA ----


ENCRYPTED = """\
[study]
name = "x"
protocol = "sfpca"
[parameters]
columns = ["a", "b", "c", "d"]
bounds = 64.0
%s
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
role = "coordinator"
[release]
%s
[local]
data = { north = "north.csv", south = "south.parquet" }
%s
"""
COMPONENTS = 'components = ["provider"]'
ACCEPTED = "accept_determined = true"


def test_islands_of_few_rows_are_warned_of(folder: Path) -> None:
    (folder / "study.toml").write_text(ENCRYPTED % (ACCEPTED, COMPONENTS, ""))
    finished = atoll("run", "study.toml", "--json")
    assert finished.code == 0
    assert finished.err.startswith("warning: north, south: fewer than 30 rows; the opened spectrum may then")
    json.loads(finished.out)


def test_noise_or_enough_rows_need_no_warning(folder: Path) -> None:
    epsilon = "epsilon = 5.0\ndelta = 1e-5"
    booked = 'ledger = "ledger.db"\nidentities = { north = "n", south = "s" }'
    (folder / "study.toml").write_text(ENCRYPTED % (epsilon, COMPONENTS, booked))
    with Ledger.create(folder / "ledger.db") as ledger:
        ledger.set_budget("n", 9.0, 1e-5)
        ledger.set_budget("s", 9.0, 1e-5)
    assert atoll("run", "study.toml", "--quiet") == (0, "", "")
    (folder / "study.toml").write_text(ENCRYPTED % (ACCEPTED, COMPONENTS, ""))
    for table, read, write in (
        ("north.csv", pd.read_csv, lambda f: f.to_csv("north.csv", index=False)),
        ("south.parquet", pd.read_parquet, lambda f: f.to_parquet("south.parquet")),
    ):
        write(pd.concat([read(table)] * 3, ignore_index=True))
    assert atoll("run", "study.toml", "--quiet") == (0, "", "")


def test_shares_that_nobody_could_keep_are_refused_before_anything_runs(folder: Path) -> None:
    (folder / "study.toml").write_text(ENCRYPTED % (ACCEPTED, 'encrypted = ["provider", "coordinator"]', ""))
    for table in ("north.csv", "south.parquet"):
        (folder / table).unlink()  # not even read
    before = everything_in(folder)
    finished = atoll("run", "study.toml")
    assert finished.code == 4
    assert "study.toml:18: atoll run has nowhere to keep each role's share of the output" in finished.err
    assert "hint: release other outputs, or use Python" in finished.err
    assert everything_in(folder) == before


# ---- atoll review ----


def test_review_says_who_learns_what(folder: Path) -> None:
    finished = atoll("review", "study.toml")
    said = " ".join(finished.out.split())
    assert finished.code == 0
    for words in ("Who learns what", "full covariance matrix", "colludes with no provider", "4 columns"):
        assert words in said
    assert package.load_study("study.toml").digest in said
    assert "! with two providers" in said


def test_review_needs_no_data(folder: Path) -> None:
    (folder / "north.csv").unlink()
    (folder / "south.parquet").unlink()
    assert "--columns" in atoll("review", "study.toml").out
    assert "9 columns" in atoll("review", "study.toml", "--columns", "9").out


def test_review_prints_json_and_markdown(folder: Path) -> None:
    assert json.loads(atoll("review", "study.toml", "--json").out)["cost"]["columns"] == 4
    assert atoll("review", "study.toml", "--markdown").out.startswith("# Privacy review of the study")
    assert atoll("review", "study.toml", "--markdown", "--json").code == 2


def test_review_writes_nothing(folder: Path) -> None:
    before = everything_in(folder)
    atoll("review", "study.toml", "--markdown")
    assert everything_in(folder) == before


# ---- atoll demo ----


def test_demo_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finished = atoll("demo")
    assert finished.code == 0, finished.err
    said = " ".join(finished.out.split())
    for words in ("What each learned", "covariance 30×30", "Variance", "Atoll, joint 1.0000", "messages"):
        assert words in said
    assert {path.name for path in Path("atoll-demo").iterdir()} == {
        "study.toml",
        "coast-screening.csv",
        "valley-hospital.csv",
        "summit-oncology.csv",
        "results",
    }
    assert {path.name for path in Path("atoll-demo/results/university").iterdir()} == {
        "tumours.atoll",
        "tumours-scree.png",
    }
    assert "coast-screening" in atoll("review", "atoll-demo/study.toml").out
    assert atoll("run", "atoll-demo/study.toml", "-q").code == 0


def test_the_demo_agrees_with_the_pooled_table_and_hospitals_alone_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = json.loads(atoll("demo", "--json", "-o", "here").out)
    agreement = said["agreement"]
    assert agreement["joint"]["largest_angle_degrees"] < 1e-9
    assert agreement["projections_relative_difference"] < 1e-12
    assert all(part["largest_angle_degrees"] > 10 for part in agreement["separate"].values())
    assert said["n_samples"] == 569


# ---- help ----


@pytest.mark.parametrize("command", [(), ("--help",), ("run", "--help"), ("review", "-h"), ("demo", "-h")])
def test_help_is_given(command: tuple[str, ...]) -> None:
    finished = atoll(*command)
    assert finished.code == 0
    assert "Usage: atoll" in finished.out


def test_version() -> None:
    assert atoll("--version") == (0, f"atoll {package.__version__}\n", "")
