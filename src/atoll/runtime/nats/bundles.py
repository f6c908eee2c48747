"""How many parties learn of each other's approvals, without n² messages.

Up to 32 parties answer all others. Among more, everybody answers the submitter, who collects the approvals
and sends all of them to everybody at once. They are as their parties signed them, and everybody checks every
signature: a submitter can hold approvals back, and so keep a run from starting, and nothing else. Declines it
passes on as they are. How a run ended the submitter hears.
"""

from __future__ import annotations

from collections.abc import Mapping

from atoll.crypto.identity import Identity
from atoll.errors import MessageError
from atoll.runtime.nats.circle import ALL_UP_TO
from atoll.runtime.nats.runs import State
from atoll.runtime.nats.starts import (
    Approvals,
    Given,
    Opened,
    Proposed,
    open_signed,
    read_answer,
    read_approval,
    sign,
)


def is_collected(state: State) -> bool:
    """Whether the submitter of this run collects what the others answer."""
    return len(state.parties) > ALL_UP_TO


def listeners(state: State) -> list[str]:
    """The fingerprints of those whom this party answers."""
    if is_collected(state) and not state.mine:
        return [state.parties[state.submitter]]
    return [fingerprint for party, fingerprint in state.parties.items() if party != state.me]


def collected(identity: Identity, proposed: Proposed, given: Mapping[str, Given]) -> bytes:
    """All approvals in one message, signed."""
    signed = tuple(given[party.name].signed for party in proposed.study.parties)
    return sign(identity, Approvals(proposed.id, proposed.submitter.name, signed))


def read_collected(proposed: Proposed, opened: Opened) -> list[Given]:
    """Every party's approval, each checked as if its party had sent it here."""
    message = read_answer(proposed, opened, Approvals)
    if message.party != proposed.submitter.name:
        raise MessageError("only a run's submitter collects its approvals")
    return [read_approval(proposed, open_signed(signed)) for signed in message.signed]
