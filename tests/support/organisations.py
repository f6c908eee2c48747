"""A hub and sites on machines of their own, for campaigns: each in a network namespace, as a user of its own,
with a home that no other sees.

Each machine has a nursery of its own, so that its processes start in milliseconds. Whoever drives all this is
root: it writes what owners would have written as the owner (:meth:`Organisations.acting`), and listens in the
hub's namespace (:meth:`Organisations.at_the_hub`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.namespaces import HUB_NAME, PORT, Machine, machines
from tests.support.nursery import Forked

from atoll.cli.one_machine import OneMachine
from atoll.runtime.nats import hub as hubs
from atoll.runtime.nats.hub_config import HubSettings

_SETRESUID, _SETRESGID, _NEW_NETWORK = 117, 119, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Organisations(OneMachine):
    """As :class:`~atoll.cli.one_machine.OneMachine`, on machines that share nothing but a network."""

    def __init__(self, hosts: dict[str, Machine]) -> None:
        self._hosts = hosts
        self.folder = hosts["hub"].home
        settings = HubSettings(name=HUB_NAME, listen="0.0.0.0", port=PORT)
        self.hub = hubs.make(self.folder / "hub", settings)
        self.sites = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._options: dict[str, tuple[str, ...]] = {}
        self._tree = Path(__file__).parents[2]

    def home(self, name: str) -> Path:
        """Where a site's owner keeps files."""
        return self._hosts[name].home

    def log(self, name: str) -> Path:
        return self.home(name) / f"{name}.log"

    def add_site(self, name: str) -> Any:
        mine, self.folder = self.folder, self.home(name)
        try:
            return super().add_site(name)
        finally:
            self.folder = mine

    def begin(self) -> None:
        """Hand everything to its owner, and start the nurseries."""
        for name, host in self._hosts.items():
            user = host.home.stat()
            for path in (host.home, *host.home.rglob("*")):
                os.chown(path, user.st_uid, user.st_gid, follow_symlinks=False)
            command = f"python -m tests.support.nursery {self._nursery(name)}"
            host.leave_running(f"PYTHONPATH={self._tree} exec {command}")
        for name in self._hosts:
            until = time.monotonic() + 600
            while not self._nursery(name).exists():
                assert time.monotonic() < until, f"no nursery on {name}: {self._hosts[name].log()}"
                time.sleep(0.05)

    def _nursery(self, name: str) -> Path:
        return self.home(name) / "nursery"

    def _hub_answers(self) -> bool:
        return "the agent answers" in self.log("hub").read_text()

    def _start(self, name: str, *command: str) -> None:
        with self.acting(name):
            self.log(name).touch()
        started: Any = Forked(self._nursery(name), "command", self.log(name), list(command))
        self._processes[name] = started

    @contextlib.contextmanager
    def acting(self, name: str) -> Iterator[None]:
        """This thread as the owner of a machine."""
        user = self.home(name).stat()
        _call(_libc.syscall(_SETRESGID, -1, user.st_gid, -1))
        _call(_libc.syscall(_SETRESUID, -1, user.st_uid, -1))
        try:
            yield
        finally:
            _call(_libc.syscall(_SETRESUID, -1, 0, -1))
            _call(_libc.syscall(_SETRESGID, -1, 0, -1))

    def at_the_hub(self) -> None:
        """From now on this thread is on the hub's network."""
        with open(f"/run/netns/{self._hosts['hub'].space}") as space:  # noqa: PTH123
            _call(_libc.setns(space.fileno(), _NEW_NETWORK))


def _call(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def organisations(folder: Path, sites: int) -> Iterator[Organisations]:
    """Machines for a hub and so many sites, until the block ends."""
    names = ("hub", *(f"site-{number}" for number in range(sites)))
    folder.mkdir(parents=True)
    with machines(folder, names, hub="hub", delay=0.0) as hosts, Organisations(hosts) as made:
        yield made
