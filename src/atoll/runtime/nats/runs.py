"""What a site's folder holds of one run, proposed or ended: its state, the approvals, and the key for it.

Everything that must not be forgotten is on disk before anybody is told of it: an approval's key before the
approval, the run's id before its worker starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from atoll.crypto.identity import Identity
from atoll.errors import DataError, ParameterError, RunError
from atoll.runtime.journal import erase
from atoll.runtime.nats.receipts import cursors, read_receipt
from atoll.runtime.nats.site import Site, read_json, write_json
from atoll.runtime.nats.starts import (
    Given,
    Proposed,
    RunStart,
    approve,
    begin,
    open_signed,
    read_approval,
    read_proposal,
)
from atoll.runtime.result import write_whole

PROPOSED: Final = "proposed"
APPROVED: Final = "approved"
RUNNING: Final = "running"
FINISHED: Final = "finished"
FAILED: Final = "failed"
DECLINED: Final = "declined"
CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"
ACTIVE: Final = (PROPOSED, APPROVED, RUNNING)
ENDED: Final = (FINISHED, FAILED, DECLINED, CANCELLED, EXPIRED)
LAST: Final = "last"

_SEALED: Final = "key of a run"


class Answer(msgspec.Struct, frozen=True):
    """What is known of another party's part."""

    state: str
    """``approved``, ``declined``, ``finished``, ``failed``..."""
    words: str = ""
    """What its owner said, or an error's class."""
    role: str = ""
    missing: tuple[str, ...] = ()


class State(msgspec.Struct, kw_only=True):
    """One run as this site knows it."""

    id: str
    study: str
    digest: str
    protocol: str
    me: str
    submitter: str
    reason: str
    made: int
    expires: int
    parties: dict[str, str]
    rehearse: bool = False
    mine: bool = False
    """Submitted here."""
    phase: str = PROPOSED
    run: str = ""
    data_set: str | None = None
    deadline: float = 600.0
    answers: dict[str, Answer] = {}
    refused: tuple[str, ...] = ()
    """Why the site's policy refuses it."""
    error: str = ""
    """The class of what ended it."""
    words: str = ""
    """What ended it, for this site's eyes."""
    role: str = ""
    missing: tuple[str, ...] = ()
    starts: int = 0
    begun: float = 0.0
    ended: float = 0.0

    @property
    def name(self) -> str:
        return self.id[:12]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.parties if name != self.me)

    @property
    def silent(self) -> tuple[str, ...]:
        """Parties that have not answered."""
        return tuple(name for name in self.parties if name != self.me and name not in self.answers)


class End(msgspec.Struct, frozen=True):
    """How a worker ended, as it says itself."""

    state: str
    error: str = ""
    words: str = ""
    hint: str = ""
    role: str = ""
    missing: tuple[str, ...] = ()
    released: tuple[str, ...] = ()


class Progress(msgspec.Struct, frozen=True):
    """How far a worker is."""

    what: str = ""
    messages: int = 0
    bytes: int = 0
    rounds: int = 0
    of_rounds: int = 0
    left: float | None = None
    """Seconds, guessed from the rounds so far."""
    at: float = 0.0


class Tombstone(msgspec.Struct, frozen=True):
    """What stays of a journal."""

    run: str
    study: str
    party: str
    ended: str
    lanes: dict[str, int]
    """How many messages were sent and received, by their ends."""


class RunFolder:
    """One run's folder."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.path = site.runs / name

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def result(self) -> Path:
        return self.path / "result.atoll"

    @property
    def receipt(self) -> Path:
        return self.path / "receipt" / "receipt.jsonl"

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    @property
    def review(self) -> Path:
        return self.path / "review.txt"

    def state(self) -> State:
        state = read_json(self.path / "state.json", State)
        if state is None:
            raise RunError(f"there is no run {self.name} here")
        return state

    def save(self, state: State) -> None:
        write_json(self.path / "state.json", state)

    def end(self) -> End | None:
        return read_json(self.path / "end.json", End)

    def set_end(self, end: End) -> None:
        write_json(self.path / "end.json", end)

    def progress(self) -> Progress | None:
        return read_json(self.path / "progress.json", Progress)

    # ---- what was signed ----

    @classmethod
    def make(cls, site: Site, proposed: Proposed, me: str, *, mine: bool) -> tuple[RunFolder, State]:
        """The folder of a proposal; the same again where it is known already."""
        folder = cls(site, proposed.name)
        folder.path.mkdir(mode=0o700, exist_ok=True)
        try:
            known = folder.state()
        except RunError:
            state = State(
                id=proposed.id.hex(),
                study=plain(proposed.study.name),
                digest=proposed.study.digest,
                protocol=proposed.study.protocol,
                me=me,
                submitter=proposed.submitter.name,
                reason=plain(proposed.proposal.reason),
                made=proposed.proposal.made,
                expires=proposed.proposal.expires,
                parties={party.name: party.fingerprint or "" for party in proposed.study.parties},
                rehearse=proposed.proposal.rehearse,
                mine=mine,
            )
            write_whole(folder.path / "proposal.bin", proposed.signed)
            folder.save(state)
            return folder, state
        if known.id != proposed.id.hex():
            raise RunError(f"two proposals begin with {folder.name}", hint="submit the study again")
        return folder, known

    def proposed(self) -> Proposed:
        """The proposal; it was in time when it came."""
        opened = open_signed((self.path / "proposal.bin").read_bytes())
        return read_proposal(opened, now=opened.message.made)  # type: ignore[attr-defined]

    def approve(self, identity: Identity) -> Given:
        """This party's approval, made once: asked again, it is the same."""
        proposed = self.proposed()
        me = proposed.party_of(identity.fingerprint).name
        if not self._given_file(me).exists():
            given, private = approve(identity, proposed)
            write_whole(self.path / "key.bin", identity.public.seal_for(private, _SEALED))
            write_whole(self._given_file(me), given.signed)
        return self.given(proposed)[me]

    def take(self, given: Given) -> bool:
        """Keep another party's approval; its first is the one that counts."""
        path = self._given_file(given.approval.party)
        if path.exists():
            return False
        write_whole(path, given.signed)
        return True

    def given(self, proposed: Proposed) -> dict[str, Given]:
        """All approvals so far, in the study's order."""
        found = {}
        for path, party in zip(self._given_files(), proposed.study.parties, strict=True):
            if path.exists():
                opened = open_signed(path.read_bytes())
                found[party.name] = read_approval(proposed, opened, now=proposed.proposal.made)
        return found

    def is_approved_by_all(self) -> bool:
        """Whether there is an approval from everybody."""
        return all(path.exists() for path in self._given_files())

    def _given_files(self) -> list[Path]:
        """In the study's order."""
        return [self.path / f"approval-{index}.bin" for index in range(len(self.state().parties))]

    def _given_file(self, party: str) -> Path:
        return self._given_files()[list(self.state().parties).index(party)]

    def start(self, identity: Identity) -> RunStart:
        """The run that all approvals make, once they are here."""
        proposed = self.proposed()
        try:
            private = identity.unseal((self.path / "key.bin").read_bytes(), _SEALED)
        except FileNotFoundError:
            raise RunError(
                "the key of this run is gone", hint="an ended run does not start again: submit a new one"
            ) from None
        return begin(identity, proposed, self.given(proposed), private)

    @property
    def has_key(self) -> bool:
        """Whether the run can still be gone on with."""
        return (self.path / "key.bin").exists()

    def erase(self) -> None:
        """An ended run never starts again: its approval is used up, old frames cannot be opened, and nothing
        opens its journal, of which a tombstone stays: which run, how it ended, how much was sent to whom."""
        if self.journal.is_dir():
            erase(self.journal, self._tombstone())
        (self.path / "key.bin").unlink(missing_ok=True)

    def _tombstone(self) -> bytes:
        state, end = self.state(), self.end()
        try:
            lanes = cursors(read_receipt(self.receipt))
        except DataError:  # cancelled before there was one
            lanes = {}
        said = Tombstone(state.run, state.digest, state.me, "" if end is None else end.state, lanes)
        return msgspec.json.encode(said)


def every_run(site: Site) -> Iterator[tuple[RunFolder, State]]:
    """All runs of a site, oldest first."""
    found = []
    for path in site.runs.iterdir():
        folder = RunFolder(site, path.name)
        state = read_json(path / "state.json", State)
        if state is not None:
            found.append((folder, state))
    yield from sorted(found, key=lambda one: (one[1].made, one[1].id))


def find_run(site: Site, given: str) -> tuple[RunFolder, State]:
    """The run whose name begins with ``given``; ``last`` is the latest one."""
    every = list(every_run(site))
    if given == LAST and every:
        return every[-1]
    found = [one for one in every if one[0].name.startswith(given.strip().lower())]
    if len(found) != 1 or not given.strip():
        many = f"{len(found)} runs begin" if found else "no run begins"
        raise ParameterError(f"{many} with {given!r}", hint=f"atoll node runs{site.option} lists them")
    return found[0]


def plain(text: str) -> str:
    """What another party wrote, without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)[:2000]
