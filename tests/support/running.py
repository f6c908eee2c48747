"""Run the ``atoll`` command inside the test process."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

import pytest

from atoll.cli import main


class Finished(NamedTuple):
    code: int
    out: str
    err: str


def atoll(*arguments: str) -> Finished:
    """What ``atoll ARGUMENTS`` prints and how it ends."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main(list(arguments))
    return Finished(int(ended.value.code or 0), out.getvalue(), err.getvalue())


PARTIES = """\
[[party]]
name = "north"
role = "provider"
[[party]]
name = "south"
role = "provider"
[[party]]
name = "office"
roles = ["server", "consumer"]
"""
"""Of a study file: two islands, and an office that leads and receives."""
