"""The vector paths of the Go library: which one is taken, what forces it; no message depends on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from atoll.crypto.hazmat import rings

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"ifma", "avx2", "neon", "scalar"}


def in_a_process(path: str | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the variable set so, or not at all."""
    environment = {name: value for name, value in os.environ.items() if name != "ATOLL_VECTOR"}
    if path is not None:
        environment["ATOLL_VECTOR"] = path
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=900
    )


def run_kept(path: str, action: str, file: Path) -> dict[str, Any]:
    done = in_a_process(path, "-m", "tests.support.vector_runs", action, str(file))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def scalar(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Runs without any vector, and the file that keeps them."""
    file = tmp_path_factory.mktemp("runs") / "runs"
    told = run_kept("scalar", "record", file)
    assert told["path"] == "scalar"
    return told, file


@pytest.mark.parametrize("path", sorted(NAMES - {"scalar"}))
def test_every_message_is_the_same_on_every_path(scalar: tuple[dict[str, Any], Path], path: str) -> None:
    if path not in rings.vector_paths():
        pytest.skip(f"this machine has no {path}")
    want, file = scalar
    told = run_kept(path, "replay", file)
    assert told["path"] == path
    for name, roles in want["sent"].items():
        for role, sent in roles.items():
            assert told["sent"][name][role] == sent, f"{role} of {name}"
    # Something was compared: all runs, and messages of every role that sends any.
    assert set(told["sent"]) == {
        "direct", "strict", "fast", "private", "scores", "encrypted", "standardised", "columns"
    }  # fmt: skip
    assert all(len(roles) >= 4 and sum(map(len, roles.values())) > 50 for roles in want["sent"].values())


def test_the_fastest_path_is_taken() -> None:
    paths = rings.vector_paths()
    assert set(paths) <= NAMES
    assert paths[-1] == "scalar"
    script = "from atoll.crypto.hazmat import rings; print(rings.vector_path())"
    for asked in (None, "", "auto"):
        assert in_a_process(asked, "-c", script).stdout.strip() == paths[0]
    for asked in paths:
        assert in_a_process(asked, "-c", script).stdout.strip() == asked


def test_a_variable_set_by_the_program_itself_counts() -> None:
    script = (
        "import os; os.environ['ATOLL_VECTOR'] = 'scalar'; "
        "from atoll.crypto.hazmat import rings; print(rings.vector_path())"
    )
    assert in_a_process(None, "-c", script).stdout.strip() == "scalar"


@pytest.mark.parametrize("asked", [*sorted(NAMES), "mmx"])
def test_a_path_that_is_not_here_is_one_clear_error(asked: str) -> None:
    if asked in rings.vector_paths():
        pytest.skip(f"this machine has {asked}")
    script = (
        "from atoll.crypto.hazmat import rings\n"
        "from atoll.errors import ParameterError\n"
        "try: rings.rings()\n"
        "except ParameterError as problem: print(problem.message); print(problem.hint)\n"
    )
    message, hint = in_a_process(asked, "-c", script).stdout.splitlines()
    assert message.startswith(f'ATOLL_VECTOR is "{asked}", ')
    assert ("not one of: auto, scalar, avx2, ifma, neon" if asked == "mmx" else "which needs ") in message
    assert hint == "leave ATOLL_VECTOR out, or set it to auto"


def test_the_command_says_so_as_well(tmp_path: Path) -> None:
    table = {"ATOLL_CALIBRATION": str(tmp_path / "table.json")}
    code = f"import os; os.environ.update({table})\nfrom atoll.cli import main\nmain(['bench', 'calibrate'])"
    done = in_a_process("mmx", "-c", code)
    assert done.returncode == 2
    assert 'error: ATOLL_VECTOR is "mmx"' in done.stderr.replace("\n", " ")
    assert "hint: leave ATOLL_VECTOR out" in done.stderr
