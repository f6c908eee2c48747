"""Journals of runs through nodes, kept from being erased at the end, so that every role can be run again."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.example_tables import same
from tests.support.networks import kept_by

from atoll.crypto.identity import Identity
from atoll.errors import AtollError
from atoll.protocols import protocol_of
from atoll.protocols.base import with_helpers
from atoll.protocols.own import Own
from atoll.runtime.execute import joined
from atoll.runtime.nats.runs import RunFolder
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.replay import replay


class KeptJournal:
    """One party's part of one run: its key copied, its files under a second name, taken while it goes on."""

    def __init__(self, run: RunFolder, identity: Identity, folder: Path) -> None:
        """``folder`` is on the same file system."""
        self._run, self._identity, self._folder = run, identity, folder
        self._start: RunStart | None = None

    def hold(self) -> bool:
        """Whether it is held now: a run has a journal once its worker has begun."""
        if self._start is not None:
            return True
        journal = self._run.journal
        if not all((journal / name).exists() for name in ("key", "small", "bulk")):
            return False
        start = self._run.start(self._identity)
        self._folder.mkdir(parents=True)
        shutil.copy(journal / "key", self._folder / "key")  # it is overwritten where it stands
        for name in ("small", "bulk"):
            os.link(journal / name, self._folder / name)
        self._start = start
        return True

    def differences(self, own: Own, result: dict[str, Any]) -> list[str]:
        """What each role does otherwise when it is run again from its draws and its inbox."""
        if self._start is None:
            return [f"no journal of {self._run.name} was held"]
        study, wrong, learned = self._start.study, [], {}
        protocol = protocol_of(study.protocol)
        readers = with_helpers(protocol, study).data_roles
        own = replace(own, ledger=None)  # it was booked, and says nothing to the role
        for address, kept in kept_by(self._start, own, self._folder).items():
            mine = own if address.role in readers else replace(own, island=None)
            try:
                again, sent = replay(protocol, study, address, mine, kept.drawn, kept.inbox, kept.sendings)
            except AtollError as error:
                wrong.append(f"{address} does not replay: {error}")
                continue
            learned[address] = again
            if [(to, hashlib.sha256(data).digest()) for to, data in sent] != kept.sendings:
                wrong.append(f"{address} sends something else when it is run again")
        if not wrong and not same(joined(learned), result):
            wrong.append(f"{self._start.me} learns something else when it is run again")
        return wrong
