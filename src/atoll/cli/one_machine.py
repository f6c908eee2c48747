"""A hub and sites on this machine, each a process of its own: for the demo, and to try things out."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.errors import RunError

if TYPE_CHECKING:
    from atoll.runtime.nats.hub_config import HubFolder
    from atoll.runtime.nats.runs import RunFolder
    from atoll.runtime.nats.site import Site

START_SECONDS = 60.0


class OneMachine:
    """Processes and folders below one folder; whoever makes it ends it."""

    def __init__(self, folder: Path) -> None:
        from atoll.runtime.nats import hub as hubs
        from atoll.runtime.nats.hub_config import HubSettings

        self.folder = folder
        settings = HubSettings(name="localhost", listen="127.0.0.1", port=_free_port())
        self.hub: HubFolder = hubs.make(folder / "hub", settings)
        self.sites: dict[str, Site] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._options: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> OneMachine:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self.end(name)

    # ---- the hub ----

    def start_hub(self, patience: float = START_SECONDS) -> None:
        self._start("hub", "hub", "up", "--folder", str(self.folder / "hub"))
        until = time.monotonic() + patience
        while not self._hub_answers():
            if time.monotonic() > until or self._processes["hub"].poll() is not None:
                raise RunError("the hub did not start", hint=f"see {self.folder / 'hub.log'}")
            time.sleep(0.1)

    def _hub_answers(self) -> bool:
        return "the agent answers" in (self.folder / "hub.log").read_text()

    # ---- sites ----

    def add_site(self, name: str) -> Site:
        """A site with keys of its own that the hub lets in."""
        from atoll.crypto.identity import Identity
        from atoll.runtime.nats import hub as hubs
        from atoll.runtime.nats.connection import Login
        from atoll.runtime.nats.site import HubAddress, Site

        site = Site.make(self.folder / name)
        identity = Identity.new()
        identity.save(site.identity_file)
        hubs.add_party(self.hub, name, identity.public, Login.of(identity).public)
        site.set_hub(HubAddress(self.hub.settings.url, hubs.authority(self.hub), name))
        self.sites[name] = site
        return site

    def start_node(self, name: str, *options: str) -> None:
        """The site's node, as its owner would start it."""
        self._options[name] = options
        self._start(name, "node", "run", "--site", str(self.sites[name].folder), "--no-ask", *options)

    def start_node_again(self, name: str) -> None:
        """As it was started before."""
        self.start_node(name, *self._options[name])

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "atoll", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    # ---- ends ----

    def kill(self, name: str) -> None:
        """What a power cut does to a process: ``kill -9``."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def end(self, name: str) -> None:
        """Ask a process to end."""
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def runs(self, name: str) -> bool:
        """Whether a process is there."""
        return name in self._processes and self._processes[name].poll() is None


def worker_pid(folder: RunFolder) -> int | None:
    """The process that is at a run, as it says itself."""
    with contextlib.suppress(OSError, ValueError):
        return int((folder.path / "worker.pid").read_text())
    return None


def send_signal(pid: int, number: signal.Signals) -> bool:
    """Whether there was such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
