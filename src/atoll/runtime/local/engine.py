"""The local engine: every role of a study in this process, on an event loop of its own.

Messages pass through the codec as on a real network; heavy steps run in threads, where NumPy, AES and
the Go library release the interpreter. If every role waits, the run fails at once and says for what.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from atoll import codec
from atoll.codec import Decoder, Encoded, Message
from atoll.errors import AtollError, Deadlock, MessageError, ParameterError, RoleFailed, RunError
from atoll.network import Network, Record
from atoll.protocols.base import Learned, Protocol, resolve, with_helpers
from atoll.protocols.own import Own
from atoll.runtime.engine import Engine, Observer, Outcome, Progress, check_own
from atoll.runtime.inbox import Inbox, Left, Received
from atoll.runtime.local.faults import Faults
from atoll.runtime.local.links import ClockLink, FaultyLink, Frame, Link, PerLink, on_link
from atoll.runtime.local.meter import Meter, metered
from atoll.runtime.records import MemoryRecord
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address
from atoll.study.model import Study
from atoll.threads import cores, one_blas_thread

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class LocalEngine(Engine):
    """Runs whole studies in this process.

    ``latency`` (seconds) and ``bandwidth`` (bytes a second) are one number for all links or a mapping
    from (sending party, receiving party); ``faults`` is a :class:`Faults` schedule. With
    ``one_at_a_time`` nothing runs side by side and nobody waits for links: slower, but the transcript
    then has every role's processor time, and what the run would take with each on its own machine.
    """

    def __init__(
        self,
        latency: PerLink = 0.0,
        bandwidth: PerLink | None = None,
        faults: Faults | None = None,
        *,
        one_at_a_time: bool = False,
    ) -> None:
        if one_at_a_time and faults is not None:
            raise ParameterError("one_at_a_time cannot be used with faults", hint="leave one of the two out")
        self.latency, self.bandwidth = latency, bandwidth
        self.faults, self.one_at_a_time = faults, one_at_a_time

    def __repr__(self) -> str:
        return f"LocalEngine(latency={self.latency}, bandwidth={self.bandwidth}, faults={self.faults})"

    def run(
        self,
        protocol: Protocol,
        study: Study,
        own: Mapping[str, Own],
        *,
        progress: Progress | None = None,
        observer: Observer | None = None,
    ) -> Outcome:
        """Run every role to its end; one role's error ends them all."""
        study = resolve(protocol, study)
        protocol = with_helpers(protocol, study)
        check_own(protocol, study, own)
        # A thread of its own, because the caller may already be inside an event loop (a notebook).
        run = _Run(self, protocol, study, own, progress, observer or Observer())
        with ThreadPoolExecutor(1, "atoll-engine") as outside, one_blas_thread:
            future = outside.submit(lambda: asyncio.run(run.everything()))
            try:
                return future.result()
            except BaseException:  # Ctrl-C, or an alarm of the caller's: the roles must not be waited for
                if not future.done():
                    run.interrupt()
                raise


class _Died(Exception):
    """A fault schedule's crash."""


class _Run:
    """One run of one study."""

    def __init__(
        self,
        engine: LocalEngine,
        protocol: Protocol,
        study: Study,
        own: Mapping[str, Own],
        progress: Progress | None,
        observer: Observer,
    ) -> None:
        self.engine = engine
        self.protocol = protocol
        self.study = study
        self.own = own
        self.progress = progress
        self.observer = observer
        self.observed = type(observer) is not Observer  # only then are messages put together for it
        self.transcript = Transcript()
        self.meter = Meter(self.transcript) if engine.one_at_a_time else None
        self.pool = ThreadPoolExecutor(cores(), "atoll-step")
        self.links: dict[tuple[Address, Address], Link] = {}
        self.in_flight = 0
        self.waiting: dict[Address, str] = {}
        self.failure: asyncio.Future[None]
        self.loop: asyncio.AbstractEventLoop | None = None
        decoder = Decoder[Message](protocol.all_messages(study))
        self.records = {a: MemoryRecord() for a in study.addresses()}
        self.networks = {a: _LocalNetwork(self, a, decoder, record) for a, record in self.records.items()}
        self.unfinished = set(self.networks)
        self.draw = engine.faults.generator() if engine.faults else None

    async def everything(self) -> Outcome:
        started = time.perf_counter()
        self.loop = asyncio.get_running_loop()
        self.failure = self.loop.create_future()
        tasks = {address: asyncio.create_task(self.one(address)) for address in self.networks}
        try:
            await self._until_done(tasks)
        finally:
            await self._end(tasks)
        self.transcript.wall_seconds = time.perf_counter() - started
        learned = {address: task.result() for address, task in tasks.items()}
        return Outcome({a: value for a, value in learned.items() if value is not None}, self.transcript)

    async def _until_done(self, tasks: Mapping[Address, asyncio.Task[Learned | None]]) -> None:
        """Until every role has ended, or one has failed."""
        pending: set[asyncio.Future[Any]] = {self.failure, *tasks.values()}
        while len(pending) > 1:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()

    async def _end(self, tasks: Mapping[Address, asyncio.Task[Learned | None]]) -> None:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for link in self.links.values():
            if isinstance(link, FaultyLink):
                link.close()
        self.pool.shutdown(wait=True, cancel_futures=True)
        # These refer to the run and it to them: what they hold would stay until the garbage collector comes.
        for held in (self.links, self.networks, self.records):
            held.clear()

    async def one(self, address: Address) -> Learned | None:
        record, role = self.records[address], self.protocol.roles[address.role]
        own = self.own.get(address.party, Own())
        if address.role not in self.protocol.data_roles:
            own = replace(own, island=None)
        try:
            work = role(self.networks[address], self.study, own, record)
            learned = await (metered(self.meter, address, work) if self.meter else work)
        except _Died:
            self._leave(address)
            return None
        except Exception as error:
            raise _reported(address, error) from error
        self.observer.finished(address, record)
        self.unfinished.discard(address)
        self.check_for_deadlock()
        return learned

    def _leave(self, address: Address) -> None:
        """Tell everyone, behind what the role had already sent."""
        self.unfinished.discard(address)
        for receiver in self.networks:
            if receiver != address:
                self.carry(address, receiver, Frame(Left(address)))

    def link(self, sender: Address, receiver: Address) -> Link:
        key = (sender, receiver)
        if key not in self.links:
            latency = on_link(self.engine.latency, sender, receiver)
            bandwidth = on_link(self.engine.bandwidth, sender, receiver) or None
            deliver = self._deliverer(sender, receiver)
            faults = self.engine.faults
            if faults is not None and faults.touches_frames:
                assert self.draw is not None
                self.links[key] = FaultyLink(latency, bandwidth, deliver, faults, self.draw)
            else:
                kind = ClockLink if self.meter else Link
                self.links[key] = kind(latency, bandwidth, deliver)
        return self.links[key]

    def carry(self, sender: Address, receiver: Address, frame: Frame) -> None:
        self.in_flight += 1
        self.link(sender, receiver).send(frame)

    def _deliverer(self, sender: Address, receiver: Address) -> Callable[[Frame], None]:
        def deliver(frame: Frame) -> None:
            self.in_flight -= 1
            self.waiting.pop(receiver, None)  # it will look again before it waits again
            if isinstance(frame.event, Left):
                self.observer.left(receiver, sender)
            else:
                if self.observed:
                    self.observer.delivered(receiver, sender, _whole(frame.event.data))
                self.transcript.received(receiver, frame.size)
            try:
                with self.meter.of(receiver) if self.meter else nullcontext():
                    self.networks[receiver].inbox.put(frame.event, frame.depth, frame.at)
            except MessageError as error:
                self.fail(_reported(receiver, error))

        return deliver

    def interrupt(self) -> None:
        """End all roles, from another thread; steps that compute are let finish."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.fail, RunError("the run was interrupted"))

    def fail(self, error: Exception) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)

    def check_for_deadlock(self) -> None:
        if self.unfinished and not self.in_flight and self.unfinished <= set(self.waiting):
            who = "; ".join(f"{a} waits for {self.waiting[a]}" for a in sorted(self.unfinished))
            self.fail(Deadlock(f"every role waits and nothing is on its way: {who}"))

    def tell(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, self.transcript)


def _whole(data: bytes | Encoded) -> bytes:
    return data.whole() if isinstance(data, Encoded) else data


def _reported(address: Address, error: Exception) -> Exception:
    """An error as the caller sees it: Atoll's own keep their type, all carry the role."""
    if isinstance(error, AtollError):
        error.role = str(address)
        return error
    # The text of an unexpected error may quote data; the traceback has it for whoever may see that.
    return RoleFailed(str(address), f"an unexpected {type(error).__name__}")


class _Ready(NamedTuple):
    """A message as it travels, with its digest for the sender's record."""

    message: Message
    data: Encoded
    digest: bytes | None


class _LocalNetwork(Network):
    """One role's network."""

    def __init__(self, run: _Run, me: Address, decoder: Decoder[Message], record: Record) -> None:
        self.me = me
        self.inbox = Inbox(decoder)
        self._run = run
        self._record = record
        self._common: _Ready | None = None
        self._sent = 0
        faults = run.engine.faults
        self._dies_at = faults.crash.get(str(me)) if faults else None

    async def broadcast(self, to: Iterable[Address], message: Message) -> None:
        self._common = self._ready(message)  # once: ciphertexts are large
        try:
            await super().broadcast(to, message)
        finally:
            self._common = None

    def _ready(self, message: Message) -> _Ready:
        if self._common is not None and self._common.message is message:
            return self._common
        data = codec.encoded(message)
        # Records end with the run here, and only an observer ever looks at one: no digest for nobody.
        return _Ready(message, data, data.digest if self._run.observed else None)

    async def send(self, to: Address, message: Message) -> None:
        _, data, digest = self._ready(message)
        self._sent += 1
        if self._sent == self._dies_at:
            raise _Died
        if digest is not None:
            self._record.sent(to, digest)
        depth = self.inbox.depth + 1
        run = self._run
        run.transcript.rounds = max(run.transcript.rounds, depth)
        run.transcript.sent(self.me, to, type(message).__name__, data.size)
        if run.observed:
            run.observer.sent(self.me, to, data.whole())
        run.tell(f"{self.me}: {type(message).__name__}")
        run.carry(
            self.me, to, Frame(Received(self.me, data), depth, run.meter.now(self.me) if run.meter else 0.0)
        )
        if self._sent % 64 == 0:
            await asyncio.sleep(0)  # a role with many peers lets the others work

    async def next(
        self, kind: type[M], senders: Iterable[Address], *, absent: set[Address] | None = None
    ) -> tuple[Address, M] | None:
        senders = set(senders)
        while (arrived := self.inbox.take(kind, senders, absent)) is None:
            if absent is not None and self.inbox.everyone_left(senders):
                return None
            names = ", ".join(sorted(str(sender) for sender in senders)[:3])
            more = f" and {len(senders) - 3} more" if len(senders) > 3 else ""
            self._run.waiting[self.me] = f"{kind.__name__} from {names}{more}"
            self._run.check_for_deadlock()
            await self.inbox.changed()
        if self._run.meter:
            self._run.meter.wait(self.me, self.inbox.latest)
        return arrived

    async def compute(self, step: Callable[..., T], *args: Any) -> T:
        def timed() -> tuple[T, float]:
            started = time.perf_counter()
            return step(*args), time.perf_counter() - started

        name = getattr(step, "__name__", "step").strip("_")
        self._run.tell(f"{self.me}: {name}")
        if self._run.meter:
            await asyncio.sleep(0)  # a step gives way here as well
            result, seconds = timed()
        else:
            result, seconds = await asyncio.get_running_loop().run_in_executor(self._run.pool, timed)
        self._run.transcript.computed(self.me, name, seconds)
        return result
