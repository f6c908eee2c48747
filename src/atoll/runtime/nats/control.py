"""Control messages between nodes: sealed to their receiver, kept on disk and sent again until it has them.

Carriers lose, repeat and reorder. So every message to another party stands in the outbox, a file each,
until that party's signed :class:`Seen` comes back or its time is over; a node that was killed goes on where
it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from atoll.codec import Message
from atoll.crypto.identity import Identity, PublicIdentity
from atoll.errors import AtollError, MessageError
from atoll.runtime.nats.carrier import CONTROL, Carrier
from atoll.runtime.nats.site import Site, read_json, write_json
from atoll.runtime.nats.starts import Opened, Seen, open_signed, seal, sign, unseal
from atoll.runtime.result import write_whole

log = logging.getLogger("atoll.node")

Lookup = Callable[[str], Awaitable[PublicIdentity | None]]
"""Asks the hub for the public identity of a fingerprint. What it says is checked."""

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 30.0


class _Waiting(msgspec.Struct):
    """One message in the outbox."""

    to: str
    until: float
    signed: bytes
    next: float = 0.0
    wait: float = FIRST_WAIT


class Known:
    """Public identities by fingerprint, which proves the identity: whoever told it does not matter."""

    def __init__(self, site: Site, lookup: Lookup | None = None) -> None:
        self._path = site.folder / "known.json"
        self._lookup = lookup
        self._known = read_json(self._path, _Known) or _Known({})

    def learn(self, public: PublicIdentity) -> None:
        if public.fingerprint not in self._known.raw:
            self._known.raw[public.fingerprint] = public.raw
            write_json(self._path, self._known)

    async def of(self, fingerprint: str) -> PublicIdentity | None:
        """The identity, from memory or from the hub; None while the hub has none that fits."""
        raw = self._known.raw.get(fingerprint)
        if raw is not None:
            return PublicIdentity.from_raw(raw)
        found = None if self._lookup is None else await self._lookup(fingerprint)
        if found is None:
            return None
        if found.fingerprint != fingerprint:
            log.warning("the hub gave another key than %s: not used", fingerprint[:16])
            return None
        self.learn(found)
        return found


class _Known(msgspec.Struct):
    raw: dict[str, bytes]


class Control:
    """Sends and receives control messages for one site."""

    def __init__(self, site: Site, identity: Identity, carrier: Carrier, known: Known) -> None:
        self._folder = site.outbox
        self._identity = identity
        self._carrier = carrier
        self._known = known
        self._waiting: dict[Path, _Waiting] = {}
        for path in sorted(self._folder.iterdir()):
            waiting = _read_waiting(path)
            if waiting is not None:
                self._waiting[path] = waiting
        self.refused = 0
        """Messages that were malformed, forged or not meant for this site."""

    def send(self, to: str, signed: bytes, until: float) -> None:
        """Send until ``to`` (a fingerprint) has it, or until the time is over."""
        path = self._folder / f"{open_signed(signed).digest.hex()[:24]}-{to[:24]}"
        if path not in self._waiting:
            self._waiting[path] = _Waiting(to, until, signed)
            write_whole(path, msgspec.msgpack.encode(self._waiting[path]))

    def drop(self, about: Callable[[Message], bool]) -> None:
        """Give up on messages that have become pointless."""
        for path in [p for p, one in self._waiting.items() if about(open_signed(one.signed).message)]:
            self._remove(path)

    def unseen(self, kind: type[Message]) -> set[str]:
        """Fingerprints that have not acknowledged a message of this kind."""
        return {one.to for one in self._waiting.values() if isinstance(open_signed(one.signed).message, kind)}

    def _remove(self, path: Path) -> None:
        del self._waiting[path]
        path.unlink(missing_ok=True)

    async def resend(self) -> None:
        """Send what is due now. Waits for the hub where it is away."""
        now = time.time()
        for path, one in list(self._waiting.items()):
            if path not in self._waiting or one.next > now:
                continue
            if one.until < now:
                self._remove(path)
                continue
            one.next = now + one.wait
            one.wait = min(2 * one.wait, LONGEST_WAIT)
            public = await self._known.of(one.to)
            if public is not None:
                await self._carrier.publish(one.to, CONTROL, seal(one.signed, public))

    async def send_all(self, every: float) -> None:
        """Send what is due, for ever."""
        while True:
            await self.resend()
            await asyncio.sleep(every)

    def hurry(self) -> None:
        """After a reconnection: send all that waits now."""
        for one in self._waiting.values():
            one.next, one.wait = 0.0, FIRST_WAIT

    async def receive(self, handle: Callable[[Opened], bool]) -> None:
        """Hand on what arrives, for ever. ``handle`` says whether the sender need not send it again."""
        async for arrived in self._carrier.frames(CONTROL):
            try:
                opened = unseal(self._identity, arrived.frame)
                if isinstance(opened.message, Seen):
                    self._seen(opened, opened.message)
                elif handle(opened):
                    self._known.learn(opened.signer)
                    await self._acknowledge(opened)
            except MessageError as error:
                self.refused += 1
                log.warning("refused a control message: %s", error.message)
            except AtollError as error:
                self.refused += 1
                log.warning("refused a control message: %s", type(error).__name__)
            await self._carrier.forget(CONTROL, arrived.position)
            await asyncio.sleep(0)

    async def _acknowledge(self, opened: Opened) -> None:
        answer = sign(self._identity, Seen(opened.digest))
        await self._carrier.publish(opened.signer.fingerprint, CONTROL, seal(answer, opened.signer))

    def _seen(self, opened: Opened, seen: Seen) -> None:
        path = self._folder / f"{seen.what.hex()[:24]}-{opened.signer.fingerprint[:24]}"
        waiting = self._waiting.get(path)
        # Only its receiver can say that it has a message.
        if waiting is not None and waiting.to == opened.signer.fingerprint:
            self._remove(path)


def _read_waiting(path: Path) -> _Waiting | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=_Waiting)
    except (msgspec.DecodeError, msgspec.ValidationError):
        log.warning("a damaged message in the outbox was left out")
        return None
