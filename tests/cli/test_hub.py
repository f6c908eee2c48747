"""``atoll hub``, typed: a hub as a process of its own, an invitation, a party that joins, and the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.hub import free_port, needs_server
from tests.support.running import Finished
from tests.support.running import atoll as command

from atoll.crypto.identity import Identity
from atoll.runtime.nats.hub import server_pid
from atoll.runtime.nats.hub_config import HubFolder
from atoll.runtime.nats.invitations import join

A = Identity(b"a" * 32)


def atoll(*words: str, code: int = 0) -> Finished:
    done = command("hub", *words)
    assert done.code == code, done.err
    return done


def test_a_hub_from_init_to_its_end(tmp_path: Path) -> None:
    needs_server()
    folder = ("--folder", str(tmp_path / "hub"))
    said = atoll("init", "localhost", "--listen", "127.0.0.1", "--port", str(free_port()), *folder)
    assert "atoll hub up" in said.err
    up = subprocess.Popen(
        [sys.executable, "-m", "atoll", "hub", "up", *folder], stderr=subprocess.PIPE, text=True
    )
    try:
        opened = HubFolder(tmp_path / "hub")
        end = time.monotonic() + 60
        while not _runs(folder) and time.monotonic() < end:
            time.sleep(0.2)
        invited = atoll("invite", "clinic", *folder)
        assert invited.out.startswith("atoll1-")
        assert len(invited.out.split()) == 1  # one string, which a script can pass on
        assert "clinic alone" in invited.err
        asyncio.run(join(invited.out, A))
        now = json.loads(atoll("status", "--json", *folder).out)
        assert [one["fingerprint"] for one in now["parties"]] == [A.fingerprint]
        assert "clinic" in atoll("status", *folder).out
        assert "shut out" in atoll("revoke", "clinic", *folder).out
        assert "renewed" in atoll("renew", *folder).out
        assert "already" in atoll("up", *folder, code=5).err
        pid = server_pid(opened)
        assert pid is not None
    finally:
        up.send_signal(signal.SIGTERM)
        said_last = up.communicate(timeout=30)[1]
    assert up.returncode == 0, said_last
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert invited.out.strip() not in said_last


def _runs(folder: tuple[str, ...]) -> bool:
    return bool(json.loads(atoll("status", "--json", *folder).out)["runs"])


def test_mistakes_are_said_with_what_to_do(tmp_path: Path) -> None:
    folder = ("--folder", str(tmp_path / "hub"))
    assert "atoll hub init" in atoll("status", *folder, code=2).err
    assert "belong together" in atoll("init", "x", "--certificate", "a.pem", *folder, code=2).err
    assert "not a hub's address" in atoll("init", "x", "--server", "nats://x:4222", *folder, code=2).err
    assert "not a port" in atoll("init", "x", "--port", "70000", *folder, code=2).err
    assert not (tmp_path / "hub").exists()
    atoll("init", "x", *folder)
    assert "does not run" in atoll("invite", "a", *folder).err
    assert "service" in atoll("config", *folder).out
    assert "no party or invitation" in atoll("revoke", "nobody", *folder, code=2).err
