"""Receipts: what a party sent, received and opened in one run, chained by hashes and signed.

A line for every message (kind, size, digest, to or from whom), grouped by role in the role's own order, so
that a run that was killed and went on leaves the same receipt. Digests are blinded with a secret that the
two ends of a message share: two receipts can be compared, and nobody else can test guesses of a message's
content against one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from atoll import codec, randomness
from atoll.crypto import envelope
from atoll.crypto.identity import Identity, PublicIdentity
from atoll.errors import DataError, MessageError
from atoll.runtime.nats.network import Tap
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.result import write_whole
from atoll.study.address import Address

FORMAT: Final = 1
_CONTEXT: Final = "receipt v1"


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which run, by whom."""

    atoll_receipt: int
    run: str
    study: str
    party: str
    identity: str
    """The public identity that signs, in hexadecimal."""
    parties: dict[str, str]
    """Names and the fingerprints that the study pins."""
    approvals: dict[str, str]
    """Names and hashes of everybody's approval."""
    rehearse: bool = False


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message, or one opening."""

    role: str
    did: str
    """``sent``, ``received`` or ``opened``."""
    peer: str = ""
    kind: str = ""
    bytes: int = 0
    digest: str = ""
    names: tuple[str, ...] = ()
    """Of the outputs that were opened to this role."""


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How it ended, and the head of the chain over all that stands before."""

    ended: str
    head: str
    error: str = ""
    missing: tuple[str, ...] = ()


class _Last(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signature: str


class ReceiptTap(Tap):
    """Is told of all that a party's roles send, receive and open, live or replayed, in each role's order.

    Lines are written as they come, one file for each role, so that a run that can never go on still has a
    receipt.
    """

    def __init__(self, start: RunStart, folder: Path) -> None:
        self._start = start
        self._folder = folder
        self._salts: dict[str, bytes] = {}
        self._roles: dict[str, _Lines] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def sent(self, sender: Address, to: Address, kind: str, size: int, digest: bytes) -> None:
        """A role of this party sends; ``digest`` is the SHA-256 of the payload."""
        self._add(sender, Entry(sender.role, "sent", str(to), kind, size, self._blind(to, digest)))

    def received(self, receiver: Address, sender: Address, kind: str, size: int, digest: bytes) -> None:
        """A role of this party is given a message."""
        entry = Entry(receiver.role, "received", str(sender), kind, size, self._blind(sender, digest))
        self._add(receiver, entry)

    def opened(self, role: Address, outputs: tuple[str, ...]) -> None:
        """A role of this party ended, and was given these outputs."""
        self._add(role, Entry(role.role, "opened", names=tuple(sorted(outputs))))

    def close(self) -> None:
        """Stop writing; the lines stay for whoever goes on."""
        for one in self._roles.values():
            one.close()
        self._roles.clear()

    def _add(self, mine: Address, entry: Entry) -> None:
        if mine.role not in self._roles:
            self._roles[mine.role] = _Lines(self._folder / f"lines-{mine.role}.jsonl")
        self._roles[mine.role].add(entry)

    def _blind(self, peer: Address, digest: bytes) -> str:
        if peer.party not in self._salts:
            self._salts[peer.party] = pair_salt(self._start, peer.party)
        return hashlib.sha256(self._salts[peer.party] + digest).hexdigest()

    def finish(self, identity: Identity, ended: str, *, error: str = "", missing: Sequence[str] = ()) -> Path:
        """Sign what was noted, by this process or by one before it, and write it whole."""
        for path in sorted(self._folder.glob("lines-*.jsonl")):
            role = path.stem.removeprefix("lines-")
            if role not in self._roles:
                self._roles[role] = _Lines(path)
        lines = [msgspec.json.encode(_header(self._start, identity))]
        for role in sorted(self._roles):
            lines += map(msgspec.json.encode, self._roles[role].entries)
        end = msgspec.json.encode(End(ended, _chain(lines).hex(), error, tuple(missing)))
        signature = identity.sign(_CONTEXT, _chain([*lines, end]))
        path = self._folder / "receipt.jsonl"
        write_whole(path, b"\n".join([*lines, end, msgspec.json.encode(_Last(signature.hex())), b""]))
        for one in self._roles.values():
            one.remove()
        self._roles.clear()
        return path


class _Lines:
    """One role's lines, on disk as they come. A process that replays them finds its predecessor's there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries = _earlier(path)
        self._again = 0
        self._file = path.open("ab")

    def add(self, entry: Entry) -> None:
        if self._again < len(self.entries) and self.entries[self._again] != entry:
            # Noted by a process that was killed before it left; what was drawn anew is what counts.
            del self.entries[self._again :]
            self._file.truncate(0)
            self._file.writelines(msgspec.json.encode(one) + b"\n" for one in self.entries)
        if self._again == len(self.entries):
            self.entries.append(entry)
            self._file.write(msgspec.json.encode(entry) + b"\n")
            self._file.flush()
        self._again += 1

    def close(self) -> None:
        self._file.close()

    def remove(self) -> None:
        self.close()
        self._path.unlink(missing_ok=True)


def _earlier(path: Path) -> list[Entry]:
    """What stands in the file, up to a line that was not written whole, which is cut off."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        write_whole(path, whole)
    return [msgspec.json.decode(line, type=Entry) for line in whole.splitlines()]


def pair_salt(start: RunStart, peer: str) -> bytes:
    """32 bytes that this party and ``peer`` can compute, and nobody else."""
    if peer == start.me:
        return randomness.derive(start.ephemeral_private, "atoll/receipt/own", start.run_id)
    return envelope.agreement(
        start.ephemeral_private, start.approvals[peer].ephemeral, "atoll/receipt/pair", start.run_id
    )


def _header(start: RunStart, identity: Identity) -> Header:
    return Header(
        FORMAT,
        start.run_id.hex(),
        start.study.digest,
        start.me,
        identity.public.raw.hex(),
        {party.name: start.fingerprint(party.name) for party in start.study.parties},
        {n: hashlib.sha256(codec.encode(one)).hexdigest() for n, one in sorted(start.approvals.items())},
        start.rehearse,
    )


def _chain(lines: Iterable[bytes]) -> bytes:
    head = bytes(32)
    for line in lines:
        head = hashlib.sha256(head + line).digest()
    return head


def cursors(receipt: Receipt) -> dict[str, int]:
    """How many messages went from whom to whom."""
    counted: Counter[str] = Counter()
    for entry in receipt.entries:
        mine = f"{receipt.header.party}/{entry.role}"
        if entry.did == "sent":
            counted[f"{mine} -> {entry.peer}"] += 1
        elif entry.did == "received":
            counted[f"{entry.peer} -> {mine}"] += 1
    return dict(counted)


# ---- verifying ----


@dataclass(frozen=True)
class Receipt:
    """A receipt whose chain and signature are good."""

    header: Header
    entries: tuple[Entry, ...]
    end: End

    @property
    def finished(self) -> bool:
        return self.end.ended == "finished"

    def messages(self, did: str, mine: str, peer: str) -> list[Entry]:
        """What ``mine`` sent to, or received from, ``peer``: addresses, in order."""
        role = mine.rpartition("/")[2]
        return [e for e in self.entries if e.role == role and e.did == did and e.peer == peer]


def read_receipt(path: Path) -> Receipt:
    """A receipt file; one that was altered, cut or signed by another key than the study pins is refused."""
    try:
        data = path.read_bytes()
    except OSError:
        raise DataError(f"there is no file {path}") from None
    try:
        return _verified(data)
    except (MessageError, msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
        said = error.message if isinstance(error, MessageError) else "it is damaged"
        raise DataError(f"{path} is no good receipt: {said}") from None


def _verified(data: bytes) -> Receipt:
    if not data.endswith(b"\n"):
        raise MessageError("its end is missing")
    first, *middle, ending, last = data[:-1].split(b"\n")
    header = msgspec.json.decode(first, type=Header)
    if header.atoll_receipt != FORMAT:
        raise MessageError(f"it has format {header.atoll_receipt}, this version reads {FORMAT}")
    end = msgspec.json.decode(ending, type=End)
    if end.head != _chain([first, *middle]).hex():
        raise MessageError("its lines do not give the head of its chain")
    signer = PublicIdentity.from_raw(bytes.fromhex(header.identity))
    if header.parties.get(header.party) != signer.fingerprint:
        raise MessageError(f"it is not signed with the key that the study pins for {header.party}")
    signature = bytes.fromhex(msgspec.json.decode(last, type=_Last).signature)
    signer.verify(_CONTEXT, _chain([first, *middle, ending]), signature)
    return Receipt(header, tuple(msgspec.json.decode(line, type=Entry) for line in middle), end)


def contradictions(receipts: Sequence[Receipt]) -> list[str]:
    """Where receipts of one run disagree; empty where they tell the same story."""
    said = []
    first = receipts[0].header
    for one in receipts[1:]:
        for field in ("run", "study", "parties", "approvals", "rehearse"):
            if getattr(one.header, field) != getattr(first, field):
                said.append(f"{one.header.party} and {first.party} have different {_WORDS[field]}")
    by_party = {one.header.party: one for one in receipts}
    if len(by_party) < len(receipts):
        said.append("two of the receipts are by the same party")
    if not said:
        for sender in receipts:
            said += _against(sender, by_party)
    return said


_WORDS = {
    "run": "runs",
    "study": "studies",
    "parties": "parties",
    "approvals": "approvals",
    "rehearse": "kinds of run",
}


def _against(sender: Receipt, others: Mapping[str, Receipt]) -> list[str]:
    """What one party says it sent, against what the others say they received."""
    said = []
    pairs: dict[tuple[str, str], Any] = {}
    for entry in sender.entries:
        if entry.did == "sent":
            pairs[f"{sender.header.party}/{entry.role}", entry.peer] = None
    for receiver in others.values():
        for entry in receiver.entries:
            if entry.did == "received" and entry.peer.rpartition("/")[0] == sender.header.party:
                pairs[entry.peer, f"{receiver.header.party}/{entry.role}"] = None
    for one, other in pairs:
        named = other.rpartition("/")[0]
        if named in others:
            said += _compared(sender, others[named], one, other)
    return said


def _compared(sender: Receipt, receiver: Receipt, one: str, other: str) -> list[str]:
    out, got = sender.messages("sent", one, other), receiver.messages("received", other, one)
    both_ended = sender.finished and receiver.finished
    for number, (left, right) in enumerate(zip_longest(out, got), 1):
        if left is None:
            return [f"{other} has message {number} from {one}, which {one} does not say it sent"]
        if right is None:
            # A run that failed leaves messages on their way; one that finished does not.
            lost = f"{one} says it sent message {number} to {other}, which never got it"
            return [lost] if both_ended else []
        if (left.kind, left.bytes, left.digest) != (right.kind, right.bytes, right.digest):
            return [f"message {number} from {one} to {other} is not the same in both receipts"]
    return []
