"""Who else on a machine can read what commands write, whatever the umask; and what they are handed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.running import atoll

from atoll.runtime.nats import runs


@pytest.fixture
def careless() -> Iterator[None]:
    """An umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATOLL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_a_run_writes_for_a_party_is_its_owners_alone(folder: Path, careless: None) -> None:
    assert atoll("run", "study.toml").code == 0
    parties = [path for path in Path("atoll-run").iterdir() if path.is_dir()]
    assert {path.name for path in parties} == {"north", "south", "lab"}
    assert {mode(path) for path in parties} == {0o700}
    assert {mode(path) for party in parties for path in party.rglob("*")} == {0o600}
    assert atoll("report", f"atoll-run/lab/{folder_name(parties)}.atoll").code == 0
    assert mode(Path("report.html")) == 0o600


def folder_name(parties: list[Path]) -> str:
    (result,) = (path for party in parties if party.name == "lab" for path in party.glob("*.atoll"))
    return result.stem


def test_a_site_is_its_owners_alone(home: Path, careless: None) -> None:
    assert atoll("ledger", "init").code == 0
    assert atoll("identity", "new").code == 0
    assert atoll("identity", "revoke").code == 0
    for path in (home, *home.rglob("*")):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("bit", [0o040, 0o020, 0o010, 0o004, 0o002, 0o001])
def test_a_passphrase_that_others_can_reach_is_not_taken(bit: int, home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    secret.chmod(0o600 | bit)
    refused = atoll("identity", "new", "--passphrase-file", str(secret))
    assert refused.code == 2
    assert "others on this machine can read" in refused.err
    assert not (home / "identity.json").exists()


@pytest.mark.parametrize("phase", ["proposed", "approved", "running", "finished", "failed", "declined"])
def test_keys_are_not_changed_under_a_run(phase: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert atoll("identity", "new").code == 0
    before = (home / "identity.json").read_bytes()
    one: Any = (SimpleNamespace(name="abc"), SimpleNamespace(phase=phase))
    monkeypatch.setattr(runs, "every_run", lambda _: [one])
    done = atoll("identity", "rotate")
    if phase in ("proposed", "approved", "running"):
        assert done.code == 2
        assert "the run abc needs the old keys" in done.err
        assert (home / "identity.json").read_bytes() == before
        assert not list(home.rglob("*.notice"))
    else:
        assert done.code == 0, done.err
        assert (home / "identity.json").read_bytes() != before
