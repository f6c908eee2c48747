"""The hub's directory: public identities by fingerprint or name. The hub is not trusted with it.

A key found by fingerprint is checked against that fingerprint, so a hub that hands out a key of its own is
found out. A name proves nothing: what it finds is shown to people, who compare the fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass

from atoll.crypto.identity import PublicIdentity
from atoll.errors import MessageError
from atoll.runtime.nats import subjects
from atoll.runtime.nats.carrier import check_fingerprint
from atoll.runtime.nats.connection import HubNotTrusted
from atoll.runtime.nats.nats_carrier import NatsCarrier


@dataclass(frozen=True)
class Listed:
    """A party as the hub lists it: the name is the hub's word, the fingerprint follows from the keys."""

    name: str
    public: PublicIdentity


async def look_up(carrier: NatsCarrier, fingerprint: str) -> PublicIdentity | None:
    """The public identity with this fingerprint; None if the hub knows none."""
    told = await carrier.ask(
        "who", subjects.Who(fingerprint=check_fingerprint(fingerprint)), subjects.Parties
    )
    if not told.parties:
        return None
    found = _public(told.parties[0])
    if found.fingerprint != fingerprint:
        raise HubNotTrusted(
            f"the hub gave out a key that is not that of {fingerprint[:16]}",
            hint="tell the hub's owner, and that party: somebody may want to pass for it",
        )
    return found


async def named(carrier: NatsCarrier, name: str) -> list[Listed]:
    """Whom the hub calls so. Compare fingerprints with the organisation before anything is pinned."""
    told = await carrier.ask("who", subjects.Who(name=name), subjects.Parties)
    return [Listed(one.name, _public(one)) for one in told.parties]


async def everyone(carrier: NatsCarrier) -> list[Listed]:
    """All parties at the hub."""
    told = await carrier.ask("parties", subjects.Who(), subjects.Parties)
    return [Listed(one.name, _public(one)) for one in told.parties]


def _public(entry: subjects.Entry) -> PublicIdentity:
    try:
        return PublicIdentity.from_raw(entry.public)
    except MessageError:
        raise HubNotTrusted("the hub gave out something that is no public identity") from None
