"""Apply every listed edit to a copy of the tree, run the tests that should notice, and say which did not.

    python -m tests.mutants                     all of them
    python -m tests.mutants masks ledger        those whose name or area contains one of the words
    python -m tests.mutants --jobs 4 --list

Ends with 1 if a dangerous edit was not noticed, is stale or does not run, and if tests fail without any.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.mutants import ROOT, Mutant, listed, problem_of

_LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "dist",
    "build",
    "atoll-demo",
    "atoll-run",
    "out",
)

KILLED, SURVIVED, HARMLESS = "killed", "survived", "harmless"
STALE, BROKEN, TIMED_OUT = "stale", "broken", "timed out"
"""Stale: the text is no longer there; broken: the edited code does not compile, or no test ran."""


class Verdict(NamedTuple):
    mutant: Mutant
    state: str
    seconds: float
    said: str = ""


class Copy:
    """One worker's copy of the tree."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.root = folder / "tree"
        self.limit = limit
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT, symlinks=True)
        # Bytecode is checked against the content of its source, not its age: edits come within a second.
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src", "tests"],
            cwd=self.root,
            check=True,
        )
        self.environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.root / "src"),
        }
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(self.root / "tests" / "mutants" / "server.py")],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._server.communicate()  # its input ends, and so does it

    def pytest(self, tests: Sequence[str], limit: float | None = None) -> tuple[int, str]:
        """The exit code and the end of what was printed; -1 where the time was up."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = {"tests": list(tests), "limit": limit or self.limit}
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        return answer["code"], answer["said"]

    def go(self, *arguments: str) -> tuple[int, str]:
        return self._run(["go", *arguments], self.root / "go", self.limit)

    def build(self) -> tuple[int, str]:
        """The shared library, from the copy's Go files."""
        return self._run([sys.executable, "hatch_build.py"], self.root, self.limit)

    def _run(self, command: list[str], where: Path, limit: float) -> tuple[int, str]:
        with tempfile.TemporaryFile() as printed:
            # A group of its own: whatever a test has started ends with it.
            running = subprocess.Popen(
                command,
                cwd=where,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )
            try:
                code = running.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, 9)
                running.wait()
                code = -1
            printed.seek(0)
            return code, printed.read().decode("utf-8", "replace")[-4000:]


def of_go(mutant: Mutant) -> bool:
    """Whether the edit is in the Go library, its kernels in C included."""
    return mutant.file.startswith("go/")


def judge(copy: Copy, mutant: Mutant) -> Verdict:
    """Edit, run, restore."""
    started = time.monotonic()
    problem = problem_of(mutant)
    if problem:
        return Verdict(mutant, STALE, 0.0, problem)
    path = copy.root / mutant.file
    whole = path.read_text(encoding="utf-8")
    try:
        path.write_text(whole.replace(mutant.line, mutant.change), encoding="utf-8")
        state, said = _noticed_in_go(copy, mutant) if of_go(mutant) else _noticed(copy, mutant)
    finally:
        path.write_text(whole, encoding="utf-8")
    if state == SURVIVED and not mutant.dangerous:
        state = HARMLESS
    return Verdict(mutant, state, time.monotonic() - started, said)


def _noticed(copy: Copy, mutant: Mutant) -> tuple[str, str]:
    if mutant.file.endswith(".py"):
        try:
            ast.parse((copy.root / mutant.file).read_text(encoding="utf-8"))
        except SyntaxError as error:
            return BROKEN, f"the edited file is no Python: {error}"
    if not mutant.tests:
        return SURVIVED, ""
    code, said = copy.pytest(mutant.tests)
    if code == -1:
        return (KILLED, "it hangs") if mutant.hangs else (TIMED_OUT, said)
    # 1: tests failed. Anything else (errors while collecting, unknown names) proves nothing.
    return {0: (SURVIVED, ""), 1: (KILLED, _failed(said))}.get(code, (BROKEN, said))


def _noticed_in_go(copy: Copy, mutant: Mutant) -> tuple[str, str]:
    code, said = copy.go("build", "./...")
    if code:
        return BROKEN, said
    if mutant.go:
        code, said = copy.go("test", *shlex.split(mutant.go))
        if code:
            return (TIMED_OUT if code == -1 and not mutant.hangs else KILLED), "by Go's own tests"
    if not mutant.tests:
        return SURVIVED, ""
    library = next((copy.root / "src" / "atoll" / "_native").glob("libatoll.*"))
    before = library.read_bytes()
    try:
        code, said = copy.build()
        return _noticed(copy, mutant) if code == 0 else (BROKEN, said)
    finally:
        library.unlink(missing_ok=True)  # never written over: a process may have it loaded
        library.write_bytes(before)


def _failed(said: str) -> str:
    lines = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0].partition("::")[2] if lines else ""


def _sound(copy: Copy, mutants: Sequence[Mutant]) -> bool:
    """Whether the tests pass while nothing is edited: one that fails anyway proves nothing."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    print(f"without any edit: {len(tests)} selections of tests", flush=True)
    code, said = copy.pytest(tests, limit=3600) if tests else (0, "")
    commands = sorted({mutant.go for mutant in mutants if mutant.go})
    for command in commands if code == 0 else ():
        code, said = copy.go("test", *shlex.split(command))
        if code:
            break
    if code:
        print(f"{said}\nthese fail without any edit (exit code {code}): mend them first")
    return code == 0


def _run_all(mutants: Sequence[Mutant], jobs: int, limit: float, *, check: bool) -> list[Verdict] | None:
    with tempfile.TemporaryDirectory(prefix="atoll-mutants-") as folder, ExitStack() as ending:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(Copy(Path(folder) / str(number), limit))
            ending.callback(lambda: copies.get().close())
        first = copies.get()
        if check and not _sound(first, mutants):
            return None
        copies.put(first)
        done, lock = Counter[str](), threading.Lock()

        def one(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                verdict = judge(copy, mutant)
            finally:
                copies.put(copy)
            with lock:
                done[verdict.state] += 1
                print(
                    f"[{done.total():3}/{len(mutants)}] {verdict.state:9} {verdict.seconds:5.1f} s  "
                    f"{mutant.area}/{mutant.name}  {verdict.said[:90] if verdict.state == KILLED else ''}",
                    flush=True,
                )
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, mutants))


def _table(verdicts: Sequence[Verdict]) -> None:
    states = (KILLED, HARMLESS, SURVIVED, TIMED_OUT, BROKEN, STALE)
    areas = sorted({verdict.mutant.area for verdict in verdicts})
    print("\n" + "area".ljust(16) + "".join(state.rjust(11) for state in states))
    for area in [*areas, None]:
        counted = Counter(v.state for v in verdicts if area in (None, v.mutant.area))
        print((area or "all").ljust(16) + "".join(str(counted[state]).rjust(11) for state in states))
    for verdict in verdicts:
        if verdict.state == HARMLESS:
            print(f"\nharmless: {verdict.mutant.area}/{verdict.mutant.name}\n  {verdict.mutant.reason}")
    for verdict in verdicts:
        if verdict.state in (SURVIVED, TIMED_OUT, BROKEN, STALE):
            mutant = verdict.mutant
            print(f"\n{verdict.state.upper()}: {mutant.area}/{mutant.name} ({mutant.file})\n  {mutant.why}")
            if verdict.said:
                print("  " + "\n  ".join(verdict.said.strip().splitlines()[-12:]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants whose area/name contains one of these")
    parser.add_argument("--jobs", type=int, default=1, help="how many copies work side by side")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one mutant's tests")
    parser.add_argument(
        "--unchecked", action="store_true", help="leave out the run without edits, where it has just passed"
    )
    parser.add_argument("--list", action="store_true", help="say which there are, and run nothing")
    given = parser.parse_args()
    mutants = [
        mutant
        for mutant in listed()
        if not given.words or any(word in f"{mutant.area}/{mutant.name}" for word in given.words)
    ]
    if not mutants:
        print("no mutant has such a name")
        return 1
    if given.list:
        for mutant in mutants:
            print(f"{mutant.area}/{mutant.name}: {mutant.why}")
        return 0
    if any(mutant.go for mutant in mutants) and shutil.which("go") is None:
        print("no go on this machine: the edits of the Go core are left out")
        mutants = [mutant for mutant in mutants if not of_go(mutant)]
    verdicts = _run_all(mutants, max(1, given.jobs), given.limit, check=not given.unchecked)
    if verdicts is None:
        return 1
    _table(verdicts)
    return int(any(v.state in (SURVIVED, TIMED_OUT, BROKEN, STALE) for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
