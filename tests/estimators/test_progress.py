"""A long fit says what it is doing where somebody watches, and nowhere else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import atoll
from atoll.estimators import progress

FIT = """
import numpy as np, atoll
from atoll.estimators import progress
progress.AFTER = {after}
X = np.random.default_rng(0).normal(size=(60, 5))
{before}
pca = atoll.PCA(1, engine=atoll.LocalEngine(latency=0.15), accept_determined=True)
print(pca.fit([X[:30], X[30:]]).n_components_)
"""


def watched(before: str = "", after: float = 0.3, **environment: str) -> str:
    """What a terminal of 80 columns gets to see of a fit of a second or more."""
    master, slave = pty.openpty()
    known = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **environment}
    command = [sys.executable, "-c", FIT.format(after=after, before=before)]
    with subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=slave, env=known) as process:
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        assert process.stdout is not None
        assert process.stdout.read() == b"1\n"
    os.close(master)
    assert process.returncode == 0
    return seen.decode()


def test_a_terminal_sees_a_line_that_is_gone_at_the_end() -> None:
    seen = watched()
    lines = [line for line in re.split(r"\r|\x1b\[K", seen) if line]
    assert all(re.match(r"PCA: [\d.]+ (s|min), \d+ messages, [\d.]+ k?B", line) for line in lines), seen
    # A busy machine may not have begun its first step when the first line is due.
    assert any(re.search(r"B; [\w-]+/\w+: [a-z ]+", line) for line in lines), seen
    assert all(len(line) < 80 for line in lines)
    assert seen.endswith("\r\x1b[K")


def test_a_quick_fit_says_nothing() -> None:
    assert progress.AFTER == 2.0
    assert watched(after=600.0) == ""


@pytest.mark.parametrize(
    ("before", "environment"), [("atoll.show_progress(False)", {}), ("", {"ATOLL_PROGRESS": "0"})]
)
def test_it_can_be_switched_off(before: str, environment: dict[str, str]) -> None:
    assert watched(before, **environment) == ""


def test_a_pipe_sees_nothing() -> None:
    command = [sys.executable, "-c", FIT.format(after=0.3, before="")]
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""


def test_a_notebook_gets_one_output_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for IPython, which is no dependency."""
    written: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            written.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        assert not written
        written.append(data["text/plain"])
        return Handle()

    kernel = types.SimpleNamespace(kernel=object())
    notebook: Any = types.SimpleNamespace(
        get_ipython=lambda: kernel, display=types.SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(progress, "AFTER", 0.2)
    X = np.random.default_rng(0).normal(size=(60, 5))
    atoll.PCA(1, engine=atoll.LocalEngine(latency=0.1), accept_determined=True).fit([X[:30], X[30:]])
    assert len(written) >= 2
    assert "/" in written[0]
    assert re.fullmatch(r"PCA: .* s, \d+ messages, .*B", written[-1])
