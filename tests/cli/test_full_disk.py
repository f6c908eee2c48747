"""A result that cannot be written where it should: after the debit it is kept, or said to be lost.

The disk is a real one, of a few kilobytes, that only the command's own process sees.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_ledger import BOOKED, LEDGER, budgets, spent
from tests.support.running import Finished, atoll

import atoll as package
from atoll.cli.kept import not_written
from atoll.errors import NotWritten

OWN_DISK = shutil.which("unshare") is not None and (
    subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
)
needs_own_disk = pytest.mark.skipif(not OWN_DISK, reason="this system lets nobody mount a small disk")

SHOWN = BOOKED.replace("[local]", 'explained_variance = ["owner", "data_user"]\n[local]')


def run_on_small_disk(kilobytes: int, **environment: str) -> Finished:
    """``atoll run study.toml -o full/out`` where ``full`` is a disk of that size; ``tiny`` holds one page."""
    run = f"exec {sys.executable} -m atoll run study.toml -o full/out"
    mounts = f"mount -t tmpfs -o size={kilobytes}k small full && mount -t tmpfs -o size=4k small tiny"
    command = f"{mounts} && {run}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        check=False,
    )
    return Finished(done.returncode, done.stdout, " ".join(done.stderr.split()))


@pytest.fixture
def private(folder: Path) -> Path:
    (folder / "study.toml").write_text(SHOWN)
    (folder / "full").mkdir()
    (folder / "tiny").mkdir()
    budgets("9")
    return folder


@needs_own_disk
def test_a_booked_result_is_kept_in_a_second_place_and_not_debited_again(private: Path) -> None:
    ended = run_on_small_disk(88, HOME=str(private), ATOLL_HOME=str(private / "home"))
    assert ended.code == NotWritten.exit_code, ended
    assert "its release is booked" in ended.err
    assert "No space left on device" in ended.err
    before = spent()
    assert before["north-icu"] == pytest.approx(1.0, abs=1e-6)
    place = Path(re.search(r"kept in (\S+):", ended.err)[1])  # type: ignore[index]
    assert place.parent == private / "home" / "kept"
    kept = {path.parent.name: package.load_result(path) for path in place.rglob("*.atoll")}
    assert set(kept) == {"north", "south", "lab"}
    assert kept["lab"]["components"].shape == (2, 4)
    for path in place.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    # Writing it again is no release.
    kept["lab"].save(private / "again.atoll")
    assert spent() == before
    assert len(json.loads(atoll("ledger", "export", *LEDGER).out)["debits"]) == 6  # three stages each, once


@needs_own_disk
def test_a_result_that_fits_nowhere_is_said_to_be_lost(private: Path) -> None:
    tiny = str(private / "tiny")
    ended = run_on_small_disk(88, HOME=str(private), ATOLL_HOME=tiny, TMPDIR=tiny)
    assert ended.code == NotWritten.exit_code, ended
    assert "it is lost" in ended.err
    assert "another release, and another debit" in ended.err
    assert spent()["north-icu"] == pytest.approx(1.0, abs=1e-6)


@needs_own_disk
def test_a_disk_without_any_room_is_found_before_the_debit(private: Path) -> None:
    ended = run_on_small_disk(40, HOME=str(private), ATOLL_HOME=str(private / "home"))
    assert ended.code == 2, ended
    assert "there is no room left" in ended.err
    assert spent()["north-icu"] == 0.0


def test_a_fault_after_the_run_does_not_cost_the_result(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the plots fail, whatever the reason."""
    monkeypatch.setenv("ATOLL_HOME", str(private / "home"))
    monkeypatch.setattr("atoll.report.plots.scree", lambda *_: 1 / 0)
    ended = atoll("run", "study.toml", "--quiet")
    assert ended.code == NotWritten.exit_code
    assert "ZeroDivisionError" in ended.err
    assert "its release is booked" in ended.err
    assert "it is kept in" in ended.err
    assert "it is lost" not in ended.err
    assert "another debit" in ended.err
    assert list((private / "home" / "kept").rglob("lab/private.atoll"))
    assert not (private / "atoll-run").exists()


def test_whoever_sits_at_the_terminal_is_asked_for_another_place(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from atoll.cli import kept
    from atoll.cli.run import run_file
    from atoll.runtime.studies import open_study

    finished = run_file(open_study("study.toml"), shown=False)
    answers = iter([Path("study.toml"), private / "there", None])  # a file is no folder
    monkeypatch.setattr(kept, "_places", lambda: iter(()))
    monkeypatch.setattr(kept, "_ask", lambda: next(answers))
    assert str(private / "there") in str(
        not_written(finished, Path("out"), OSError(28, "No space left")).hint
    )
    assert list((private / "there").rglob("*.atoll"))
    assert "it is lost" in not_written(finished, Path("out"), OSError(28, "No space left")).message
