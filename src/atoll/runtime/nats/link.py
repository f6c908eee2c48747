"""The link of one party: a thread that moves frames, journals what arrives, acknowledges, resends and greets.

Roles compute for minutes; acknowledgements must not wait for them. So the carrier, the channels and the
journal's syncs have an event loop in a thread of their own. Roles hand their messages over
(:meth:`Link.send`) and are told what arrives through the callback that they set; they wait for anything else
by :meth:`Link.when`.

Nothing leaves before the journal's entry of it is on disk, and nothing is acknowledged before it is on disk
itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from atoll import randomness
from atoll.errors import AtollError, Deadlock, PartyLeft
from atoll.runtime import entries
from atoll.runtime.journal import Probe
from atoll.runtime.nats import wire
from atoll.runtime.nats.carrier import Carrier, CarrierClosed
from atoll.runtime.nats.channel import Lane, Payload, Peer
from atoll.runtime.nats.hearing import Hearing
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.sending import NONCE_BYTES, Judge, Timing
from atoll.runtime.nats.state import RunState

CarrierFactory = Callable[[], Carrier]
T = TypeVar("T")


class Crossing(Generic[T]):
    """From one thread into another's loop, which is woken once for all that waits: waking costs a syscall."""

    def __init__(self, call: Callable[[Callable[[], None]], object], take: Callable[[T], None]) -> None:
        self._call, self._take = call, take
        self._items: deque[T] = deque()
        self._woken = False

    def put(self, item: T) -> None:
        """Have it taken there, after whatever was put before."""
        self._items.append(item)
        if not self._woken:
            self._woken = True
            self._call(self._drain)

    def _drain(self) -> None:
        self._woken = False  # first: whatever is put from now on wakes again
        while self._items:
            self._take(self._items.popleft())


class Link(Hearing):
    """One party's connection to all others of the run."""

    def __init__(
        self,
        state: RunState,
        keys: RunKeys,
        carrier: CarrierFactory,
        *,
        timing: Timing,
        judge: Judge | None,
        probe: Probe | None = None,
        chair: int = 0,
        shared: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(state, keys, timing, judge, probe, chair)
        self._make_carrier = carrier
        self._common_loop = shared
        """A loop, in a thread of its own, for the links of many parties."""
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run_loop, name="atoll-link", daemon=True)
        self._begun = threading.Event()
        self._quiet_since = 0.0
        self.roles_wait: Callable[[], bool] = lambda: False

    def __repr__(self) -> str:
        return f"<Link of {self.state.start.me}: {dict(self.counts)}>"

    # ---- from other threads ----

    def start(self) -> None:
        """Connect and greet, in a thread of its own or in the one that it shares."""
        if self._common_loop is None:
            self._thread.start()
        else:
            asyncio.run_coroutine_threadsafe(self._run_shared(), self._common_loop)
        self._begun.wait()

    def stop(self) -> None:
        """End the thread; nothing more leaves."""
        with contextlib.suppress(CarrierClosed):
            self._call(self._stopping.set)
        self._ended.result()
        if self._common_loop is None:
            self._thread.join()

    def send(self, lane: Lane, seq: int, payload: Payload) -> None:
        """Take a role's message; it leaves once the journal's entry of it is on disk."""
        self._taking.put((lane, seq, payload))

    def when(self, holds: Callable[[], bool]) -> Future[None]:
        """Done when ``holds``, which is looked at in the link's thread whenever anything changes."""
        future: Future[None] = Future()
        self._call(self._wait_for, holds, future)
        return future

    def do(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Run one of the coroutines below in the link's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            raise CarrierClosed("the link was closed") from None

    # ---- the thread ----

    def _run_loop(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._fail(error)
        finally:
            self._end()

    async def _run_shared(self) -> None:
        try:
            await self._main()
        except BaseException as error:
            self._fail(error)
        finally:
            self._end()

    def _end(self) -> None:
        self._begun.set()
        self._pool.shutdown(wait=False)
        for _, future in self._waiters:
            if future.set_running_or_notify_cancel():
                future.set_exception(CarrierClosed("the link was closed"))
        self._ended.set_result(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._taking: Crossing[tuple[Lane, int, Payload]]
        self._taking = Crossing(self._call, lambda sent: self._take(*sent))
        self._stopping = asyncio.Event()
        self._begun.set()
        self._carrier = self._make_carrier()
        await self._carrier.connect()
        self._carrier.on_reconnect = self._reconnected
        if self.state.resumed:
            await self._carrier.unshare(self._topic)  # an earlier start cannot, and its frames do not count
        now = time.monotonic()
        for peer in self.state.peers.values():
            peer.last = peer.moved = now
        works = (
            self._read(),
            self._send_all(),
            self._post_all(),
            self._keep_all(),
            self._beat(),
            self._greet(),
        )
        tasks = [asyncio.create_task(work) for work in works]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await self._until(stop, set(tasks))
        except BaseException as error:
            self._fail(error)  # before anybody who waits is let go for another reason
            raise
        finally:
            if self._contents:
                with contextlib.suppress(CarrierClosed, TimeoutError):
                    await asyncio.wait_for(self._carrier.unshare(self._topic), 2)
            await self._carrier.close()
            await _cancelled({*tasks, stop})

    async def _until(self, stop: asyncio.Task[Any], tasks: set[asyncio.Task[None]]) -> None:
        pending: set[asyncio.Task[Any]] = {stop, *tasks}
        while not stop.done():
            ended_, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended_ - {stop}:
                task.result()

    # ---- starts ----

    async def _greet(self) -> None:
        """Ask what others know of this party, before anything is drawn or sent.

        Everybody; but among many a first start asks its circle, which no first start gets past twice.
        """
        asked = self.near if self._is_first else list(self.state.peers.values())
        for peer in (self._own, *asked):
            peer.nonce = randomness.fresh_seed()[:NONCE_BYTES]
        if self.state.resumed and not self.state.finished:
            # Another node of this party says so, before the others hear of this one.
            await self._ask_until(lambda: self._echo > 0, [self._own])
            await asyncio.sleep(self.timing.grace)
        if not self.state.finished:
            await self._ask_until(lambda: self._is_greeted(asked), (self._own, *asked))
        if not self.ready.done():
            self.is_ready = True
            for peer in asked:
                self._post(peer, wire.NEWS)
            await self.flush()  # a message that overtakes the news is from nobody, and is not taken
        if not self.ready.done():
            self.ready.set_result(None)

    async def _ask_until(self, holds: Callable[[], bool], asked: Iterable[Peer]) -> None:
        answered = self.when(holds)
        while not answered.done():
            for peer in asked:
                if not (peer.answered or peer.gone or peer.done):
                    self._post(peer, wire.HELLO, peer.nonce)
            await asyncio.wait({asyncio.wrap_future(answered)}, timeout=self.timing.ask)

    def _is_greeted(self, asked: Iterable[Peer]) -> bool:
        return self._echo > 0 and all(peer.answered or peer.gone or peer.done for peer in asked)

    def _reconnected(self) -> None:
        """Frames may have been lost: ask again."""
        for peer in self.state.peers.values():
            if self.is_ready and not peer.settled:
                self._ask(peer)

    # ---- signs of life, and their absence ----

    async def _beat(self) -> None:
        beaten = 0.0
        while True:
            await asyncio.sleep(self.timing.ask / 2)
            now = time.monotonic()
            await self._clear_contents()
            for peer in self.state.peers.values():
                if self.is_ready and not peer.settled and now > peer.moved + self.timing.ask:
                    self._ask(peer)
            if now > beaten + self.timing.beat:
                beaten = now
                for peer in (*self.near, self._own):
                    if not peer.gone:
                        self._post(peer, wire.NEWS)
            if now < self._echo + 3 * self.timing.beat:  # else it is this party that nobody hears
                await self._look_for_silence(now)
                self._look_for_deadlock(now)

    async def _look_for_silence(self, now: float) -> None:
        for peer in self.near:
            if peer.gone or peer.done or self.done or now < peer.last + self.timing.deadline:
                continue
            if self._judging and self._may_go(peer):
                await self._declare(peer)
            elif self._judge is None or not self._may_go(peer):
                self._fail(silent(peer, self.timing.deadline), concerns_all=True)

    def _look_for_deadlock(self, now: float) -> None:
        """Every role everywhere waits, nothing is on its way, and it has been so for a while."""
        peers = [peer for peer in self.state.peers.values() if not peer.gone]
        self.waiting = self.roles_wait() and all(peer.settled for peer in peers)
        if not (self.circle.whole or self.circle.is_chair):
            return  # the chair hears all
        quiet = self.waiting and all(peer.done or peer.waits for peer in peers)
        self._quiet_since = (self._quiet_since or now) if quiet else 0.0
        # One that died said that it waits when it may have had something to do already: it must say so again.
        since = self._quiet_since + self.timing.beat
        said = all(peer.done or peer.said > since for peer in peers)
        if quiet and said and not self.done and now > since + 2 * self.timing.beat + 1:
            error = Deadlock("every role of every party waits and nothing is on its way")
            self._fail(error, concerns_all=True)

    def _may_go(self, peer: Peer) -> bool:
        judge = self._judge
        return (
            judge is not None
            and peer.place in judge.contributors
            and peer.place != judge.party
            and len(self.state.gone | {peer.place}) <= judge.may_leave
        )

    async def _declare(self, peer: Peer) -> None:
        """This party decides that another has left: on disk first, then told to all."""
        self._leave(peer.place)
        await self._beside(self.journal.sync)
        self._declared = tuple(sorted(self.state.gone))
        for other in self.state.peers.values():
            self._post(other, wire.NEWS)

    # ---- the end ----

    async def finish(self) -> None:
        """After the last role: until all that was sent is where it was sent to, and everybody is done."""
        await self._until_settled()
        self.journal.append(entries.Finished())
        await self._beside(self.journal.sync)
        self.done = True
        others = [peer for peer in self.near if not peer.gone]
        linger = self.timing.linger if self.circle.whole else max(self.timing.linger, self.timing.deadline)
        # After a crash at the very end the others may be gone for good.
        short = self.state.finished and not self.timing.stay
        until = time.monotonic() + (4 * self.timing.ask if short else linger)
        if self.circle.is_chair and not self.circle.whole:
            everybody = asyncio.wrap_future(
                self.when(lambda: all(p.done or p.gone or p.ended for p in others))
            )
            await asyncio.wait({everybody}, timeout=until - time.monotonic())
        self._says_done = True
        all_done = self.when(lambda: not self._waits_for_others(others))
        while not all_done.done() and time.monotonic() < until:
            for peer in others:
                if not (peer.heard and (peer.done or not self.circle.whole)):
                    self._post(peer, wire.DONE)
            await asyncio.wait({asyncio.wrap_future(all_done)}, timeout=self.timing.ask)
            if self.timing.stay:
                until = self._stays_until(until)
        for peer in others:
            self._post(peer, wire.DONE)
        await self.flush()

    def _stays_until(self, until: float) -> float:
        """For as long as whoever is at work may be killed, and come back and ask."""
        sees_all = self.circle.whole or self.circle.is_chair
        asking = self.near if sees_all else [self.state.peers[self.circle.chair]]
        heard = [peer.last for peer in asking if not (peer.done or peer.gone or peer.ended)]
        if heard:
            return max(until, max(heard) + self.timing.linger)
        return min(until, time.monotonic() + 4 * self.timing.ask)  # the last words may be on their way

    async def _until_settled(self) -> None:
        """Until all that was sent has arrived, but at those who are lost: their silence has no end."""
        peers = self.state.peers.values()
        settled = self.when(lambda: all(peer.settled for peer in peers))
        while not (settled.done() or all(peer.settled or self._is_lost(peer) for peer in peers)):
            await asyncio.wait({asyncio.wrap_future(settled)}, timeout=self.timing.ask)
        if settled.done():
            settled.result()  # raises where the link was closed

    def _is_lost(self, peer: Peer) -> bool:
        """Whether it is silent, and nobody is left to say that it is gone: whoever judges has ended."""
        judge = self._judge
        if judge is None or self._judging or time.monotonic() < peer.last + self.timing.deadline:
            return False
        judging = self.state.peers.get(judge.party)
        return self._may_go(peer) and judging is not None and (judging.done or judging.gone)

    def _waits_for_others(self, others: list[Peer]) -> bool:
        """Whether somebody may still need this party; among many the chair says when nobody does."""
        if self.circle.whole or self.circle.is_chair:
            return not all(peer.ended or (peer.done and peer.heard) for peer in others)
        chair = self.state.peers[self.circle.chair]
        return not (chair.done or chair.gone or chair.ended)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Parties that did not say in time that they are done too."""
        sees_all = self.circle.whole or self.circle.is_chair
        others = self.state.peers.values() if sees_all else self.near
        if not (sees_all or self._waits_for_others(list(others))):
            return ()  # the chair has said it of all
        return tuple(peer.name for peer in others if not (peer.done or peer.gone))

    @property
    def awaited(self) -> tuple[str, ...]:
        """Those of them that may yet come back and ask: the others said that they ended by an error."""
        ended = {peer.name for peer in self.state.peers.values() if peer.ended}
        return tuple(name for name in self.unconfirmed if name not in ended)

    async def abort(self, error: BaseException, role: int) -> None:
        """End the run for everybody: they are told the error's class and the role, and no text."""
        kind = type(error).__name__ if isinstance(error, AtollError) else "RoleFailed"
        self.journal.append(entries.Aborted(kind, role))
        await self._beside(self.journal.sync)
        for peer in self.state.peers.values():
            self._post(peer, wire.ABORT, b"", kind, role)
        await self.flush()

    async def flush(self) -> None:
        """Until all words have left, or for a while."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._posted.wait(), 2 * self.timing.ask)


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    """Until all have ended; a library on the way may swallow the first request."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


def silent(peer: Peer, seconds: float) -> PartyLeft:
    """The error for a party that was not heard for too long; its role is one of that party's."""
    error = PartyLeft(
        f"nothing was heard from {peer.name} for {seconds:.0f} seconds",
        hint=f"ask {peer.name} whether its node runs; then start a new run",
    )
    error.missing = (peer.name,)
    return error
