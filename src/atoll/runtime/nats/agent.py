"""The hub's agent: makes and remakes inboxes, opens and clears them for their owners, redeems invitations.

It is the only one with rights on streams. What it is asked and by whom it knows from the subject, which the
server lets only that party's account use. It sees public identities and sizes, and no content.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js import errors as js_errors
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, StorageType, StreamConfig

from atoll import __version__
from atoll.crypto.identity import PublicIdentity
from atoll.errors import AtollError, RunError
from atoll.runtime.nats import connection, subjects
from atoll.runtime.nats.carrier import check_topic
from atoll.runtime.nats.hub_config import HubFolder, Limits, Member, Members

log = logging.getLogger("atoll.hub")

INACTIVE_SECONDS: Final = 60.0
API_SECONDS: Final = 10.0
AT_ONCE: Final = 16
_CONSUMER = re.compile(r"[a-z0-9][a-z0-9_-]{0,95}")


class NoSuchParty(RunError):
    """Whoever asks is not known to the hub any more."""


class Reloads(Protocol):
    """What makes the server read its files again; it may gather several calls into one."""

    async def __call__(self) -> None: ...


class Agent:
    """Answers on one connection."""

    def __init__(self, hub: HubFolder, client: Client, reload: Reloads) -> None:
        self._hub, self._client, self._reload = hub, client, reload
        self._js: JetStreamContext = client.jetstream(timeout=API_SECONDS)
        self._busy: set[asyncio.Task[None]] = set()
        self._read: tuple[tuple[int, int], Members] = ((0, 0), Members(""))
        self._since: dict[str, int] = {}
        """When streams were made. It holds while nobody but this agent makes any."""
        self._verbs: dict[str, Callable[[str, bytes], Awaitable[msgspec.Struct]]] = {
            "open": self._open,
            "forget": self._forget,
            "share": self._share,
            "unshare": self._unshare,
            "who": self._who,
            "parties": self._parties,
            "time": self._time,
        }

    async def start(self) -> None:
        """Make what is missing, then answer."""
        await self.make_inboxes()
        await self._client.subscribe("a.agent.*.*", cb=self._asked)
        await self._client.subscribe("a.join.*", cb=self._presented)
        await self._client.flush()

    # ---- inboxes ----

    async def make_inboxes(self) -> int:
        """An inbox for every party, and none for anybody else; how many were missing."""
        parties = self._members().parties
        wanted = {subjects.stream(party) for party in parties}
        there = await self._streams()
        missing = sorted(wanted - there)
        wanted |= {subjects.outbox(party) for party in parties}  # made when they are first asked for
        for start in range(0, len(missing), AT_ONCE):
            await asyncio.gather(*map(self._make, missing[start : start + AT_ONCE]))
        for name in sorted(there - wanted):
            if name.startswith(("IN-", "OUT-")):
                with contextlib.suppress(js_errors.NotFoundError):
                    await self._js.delete_stream(name)
                log.info("removed the stream %s", name)
        return len(missing)

    async def _streams(self) -> set[str]:
        found: set[str] = set()
        while True:
            page = await self._js.streams_info(offset=len(found))
            names = {one.config.name for one in page if one.config.name}
            if not names - found:
                return found
            found |= names

    async def _make(self, name: str) -> None:
        self._since.pop(name, None)
        await self._js.add_stream(inbox_config(name.removeprefix("IN-"), self._hub.settings.limits))
        log.info("made the inbox %s", name)

    # ---- questions of parties ----

    async def _asked(self, message: Msg) -> None:
        self._task(self._answer(message))

    def _task(self, work: Any) -> None:
        # One party's slow question must not hold up the others'.
        task = asyncio.create_task(work)
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _answer(self, message: Msg) -> None:
        _, _, party, verb = message.subject.split(".")
        try:
            if party not in self._members().parties:
                raise NoSuchParty("the hub does not know this party")
            answer = await self._verbs[verb](party, message.data)
        except KeyError:
            answer = subjects.Refused(f"there is no question {verb!r}")
        except (msgspec.DecodeError, msgspec.ValidationError):
            answer = subjects.Refused("the question is malformed")
        except AtollError as error:
            answer = subjects.Refused(error.message)
        except (js_errors.Error, nats_errors.Error, OSError, TimeoutError) as error:
            log.warning("%s of %s failed: %s", verb, party[:16], type(error).__name__)
            answer = subjects.Refused("the hub's storage does not answer")
        if isinstance(answer, subjects.Refused):
            log.warning("refused %s of %s: %s", verb, party[:16], answer.refused)
        await _respond(message, answer)

    async def _open(self, party: str, data: bytes) -> msgspec.Struct:
        asked = msgspec.json.decode(data, type=subjects.Open)
        check_topic(asked.topic)
        for one in (asked.consumer, asked.instead_of or asked.consumer):
            if not _CONSUMER.fullmatch(one):
                raise NoSuchParty("a consumer's name has 1 to 96 of the characters a-z, 0-9, - and _")
        name = subjects.stream(party)
        if asked.instead_of:
            self._task(self._end_consumer(name, asked.instead_of))
        wanted = ConsumerConfig(
            name=asked.consumer,
            filter_subject=subjects.inbox(party, "*", asked.topic),
            ack_policy=AckPolicy.NONE,
            inactive_threshold=INACTIVE_SECONDS,
            mem_storage=True,
            max_waiting=8,
        )
        try:
            await self._js.add_consumer(name, wanted)
        except js_errors.NotFoundError:
            await self._make(name)
            await self._js.add_consumer(name, wanted)
        return subjects.Opened(asked.consumer, await self._made(name))

    async def _end_consumer(self, name: str, consumer: str) -> None:
        with contextlib.suppress(js_errors.Error, nats_errors.Error, OSError, TimeoutError):
            await self._js.delete_consumer(name, consumer)

    async def _made(self, name: str) -> int:
        if name not in self._since:
            self._since[name] = await self._ask_made(name)
        return self._since[name]

    async def _ask_made(self, name: str) -> int:
        # The client of this version drops the field.
        told = await self._client.request(f"$JS.API.STREAM.INFO.{name}", b"", timeout=API_SECONDS)
        created = msgspec.json.decode(told.data, type=_Info).created
        return int(created.timestamp() * 1000)

    async def _forget(self, party: str, data: bytes) -> msgspec.Struct:
        asked = msgspec.json.decode(data, type=subjects.Forget)
        check_topic(asked.topic)
        name = subjects.stream(party)
        made = await self._made(name)
        wanted, sequence = subjects.of_position(asked.position)
        if sequence > 0 and wanted == subjects.of_position(subjects.position(made, 0))[0]:
            await self._js.purge_stream(
                name, seq=sequence + 1, subject=subjects.inbox(party, "*", asked.topic)
            )
        return subjects.Done()

    async def _share(self, party: str, data: bytes) -> msgspec.Struct:
        msgspec.json.decode(data, type=subjects.Share)
        await self._js.add_stream(outbox_config(party, self._hub.settings.limits))  # it may be there
        return subjects.Done()

    async def _unshare(self, party: str, data: bytes) -> msgspec.Struct:
        asked = msgspec.json.decode(data, type=subjects.Unshare)
        check_topic(asked.topic)
        for name in asked.names or ("*",):
            if name != "*":
                check_topic(name)
            filtered = subjects.content(party, asked.topic, name, "*")
            with contextlib.suppress(js_errors.NotFoundError):
                await self._js.purge_stream(subjects.outbox(party), subject=filtered)
        return subjects.Done()

    async def _who(self, party: str, data: bytes) -> msgspec.Struct:
        del party
        asked = msgspec.json.decode(data, type=subjects.Who)
        found = [
            member
            for fingerprint, member in self._members().parties.items()
            if asked.fingerprint == fingerprint or (asked.name and asked.name == member.name)
        ]
        return subjects.Parties(tuple(subjects.Entry(one.name, one.public) for one in found))

    async def _parties(self, party: str, data: bytes) -> msgspec.Struct:
        del party, data
        every = self._members().parties.values()
        return subjects.Parties(tuple(subjects.Entry(one.name, one.public) for one in every))

    async def _time(self, party: str, data: bytes) -> msgspec.Struct:
        del party, data
        return subjects.Told(time.time(), __version__)

    def _members(self) -> Members:
        # Others change the file; it is read again when they did.
        stamp = self._hub.members_stamp()
        if stamp != self._read[0]:
            self._read = (stamp, self._hub.members())
        return self._read[1].current(time.time())

    # ---- invitations ----

    async def _presented(self, message: Msg) -> None:
        self._task(self._redeem(message))

    async def _redeem(self, message: Msg) -> None:
        invitation = message.subject.split(".")[2]
        try:
            presented = msgspec.json.decode(message.data, type=subjects.Presented)
            party = self._admit(invitation, presented)
        except (msgspec.DecodeError, msgspec.ValidationError):
            refused = subjects.Refused("what was presented is malformed")
        except AtollError as error:
            refused = subjects.Refused(error.message)
        else:
            log.info("%s joined by the invitation %s", party[:16], invitation)
            await self._js_inbox(party)
            # The answer goes first: the reload ends this invitation's connection.
            await _respond(message, subjects.Done())
            await self._reload()
            return
        log.warning("refused the invitation %s: %s", invitation, refused.refused)
        await _respond(message, refused)

    async def _js_inbox(self, party: str) -> None:
        try:
            await self._make(subjects.stream(party))
        except (js_errors.Error, nats_errors.Error) as error:
            log.warning("the inbox of %s will be made later: %s", party[:16], type(error).__name__)

    def _admit(self, invitation: str, presented: subjects.Presented) -> str:
        """Note a new party; raise where that is not allowed."""
        public = PublicIdentity.from_raw(presented.public)
        public.verify(subjects.JOIN, subjects.join_text(invitation, presented.login), presented.signature)
        party, now = public.fingerprint, time.time()
        with self._hub.changing() as change:
            members = change.members
            invited = members.current(now).invited.get(invitation)
            known = members.current(now).parties.get(party)
            if invitation in members.used and known is not None and known.login == presented.login:
                return party  # its answer was lost
            check_login(presented.login, members, party)
            if invited is None:
                raise NoSuchParty("this invitation was used, withdrawn or has expired")
            if party in members.revoked:
                raise NoSuchParty("this identity was revoked at this hub")
            if any(one.name == invited.name and key != party for key, one in members.parties.items()):
                raise NoSuchParty("another party has this name by now")
            joined = Member(invited.name, presented.public, presented.login, int(now), invited.party_expires)
            change.set(
                parties={**members.parties, party: joined},
                invited={k: v for k, v in members.invited.items() if k != invitation},
                used={**members.used, invitation: int(now)},
            )
        return party


class _Info(msgspec.Struct):
    created: datetime.datetime


def check_login(login: str, members: Members, party: str) -> None:
    """A public NKey that may stand in the server's configuration.

    One that is malformed, or there twice, would keep the server from reading it at all.
    """
    if not connection.is_login(login):
        raise NoSuchParty("a login is a public NKey of a user")
    others = {one.login for key, one in members.parties.items() if key != party}
    others |= {one.login for one in members.invited.values()} | {members.agent, members.system}
    if login in others:
        raise NoSuchParty("another party has this login")


def inbox_config(party: str, limits: Limits) -> StreamConfig:
    """A party's inbox. A full one refuses what is new: what came first is what the party waits for."""
    return StreamConfig(
        name=subjects.stream(party),
        subjects=[subjects.inbox(party, "*", "*")],
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_bytes=limits.inbox_bytes,
        max_msgs=limits.inbox_frames,
        max_msg_size=limits.frame_bytes,
        max_age=limits.age_seconds,
        max_consumers=limits.consumers,
        num_replicas=1,
        allow_direct=False,
        deny_delete=True,
    )


def outbox_config(party: str, limits: Limits) -> StreamConfig:
    """What a party has for several receivers. They ask for parts by name; nobody can list them."""
    return StreamConfig(
        name=subjects.outbox(party),
        subjects=[subjects.content(party, "*", "*", "*")],
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_bytes=limits.outbox_bytes,
        max_msg_size=limits.frame_bytes,
        max_age=limits.age_seconds,
        max_consumers=1,
        num_replicas=1,
        allow_direct=True,
        deny_delete=True,
    )


async def _respond(message: Msg, answer: msgspec.Struct) -> None:
    if message.reply:
        with contextlib.suppress(nats_errors.Error, OSError):
            await message.respond(msgspec.json.encode(answer))
