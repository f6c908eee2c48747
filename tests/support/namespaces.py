"""Machines for tests: network namespaces on one bridge, each with an address, a user and a home of its own.

Needs root and ``ip``. Nothing here touches the machine's own network. A machine sees no other's home, and
reaches the hub's host name through a proxy of its own that delays what passes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

HUB_NAME = "hub.example"
PORT = 4222
_NETWORK = "10.94.7"
_FIRST_USER = 61_000
COMPILED = "compiled"


def needs_namespaces() -> None:
    """Root and ``ip``; where they are, the test runs, and fails if it fails."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("setpriv") is None:
        pytest.skip("needs root, ip and setpriv")
    probe = subprocess.run(["ip", "netns", "list"], capture_output=True, check=False)
    made = subprocess.run(["ip", "netns", "add", "atollprobe"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", "atollprobe"], capture_output=True, check=False)
    if probe.returncode or made.returncode:
        pytest.skip("network namespaces cannot be made here")


def _sh(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


_EVERYTHING = """
import importlib, pkgutil, atoll
import pandas, pyarrow.parquet, scipy.linalg, scipy.special, rich.table, nats.js
for one in pkgutil.walk_packages(atoll.__path__, "atoll."):
    if not one.name.endswith("__main__"):
        importlib.import_module(one.name)
"""


def _compile(folder: Path) -> None:
    """Byte code of all that is installed, which users may read: their machines have it from the installation.

    Without it every process would compile every module again, as none of the users may write to the tree.
    """
    folder.mkdir(mode=0o755)
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _EVERYTHING]
    subprocess.run(
        command, env=settings | {"PYTHONPYCACHEPREFIX": str(folder)}, check=True, capture_output=True
    )


class Machine:
    """One host: a namespace, a user, a home."""

    def __init__(self, name: str, number: int, home: Path, others: Path) -> None:
        self.name = name
        self.space = f"atoll-{os.getpid() % 100_000}-{number}"
        self.address = f"{_NETWORK}.{number}"
        self.home = home
        self._user = str(_FIRST_USER + number)
        self._others = others
        self.running: list[subprocess.Popen[bytes]] = []
        home.mkdir(mode=0o700)
        os.chown(home, int(self._user), int(self._user))

    def command(self, script: str) -> list[str]:
        """A shell script as this machine's user runs it, in a file system where the others' homes are not.

        The interpreter may live in root's home: it is shown, and nothing else there.
        """
        python = Path(sys.executable).resolve().parents[1]
        prepare = " && ".join(
            [
                "mount --make-rprivate /",
                "mkdir -p /run/atoll-py /run/atoll-home",
                f"mount --bind {python} /run/atoll-py",
                f"mount --bind {self.home} /run/atoll-home",
                "mount -t tmpfs -o mode=755 none /root",
                f"mount -t tmpfs -o mode=755 none {self._others}",
                f"mkdir -p {python} {self.home}",
                f"mount --bind /run/atoll-py {python}",
                f"mount --bind /run/atoll-home {self.home}",
                f"cd {self.home}",
            ]
        )
        bins = Path(sys.executable).parent
        run = (
            f"exec setpriv --reuid={self._user} --regid={self._user} --clear-groups --no-new-privs "
            f"env -i HOME={self.home} PATH={bins}:/usr/bin:/bin LANG=C.UTF-8 COLUMNS=80 "
            f"PYTHONPATH={os.environ.get('PYTHONPATH', '')} "  # the tree that is tested
            f"PYTHONPYCACHEPREFIX={self._others.parent / COMPILED} "
            'bash -euo pipefail -c "$SCRIPT"'
        )
        whole = f"{prepare} && {run}"
        outer = ["ip", "netns", "exec", self.space, "unshare", "--mount", "bash", "-c", whole]
        return ["env", f"SCRIPT={script}", *outer]

    def run(self, script: str, timeout: float = 600) -> str:
        """Run to the end; what it printed."""
        done = subprocess.run(
            self.command(script), capture_output=True, text=True, check=False, timeout=timeout
        )
        assert done.returncode == 0, f"on {self.name}:\n{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def leave_running(self, script: str) -> None:
        log = (self.home.parent / f"{self.name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                self.command(script),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(process)

    def log(self) -> str:
        path = self.home.parent / f"{self.name}.log"
        return path.read_text() if path.exists() else ""


@contextmanager
def machines(folder: Path, names: tuple[str, ...], *, hub: str, delay: float) -> Iterator[dict[str, Machine]]:
    """Hosts on a bridge of their own; ``delay`` seconds from each to the hub, and back."""
    homes = folder / "homes"
    homes.mkdir(mode=0o755)
    folder.chmod(0o711)  # a user must be able to get to its own home
    _compile(folder / COMPILED)
    made = {name: Machine(name, i, homes / name, homes) for i, name in enumerate(names, 1)}
    bridge = f"atb{os.getpid() % 100_000}"
    proxies: list[subprocess.Popen[bytes]] = []
    try:
        _sh("ip", "link", "add", bridge, "type", "bridge")
        _sh("ip", "link", "set", bridge, "up")
        for number, machine in enumerate(made.values()):
            _plug_in(machine, bridge, f"atv{os.getpid() % 10_000}{number}")
            _name_the_hub(machine, made[hub])
        for machine in made.values():
            if machine.name != hub:
                proxies.append(_proxy(machine, made[hub].address, delay))
        yield made
    finally:
        for process in (*proxies, *(p for m in made.values() for p in m.running)):
            _end(process)
        for machine in made.values():
            subprocess.run(["ip", "netns", "delete", machine.space], capture_output=True, check=False)
            shutil.rmtree(f"/etc/netns/{machine.space}", ignore_errors=True)
        subprocess.run(["ip", "link", "delete", bridge], capture_output=True, check=False)


def _plug_in(machine: Machine, bridge: str, cable: str) -> None:
    inside = ("ip", "netns", "exec", machine.space, "ip")
    _sh("ip", "netns", "add", machine.space)
    _sh("ip", "link", "add", cable, "type", "veth", "peer", "name", "e0", "netns", machine.space)
    _sh("ip", "link", "set", cable, "master", bridge, "up")
    _sh(*inside, "addr", "add", f"{machine.address}/24", "dev", "e0")
    _sh(*inside, "link", "set", "e0", "up")
    _sh(*inside, "link", "set", "lo", "up")


def _name_the_hub(machine: Machine, hub: Machine) -> None:
    """``ip netns exec`` shows a namespace its own /etc/hosts."""
    address = hub.address if machine is hub else "127.0.0.1"
    folder = Path("/etc/netns") / machine.space
    folder.mkdir(parents=True)
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{address} {HUB_NAME}\n")


def _proxy(machine: Machine, hub: str, delay: float) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("delay_proxy.py")
    command = [sys.executable, str(script), f"127.0.0.1:{PORT}", f"{hub}:{PORT}", str(delay)]
    return subprocess.Popen(["ip", "netns", "exec", machine.space, *command], start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 15)
    until = time.monotonic() + 15
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
