"""Invitations: one string that lets one site join a hub, once and for a while.

It holds the hub's address, the fingerprint of the authority that signs the hub's certificates, and a
secret: the key of a user who may do nothing but present it. It says nothing about who else takes part, and
nobody's identity rests on it: partners compare fingerprints themselves.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
import time
from dataclasses import dataclass
from typing import Final

import msgspec
from nats import errors as nats_errors

from atoll import randomness
from atoll.crypto.identity import Identity
from atoll.errors import ParameterError, RunError
from atoll.runtime.nats import certificates, connection, subjects, tunnel
from atoll.runtime.nats.connection import HubNotTrusted, HubRefused, HubUnreachable, Login
from atoll.runtime.nats.nats_carrier import decoded
from atoll.runtime.nats.site import HubAddress

PREFIX: Final = "atoll1-"
REDEEM_SECONDS: Final = 15.0
ANSWER_SECONDS: Final = 5.0
LOGIN_SECONDS: Final = 30.0

_CHECK_BYTES: Final = 4


class _Written(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    url: str
    authority: bytes
    secret: bytes
    expires: int


@dataclass(frozen=True, repr=False)
class Invitation:
    """What the string holds."""

    url: str
    authority: str
    """SHA-256 of the authority's certificate, in hexadecimal digits; empty where the system's are meant."""
    secret: bytes
    expires: int

    def __repr__(self) -> str:
        return f"<Invitation {self.name} to {self.url}>"

    @property
    def name(self) -> str:
        """What the invitation is called; gives nothing away."""
        return hashlib.sha256(b"atoll/invitation/v1" + self.secret).hexdigest()[:16]

    def __str__(self) -> str:
        written = _Written(self.url, bytes.fromhex(self.authority), self.secret, self.expires)
        data = msgspec.msgpack.encode(written)
        text = base64.b32encode(data + _check(data)).decode().rstrip("=").lower()
        return PREFIX + text

    @classmethod
    def read(cls, text: str) -> Invitation:
        """An invitation from its string; blanks and line breaks, as mails add them, are ignored."""
        text = "".join(text.split()).lower()
        wrong = ParameterError(
            "this is not an invitation",
            hint="it starts with atoll1-; was all of it copied, and nothing more?",
        )
        if not text.startswith(PREFIX):
            raise wrong
        body = text.removeprefix(PREFIX).upper()
        try:
            data = base64.b32decode(body + "=" * (-len(body) % 8))
            if _check(data[:-_CHECK_BYTES]) != data[-_CHECK_BYTES:]:
                raise wrong
            written = msgspec.msgpack.decode(data[:-_CHECK_BYTES], type=_Written)
        except (ValueError, msgspec.DecodeError, msgspec.ValidationError):
            raise wrong from None
        if len(written.secret) != randomness.SEED_BYTES or len(written.authority) not in (0, 32):
            raise wrong
        connection.split_url(written.url)
        return cls(written.url, written.authority.hex(), written.secret, written.expires)


def _check(data: bytes) -> bytes:
    return hashlib.sha256(b"atoll/invitation/v1/check" + data).digest()[:_CHECK_BYTES]


async def join(invitation: Invitation | str, identity: Identity, name: str = "") -> HubAddress:
    """Redeem an invitation for an identity. Redeemed by the same identity before, it does no harm."""
    if isinstance(invitation, str):
        invitation = Invitation.read(invitation)
    if invitation.expires < time.time():
        raise ParameterError(
            "this invitation has expired",
            hint="ask the hub's owner for a new one, and check this machine's clock",
        )
    authority = await pinned_authority(invitation.url, invitation.authority) if invitation.authority else ""
    context = connection.tls_context(authority)
    try:
        await _redeem(invitation, identity, context)
    except HubRefused as refused:
        # Used by this very site, whose answer got lost? Then it may log in.
        if not await _may_log_in(invitation.url, identity, context, 3.0):
            raise HubRefused(
                refused.message
                if "the hub refused" in refused.message
                else "the hub does not know this invitation",
                hint="an invitation is for one site, once; ask the hub's owner for a new one",
            ) from None
        return HubAddress(invitation.url, authority, name)
    if not await _may_log_in(invitation.url, identity, context, LOGIN_SECONDS):
        raise HubUnreachable(
            "the hub took the invitation, but does not let this site in yet",
            hint="try again in a minute; if it stays, ask the hub's owner: atoll hub status",
        )
    return HubAddress(invitation.url, authority, name)


async def _redeem(invitation: Invitation, identity: Identity, context: ssl.SSLContext) -> None:
    login = Login.of(identity)
    signature = identity.sign(subjects.JOIN, subjects.join_text(invitation.name, login.public))
    presented = subjects.Presented(identity.public.raw, login.public, signature)
    end = time.monotonic() + REDEEM_SECONDS
    while True:
        # Others may be joining: while the hub's server learns of them, an answer may be lost.
        try:
            return await _redeem_once(invitation, msgspec.json.encode(presented), context)
        except HubUnreachable:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


async def _redeem_once(invitation: Invitation, presented: bytes, context: ssl.SSLContext) -> None:
    client = await connection.connect(invitation.url, Login(invitation.secret), context, name="atoll join")
    try:
        told = await client.request(subjects.redeem(invitation.name), presented, timeout=ANSWER_SECONDS)
    except (nats_errors.Error, OSError, TimeoutError):
        raise HubUnreachable(
            "the hub is there, but its agent does not answer", hint="ask the hub's owner: atoll hub status"
        ) from None
    finally:
        await connection.abandon(client)
    decoded(told.data, subjects.Done)


async def _may_log_in(url: str, identity: Identity, context: ssl.SSLContext, seconds: float) -> bool:
    """Whether the hub lets this identity in within some seconds: its server needs a moment to learn."""
    end = time.monotonic() + seconds
    while True:
        try:
            await _ask_the_time(url, identity, context)
            return True
        except (HubRefused, HubUnreachable) as error:
            if time.monotonic() > end:
                if isinstance(error, HubUnreachable):
                    raise
                return False
        await asyncio.sleep(0.1)


async def _ask_the_time(url: str, identity: Identity, context: ssl.SSLContext) -> None:
    """Log in and have a question answered: only then everything is in its place."""
    client = await connection.connect(url, Login.of(identity), context, name="atoll join")
    try:
        await client.request(subjects.ask(identity.fingerprint, "time"), b"{}", timeout=2)
    except (nats_errors.Error, OSError, TimeoutError):
        raise HubUnreachable(
            "the hub's agent does not answer", hint="ask the hub's owner: atoll hub status"
        ) from None
    finally:
        await connection.abandon(client)


async def pinned_authority(url: str, fingerprint: str) -> str:
    """The authority's certificate (PEM) that the hub shows, if it is the one with this fingerprint."""
    shown = await shown_chain(url)
    for one in shown:
        if certificates.fingerprint(one.encode()) == fingerprint:
            return one
    raise HubNotTrusted(
        f"whoever answers at {url} is not the hub of the invitation",
        hint="a proxy that reads TLS, or a wrong address; atoll doctor says which. Nothing secret was sent",
    )


async def shown_chain(url: str) -> list[str]:
    """The certificates (PEM) that whoever answers at ``url`` shows. Nothing is trusted or sent."""
    _, host, port = connection.split_url(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(connection.CONNECT_SECONDS):
            writer = await tunnel.open_tls(host, port, context)
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "no answer in time"
        raise HubUnreachable(
            f"the hub at {url} cannot be reached: {reason}", hint="atoll doctor looks for the cause"
        ) from None
    try:
        return _chain(writer.get_extra_info("ssl_object"))
    finally:
        writer.transport.abort()


def _chain(secured: ssl.SSLObject) -> list[str]:
    # Before Python 3.13 the whole chain is only to be had from the object within.
    inner = getattr(secured, "_sslobj", None)
    chain = inner.get_unverified_chain() if inner is not None else None
    if not chain:
        raise RunError("no certificate was shown")
    found = []
    for one in chain:
        der = one if isinstance(one, bytes) else ssl.PEM_cert_to_DER_cert(one.public_bytes())
        found.append(ssl.DER_cert_to_PEM_cert(der))
    return found
