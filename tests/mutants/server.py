"""Runs pytest in forked children of a process that has imported everything slow except Atoll itself.

Each line of standard input is a request, ``{"tests": [...], "limit": seconds}``; each line of standard
output its answer, ``{"code": ..., "said": ...}``. Importing NumPy, pandas, scikit-learn and the like takes
longer than most tests of a mutant: here it is done once.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence

# The Go library must not be loaded before a fork, and no module of Atoll, which is what is edited.
SLOW = (
    "cffi",
    "cryptography.hazmat.primitives.asymmetric.x25519",
    "gmpy2",
    "hypothesis.extra.numpy",
    "matplotlib.figure",
    "msgspec",
    "pandas",
    "pyarrow.parquet",
    "pytest",
    "rich.console",
    "rich.table",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.datasets",
    "sklearn.decomposition",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "threadpoolctl",
    "typer",
)
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short")
# Hypothesis is a plugin of pytest, which would rather import it itself.
EARLY = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


def run(tests: Sequence[str], limit: float) -> tuple[int, str]:
    """The exit code of pytest (-1 where the time was up) and the end of what it printed."""
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            _be_pytest(tests, printed.fileno())
        code = _waited_for(child, time.monotonic() + limit)
        printed.seek(0)
        return code, printed.read().decode("utf-8", "replace")[-4000:]


def _be_pytest(tests: Sequence[str], printed: int) -> None:
    code = 3  # pytest's own: an internal error
    try:
        os.setsid()  # whatever a test starts ends with this group
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        import pytest

        code = int(pytest.main([*OPTIONS, *EARLY, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _waited_for(child: int, deadline: float) -> int:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _end_group(child)
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1
        time.sleep(0.02)
    _end_group(child)
    os.waitpid(child, 0)
    return -1


def _end_group(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def main() -> None:
    for name in SLOW:
        importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        code, said = run(asked["tests"], asked["limit"])
        print(json.dumps({"code": code, "said": said}), flush=True)


if __name__ == "__main__":
    main()
