"""One run of one party, in a process of its own: ``python -m atoll.runtime.nats.worker FOLDER``.

The site's node starts it, and starts it again until it says itself how the run ended (``end.json``). Killed
at any moment, it goes on from its journal; at the end it destroys what could open the journal. The passphrase
of the identity, where there is one, comes on standard input.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from atoll.crypto.identity import Identity
from atoll.errors import AtollError
from atoll.protocols import protocol_of
from atoll.protocols.base import Circumstances, Learned
from atoll.protocols.own import Own
from atoll.runtime.execute import booked, joined
from atoll.runtime.nats import kept
from atoll.runtime.nats.connection import HubUnreachable
from atoll.runtime.nats.nats_carrier import NatsCarrier
from atoll.runtime.nats.owned import own_of
from atoll.runtime.nats.party import PartyOutcome, run_party
from atoll.runtime.nats.receipts import ReceiptTap
from atoll.runtime.nats.runs import FAILED, FINISHED, End, Progress, RunFolder, State
from atoll.runtime.nats.sending import Timing
from atoll.runtime.nats.site import Site, write_json
from atoll.runtime.nats.starts import RunStart
from atoll.runtime.nats.workers import TRY_AGAIN
from atoll.runtime.result import Result, write_whole
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address

log = logging.getLogger("atoll.worker")

_EVERY: Final = 0.5
"""Seconds between two looks at the progress."""
_LINGER: Final = 5.0
"""Seconds for which a result waits for the others to be done too; the worker stays for them longer."""


def main(folder: Path, passphrase: str | None) -> int:
    """Run or go on with the run in ``folder``; 0 once how it ended is written down."""
    site = Site(folder.parent.parent)
    run = RunFolder(site, folder.name)
    state = run.state()
    write_whole(folder / "worker.pid", f"{os.getpid()}\n".encode())
    identity = site.identity(passphrase)
    start = run.start(identity)
    tap = ReceiptTap(start, run.receipt.parent)
    try:
        asyncio.run(_run(site, run, state, identity, start, tap))
    except (HubUnreachable, OSError) as error:
        log.warning("cannot go on for now: %s", type(error).__name__)
        return TRY_AGAIN
    except AtollError as error:
        if run.end() is None:
            _fail(run, identity, tap, error)
    run.erase()  # nobody needs anything of it any more
    return 0


async def _run(
    site: Site, run: RunFolder, state: State, identity: Identity, start: RunStart, tap: ReceiptTap
) -> None:
    hub = site.hub()
    own = own_of(site, identity, start, state.data_set)

    def carrier() -> NatsCarrier:
        return NatsCarrier(hub.url, identity, hub.ca, name=hub.name)

    async def party(timing: Timing, tap: ReceiptTap | None) -> PartyOutcome:
        return await run_party(
            start,
            own,
            run.journal,
            carrier,
            deadline=state.deadline,
            progress=_Meter(run, start),
            tap=tap,
            timing=timing,
        )

    try:
        outcome = await party(Timing(linger=_LINGER), tap)
        if run.end() is None:
            _finish(run, identity, start, own, tap, outcome)
        if outcome.awaited:
            # One that is killed later on comes back and asks what this party has of it.
            await party(Timing(linger=state.deadline, stay=True), None)
    finally:
        if own.ledger is not None:
            own.ledger.close()


def _finish(
    run: RunFolder, identity: Identity, start: RunStart, own: Own, tap: ReceiptTap, outcome: PartyOutcome
) -> None:
    outputs = joined(outcome.learned)
    if not start.rehearse:
        _keep_shares(run, identity, start, outcome.learned)
        if outputs:
            _save(run, start, own, outcome, outputs)
    tap.finish(identity, FINISHED, missing=outcome.missing)
    run.set_end(End(FINISHED, missing=outcome.missing, released=tuple(sorted(outputs))))
    log.info("finished")


def _save(run: RunFolder, start: RunStart, own: Own, outcome: PartyOutcome, outputs: dict[str, Any]) -> None:
    said = booked(start.study, {start.me: own})
    result = Result(start.study, outputs, outcome.transcript, outputs.get("certificate"), said)
    result.save(run.result)


def _keep_shares(
    run: RunFolder, identity: Identity, start: RunStart, learned: Mapping[Address, Learned]
) -> None:
    """What a role keeps for later steps stands apart from results: it is a secret."""
    for address, one in learned.items():
        share = one.inherent.get("share")
        if isinstance(share, bytes):
            kept.keep(run.site.kept, identity.public, start.run_id.hex()[:16], address.role, share)


def _fail(run: RunFolder, identity: Identity, tap: ReceiptTap, error: AtollError) -> None:
    kind, missing = type(error).__name__, tuple(getattr(error, "missing", ()))
    tap.finish(identity, FAILED, error=kind, missing=missing)
    run.set_end(End(FAILED, kind, error.message, error.hint or "", error.role or "", missing))
    log.warning("failed: %s at %s", kind, error.role or "no role of its own")


class _Meter:
    """Writes the progress file; called with every message."""

    def __init__(self, run: RunFolder, start: RunStart) -> None:
        self._path = run.path / "progress.json"
        self._begun = time.monotonic()
        self._last = 0.0
        self._first_round: int | None = None
        self._of_rounds = _expected_rounds(start)

    def __call__(self, what: str, transcript: Transcript) -> None:
        now = time.monotonic()
        if now - self._last < _EVERY:
            return
        self._last = now
        if self._first_round is None:
            self._first_round = transcript.rounds
        done = transcript.rounds - self._first_round
        left = None
        if self._of_rounds > transcript.rounds and done > 0:
            left = (now - self._begun) * (self._of_rounds - transcript.rounds) / done
        write_json(
            self._path,
            Progress(
                what,
                transcript.messages,
                transcript.bytes,
                transcript.rounds,
                self._of_rounds,
                left,
                time.time(),
            ),
        )


def _expected_rounds(start: RunStart) -> int:
    """How many messages wait for each other in this study, where its protocol can say."""
    protocol = protocol_of(start.study.protocol)
    columns = start.study.parameters.get("columns")
    count = len(columns) if columns is not None else 10  # rounds hardly ever depend on it
    try:
        if protocol.forecast is not None:
            return protocol.forecast(start.study, Circumstances(count))[0].rounds
        return 0 if protocol.expect is None else protocol.expect(start.study, count).rounds
    except (AtollError, ValueError, ArithmeticError):
        return 0


class JsonLines(logging.Formatter):
    """One JSON object a line: when, how grave, from where, what. Never a traceback, which may quote data."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "from": record.name,
            "says": record.getMessage(),
            "process": record.process,
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return msgspec.json.encode(line).decode()


def log_to(path: Path) -> logging.Handler:
    """Send Atoll's log lines to a file, readable by its owner alone."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("atoll")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler


def _end_with_the_node() -> None:
    """The node holds the other end of standard input: when it is gone, so is this worker, and the next node's
    worker goes on from the journal."""
    sys.stdin.buffer.read()
    log.info("the node is gone")
    os._exit(TRY_AGAIN)


def begin(place: Path, passphrase: str | None) -> None:
    """The whole process: it ends with the run, or with its node."""
    log_to(place / "worker.log")
    threading.Thread(target=_end_with_the_node, daemon=True).start()
    try:
        code = main(place, passphrase)
    except BaseException as error:
        log.error("unexpected", exc_info=error)
        raise
    sys.exit(code)


if __name__ == "__main__":
    begin(Path(sys.argv[1]), sys.stdin.readline().rstrip("\n") if "--passphrase" in sys.argv else None)
