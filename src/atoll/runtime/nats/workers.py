"""The worker processes of a node: one for each run, started again when it dies before it said how the run
ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

TRY_AGAIN: Final = 75
"""The exit code of a worker that could not begin for now, as when the hub is away."""
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
MOST_FAILURES: Final = 5
"""So many unexpected ends at once, one after the other, and a worker is not started again."""
LONG: Final = 60.0
"""A worker that lived so many seconds was well: the next wait is short again."""


class _Worker:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.began = time.monotonic()


class Workers:
    """Processes by the folder of their run."""

    def __init__(self, passphrase: str | None = None) -> None:
        self._passphrase = passphrase
        self._at_work: dict[Path, _Worker] = {}
        self._next: dict[Path, float] = {}
        self._wait: dict[Path, float] = {}
        self._failures: dict[Path, int] = {}

    def keep(self, folder: Path) -> bool:
        """See that a worker is at this run; whether one was started just now."""
        worker = self._at_work.get(folder)
        if worker is not None and worker.process.poll() is None:
            return False
        now = time.monotonic()
        if worker is not None:
            del self._at_work[folder]
            lived = now - worker.began
            faulty = worker.process.returncode > 0 and worker.process.returncode != TRY_AGAIN and lived < LONG
            self._failures[folder] = self._failures.get(folder, 0) + 1 if faulty else 0
            wait = FIRST_WAIT if lived > LONG else self._wait.get(folder, FIRST_WAIT)
            self._next[folder], self._wait[folder] = now + wait, min(2 * wait, LONGEST_WAIT)
        if self._next.get(folder, 0.0) > now:
            return False
        self._at_work[folder] = _Worker(self._start(folder))
        return True

    def gave_up(self, folder: Path) -> bool:
        """Whether a worker failed at once each time: not killed, not waiting for the hub, but broken."""
        return self._failures.get(folder, 0) >= MOST_FAILURES

    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        asks = ["--passphrase"] if self._passphrase is not None else []
        process = subprocess.Popen(
            [sys.executable, "-m", "atoll.runtime.nats.worker", str(folder), *asks],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        if self._passphrase is not None:
            process.stdin.write(self._passphrase.encode() + b"\n")
        # The pipe stays open: its end tells the worker that its node is gone.
        process.stdin.flush()
        return process

    def pid(self, folder: Path) -> int | None:
        """The process at a run."""
        worker = self._at_work.get(folder)
        return None if worker is None else worker.process.pid

    def is_staying(self, folder: Path) -> bool:
        """Whether a worker is still at work, also after it said how the run ended."""
        worker = self._at_work.get(folder)
        return worker is not None and worker.process.poll() is None

    def end(self, folder: Path) -> None:
        """End the worker of a run that is not to go on."""
        worker = self._at_work.pop(folder, None)
        if worker is not None:
            _end(worker)

    def stop(self) -> None:
        """End all; their runs go on with the next node."""
        for worker in self._at_work.values():
            _end(worker)
        self._at_work.clear()


def _end(worker: _Worker) -> None:
    if worker.process.stdin is not None:
        worker.process.stdin.close()
    worker.process.terminate()
    try:
        worker.process.wait(10)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()
