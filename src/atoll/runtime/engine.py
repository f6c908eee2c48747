"""What an engine is: it carries the roles of a study, and says what each learned and what it cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from atoll.errors import RunError
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own
from atoll.runtime.records import MemoryRecord
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address
from atoll.study.model import Study

Progress = Callable[[str, Transcript], None]
"""Called with what happens now and the cost so far."""


class Observer:
    """Sees everything that moves; tests derive from it to tap inboxes and records."""

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        """A message left a role."""

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        """A message reached a role's inbox."""

    def left(self, receiver: Address, sender: Address) -> None:
        """A role's inbox was told that a sender has left."""

    def finished(self, address: Address, record: MemoryRecord) -> None:
        """A role ended, with this record."""


class Outcome:
    """What a run gave: what each role learned, and what it cost."""

    def __init__(
        self, learned: Mapping[Address, Learned], transcript: Transcript, study: Study | None = None
    ) -> None:
        self.learned = dict(learned)
        self.transcript = transcript
        self.study = study
        """The study as it ran, where the engine had to add to it."""


class Engine(ABC):
    """Runs studies. One that is made without arguments can be chosen by name (:mod:`engines`).

    An engine gives every role its own :class:`~atoll.network.Network` and
    :class:`~atoll.network.Record`, hands it what its party owns and nothing of another's, and delivers each
    message once and in order. It tells the record of every message before it leaves, wherever somebody
    may read the record later: to resume, to replay or to observe. A local run that nobody observes ends
    with its records, and keeps none.
    """

    elsewhere: ClassVar[bool] = False
    """Whether islands are named and tables stay with them. The outcome then has the caller's roles only."""

    @abstractmethod
    def run(
        self,
        protocol: Protocol,
        study: Study,
        own: Mapping[str, Own],
        *,
        progress: Progress | None = None,
    ) -> Outcome:
        """Run the roles to their end; one role's error ends them all. ``own``: by party."""


def check_own(protocol: Protocol, study: Study, own: Mapping[str, Own]) -> None:
    """Every table that the study reads is there, and no other."""
    holders = set(protocol.table_holders(study))
    given = {party for party, mine in own.items() if mine.island is not None}
    missing, extra = sorted(holders - given), sorted(given - holders)
    if missing:
        raise RunError(f"there is no data for {', '.join(missing)}", hint="[local] data = { name = path }")
    if extra:
        raise RunError(
            f"there is data for {', '.join(extra)}, which the study does not name as an island",
            hint="give tables to the study's islands only",
        )
