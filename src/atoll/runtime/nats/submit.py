"""Submitting studies from a site: through its node where one runs, else through one that this process
runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from atoll.crypto.identity import Identity, PublicIdentity
from atoll.errors import ParameterError, RunError
from atoll.protocols import resolve
from atoll.runtime.nats import requests, subjects
from atoll.runtime.nats.carrier import Carrier
from atoll.runtime.nats.nats_carrier import NatsCarrier
from atoll.runtime.nats.node import Node, Options
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import ACTIVE, RunFolder, State
from atoll.runtime.nats.site import Site
from atoll.runtime.nats.starts import check_fingerprints, party_of
from atoll.study.model import Study

ANSWER_SECONDS = 30.0


async def lookup(carrier: Carrier, fingerprint: str) -> PublicIdentity | None:
    """What the hub's agent has for a fingerprint; not to be believed before it is checked."""
    assert isinstance(carrier, NatsCarrier)
    try:
        found = await carrier.ask("who", subjects.Who(fingerprint=fingerprint), subjects.Parties)
    except RunError:
        return None
    return next((PublicIdentity.from_raw(one.public) for one in found.parties), None)


def carrier_of(site: Site, identity: Identity) -> Callable[[], NatsCarrier]:
    """Makes the site's way to its hub."""
    hub = site.hub()
    return lambda: NatsCarrier(hub.url, identity, hub.ca, name=hub.name)


@contextmanager
def node_of(site: Site, identity: Identity, options: Options) -> Iterator[None]:
    """The site's node: the one that runs, else one in a thread of this process."""
    if site.node_runs():
        yield
        return
    running = _InThread(site, identity, options)
    try:
        yield
    finally:
        running.stop()


class _InThread:
    """A node on an event loop in a thread: the caller may be inside a loop of its own (a notebook)."""

    def __init__(self, site: Site, identity: Identity, options: Options) -> None:
        self._up: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(site, identity, options)), name="atoll-node", daemon=True
        )
        self._thread.start()
        self._up.result()

    async def _main(self, site: Site, identity: Identity, options: Options) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._node = Node(site, identity, carrier_of(site, identity), options)
            work = asyncio.create_task(self._node.run())
            ready = asyncio.create_task(self._node.connected.wait())
            await asyncio.wait({work, ready}, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if work.done():
                work.result()
            self._up.set_result(None)
            await work
        except BaseException as error:
            if not self._up.done():
                self._up.set_exception(error)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._node.stop)
            self._thread.join()


def check_submission(site: Site, study: Study) -> Study:
    """The study as it would be proposed: resolved, pinned, with this site among its parties."""
    study = resolve(study)
    check_fingerprints(study)
    try:
        party_of(study, site.fingerprint)
    except RunError:
        raise ParameterError(
            "this site is no party of the study: none has its fingerprint",
            hint=f"only a party can submit; this site's is {site.fingerprint}",
        ) from None
    return study


def submit(
    site: Site,
    study: Study,
    reason: str,
    *,
    lifetime: int = 0,
    deadline: float = 0.0,
    data_set: str | None = None,
    rehearse: bool = False,
    patience: float = ANSWER_SECONDS,
) -> RunFolder:
    """Hand a study to the site's node, which proposes it to all parties."""
    request = Request(
        does="submit",
        study=check_submission(site, study).canonical(),
        reason=reason,
        lifetime=lifetime,
        deadline=deadline,
        data_set=data_set,
        rehearse=rehearse,
    )
    return RunFolder(site, asked(site, request, patience))


def asked(site: Site, request: Request, seconds: float = ANSWER_SECONDS) -> str:
    """Ask the site's node and wait for its answer: the name of the run."""
    if not site.node_runs():
        raise RunError("no node of this site is running", hint=f"atoll node run{site.option}")
    token = requests.ask(site, request)
    until = time.monotonic() + seconds
    while (answered := requests.answer_of(site, token)) is None:
        if time.monotonic() > until:
            requests.withdraw(site, token)
            raise RunError("the site's node does not answer", hint=f"atoll node status{site.option}")
        time.sleep(0.05)
    if answered.error:
        raise RunError(answered.error, hint=answered.hint or None)
    return answered.run


def wait(folder: RunFolder, timeout: float | None, watch: Callable[[State], None] | None = None) -> State:
    """Until a run has ended, however it did."""
    until = None if timeout is None else time.monotonic() + timeout
    while (state := folder.state()).phase in ACTIVE:
        if watch is not None:
            watch(state)
        if until is not None and time.monotonic() > until:
            silent = ", ".join(state.silent)
            raise RunError(
                f"the run {folder.name} has not ended within {timeout:.0f} seconds"
                + (f"; no answer from {silent}" if silent else f"; it is {state.phase}"),
                hint="it goes on: atoll study status shows it, atoll study cancel ends it",
            )
        time.sleep(0.1)
    return state


def until_told(site: Site, seconds: float = 5.0) -> None:
    """Until every other party has what this site's node has to say, or for a few seconds."""
    until = time.monotonic() + seconds
    while any(site.outbox.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
