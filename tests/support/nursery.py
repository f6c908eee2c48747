"""Processes of Atoll that begin as copies of one that has imported everything: a start costs milliseconds.

``Nursery`` is that one. ``ForkedMachine`` is :class:`~atoll.cli.one_machine.OneMachine` with its processes
from there: hub, nodes, and the workers that nodes start. They are processes like any other, die by ``kill
-9`` like any other, and share no memory; only ``exec`` and the imports are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atoll.cli.one_machine import OneMachine
from atoll.runtime.nats import worker, workers

IMPORTED = ("pandas", "pyarrow", "pyarrow.parquet", "scipy.linalg", "scipy.special", "rich.table", "nats.js")


class Forked:
    """A process as ``subprocess.Popen`` shows it, as far as Atoll asks."""

    def __init__(self, nursery: Path, kind: str, log: Path, arguments: list[str]) -> None:
        """``nursery``: the socket of the one that is copied."""
        self._said = socket.socket(socket.AF_UNIX)
        self._said.connect(str(nursery))
        mine, its = os.pipe()
        self.stdin = os.fdopen(its, "wb", buffering=0)
        request = json.dumps([kind, str(nursery), str(log), arguments]).encode()
        socket.send_fds(self._said, [request], [mine])
        os.close(mine)
        self.pid = int(self._line(wait=True) or 0)
        self.returncode: int | None = None

    def _line(self, *, wait: bool, seconds: float | None = None) -> str | None:
        self._said.settimeout(seconds if wait else 0)
        try:
            return self._said.recv(16).decode().strip()
        except (BlockingIOError, TimeoutError):
            return None

    def poll(self) -> int | None:
        if self.returncode is None and (said := self._line(wait=False)) is not None:
            self._ended(said)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            said = self._line(wait=True, seconds=timeout)
            if said is None:
                raise subprocess.TimeoutExpired("a copy", timeout or 0)
            self._ended(said)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, said: str) -> None:
        self.returncode = int(said or -signal.SIGKILL)
        self._said.close()
        self.stdin.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedMachine(OneMachine):
    """A hub and sites whose processes are copies of one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.nursery = folder / "nursery"
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.nursery", str(self.nursery)], stdout=subprocess.PIPE
        )
        assert self._server.stdout is not None
        self._server.stdout.readline()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._server.kill()
        self._server.wait()
        if self._server.stdout is not None:
            self._server.stdout.close()

    def home(self, name: str) -> Path:
        """Where a site's owner keeps files."""
        return self.folder

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def begin(self) -> None:
        """Everything stands where it must."""

    def acting(self, name: str) -> contextlib.AbstractContextManager[None]:
        """As the owner of a site: all are one here."""
        return contextlib.nullcontext()

    def at_the_hub(self) -> None:
        """This thread is on the hub's network already."""

    def _start(self, name: str, *command: str) -> None:
        log = self.log(name)
        log.touch()
        started: Any = Forked(self.nursery, "command", log, list(command))
        self._processes[name] = started


# ---- the one that is copied ----


def _serve(path: Path) -> None:
    import importlib

    from atoll.cli import app, hub, node  # noqa: F401
    from atoll.protocols import PROTOCOLS
    from atoll.runtime.nats import hub as hubs  # noqa: F401

    for name in PROTOCOLS.names():
        PROTOCOLS[name]
    for name in IMPORTED:
        importlib.import_module(name)
    asked: dict[int, socket.socket] = {}
    signal.signal(signal.SIGCHLD, lambda *_: _reap(asked))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        print("ready", flush=True)
        while True:
            said, _ = listener.accept()
            request, fds, _, _ = socket.recv_fds(said, 1 << 16, 1)
            if not fds:
                said.close()
                continue
            with _without_children():
                pid = os.fork()
                if pid == 0:
                    _be(json.loads(request), fds[0], [listener, said, *asked.values()])
                asked[pid] = said
            os.close(fds[0])
            with contextlib.suppress(OSError):
                said.send(f"{pid}\n".encode().ljust(16))


@contextlib.contextmanager
def _without_children() -> Any:
    """A child that ends at once is noted before it is reaped."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _reap(asked: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with asked.pop(pid) as said, contextlib.suppress(OSError):
            said.send(f"{os.waitstatus_to_exitcode(status)}\n".encode().ljust(16))


def _be(request: list[Any], stdin: int, others: list[socket.socket]) -> None:
    """What a child does, until its end."""
    kind, nursery, log, arguments = request
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()
        for one in others:
            one.close()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, source in ((0, stdin), (1, out), (2, out)):
            os.dup2(source, fd)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        _KINDS[kind](Path(nursery), arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _command(nursery: Path, arguments: list[str]) -> None:
    """``atoll ARGUMENTS``, whose workers are copies too and are started again without delay."""
    from atoll.cli import main

    def start(self: workers.Workers, folder: Path) -> Any:
        return Forked(nursery, "worker", folder / "worker.out", [str(folder)])

    workers.Workers._start = start  # type: ignore[method-assign]
    workers.FIRST_WAIT = workers.LONGEST_WAIT = 0.1  # type: ignore[misc]
    main(arguments)


def _worker(_: Path, arguments: list[str]) -> None:
    worker.begin(Path(arguments[0]), None)


_KINDS: dict[str, Callable[[Path, list[str]], None]] = {"command": _command, "worker": _worker}

if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
