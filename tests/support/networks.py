"""Runs across machines without machines: every party in threads of its own, over a hub in this process."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from atoll import randomness
from atoll.crypto.identity import Identity
from atoll.protocols.base import Protocol, resolve
from atoll.protocols.own import Own
from atoll.runtime.engine import Engine, Outcome, Progress
from atoll.runtime.entries import Gone
from atoll.runtime.inbox import Event, Left, Received
from atoll.runtime.journal import Journal
from atoll.runtime.nats.carrier import Carrier, MemoryHub
from atoll.runtime.nats.party import PartyOutcome, header_of, run_party
from atoll.runtime.nats.sending import Timing
from atoll.runtime.nats.starts import RunStart, approve, begin, propose
from atoll.runtime.nats.state import Happening, RunState
from atoll.runtime.records import Sending
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address
from atoll.study.model import Study

QUICK = Timing(deadline=30.0, beat=0.5, ask=0.1, grace=0.05, linger=10.0, group=0.0005)
"""For machines that are all one."""


@cache
def identity_of(party: str) -> Identity:
    """The same for a name throughout the tests."""
    return Identity(randomness.derive(bytes(32), "test identity", party))


def pinned(study: Study) -> Study:
    """The study with a fingerprint for every party."""
    parties = [structs.replace(p, fingerprint=identity_of(p.name).fingerprint) for p in study.parties]
    return structs.replace(study, parties=tuple(parties))


def starts_of(study: Study) -> dict[str, RunStart]:
    """What every party has when all have approved."""
    identities = {party.name: identity_of(party.name) for party in study.parties}
    proposed = propose(next(iter(identities.values())), study, "a test")
    given = {name: approve(identity, proposed) for name, identity in identities.items()}
    approvals = {name: one for name, (one, _) in given.items()}
    return {
        name: begin(identity, proposed, approvals, given[name][1]) for name, identity in identities.items()
    }


Carriers = Callable[[str], Carrier]
"""A carrier for a party's fingerprint."""


class ThreadedParties(Engine):
    """Runs whole studies with one :func:`run_party` for each party, in a thread each."""

    def __init__(
        self,
        carriers: Carriers | None = None,
        *,
        folder: Path | None = None,
        timing: Timing = QUICK,
        durable: bool = False,
        **options: Any,
    ) -> None:
        self._carriers = carriers or MemoryHub().carrier
        self._folder = folder
        self._timing = timing
        self._durable = durable
        self._options = options
        self.starts: dict[str, RunStart] = {}
        self.outcomes: dict[str, PartyOutcome] = {}
        self.errors: dict[str, BaseException] = {}

    def run(
        self,
        protocol: Protocol,
        study: Study,
        own: Mapping[str, Own],
        *,
        progress: Progress | None = None,
    ) -> Outcome:
        self.starts = starts_of(pinned(resolve(protocol, study)))
        with tempfile.TemporaryDirectory() as made:
            self.go_on(protocol, own, self._folder or Path(made), progress)
        if self.errors:
            raise next(iter(self.errors.values()))
        return self._joined()

    def go_on(
        self, protocol: Protocol, own: Mapping[str, Own], folder: Path, progress: Progress | None = None
    ) -> None:
        """Every party from its folder."""
        self.outcomes, self.errors = {}, {}
        lock = threading.Lock()

        def one(name: str) -> None:
            start = self.starts[name]
            try:
                outcome = asyncio.run(
                    run_party(
                        start,
                        own.get(name, Own()),
                        folder / name.replace("/", "_"),
                        lambda: self._carriers(start.fingerprint(name)),
                        deadline=self._timing.deadline,
                        timing=self._timing,
                        protocol=protocol,
                        durable=self._durable,
                        progress=progress,
                        **self._options,
                    )
                )
                with lock:
                    self.outcomes[name] = outcome
            except BaseException as error:
                with lock:
                    self.errors[name] = error

        with ThreadPoolExecutor(len(self.starts)) as threads:
            list(threads.map(one, self.starts))

    def _joined(self) -> Outcome:
        learned = {a: value for outcome in self.outcomes.values() for a, value in outcome.learned.items()}
        transcript = Transcript()
        for outcome in self.outcomes.values():
            transcript.roles |= outcome.transcript.roles
            transcript.rounds = max(transcript.rounds, outcome.transcript.rounds)
            for kind, count in outcome.transcript.kinds.items():
                transcript.kinds[kind] = transcript.kinds.get(kind, 0) + count
        return Outcome(learned, transcript)


@contextlib.contextmanager
def nats_carriers(folder: Path, parties: Iterable[str]) -> Iterator[Carriers]:
    """A real hub with TLS on this machine, and every party's carrier to it."""
    from tests.support import hub as hubs

    identities = {identity_of(party).fingerprint: identity_of(party) for party in parties}
    hub = hubs.make_hub(folder)
    hubs.admit(hub, identities.values())
    with hubs.in_background(hubs.running(hub)):
        yield lambda fingerprint: hubs.carrier(hub, identities[fingerprint])


class Kept(NamedTuple):
    """What a role's journal says of it at the end."""

    drawn: Mapping[str, bytes]
    inbox: list[Event]
    sendings: list[Sending]


def kept_by(start: RunStart, own: Own, folder: Path) -> dict[Address, Kept]:
    """A finished party's journal, role by role."""
    journal = Journal(folder, start.journal_key, header_of(start, own), durable=False)
    try:
        state = RunState(start, journal)
        return {
            state.addresses[role]: Kept(
                state.drawn[role],
                [event for one in state.happened[role] for event in _events(state, one)],
                state.sendings[role],
            )
            for role in state.mine
        }
    finally:
        journal.close()


def _events(state: RunState, happening: Happening) -> list[Event]:
    if isinstance(happening, Gone):
        return [Left(address) for address in state.left_events(happening.party)]
    data = state.journal.load(happening.pieces)
    assert data is not None
    return [Received(state.addresses[happening.sender], data)]
