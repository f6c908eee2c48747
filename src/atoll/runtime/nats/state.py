"""Where a party stands in a run, as its journal says: what its roles drew, sent and received, and who else is
who."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from atoll import errors
from atoll.errors import AtollError, PartyLeft, RunError
from atoll.runtime import entries
from atoll.runtime.journal import Journal
from atoll.runtime.nats.channel import Arrival, Incoming, Lane, Peer
from atoll.runtime.records import Sending
from atoll.study.address import Address

if TYPE_CHECKING:
    from atoll.runtime.nats.starts import RunStart

Happening = Arrival | entries.Gone
"""What reaches a role: a message, or that a party has left."""


class RunState:
    """Made from the start of a run and its journal; afterwards the link's, which keeps it current."""

    def __init__(self, start: RunStart, journal: Journal) -> None:
        self.start = start
        self.journal = journal
        study = start.study
        self.addresses = study.addresses()
        self.places = {address: place for place, address in enumerate(self.addresses)}
        self.parties = [party.name for party in study.parties]
        self.mine = [place for place, a in enumerate(self.addresses) if a.party == start.me]
        self.peers: dict[int, Peer] = {}
        self.peer_of: dict[int, Peer] = {}
        """By the place of an address."""
        played: dict[str, list[int]] = defaultdict(list)
        for place, address in enumerate(self.addresses):
            played[address.party].append(place)
        for place, party in enumerate(study.parties):
            if party.name != start.me:
                its = played[party.name]
                peer = Peer(place, party.name, party.fingerprint or "", self.mine, its)
                self.peers[place] = peer
                self.peer_of |= dict.fromkeys(its, peer)
        self.me = next(i for i, party in enumerate(study.parties) if party.name == start.me)
        self.local: dict[Lane, Incoming] = {
            (a, b): Incoming((a, b)) for a in self.mine for b in self.mine if a != b
        }
        self.drawn: dict[int, dict[str, bytes]] = defaultdict(dict)
        self.sendings: dict[int, list[Sending]] = defaultdict(list)
        self.happened: dict[int, list[Happening]] = defaultdict(list)
        self.gone: set[int] = set()
        self.finished = False
        self._read()

    def __repr__(self) -> str:
        return f"<RunState of {self.start.me}>"

    @property
    def resumed(self) -> bool:
        """Whether an earlier start has left entries here."""
        return self.journal.number > 1

    def lane_into(self, sender: int, role: int) -> Incoming:
        """The receiving side of a lane that ends here."""
        if (sender, role) in self.local:
            return self.local[sender, role]
        return self.peer_of[sender].into[sender, role]

    def left_events(self, party: int) -> list[Address]:
        """The roles that leave with a party."""
        return [a for a in self.addresses if a.party == self.parties[party]]

    def _read(self) -> None:
        # Bytes that an earlier start wrote may be in memory only: they count from here on.
        self.journal.sync_bulk()
        for entry in self.journal.entries:
            self._take(entry)
        for lane in [*self.local.values(), *(lane for p in self.peers.values() for lane in p.used)]:
            lane.durable = lane.got
            lane.seen = len(lane.digests)

    def _take(self, entry: entries.Entry) -> None:
        match entry:
            case entries.Draw(role, tag, data):
                self.drawn[role][tag] = data
            case entries.Sent(role, to, digest):
                self.sendings[role].append((self.addresses[to], digest))
                if to in self.peer_of:
                    self.peer_of[to].out[role, to].sent += 1
            case entries.Got():
                self._take_message(entry)
            case entries.Refilled():
                self._take_bytes(entry)
            case entries.Gone(party):
                self._take_gone(entry)
            case entries.Acked(sender, to, count):
                lane = self.peer_of[to].out[sender, to]
                lane.acked = max(lane.acked, count)
            case entries.PeerBoot(party, number, boot):
                self.peers[party].adopt(number, boot, None)
            case entries.PeerDone(party, has):
                self.peers[party].done = True
                self.peers[party].acknowledge(has)
            case entries.PeerEnded(party):
                self.peers[party].ended = True
            case entries.Finished():
                self.finished = True
            case entries.Aborted(kind, role):
                raise ended(kind, str(self.addresses[role]))
            case _:
                pass

    def _take_message(self, got: entries.Got) -> None:
        lane = self.lane_into(got.sender, got.role)
        lane.digests.append(got.digest)
        arrival = Arrival(got.sender, len(lane.digests), got.digest, got.depth, got.pieces)
        if self.journal.hollow(got.pieces, got.digest):
            arrival.hollow = True
            lane.hollow[arrival.seq] = arrival
        self.happened[got.role].append(arrival)

    def _take_bytes(self, refilled: entries.Refilled) -> None:
        lane = self.lane_into(refilled.sender, refilled.role)
        arrival = lane.hollow.get(refilled.seq)
        if arrival is not None and not self.journal.hollow(refilled.pieces, arrival.digest):
            arrival.pieces, arrival.hollow = refilled.pieces, False
            del lane.hollow[refilled.seq]

    def _take_gone(self, gone: entries.Gone) -> None:
        self.gone.add(gone.party)
        if gone.party in self.peers:
            self.peers[gone.party].gone = True
        for role in self.mine:
            self.happened[role].append(gone)


def ended(kind: str, role: str) -> AtollError:
    """The error of another party, of which only its class and a role are told: whose it was, or who is
    missing."""
    party = role.split("/")[0]
    if kind == PartyLeft.__name__:
        left = PartyLeft(f"{party} was not heard any more, and the run ended", hint="start a new run")
        left.missing, left.role = (party,), role
        return left
    known = getattr(errors, kind, None)
    words, hint = f"{role} ended the run: {kind}", f"the screen and the log of {party} say more"
    if not (isinstance(known, type) and issubclass(known, AtollError)):
        words, known = f"{role} ended the run", RunError
    try:
        error: AtollError = known(words, hint=hint)
    except TypeError:  # one that is made from other words
        error = RunError(words, hint=hint)
    error.role = role
    return error
