"""The carrier over NATS: frames through a hub, for as long as it takes.

A lost connection is made again, for ever; a consumer or stream that is gone is asked for again. What was on
its way meanwhile may be lost or come twice, as carriers may. Nothing here trusts the hub: frames are sealed
before they come here and checked after they leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from atoll import randomness
from atoll.crypto.identity import Identity
from atoll.errors import RunError
from atoll.runtime.nats import connection, subjects
from atoll.runtime.nats.carrier import (
    Arrived,
    Carrier,
    CarrierClosed,
    check_fingerprint,
    check_frame,
    check_topic,
)
from atoll.runtime.nats.connection import HubRefused, HubUnreachable, Login

log = logging.getLogger("atoll.network")

T = TypeVar("T", bound=msgspec.Struct)

ASK_SECONDS: Final = 5.0
PULL_FRAMES: Final = 256
PULL_BYTES: Final = 8 << 20
PULL_SECONDS: Final = 30
HEARTBEAT_SECONDS: Final = 5
ALIVE_SECONDS: Final = 5.0
"""How often a connection is tried, and how long its answer may take."""

PATIENCE: Final = 5.0
"""How long the first connection is tried before its error is raised; a lost one is tried for ever."""

FIRST_WAIT: Final = 0.1
LONGEST_WAIT: Final = 2.0
REFUSED_WAIT: Final = 5.0

SHARED_WAIT: Final = 0.005
SHARED_PATIENCE: Final = 1.0
"""How long a content may take to the hub after its ticket has arrived."""

_ENDS: Final = ("deleted", "shutdown", "leadership", "push based", "no responders")
"""In what a server says about a request: there is nothing more to be had from this consumer."""


class _Gone(Exception):
    """A consumer or connection is no more; ask again."""


class NatsCarrier(Carrier):
    """One party's way to a hub, whose certificate ``authority`` (PEM; empty: the system's) signed."""

    def __init__(
        self, url: str, identity: Identity, authority: str = "", *, name: str = "", patience: float = PATIENCE
    ) -> None:
        connection.split_url(url)
        self.url = url
        self.trouble: RunError | None = None
        """Why there is no connection at the moment; None while there is one."""
        self.reconnects = 0
        self._me = identity.fingerprint
        self._login = Login.of(identity)
        self._context = connection.tls_context(authority)
        self._name, self._patience = name, patience
        self._token = randomness.fresh_seed()[:8].hex()
        self._client: Client | None = None
        self._linked = asyncio.Event()
        self._lost = asyncio.Event()
        self._closed = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._abandoned: set[asyncio.Task[None]] = set()
        self._opened = 0
        self._reads: dict[str, str] = {}
        self._inboxes: dict[tuple[str, str], str] = {}
        """Subjects of other parties' inboxes, as they were checked."""
        self._shares: Client | None = None
        """The connection on which the hub was asked for an outbox."""

    @property
    def me(self) -> str:
        return self._me

    # ---- the connection ----

    async def connect(self) -> None:
        end = time.monotonic() + self._patience
        while True:
            try:
                await self._link()
                break
            except HubUnreachable:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(FIRST_WAIT)
        self._keeper = asyncio.create_task(self._keep_connected(), name="hub connection")

    async def close(self) -> None:
        self._closed.set()
        self._linked.set()  # whoever waits for a connection finds out
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        self._drop()
        if self._abandoned:
            await asyncio.wait(self._abandoned)

    async def _link(self) -> None:
        lost = asyncio.Event()

        async def on_closed() -> None:
            lost.set()

        client = await connection.connect(
            self.url,
            self._login,
            self._context,
            name=self._name,
            on_closed=on_closed,
            on_error=self._note,
        )
        self.max_frame = client.max_payload
        self._client, self._lost, self.trouble = client, lost, None
        self._linked.set()

    async def _note(self, error: Exception) -> None:
        # What a server says may hold subjects, which hold fingerprints, and no secrets.
        log.debug("hub: %s", error)

    async def _keep_connected(self) -> None:
        while True:
            await self._until_lost()
            self._drop()
            log.info("the connection to the hub was lost")
            await self._link_again()
            self.reconnects += 1
            log.info("connected to the hub again")
            if self.on_reconnect is not None:
                self.on_reconnect()

    async def _until_lost(self) -> None:
        """Return when the connection is gone, also where nobody said so."""
        client = self._client
        assert client is not None
        while not self._lost.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), ALIVE_SECONDS)
                return
            try:
                await client.flush(timeout=ALIVE_SECONDS)  # type: ignore[arg-type]
            except (nats_errors.Error, OSError, TimeoutError):
                return
            connection.heed_cancel()

    async def _link_again(self) -> None:
        wait = FIRST_WAIT
        while True:
            try:
                await self._link()
                return
            except RunError as error:
                if self.trouble is None or type(self.trouble) is not type(error):
                    log.warning("%s", error.message)
                self.trouble = error
                refused = isinstance(error, HubRefused)
            # Not all parties at once after a restart of the hub.
            share = randomness.fresh_below(1000) / 1000
            await asyncio.sleep((REFUSED_WAIT if refused else wait) * (0.5 + share / 2))
            wait = min(2 * wait, LONGEST_WAIT)

    def _drop(self) -> None:
        """Let go of the connection; that it closes may take a while and is nobody's concern."""
        client, self._client = self._client, None
        if not self._closed.is_set():
            self._linked.clear()
        self._lost.set()
        if client is not None:
            task = asyncio.create_task(connection.abandon(client))
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)

    async def _connected(self) -> Client:
        while True:
            if self._closed.is_set():
                raise CarrierClosed("the carrier was closed")
            if self._keeper is None:
                raise CarrierClosed("the carrier is not connected")
            if self._client is not None:
                return self._client
            await self._linked.wait()

    # ---- publishing ----

    async def publish(self, to: str, topic: str, frame: bytes) -> None:
        check_frame(frame, self.max_frame)
        subject = self._inboxes.get((to, topic))
        if subject is None:
            subject = subjects.inbox(check_fingerprint(to), self._me, check_topic(topic))
            self._inboxes[to, topic] = subject
        while True:
            client = self._client or await self._connected()
            try:
                await client.publish(subject, frame)
                connection.heed_cancel()
                return
            except (nats_errors.Error, OSError):
                await self._let_go(client)

    async def _let_go(self, client: Client) -> None:
        """A connection failed: have it made again, if nobody did so before."""
        if self._client is client:
            self._linked.clear()
            self._lost.set()
            self._client = None
            task = asyncio.create_task(connection.abandon(client))
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)
        await asyncio.sleep(0)

    # ---- questions to the agent ----

    async def ask(self, verb: subjects.Verb, question: msgspec.Struct, answer: type[T]) -> T:
        """Ask the hub's agent; :class:`HubUnreachable` without an answer, :class:`HubRefused` at a no."""
        client = await self._connected()
        try:
            told: Msg = await client.request(
                subjects.ask(self._me, verb), msgspec.json.encode(question), timeout=ASK_SECONDS
            )
        except (nats_errors.Error, OSError, TimeoutError):
            raise HubUnreachable(
                f"the agent of the hub at {self.url} does not answer",
                hint="ask the hub's owner: atoll hub status",
            ) from None
        return decoded(told.data, answer)

    # ---- receiving ----

    async def frames(self, topic: str) -> AsyncGenerator[Arrived, None]:
        check_topic(topic)
        wait = FIRST_WAIT
        while True:
            await self._connected()
            try:
                opened = await self._open(topic)
                async with contextlib.aclosing(self._pulled(opened)) as arrivals:
                    async for arrived in arrivals:
                        wait = FIRST_WAIT
                        yield arrived
            except (_Gone, HubUnreachable, HubRefused, nats_errors.Error, OSError) as error:
                log.debug("reading from the hub begins again: %s", error)
            if self._closed.is_set():
                raise CarrierClosed("the carrier was closed")
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def _open(self, topic: str) -> subjects.Opened:
        # A new name each time: what was on its way to an old one would not come again.
        self._opened += 1
        asked = subjects.Open(topic, f"{topic}-{self._token}{self._opened}", self._reads.get(topic, ""))
        opened = await self.ask("open", asked, subjects.Opened)
        self._reads[topic] = opened.consumer
        return opened

    async def _pulled(self, opened: subjects.Opened) -> AsyncGenerator[Arrived, None]:
        client = await self._connected()
        lost = self._lost
        answers = f"{subjects.INBOX}.{self._token}{randomness.fresh_seed()[:6].hex()}"
        sub = await client.subscribe(f"{answers}.*", pending_msgs_limit=0, pending_bytes_limit=0)
        pulls = _Pulls(client, subjects.next_frames(self._me, opened.consumer), answers)
        try:
            while True:
                await pulls.ask()
                for message in await _some(sub, lost, self._closed):
                    if pulls.took(message):
                        yield self._arrived(message, opened.made)
        finally:
            with contextlib.suppress(Exception):
                await sub.unsubscribe()

    def _arrived(self, message: Msg, made: int) -> Arrived:
        # $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream sequence>. ...
        parts = message.reply.split(".")
        sequence = int(parts[5] if len(parts) == 9 else parts[7])
        return Arrived(subjects.sender_of(message.subject), message.data, subjects.position(made, sequence))

    # ---- forgetting ----

    async def forget(self, topic: str, position: int) -> None:
        check_topic(topic)
        with contextlib.suppress(HubUnreachable, HubRefused):
            await self.ask("forget", subjects.Forget(topic, position), subjects.Done)

    # ---- contents for several receivers ----

    async def share(self, topic: str, name: str, part: int, frame: bytes) -> bool:
        subject = subjects.content(self._me, check_topic(topic), check_topic(name), str(part))
        check_frame(frame, self.max_frame)
        while True:
            client = await self._connected()
            try:
                if self._shares is not client:
                    await self.ask("share", subjects.Share(), subjects.Done)
                    self._shares = client
                await client.publish(subject, frame)
                connection.heed_cancel()
                return True
            except (HubRefused, HubUnreachable):
                return False
            except (nats_errors.Error, OSError):
                await self._let_go(client)

    async def shared(self, sender: str, topic: str, name: str, part: int) -> bytes | None:
        subject = subjects.read_content(
            check_fingerprint(sender), check_topic(topic), check_topic(name), str(part)
        )
        wait, until = SHARED_WAIT, time.monotonic() + SHARED_PATIENCE
        while True:
            client = await self._connected()
            try:
                told: Msg = await client.request(subject, b"", timeout=ASK_SECONDS)
            except (nats_errors.Error, OSError, TimeoutError):
                return None
            if (told.headers or {}).get("Status") is None:
                return told.data
            if time.monotonic() > until:
                return None
            await asyncio.sleep(wait)  # its ticket was faster
            wait *= 2

    async def unshare(self, topic: str, names: Iterable[str] = ()) -> None:
        asked = subjects.Unshare(check_topic(topic), tuple(map(check_topic, names)))
        with contextlib.suppress(HubUnreachable, HubRefused):
            await self.ask("unshare", asked, subjects.Done)


class _Pulls:
    """Requests for frames that are not answered in full: always one, the next before it is used up."""

    def __init__(self, client: Client, subject: str, answers: str) -> None:
        self._client, self._subject, self._answers = client, subject, answers
        self._open: dict[str, int] = {}
        self._count = 0
        self._heard = time.monotonic()
        self._request = msgspec.json.encode(
            {
                "batch": PULL_FRAMES,
                "max_bytes": PULL_BYTES,
                "expires": PULL_SECONDS * 10**9,
                "idle_heartbeat": HEARTBEAT_SECONDS * 10**9,
            }
        )

    async def ask(self) -> None:
        """Ask for more where less than half of one request is left."""
        if time.monotonic() - self._heard > 3 * HEARTBEAT_SECONDS:
            raise _Gone("silence")
        if sum(self._open.values()) > PULL_FRAMES // 2:
            return
        self._count += 1
        reply = f"{self._answers}.{self._count}"
        self._open[reply] = PULL_FRAMES
        await self._client.publish(self._subject, self._request, reply=reply)

    def took(self, message: Msg) -> bool:
        """Whether this is a frame; else it says something about a request."""
        self._heard = time.monotonic()
        status = (message.headers or {}).get("Status")
        if message.headers is None or status is None:
            self._count_down()
            return True
        if status == "100":
            return False
        said = str(message.headers.get("Description", "")).lower()
        if status == "503" or any(word in said for word in _ENDS):
            raise _Gone(said or status)
        self._open.pop(message.subject, None)
        return False

    def _count_down(self) -> None:
        # The server answers requests in the order in which they came.
        for reply, left in self._open.items():
            if left > 1:
                self._open[reply] = left - 1
            else:
                del self._open[reply]
            return


async def _some(sub: Subscription, lost: asyncio.Event, closed: asyncio.Event) -> list[Msg]:
    """At least one message, and all that came with it."""
    found = list(_waiting(sub))
    if found:
        await asyncio.sleep(0)  # others want to run too, also where frames never end
        return found
    with contextlib.suppress(nats_errors.TimeoutError):
        found.append(await sub.next_msg(timeout=1.0))
    if closed.is_set() or (lost.is_set() and not found):
        raise _Gone("closed")
    return found + list(_waiting(sub))


def _waiting(sub: Subscription) -> Iterator[Msg]:
    queue: asyncio.Queue[Any] = sub._pending_queue
    while True:
        try:
            message = queue.get_nowait()
        except asyncio.QueueEmpty:
            return
        if message is None:
            return
        sub._pending_size -= len(message.data)
        queue.task_done()
        yield message


def decoded(data: bytes, answer: type[T]) -> T:
    """An answer of the agent's, which may be a refusal."""
    try:
        return msgspec.json.decode(data, type=answer)
    except (msgspec.DecodeError, msgspec.ValidationError):
        pass
    try:
        refused = msgspec.json.decode(data, type=subjects.Refused)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise HubUnreachable(
            "the hub's agent answered something unknown", hint="its version may be newer"
        ) from None
    raise HubRefused(f"the hub refused: {refused.refused[:200]}")
