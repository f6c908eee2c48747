"""A plugin of pytest that lists every ``raise`` which no test has run: a guard that could be dropped unseen.

    python -m pytest -p tests.mutants.unraised tests/contract tests/protocols

It traces lines, so tests take longer, and sees this process and its threads only: what a test starts as a
process of its own counts for nothing here.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "atoll"
_seen: dict[CodeType, set[int]] = {}


@cache
def raises(path: str) -> dict[int, str]:
    """Line -> text of every ``raise`` in a file."""
    text = Path(path).read_text(encoding="utf-8")
    lines = text.splitlines()
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise))
    return {node.lineno: lines[node.lineno - 1].strip() for node in nodes}


@cache
def _of(code: CodeType) -> frozenset[int]:
    if not code.co_filename.startswith(str(SOURCE)):
        return frozenset()
    return frozenset({line for _, _, line in code.co_lines() if line} & set(raises(code.co_filename)))


def _trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
    """Lines are looked at only in functions with a ``raise`` that was not run yet."""
    code = frame.f_code
    seen = _seen.setdefault(code, set())
    if len(seen) == len(_of(code)):
        return None

    def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line" and frame.f_lineno in _of(code):
            seen.add(frame.f_lineno)
        return line

    return line


def pytest_sessionstart() -> None:
    threading.settrace(_trace)
    sys.settrace(_trace)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    sys.settrace(_trace)  # a test may have set another, or none


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The list, of files of which anything was run."""
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    ran: dict[str, set[int]] = {}
    for code, seen in _seen.items():
        if code.co_filename.startswith(str(SOURCE)):
            ran.setdefault(code.co_filename, set()).update(seen)
    for path, lines in sorted(ran.items()):
        for number, text in sorted(raises(path).items()):
            if number not in lines:
                terminalreporter.write_line(
                    f"never raised: {Path(path).relative_to(SOURCE)}:{number}: {text}"
                )
