"""The dashboard as a process, as its owner starts it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from atoll.runtime.nats.site import Site


class Address(NamedTuple):
    """Where a dashboard answers."""

    host: str
    token: str

    @property
    def url(self) -> str:
        return f"http://{self.host}/{self.token}/"


@contextmanager
def dashboard(site: Site) -> Iterator[Address]:
    """``atoll dashboard`` for a site, until the block ends."""
    command = [sys.executable, "-m", "atoll", "dashboard", "--site", str(site.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(r"open this page: http://(127\.0\.0\.1:\d+)/([0-9a-f]{64})/\n", said)
            assert found, said
            yield Address(found[1], found[2])
        finally:
            process.terminate()
            process.wait(20)
