"""A site's node: takes proposals, lets the site's owner decide, runs what all approved, and goes on after a
crash.

Everything that the node knows is in the site's folder; killed at any moment and started again, it goes on.
Its own process reads no table and plays no role: each run has a worker process, which is started until it
says how the run ended. Others learn that a study was declined, and why as a class of reasons: what the
policy says stays here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from atoll.codec import Message
from atoll.crypto.identity import Identity, PublicIdentity, read_notice
from atoll.errors import AtollError, MessageError, ParameterError, PrivacyError, RunError
from atoll.runtime.nats import requests, runs
from atoll.runtime.nats.bundles import collected, is_collected, listeners, read_collected
from atoll.runtime.nats.carrier import Carrier
from atoll.runtime.nats.connection import HubUnreachable
from atoll.runtime.nats.control import Control, Known
from atoll.runtime.nats.owned import chosen_data_set, table_of
from atoll.runtime.nats.policy import Policy, read_policy, refusals
from atoll.runtime.nats.receipts import ReceiptTap
from atoll.runtime.nats.requests import Answered, Request
from atoll.runtime.nats.runs import Answer, RunFolder, State, every_run, find_run, plain
from atoll.runtime.nats.site import DataSet, Site, write_json
from atoll.runtime.nats.starts import (
    LIFETIME,
    Approval,
    Approvals,
    Cancel,
    Decline,
    Ended,
    Opened,
    Proposal,
    Proposed,
    propose,
    read_answer,
    read_approval,
    read_proposal,
    read_study,
    sign,
)
from atoll.runtime.nats.workers import Workers
from atoll.runtime.studies import data_holders
from atoll.study.model import Study

log = logging.getLogger("atoll.node")

TICK: Final = 0.2
TELL_EVERY: Final = 10.0
"""Seconds between two words about the progress of a run."""
AFTERWARDS: Final = 7 * 24 * 3600
"""Seconds for which others are told how a run ended."""


@dataclass(frozen=True)
class Options:
    """How a node was started."""

    data_sets: dict[str, DataSet] | None = None
    """None: those of its last start."""
    approve: tuple[str, ...] = ()
    """Digests of studies that are approved unattended, one run each."""
    deadline: float = 600.0
    """Seconds for which another party may be silent in a run."""
    say: Callable[[str, State], None] = lambda _, __: None
    """Told what happens: a word for the event, and the run."""
    review: Callable[[Proposed, State], str] = lambda _, __: ""
    """The review of a proposed study, as text for the site's owner."""
    passphrase: str | None = field(default=None, repr=False)
    lookup: Callable[[Carrier, str], Awaitable[PublicIdentity | None]] | None = None


class Node:
    """The node of one site, until it is stopped."""

    def __init__(
        self, site: Site, identity: Identity, carrier: Callable[[], Carrier], options: Options | None = None
    ) -> None:
        self.site = site
        self.identity = identity
        self.options = options or Options()
        self._make_carrier = carrier
        self._workers = Workers(self.options.passphrase)
        self._stopping = asyncio.Event()
        self._told: dict[str, float] = {}
        self._control: Control
        self.connected = asyncio.Event()
        if self.options.data_sets is not None:
            write_json(site.folder / "data.json", self.options.data_sets)

    async def run(self) -> None:
        """Work until :meth:`stop`. Workers are ended with it; their runs go on with the next node."""
        with self.site.locked():
            carrier = self._make_carrier()
            try:
                await self._connect(carrier)
                lookup = self.options.lookup
                known = Known(self.site, None if lookup is None else lambda f: lookup(carrier, f))
                self._control = Control(self.site, self.identity, carrier, known)
                carrier.on_reconnect = self._control.hurry
                self.connected.set()
                await self._work()
            finally:
                self._workers.stop()
                await carrier.close()

    def stop(self) -> None:
        """End :meth:`run`, from its own loop."""
        self._stopping.set()

    async def _connect(self, carrier: Carrier) -> None:
        wait = 1.0
        while not self._stopping.is_set():
            try:
                await carrier.connect()
                return
            except HubUnreachable as error:
                log.warning("the hub does not answer: trying again")
                self.options.say(f"hub away: {error.message}", _NO_RUN)
                await _sleep(self._stopping, wait)
                wait = min(2 * wait, 30.0)

    async def _work(self) -> None:
        log.info("the node of %s is up", self.identity.fingerprint[:16])
        # Both wait for the hub, where it is away; the site's owner and the workers must not.
        talk = {
            asyncio.create_task(self._control.receive(self._take)),
            asyncio.create_task(self._control.send_all(TICK)),
        }
        stop = asyncio.create_task(self._stopping.wait())
        try:
            while not stop.done():
                for one in talk:
                    if one.done():
                        one.result()
                self._look_at_requests()
                for folder, state in list(every_run(self.site)):
                    if state.phase in runs.ACTIVE:
                        self._go_on(folder, state)
                    elif folder.has_key:
                        self._see_off(folder, state)
                await asyncio.wait({stop, *talk}, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancelled({*talk, stop})

    # ---- what arrives ----

    def _take(self, opened: Opened) -> bool:
        """One control message; whether its sender need not send it again."""
        message = opened.message
        if opened.signer.fingerprint in revoked(self.site):
            raise MessageError("a control message is signed with a revoked key")
        if isinstance(message, Proposal):
            return self._take_proposal(opened)
        folder = RunFolder(self.site, message.proposal.hex()[:12])  # type: ignore[attr-defined]
        if not (folder.path / "state.json").exists():
            return False  # its proposal is still on the way
        state, proposed = folder.state(), folder.proposed()
        if isinstance(message, Approval):
            given = read_approval(proposed, opened)
            if folder.take(given):
                self._note(folder, state, given.approval.party, Answer(runs.APPROVED))
        elif isinstance(message, Approvals):
            for given in read_collected(proposed, opened):
                folder.take(given)
            approved = dict.fromkeys(state.parties, Answer(runs.APPROVED))
            state.answers = {**approved, **state.answers}
            folder.save(state)
        elif isinstance(message, Decline):
            declined = read_answer(proposed, opened, Decline)
            self._note(
                folder, state, declined.party, Answer(runs.DECLINED, plain(declined.words or declined.why))
            )
            if state.phase != runs.RUNNING:
                if state.mine and is_collected(state):
                    self._tell(state, opened.signed, state.expires)
                self._end(folder, state, runs.DECLINED, words=f"{declined.party} declined")
        elif isinstance(message, Cancel):
            read_answer(proposed, opened, Cancel)
            self._end(folder, state, runs.CANCELLED, words=f"{state.submitter} cancelled it")
        elif isinstance(message, Ended):
            ended = read_answer(proposed, opened, Ended)
            answer = Answer(plain(ended.state), plain(ended.error), plain(ended.role), ended.missing)
            self._note(folder, state, ended.party, answer)
        return True

    def _take_proposal(self, opened: Opened) -> bool:
        proposed = read_proposal(opened)
        me = proposed.party_of(self.identity.fingerprint).name
        folder, state = RunFolder.make(self.site, proposed, me, mine=False)
        if not folder.review.exists():
            self._judge(folder, state, proposed)
        return True

    def _note(self, folder: RunFolder, state: State, party: str, answer: Answer) -> None:
        if state.answers.get(party) != answer:
            state.answers = {**state.answers, party: answer}
            folder.save(state)
            log.info("run %s: %s %s", folder.name, party, answer.state)
            self.options.say(f"{party} {answer.state}", state)

    # ---- decisions ----

    def _judge(self, folder: RunFolder, state: State, proposed: Proposed) -> None:
        """A new proposal: the policy first, then the review, then whoever decides."""
        try:
            policy = read_policy(self.site.policy_file)
            state.refused = tuple(self._refusals(policy, proposed.study, state))
        except AtollError as error:
            state.refused = (error.message,)
            policy = Policy()
        self._review(folder, state, proposed)
        log.info("run %s: proposed by %s, study %s", folder.name, state.submitter, state.digest[:16])
        self.options.say("proposed", state)
        if state.refused:
            self._decline(folder, state, "policy", "")
        elif self._is_preapproved(policy, state.digest):
            self._approve(folder, state, None)

    def _review(self, folder: RunFolder, state: State, proposed: Proposed) -> None:
        """What the site's owner reads. What cannot be reviewed is refused, and does not end the node."""
        try:
            text = self.options.review(proposed, state)
        except Exception as error:
            text = f"there is no review of this study here: {type(error).__name__}"
            log.exception("run %s: no review", folder.name)
            state.refused = (*state.refused, text)
        folder.save(state)
        folder.review.write_text(text, encoding="utf-8")
        folder.review.chmod(0o600)

    def _refusals(self, policy: Policy, study: Study, state: State) -> list[str]:
        chosen = None
        if state.me in data_holders(study) and not state.rehearse:
            chosen = self._only_data_set(state)
        return refusals(policy, study, state.me, table_of(study, state.me, chosen))

    def _only_data_set(self, state: State) -> DataSet | None:
        try:
            return chosen_data_set(self.site, state.data_set)
        except ParameterError:
            return None  # chosen, and looked at again, when somebody approves

    def _is_preapproved(self, policy: Policy, digest: str) -> bool:
        """Whether this digest was named beforehand, and has not been used up."""
        if digest in policy.approve.digests and policy.approve.repeat:
            return True
        if digest not in (*self.options.approve, *policy.approve.digests):
            return False
        used = self.site.folder / "used.json"
        spent = _read_list(used)
        if digest in spent:
            return False
        write_json(used, [*spent, digest])
        return True

    def _approve(self, folder: RunFolder, state: State, data_set: str | None) -> None:
        if state.phase != runs.PROPOSED:
            raise ParameterError(
                f"run {folder.name} is {state.phase}", hint="only a proposed run is approved"
            )
        if state.refused:
            raise PrivacyError(
                f"the policy of this site refuses it: {'; '.join(state.refused)}",
                hint=f"change {self.site.policy_file}, and ask for the study to be submitted again",
            )
        proposed = folder.proposed()
        state.data_set = data_set
        if state.me in data_holders(proposed.study):
            chosen_data_set(self.site, data_set)
            again = self._refusals(read_policy(self.site.policy_file), proposed.study, state)
            if again:
                raise PrivacyError(f"the policy of this site refuses it: {'; '.join(again)}")
        state.deadline = state.deadline if state.mine else self.options.deadline
        given = folder.approve(self.identity)
        state.phase = runs.APPROVED
        folder.save(state)
        if not (state.mine and is_collected(state)):  # it goes along with all the others
            self._tell(state, given.signed, state.expires)
        log.info("run %s: approved here", folder.name)
        self.options.say("approved here", state)

    def _decline(self, folder: RunFolder, state: State, why: str, words: str) -> None:
        if state.phase != runs.PROPOSED:
            raise ParameterError(
                f"run {folder.name} is {state.phase}", hint="only a proposed run is declined"
            )
        said = Decline(bytes.fromhex(state.id), state.me, why, words)
        self._tell(state, sign(self.identity, said), state.expires)
        whose = "the policy of this site refuses it" if why == "policy" else "declined here"
        self._end(folder, state, runs.DECLINED, words=whose)

    def _cancel(self, folder: RunFolder, state: State) -> None:
        if not state.mine:
            raise ParameterError(f"run {folder.name} was submitted elsewhere", hint="atoll node decline")
        if state.phase not in runs.ACTIVE:
            raise ParameterError(f"run {folder.name} is {state.phase} already")
        self._tell(
            state, sign(self.identity, Cancel(bytes.fromhex(state.id), state.me)), time.time() + AFTERWARDS
        )
        self._end(folder, state, runs.CANCELLED, words="cancelled here")

    def _submit(self, request: Request) -> str:
        proposed = propose(
            self.identity,
            read_study(request.study),
            request.reason,
            lifetime=request.lifetime or LIFETIME,
            rehearse=request.rehearse,
        )
        me = proposed.party_of(self.identity.fingerprint).name
        folder, state = RunFolder.make(self.site, proposed, me, mine=True)
        state.deadline = request.deadline or self.options.deadline
        state.data_set = request.data_set
        state.refused = tuple(self._refusals(read_policy(self.site.policy_file), proposed.study, state))
        self._review(folder, state, proposed)
        try:
            self._approve(folder, state, request.data_set)  # whoever submits approves
        except AtollError as error:
            self._end(folder, state, runs.DECLINED, words=error.message)
            raise
        self._tell(state, proposed.signed, state.expires)
        self.options.say("submitted", state)
        return folder.name

    def _look_at_requests(self) -> None:
        for token, request in requests.waiting(self.site):
            try:
                answered = Answered(run=self._do(request))
            except AtollError as error:
                answered = Answered(error=error.message, hint=error.hint or "")
            requests.answer(self.site, token, answered)

    def _do(self, request: Request) -> str:
        if request.does == "submit":
            return self._submit(request)
        folder, state = find_run(self.site, request.run)
        if request.does == "approve":
            self._approve(folder, state, request.data_set)
        elif request.does == "decline":
            self._decline(folder, state, "owner", request.words)
        else:
            self._cancel(folder, state)
        return folder.name

    def _tell(self, state: State, signed: bytes, until: float) -> None:
        """To whoever is to hear it, until they have it."""
        for fingerprint in listeners(state):
            self._control.send(fingerprint, signed, until)

    # ---- runs ----

    def _go_on(self, folder: RunFolder, state: State) -> None:
        if state.phase == runs.RUNNING:
            self._look_after(folder, state)
        elif time.time() > state.expires:
            # Where answers are collected, only the submitter knows who is missing.
            missing = state.silent if state.mine or not is_collected(state) else ()
            words = f"no answer from {', '.join(missing)}" if missing else "not approved in time"
            self._end(folder, state, runs.EXPIRED, words=words, missing=missing)
        elif state.phase == runs.APPROVED and folder.is_approved_by_all():
            if state.mine and is_collected(state):
                proposed = folder.proposed()
                told = collected(self.identity, proposed, folder.given(proposed))
                self._tell(state, told, state.expires)
            self._begin(folder, state)

    def _begin(self, folder: RunFolder, state: State) -> None:
        try:
            start = folder.start(self.identity)
        except RunError as error:
            self._end(folder, state, runs.FAILED, error=type(error).__name__, words=error.message)
            return
        state.run, state.phase, state.begun = start.run_id.hex(), runs.RUNNING, time.time()
        folder.save(state)
        log.info("run %s: all have approved, run id %s", folder.name, state.run[:16])
        self.options.say("all approved: running", state)
        self._look_after(folder, state)

    def _look_after(self, folder: RunFolder, state: State) -> None:
        end = folder.end()
        if end is not None:
            words = end.words if not end.hint else f"{end.words} ({end.hint})"
            self._end(
                folder, state, end.state, error=end.error, words=words, role=end.role, missing=end.missing
            )
        elif self._workers.gave_up(folder.path):
            words = f"the worker fails at once, each time (atoll node logs {folder.name} says more)"
            self._end(folder, state, runs.FAILED, error="RunError", words=words)
        elif self._workers.keep(folder.path):
            state.starts += 1
            folder.save(state)
            if state.starts > 1:
                log.info("run %s: worker started again (%d)", folder.name, state.starts)
                self.options.say("resumed", state)
        elif time.monotonic() > self._told.get(folder.name, time.monotonic() - 1) + TELL_EVERY:
            self._told[folder.name] = time.monotonic()
            self.options.say("progress", state)
        self._told.setdefault(folder.name, time.monotonic())

    def _end(self, folder: RunFolder, state: State, phase: str, **how: Any) -> None:
        if state.phase not in runs.ACTIVE:
            return
        began = state.phase == runs.RUNNING
        if phase in (runs.CANCELLED, runs.DECLINED):
            self._workers.end(folder.path)
        state.phase, state.ended = phase, time.time()
        for name, value in how.items():
            setattr(state, name, value)
        folder.save(state)
        if began and phase != runs.FINISHED and not folder.receipt.exists():
            self._write_receipt(folder, phase)
        log.info("run %s: %s", folder.name, phase)
        self._control.drop(
            lambda message: _is_about(message, state) and isinstance(message, Proposal | Approval | Approvals)
        )
        if began:
            said = Ended(
                bytes.fromhex(state.id), state.me, phase, state.error, state.role, tuple(state.missing)
            )
            self._tell(state, sign(self.identity, said), time.time() + AFTERWARDS)
        self.options.say(phase, state)

    def _see_off(self, folder: RunFolder, state: State) -> None:
        """A worker stays for parties that are not done; then nothing is left that could open the run."""
        if self._workers.is_staying(folder.path):
            return
        over = all(state.answers.get(party, _NONE).state in runs.ENDED for party in state.others)
        late = time.time() > state.ended + AFTERWARDS or self._workers.gave_up(folder.path)
        if state.phase == runs.FINISHED and not (over or late):
            self._workers.keep(folder.path)  # it was killed while it stayed
            return
        self._workers.end(folder.path)
        folder.erase()
        log.info("run %s: journal erased", folder.name)

    def _write_receipt(self, folder: RunFolder, phase: str) -> None:
        """Of a run whose worker was ended before it could write its own."""
        try:
            ReceiptTap(folder.start(self.identity), folder.receipt.parent).finish(self.identity, phase)
        except (AtollError, OSError) as error:
            log.warning("run %s: no receipt: %s", folder.name, type(error).__name__)


_NO_RUN = State(
    id="", study="", digest="", protocol="", me="", submitter="", reason="", made=0, expires=0, parties={}
)


_NONE = Answer("")


def _is_about(message: Message, state: State) -> bool:
    if isinstance(message, Proposal):
        return False
    return bool(message.proposal.hex() == state.id)  # type: ignore[attr-defined]


def revoked(site: Site) -> set[str]:
    """Keys that are not to be trusted any more, by the notices that this site has accepted."""
    return {
        PublicIdentity.from_raw(read_notice(path.read_bytes()).old).fingerprint
        for path in site.notices.glob("revoked-*.notice")
    }


def _read_list(path: Any) -> list[str]:
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=list[str])
    except FileNotFoundError:
        return []


async def _cancelled(tasks: set[asyncio.Task[Any]]) -> None:
    """Until all have ended; a library on the way may swallow the first request."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


async def _sleep(stopping: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return
