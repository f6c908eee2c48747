"""``atoll doctor``: what it finds is what is there, and every lack comes with a remedy."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.running import atoll

from atoll.crypto.hazmat import golib
from atoll.crypto.products import vector_path, vector_paths
from atoll.runtime import doctor
from atoll.runtime.doctor import CHECKS, Finding, files, findings, machine
from atoll.secret_matrices.costs import rates


def found(name: str) -> Finding:
    (one,) = [finding for finding in findings() if finding.name == name]
    return one


def test_everything_that_is_not_fine_has_a_remedy() -> None:
    everything = list(findings())
    assert [one.name for one in everything] == ["core library", "processor", "calibration", "readers", "disk"]
    for one in everything:
        assert (one.remedy is None) == (one.state == "ok"), one


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(golib, "_library", None)
    monkeypatch.setattr(golib, "LIBRARY_PATH", tmp_path / "libatoll.so")
    vector_path.cache_clear()


@pytest.mark.usefixtures("no_library")
def test_a_missing_core_library_is_a_problem_and_the_exit_code_says_so() -> None:
    library = found("core library")
    assert library.state == "problem"
    assert "C compiler" in str(library.remedy)
    assert found("processor").state == found("calibration").state == "note"
    ended = atoll("doctor")
    assert ended.code == 7
    assert "remedy: install a C compiler" in " ".join(ended.out.split())
    assert ended.err == ""
    assert json.loads(atoll("doctor", "--json").out)[0]["state"] == "problem"


def test_the_vector_path_in_use_is_told() -> None:
    used = found("processor")
    assert machine._WORDS[vector_path()] in used.detail
    assert (used.state == "ok") == (vector_path() == vector_paths()[0] != "scalar")


def test_a_slower_path_than_there_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(vector_paths()) == 1:
        pytest.skip("this processor has one path")
    monkeypatch.setattr(machine, "vector_path", lambda: "scalar")
    slower = found("processor")
    assert (slower.state, slower.remedy) == ("note", "unset ATOLL_VECTOR")


def test_a_measured_calibration_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(rates.FILE_VARIABLE, str(tmp_path / "rates.json"))
    assert found("calibration").state == "note"
    shipped = rates.shipped()
    rates.store(rates.Rates(shipped.cores, shipped.path, shipped.rings, shipped.python))
    assert found("calibration").state == "ok"
    (tmp_path / "rates.json").write_text("{")
    broken = found("calibration")
    assert (broken.state, "not a table of rates" in broken.detail) == ("problem", True)


def test_a_reader_that_lacks_its_package_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else spec(name))
    problem, rest = [one for one in findings() if one.name == "readers"]
    assert (problem.state, problem.remedy) == ("problem", "pip install pyarrow")
    assert ".parquet" in problem.detail
    assert ".parquet" not in rest.detail
    assert ".csv.gz" in rest.detail
    assert atoll("doctor").code == 7


@pytest.mark.parametrize(
    ("seconds", "state"), [(0.019, "ok"), (0.021, "note"), (2.1e-5, "ok"), (1.9e-5, "note")]
)
def test_the_disk_is_judged_by_its_time(monkeypatch: pytest.MonkeyPatch, seconds: float, state: str) -> None:
    monkeypatch.setattr(files, "sync_seconds", lambda _: seconds)
    assert found("disk").state == state


def test_the_disk_is_that_of_the_ledger_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATOLL_HOME", str(tmp_path / "not" / "yet"))
    assert files.sync_seconds(tmp_path) > 0
    assert str(tmp_path) in found("disk").detail
    assert list(tmp_path.iterdir()) == []


def test_more_checks_can_be_added_and_one_that_breaks_hides_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def hub() -> Iterator[Finding]:
        yield Finding("hub", "ok", "it answers")

    def broken_link() -> Iterator[Finding]:
        raise OSError("secret")

    monkeypatch.setattr(doctor, "CHECKS", [broken_link, hub])
    broken, fine = findings()
    assert (broken.name, broken.state) == ("broken link", "problem")
    assert "secret" not in broken.detail
    assert fine == Finding("hub", "ok", "it answers")
    assert [one.name for one in findings([hub])] == ["hub"]
    assert machine.core_library in CHECKS
