"""How a run across machines starts: one signed proposal, one signed approval from every party.

The submitter, itself a party of the study, signs the study and a nonce. Every party recomputes the study's
digest, lets its owner decide, and answers all others with an approval: a nonce and a key of its own for
this run. The run's id is a hash of the proposal and of all approvals, so an approval belongs to one run and
to no other. Signatures count only if they are by the fingerprints that the study pins: what a hub says
about keys is never believed.

Versions are part of what is signed, and the one to speak follows from them before any key is made.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from atoll import __version__, codec, randomness
from atoll.codec import Decoder, Message
from atoll.crypto import envelope
from atoll.crypto.identity import Identity, PublicIdentity
from atoll.errors import MessageError, RunError, StudyError
from atoll.protocols import resolve
from atoll.runtime.nats.wire import VERSION
from atoll.study.model import FORMAT, Party, Study, from_plain

WIRE_VERSIONS: Final = (VERSION,)
"""The versions of frames that this Atoll speaks, the newest last."""

LIFETIME: Final = 7 * 24 * 3600
"""Seconds for which a proposal waits for approvals, unless its submitter says otherwise."""
LONGEST_LIFETIME: Final = 90 * 24 * 3600
SKEW: Final = 300
"""Seconds by which clocks of parties may differ."""

MAX_STUDY: Final = 1 << 18
MAX_REASON: Final = 2000
_LIMIT: Final = 3 << 18
"""A study, or the approvals of some two thousand parties."""
_NONCE_BYTES: Final = 32
_CONTEXT: Final = "start of a run, v1"
_ENVELOPE: Final = "control v2"
_BLOCK: Final = 2048
"""Lengths of control messages are multiples of this, inside their seal."""

M = TypeVar("M", bound=Message)


# ---- what is signed ----


class Proposal(Message, frozen=True):
    """Submitter -> every party: run this study, once."""

    study: bytes
    """The study's canonical bytes, all options filled in."""
    nonce: bytes
    reason: str
    made: int
    expires: int
    """Seconds since 1970: until then all approvals must have arrived."""
    atoll: str
    wire: tuple[int, ...]
    rehearse: bool = False
    """On rows that each party makes up: no data are read."""


class Approval(Message, frozen=True):
    """Party -> every party: yes, once."""

    proposal: bytes
    party: str
    digest: str
    nonce: bytes
    ephemeral: bytes
    """An X25519 key for this run alone."""
    expires: int
    atoll: str
    wire: tuple[int, ...]


class Approvals(Message, frozen=True):
    """Submitter -> every party, where many take part: everybody's approval as its party signed it."""

    proposal: bytes
    party: str
    signed: tuple[bytes, ...]


class Decline(Message, frozen=True):
    """Party -> every party: no. ``why`` is a class of reasons; ``words`` are what its owner chose to say."""

    proposal: bytes
    party: str
    why: str
    words: str = ""


class Cancel(Message, frozen=True):
    """Submitter -> every party: forget the proposal."""

    proposal: bytes
    party: str


class Ended(Message, frozen=True):
    """Party -> every party: how the run ended here. An error travels as class and role, never as text."""

    proposal: bytes
    party: str
    state: str
    error: str = ""
    role: str = ""
    missing: tuple[str, ...] = ()


class Seen(Message, frozen=True):
    """Receiver -> sender: a control message arrived and need not be sent again."""

    what: bytes


class Signed(Message, frozen=True):
    """A message with its signer's public identity and signature."""

    body: bytes
    signer: bytes
    signature: bytes


CONTROL_MESSAGES: Final = (Proposal, Approval, Approvals, Decline, Cancel, Ended, Seen)

_bodies = Decoder[Message](CONTROL_MESSAGES, limit=_LIMIT)
_envelopes = Decoder[Signed]((Signed,), limit=_LIMIT + 256)


class Opened(msgspec.Struct, frozen=True):
    """A control message whose signature is good: by whom is for the caller to compare."""

    message: Message
    signer: PublicIdentity
    signed: bytes
    """As it travelled, signature and all."""

    @property
    def digest(self) -> bytes:
        """Names the message's content, not its signature: the same for every way to sign it."""
        return _hash("message", codec.decode(self.signed, Signed).body)


def sign(identity: Identity, message: Message) -> bytes:
    """The message, signed."""
    body = codec.encode(message, limit=_LIMIT)
    return codec.encode(Signed(body, identity.public.raw, identity.sign(_CONTEXT, body)))


def open_signed(data: bytes) -> Opened:
    """The message and who signed it; malformed or forged ones are refused."""
    outer = _envelopes.decode(data)
    signer = PublicIdentity.from_raw(outer.signer)
    signer.verify(_CONTEXT, outer.body, outer.signature)
    message = _bodies.decode(outer.body)
    if codec.encode(message) != outer.body:
        raise MessageError("a control message is not written in its one way")
    return Opened(message, signer, bytes(data))


def seal(signed: bytes, to: PublicIdentity) -> bytes:
    """A frame for the control topic: only ``to`` can read it. Its length does not tell a yes from a no."""
    filled = len(signed).to_bytes(4, "little") + signed
    return to.seal_for(filled + bytes(-len(filled) % _BLOCK), _ENVELOPE)


def unseal(identity: Identity, frame: bytes) -> Opened:
    """The inverse of :func:`seal`, with the signature checked."""
    if len(frame) > _LIMIT + _BLOCK + 1024:
        raise MessageError("a control message is too large")
    filled = identity.unseal(frame, _ENVELOPE)
    end = 4 + int.from_bytes(filled[:4], "little")
    if len(filled) != end + -end % _BLOCK or filled[end:].strip(b"\0"):
        raise MessageError("a control message's length is not what it says")
    return open_signed(filled[4:end])


# ---- proposals ----


@dataclass(frozen=True)
class Proposed:
    """A proposal that was checked: its study, who submitted it, and what names it."""

    proposal: Proposal
    study: Study
    submitter: Party
    id: bytes
    signed: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What people type: the first digits of the id."""
        return self.id.hex()[:12]

    def party_of(self, fingerprint: str) -> Party:
        """The party that the study knows by this fingerprint."""
        return party_of(self.study, fingerprint)


def propose(
    identity: Identity,
    study: Study,
    reason: str,
    *,
    lifetime: int = LIFETIME,
    rehearse: bool = False,
    now: int | None = None,
) -> Proposed:
    """A new proposal for one run of ``study``, signed."""
    study = resolve(study)
    check_fingerprints(study)
    if not 0 < lifetime <= LONGEST_LIFETIME:
        raise StudyError(f"a proposal cannot wait {lifetime} seconds", hint="from a second to 90 days")
    if len(reason) > MAX_REASON:
        raise StudyError(f"the reason has {len(reason)} characters", hint=f"at most {MAX_REASON}")
    made = int(time.time()) if now is None else now
    proposal = Proposal(
        study.canonical(),
        randomness.fresh_seed(),
        reason,
        made,
        made + lifetime,
        __version__,
        WIRE_VERSIONS,
        rehearse,
    )
    return read_proposal(open_signed(sign(identity, proposal)), now=made)


def read_proposal(opened: Opened, *, now: int | None = None) -> Proposed:
    """A proposal whose study is sound, whose signer is a party of it, and whose time has not passed.

    The study is resolved here: a submitter whose Atoll fills in other options than ours gets no approval.
    """
    proposal = opened.message
    if not isinstance(proposal, Proposal):
        raise MessageError("this is no proposal")
    if len(proposal.nonce) != _NONCE_BYTES or len(proposal.reason) > MAX_REASON:
        raise MessageError("a proposal is malformed")
    now = int(time.time()) if now is None else now
    if proposal.made > now + SKEW or proposal.expires > proposal.made + LONGEST_LIFETIME:
        raise MessageError(
            "a proposal is dated in the future", hint="clocks differ by more than 5 minutes: set them"
        )
    if proposal.expires <= now:
        raise MessageError("a proposal has expired", hint="submit the study again")
    study = read_study(proposal.study)
    submitter = party_of(study, opened.signer.fingerprint)
    common_version({submitter.name: proposal.wire, "this site": WIRE_VERSIONS})
    return Proposed(proposal, study, submitter, opened.digest, opened.signed)


def read_study(canonical: bytes) -> Study:
    """A study from its canonical bytes, if it means here what they say, with a key for every party."""
    if len(canonical) > MAX_STUDY:
        raise MessageError("a proposed study is too large")
    try:
        plain = msgspec.json.decode(canonical, type=dict)
    except msgspec.DecodeError:
        raise MessageError("a proposed study is malformed") from None
    form = plain.pop("format", None)
    if form != FORMAT:
        raise MessageError(
            f"a proposed study has format {form}, this version reads {FORMAT}",
            hint="use the same version of Atoll everywhere",
        )
    study = resolve(from_plain(plain))
    if study.canonical() != canonical:
        raise MessageError(
            "a proposed study means something else here",
            hint="its submitter has another version of Atoll, or of a protocol's package: compare them",
        )
    check_fingerprints(study)
    return study


def check_fingerprints(study: Study) -> None:
    """Between machines every party is pinned to a key, and no two share one."""
    seen: dict[str, str] = {}
    for i, party in enumerate(study.parties):
        if party.fingerprint is None:
            raise StudyError(
                f"party {party.name!r} has no fingerprint",
                hint='between machines every [[party]] needs one: fingerprint = "..." (atoll identity show)',
                path=("party", i),
            )
        place = ("party", i, "fingerprint")
        if len(party.fingerprint) != 64 or set(party.fingerprint) - set("0123456789abcdef"):
            raise StudyError(
                f"the fingerprint of {party.name!r} is not 64 hexadecimal digits",
                hint="as `atoll identity show` prints it at that party",
                path=place,
            )
        if party.fingerprint in seen:
            raise StudyError(
                f"{party.name!r} has the fingerprint of {seen[party.fingerprint]!r}",
                hint="one key is one party: merge their roles",
                path=place,
            )
        seen[party.fingerprint] = party.name


def party_of(study: Study, fingerprint: str) -> Party:
    """The party that the study knows by this fingerprint."""
    for party in study.parties:
        if party.fingerprint == fingerprint:
            return party
    raise MessageError(f"the study names no party with the key {fingerprint[:16]}")


def common_version(spoken: Mapping[str, tuple[int, ...]]) -> int:
    """The newest version of frames that all of these speak."""
    common = set.intersection(*(set(versions) for versions in spoken.values()))
    if not common:
        said = "; ".join(f"{name} {', '.join(map(str, v)) or 'none'}" for name, v in sorted(spoken.items()))
        raise RunError(
            f"the parties have no version of the wire format in common: {said}",
            hint="update Atoll where it is older; one version back is still spoken",
        )
    return max(common)


# ---- approvals ----


@dataclass(frozen=True)
class Given:
    """An approval that was checked, and its bytes as they were signed."""

    approval: Approval
    signed: bytes = field(repr=False)


def approve(identity: Identity, proposed: Proposed, *, now: int | None = None) -> tuple[Given, bytes]:
    """This party's approval of one run, and the private half of its key for it."""
    now = int(time.time()) if now is None else now
    if proposed.proposal.expires <= now:
        raise MessageError("a proposal has expired", hint="submit the study again")
    private = randomness.fresh_seed()
    approval = Approval(
        proposed.id,
        proposed.party_of(identity.fingerprint).name,
        proposed.study.digest,
        randomness.fresh_seed(),
        envelope.public_key(private),
        proposed.proposal.expires,
        __version__,
        WIRE_VERSIONS,
    )
    return Given(approval, sign(identity, approval)), private


def read_approval(proposed: Proposed, opened: Opened, *, now: int | None = None) -> Given:
    """An approval of this very proposal, by the party that it names."""
    approval = opened.message
    if not isinstance(approval, Approval):
        raise MessageError("this is no approval")
    _check_signer(proposed, opened, approval.proposal, approval.party)
    if approval.digest != proposed.study.digest:
        raise MessageError(f"{approval.party} approved another study")
    if len(approval.nonce) != _NONCE_BYTES or len(approval.ephemeral) != envelope.KEY_BYTES:
        raise MessageError(f"the approval of {approval.party} is malformed")
    now = int(time.time()) if now is None else now
    if min(approval.expires, proposed.proposal.expires) <= now:
        raise MessageError(f"the approval of {approval.party} has expired", hint="submit the study again")
    common_version({approval.party: approval.wire, "this site": WIRE_VERSIONS})
    return Given(approval, opened.signed)


def read_answer(proposed: Proposed, opened: Opened, kind: type[M]) -> M:
    """A decline, a cancellation or an end, by the party that it names."""
    message = opened.message
    if not isinstance(message, kind):
        raise MessageError(f"this is no {kind.__name__}")
    _check_signer(proposed, opened, message.proposal, message.party)  # type: ignore[attr-defined]
    if isinstance(message, Cancel) and message.party != proposed.submitter.name:
        raise MessageError("only its submitter can cancel a proposal")
    return message


def _check_signer(proposed: Proposed, opened: Opened, proposal: bytes, party: str) -> None:
    if proposal != proposed.id:
        raise MessageError("an answer belongs to another proposal")
    if proposed.party_of(opened.signer.fingerprint).name != party:
        raise MessageError("an answer names another party than the one that signed it")


# ---- the run ----


@dataclass(frozen=True)
class RunStart:
    """All that one party needs to begin, or to go on with, one run."""

    run_id: bytes
    study: Study
    me: str
    ephemeral_private: bytes = field(repr=False)
    approvals: dict[str, Approval]
    journal_key: bytes = field(repr=False)
    """From the identity, for this run: what the journal's own key is wrapped with."""
    wire: int = WIRE_VERSIONS[-1]
    """The version of frames that all parties speak."""
    rehearse: bool = False

    @property
    def topic(self) -> str:
        """The run's topic at the hub."""
        return self.run_id.hex()[:32]

    def fingerprint(self, party: str) -> str:
        """The key that the study pins for a party."""
        found = next(p.fingerprint for p in self.study.parties if p.name == party)
        assert found is not None  # checked before anybody approved
        return found


def run_id(proposed: Proposed, approvals: Mapping[str, Approval]) -> bytes:
    """Of the proposal and every party's approval: another nonce of anybody's is another run."""
    missing = [party.name for party in proposed.study.parties if party.name not in approvals]
    if missing:
        raise RunError(f"{', '.join(missing)} has not approved", hint="a run needs every party's approval")
    parts = [_hash("approval", codec.encode(approvals[p.name])) for p in proposed.study.parties]
    return _hash("run", proposed.id, *parts)


def begin(
    identity: Identity, proposed: Proposed, given: Mapping[str, Given], ephemeral_private: bytes
) -> RunStart:
    """The run that all these approvals make together."""
    approvals = {name: one.approval for name, one in given.items()}
    me = proposed.party_of(identity.fingerprint).name
    this = run_id(proposed, approvals)
    if approvals[me].ephemeral != envelope.public_key(ephemeral_private):
        raise RunError(
            "the key of this run is not the one that was approved",
            hint="the site's folder was changed or restored from a backup: decline, and submit again",
        )
    wire = common_version({name: one.wire for name, one in approvals.items()})
    return RunStart(
        this,
        proposed.study,
        me,
        ephemeral_private,
        approvals,
        identity.derive(f"journal {this.hex()}"),
        wire,
        proposed.proposal.rehearse,
    )


def _hash(label: str, *parts: bytes) -> bytes:
    mac = hashlib.sha256(f"atoll/start/v1/{label}".encode())
    for part in parts:
        mac.update(len(part).to_bytes(8, "little"))
        mac.update(part)
    return mac.digest()
