"""What is called how on the hub, and what a party asks of the hub's agent.

Every party has a NATS account of its own, and the hub one in which all streams are. A party's account sees
four things of the hub's: where it publishes as itself, its questions to the agent, its own stream's
consumers, and contents for several receivers, each under a random name that only these are told. Inside one
shared account a party could have JetStream answer to a subject of its choosing (a purge of another's stream,
say): replies are not checked against a user's permissions. Across accounts they only reach the account that
asked.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

HUB_ACCOUNT: Final = "HUB"
INBOX: Final = "_INBOX"

Verb = Literal["open", "forget", "share", "unshare", "who", "parties", "time"]


def stream(party: str) -> str:
    """The stream that holds a party's inbox."""
    return f"IN-{party}"


def inbox(to: str, sender: str, topic: str) -> str:
    """Where ``sender`` publishes for ``to``."""
    return f"a.in.{to}.{sender}.{topic}"


def sender_of(subject: str) -> str:
    """Who published on a subject of :func:`inbox`."""
    return subject.split(".")[3]


def outbox(party: str) -> str:
    """The stream that holds what a party has for several receivers at once."""
    return f"OUT-{party}"


def content(party: str, topic: str, name: str, part: str) -> str:
    """Where a party publishes a part of a content for several receivers."""
    return f"a.out.{party}.{topic}.{name}.{part}"


def read_content(party: str, topic: str, name: str, part: str) -> str:
    """Where anybody who knows its name asks for a part of a content."""
    return f"$JS.API.DIRECT.GET.{outbox(party)}.{content(party, topic, name, part)}"


def ask(party: str, verb: str) -> str:
    """Where a party asks the agent."""
    return f"a.agent.{party}.{verb}"


def next_frames(party: str, consumer: str) -> str:
    """Where a party asks for its next frames."""
    return f"$JS.API.CONSUMER.MSG.NEXT.{stream(party)}.{consumer}"


def redeem(invitation: str) -> str:
    """Where the holder of an invitation presents it."""
    return f"a.join.{invitation}"


def party_account(party: str) -> str:
    """The name of a party's account."""
    return f"P-{party}"


def invitation_account(invitation: str) -> str:
    """The name of an invitation's account."""
    return f"I-{invitation}"


# ---- places in an inbox ----

_SEQUENCE_BITS: Final = 33
_MADE_BITS: Final = 30  # together 63, so that a position fits whatever keeps it


def position(made: int, sequence: int) -> int:
    """When a stream was made and a place in it, as one number: a stream made anew counts anew."""
    return (made & ((1 << _MADE_BITS) - 1)) << _SEQUENCE_BITS | sequence


def of_position(position: int) -> tuple[int, int]:
    """The inverse of :func:`position`."""
    return position >> _SEQUENCE_BITS, position & ((1 << _SEQUENCE_BITS) - 1)


# ---- questions to the agent, as JSON ----


class Open(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let me read a topic of my inbox, under a name that nobody used before."""

    topic: str
    consumer: str
    instead_of: str = ""
    """The name under which I read before, and do not any more."""


class Opened(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The consumer is there."""

    consumer: str
    made: int
    """Milliseconds since 1970 at which the stream was made: made anew, it counts anew."""


class Forget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remove my frames of a topic up to and with this position."""

    topic: str
    position: int


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let me publish contents for several receivers."""


class Unshare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remove my contents of a topic: those with these names, or all."""

    topic: str
    names: tuple[str, ...] = ()


class Who(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which public identity has this fingerprint, or this name?"""

    fingerprint: str = ""
    name: str = ""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A party as the hub knows it. Whoever reads this checks the key against a fingerprint that it knows."""

    name: str
    public: bytes


class Parties(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everyone at the hub."""

    parties: tuple[Entry, ...]


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hub's clock and versions."""

    seconds: float
    atoll: str


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It was done."""


class Refused(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """It was not done."""

    refused: str


# ---- joining ----

JOIN: Final = "join a hub"
"""What a joining party signs under."""


class Presented(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the holder of an invitation presents, signed by the identity that wants to join."""

    public: bytes
    login: str
    signature: bytes


def join_text(invitation: str, login: str) -> bytes:
    """What is signed: this login, by this invitation. Another's identity cannot be brought along."""
    return msgspec.msgpack.encode((invitation, login))
