"""Named edits of the source that some test must notice: the lists (``*.toml``), and how they are read.

``python -m tests.mutants`` applies them, one at a time, to a copy; README.md says how to add one.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One edit: ``line`` in ``file`` becomes ``change``, and one of ``tests`` (or of ``go``) must fail."""

    name: str
    file: str
    line: str
    """Text that stands in the file exactly once: a line, a part of one, or several."""
    change: str
    why: str
    """What the edit would do to the people who rely on the line."""
    tests: tuple[str, ...] = ()
    """Files or test ids, as pytest takes them; of a Go file, after the library was built again."""
    go: str = ""
    """Arguments of ``go test``, for edits of the Go core."""
    hangs: bool = False
    """Whether not ending counts as noticed."""
    dangerous: bool = True
    reason: str = ""
    """Why nothing has to notice it, where it is not dangerous."""
    area: str = ""


def listed(folder: Path = LISTS) -> list[Mutant]:
    """All mutants, area by area."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        for table in document["mutant"]:
            found.append(msgspec.convert({**table, "area": path.stem}, Mutant))
    return found


def problem_of(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why the edit cannot be made any more, or says too little; None where all is well."""
    path = root / mutant.file
    if not path.is_file():
        return f"there is no file {mutant.file}"
    times = path.read_text(encoding="utf-8").count(mutant.line)
    if times != 1:
        return f"its text stands {times} times in {mutant.file}, not once"
    if mutant.line == mutant.change:
        return "it changes nothing"
    if mutant.dangerous and not (mutant.tests or mutant.go):
        return "it names no test that should notice it"
    if not mutant.dangerous and not mutant.reason:
        return "it is called harmless without a reason"
    for test in mutant.tests:
        file, *names = test.split("::")
        name = names[-1] if names else ""
        if not (root / file).is_file():
            return f"there is no test file {file}"
        if name and f"def {name.partition('[')[0]}(" not in (root / file).read_text(encoding="utf-8"):
            return f"{file} has no test {name}"
    return None
