"""One party's part of a run across machines: all its roles, in this process, from its journal if there is
one."""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from atoll import __version__, secure_sums
from atoll.codec import Decoder, Message
from atoll.errors import AtollError, PartyLeft, ResumeRefused, RoleFailed, RunError
from atoll.protocols import protocol_of
from atoll.protocols.base import Learned, Protocol, resolve, with_helpers
from atoll.protocols.own import Own
from atoll.runtime.engine import Progress
from atoll.runtime.entries import Header
from atoll.runtime.journal import FORMAT, Journal, Probe
from atoll.runtime.nats.keys import RunKeys
from atoll.runtime.nats.link import CarrierFactory, Link
from atoll.runtime.nats.network import NatsNetwork, Tap
from atoll.runtime.nats.sending import Judge, Timing
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.nats.state import RunState
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address
from atoll.study.model import Study
from atoll.threads import cores, one_blas_thread


@dataclass(frozen=True)
class PartyOutcome:
    """What one party has of a finished run."""

    learned: Mapping[Address, Learned]
    transcript: Transcript
    """Of this party's roles."""
    missing: tuple[str, ...] = ()
    """Parties that left during the run, as the study allows."""
    unconfirmed: tuple[str, ...] = ()
    """Parties that did not say in time that they are done too."""
    awaited: tuple[str, ...] = ()
    """Those of them that may yet come back: the others said that they ended by an error."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Frames sent, resent, doubled and refused."""
    starts: int = 1
    """How often this party's node was started for this run."""


async def run_party(
    start: RunStart,
    own: Own,
    folder: Path,
    carrier_factory: CarrierFactory,
    *,
    deadline: float = Timing().deadline,
    progress: Progress | None = None,
    tap: Tap | None = None,
    timing: Timing | None = None,
    protocol: Protocol | None = None,
    durable: bool = True,
    probe: Probe | None = None,
    links: asyncio.AbstractEventLoop | None = None,
) -> PartyOutcome:
    """Run all roles of ``start.me`` to their end, going on from the journal in ``folder`` if there is one.

    ``deadline``: seconds for which another party may be silent. ``durable=False`` leaves syncs out: a power
    failure may then lose the run, a crash of the process does not. ``probe`` is for tests: it is told of
    every point at which a crash would matter. ``links``: a loop that runs in another thread, for a process
    that holds many parties; else the party's link has a thread of its own. Errors: :class:`ResumeRefused` if
    this folder cannot be gone on from (nothing has left; running again does not help), any other
    :class:`AtollError` if the run ended for everybody.
    """
    protocol = protocol or protocol_of(start.study.protocol)
    study = resolve(protocol, start.study)
    if study.digest != start.study.digest:
        raise ResumeRefused(
            "the study means something else here", hint="use the version that it was approved with"
        )
    party = _Party(start, with_helpers(protocol, study), study, own, progress, tap)
    loop = asyncio.get_running_loop()
    header = await loop.run_in_executor(None, header_of, start, own)
    journal = Journal(folder, start.journal_key, header, durable=durable, probe=probe)
    try:
        timing = (timing or Timing())._replace(deadline=deadline)
        return await party.run(journal, carrier_factory, timing, probe, links)
    finally:
        journal.close()


class _Party:
    """One start of one party's node."""

    def __init__(
        self,
        start: RunStart,
        protocol: Protocol,
        study: Study,
        own: Own,
        progress: Progress | None,
        tap: Tap | None,
    ) -> None:
        self.start, self.protocol, self.study, self.own = start, protocol, study, own
        self.progress, self.tap = progress, tap
        self.transcript = Transcript()

    async def run(
        self,
        journal: Journal,
        carrier: CarrierFactory,
        timing: Timing,
        probe: Probe | None,
        links: asyncio.AbstractEventLoop | None = None,
    ) -> PartyOutcome:
        state = RunState(self.start, journal)
        judge = judge_of(self.protocol, self.study)
        chair = chair_of(self.protocol, self.study)
        keys = RunKeys(self.start)
        link = Link(state, keys, carrier, timing=timing, judge=judge, probe=probe, chair=chair, shared=links)
        decoder = Decoder[Message](self.protocol.all_messages(self.study))
        with ThreadPoolExecutor(cores(), "atoll-step") as pool, one_blas_thread:
            nets = [
                NatsNetwork(
                    state.addresses[place],
                    state,
                    link,
                    decoder,
                    pool,
                    self.transcript,
                    progress=self.progress,
                    tap=self.tap,
                )
                for place in state.mine
            ]
            link.roles_wait = lambda: all(net.waits_for or net.ended for net in nets)
            link.start()
            try:
                learned = await self._all(link, nets)
            finally:
                await asyncio.get_running_loop().run_in_executor(None, link.stop)
        return PartyOutcome(
            learned,
            self.transcript,
            tuple(state.parties[place] for place in sorted(state.gone)),
            link.unconfirmed,
            link.awaited,
            dict(link.counts),
            journal.number,
        )

    async def _all(self, link: Link, nets: list[NatsNetwork]) -> dict[Address, Learned]:
        failure, ready = asyncio.wrap_future(link.failure), asyncio.wrap_future(link.ready)
        for future in (failure, ready):  # one of them is raised below; the other need not be asked for
            future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        tasks: dict[Address, asyncio.Future[Any]] = {}
        try:
            await _until_done(failure, {ready})
            tasks = {net.me: asyncio.ensure_future(self._one(net)) for net in nets}
            await _until_done(failure, set(tasks.values()))
            await _until_done(failure, {asyncio.wrap_future(link.do(link.finish()))})
        except BaseException as error:
            cause = link.cause or error  # what a link that ended broke on its way is not the cause
            if isinstance(cause, AtollError):
                await self._ended(link, cause)
            raise cause from None if cause is not error else error.__cause__
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            failure.cancel()
        return {address: task.result() for address, task in tasks.items()}

    async def _one(self, net: NatsNetwork) -> Learned:
        """One role, whose errors carry its name."""
        own = self.own if net.me.role in self.protocol.data_roles else replace(self.own, island=None)
        try:
            learned = await self.protocol.roles[net.me.role](net, self.study, own, net.record)
        except AtollError as error:
            error.role = error.role or str(net.me)
            raise
        except Exception as error:
            # The text of an unexpected error may quote data; the traceback has it for whoever may see that.
            raise RoleFailed(str(net.me), f"an unexpected {type(error).__name__}") from error
        net.ended = True
        if self.tap is not None:
            self.tap.opened(net.me, tuple(learned.outputs))
        return learned

    async def _ended(self, link: Link, error: AtollError) -> None:
        """Tell the others, unless it was they who told, or unless nothing may leave."""
        # If the link is closed or the hub is away, silence will tell them.
        with contextlib.suppress(RunError, TimeoutError):
            if link.told:
                await asyncio.wait_for(asyncio.wrap_future(link.do(link.flush())), 5)
            elif not (isinstance(error, ResumeRefused) or (error is link.cause and not link.concerns_all)):
                work = link.abort(error, self._role_of(link, error))
                await asyncio.wait_for(asyncio.wrap_future(link.do(work)), 5)

    def _role_of(self, link: Link, error: AtollError) -> int:
        """Whose error it was, or who is missing."""
        roles = {str(address): place for place, address in enumerate(link.state.addresses)}
        role = roles.get(error.role or "", link.state.mine[0])
        if isinstance(error, PartyLeft) and error.missing:
            role = next(i for i, a in enumerate(link.state.addresses) if a.party == error.missing[0])
        return role


async def _until_done(failure: asyncio.Future[None], works: set[asyncio.Future[Any]]) -> None:
    """Until all works are done; the first that fails, or the failure, is raised."""
    while works:
        done, works = await asyncio.wait({failure, *works}, return_when=asyncio.FIRST_COMPLETED)
        if failure in done:
            failure.result()
        for one in done:
            one.result()
        works.discard(failure)


def judge_of(protocol: Protocol, study: Study) -> Judge | None:
    """Who decides that a contributor has left; None where nobody may leave."""
    if protocol.may_leave is not None:
        may_leave = protocol.may_leave(study)
    else:
        may_leave = secure_sums.may_leave(study) if protocol.uses_sum else 0
    if not may_leave or not protocol.judge:
        return None
    names = [party.name for party in study.parties]
    contributors = {a.party for role in protocol.data_roles for a in study.who(role)}
    places = frozenset(names.index(name) for name in contributors)
    return Judge(names.index(study.the(protocol.judge).party), may_leave, places)


def chair_of(protocol: Protocol, study: Study) -> int:
    """Who hears all where many take part: a party that exchanges messages with most of them anyway."""
    names = [party.name for party in study.parties]
    singles = [role for role in protocol.roles if role in protocol.single_roles and study.who(role)]
    role = protocol.judge or next(iter(singles), "")
    return names.index(study.the(role).party) if role and study.who(role) else 0


def header_of(start: RunStart, own: Own) -> Header:
    """What a journal of this run belongs to."""
    data = "" if own.island is None else own.island.digest()
    return Header(FORMAT, start.run_id, start.study.digest, start.me, data, versions())


@cache
def versions() -> dict[str, str]:
    """What the last bits of a product may depend on."""
    from threadpoolctl import (
        threadpool_info,  # it looks for every library that is loaded, which only runs need
    )

    # NumPy's own: which others are loaded depends on what the process did before.
    blas = sorted(
        f"{lib.get('internal_api')} {lib.get('version')} {lib.get('architecture')}"
        for lib in threadpool_info()
        if lib.get("user_api") == "blas" and "numpy" in str(lib.get("filepath"))
    )
    return {
        "atoll": __version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "scipy": metadata.version("scipy"),
        "blas": "; ".join(blas),
    }
