"""What the pages show, as plain data, read from the site's folder by the functions that the commands use.

Nothing that may change is kept: whoever looks again reads again, so a page and ``atoll node status`` never
disagree.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.crypto.identity import words
from atoll.errors import AtollError, ParameterError
from atoll.privacy.ledger import Ledger
from atoll.report import steps
from atoll.report.analyses.base import Column, Table
from atoll.report.html.reviewed import review_sections
from atoll.report.html.section import Section
from atoll.report.runs import far, said_by
from atoll.report.units import duration, size
from atoll.review.study import review_study
from atoll.runtime.nats.owned import chosen_data_set, columns_of, data_sets, local_of
from atoll.runtime.nats.receipts import read_receipt
from atoll.runtime.nats.runs import ACTIVE, APPROVED, FINISHED, PROPOSED, RUNNING, RunFolder, State, every_run
from atoll.runtime.nats.site import Site
from atoll.runtime.studies import data_holders

if TYPE_CHECKING:
    from atoll.privacy.accounts import Account
    from atoll.study.model import Study

MOST_ENTRIES = 1000
"""Of a receipt, on a page; the file has them all."""


class Bar(NamedTuple):
    """How much of something there is; ``of`` is None where nobody knows."""

    at: float
    of: float | None
    words: str


class Shown(NamedTuple):
    """One run, as lists show it."""

    name: str
    study: str
    submitter: str
    reason: str
    phase: str
    rehearse: bool
    proposed: str
    ended: str
    words: str
    parties: Sequence[tuple[str, str, str]]
    """Name, roles, and what it says."""
    progress: Bar | None
    facts: Sequence[tuple[str, str]]
    has_result: bool
    has_receipt: bool
    has_own: bool
    """Whether this site brought a table, of which a report may show rows."""


class Overview(NamedTuple):
    """The first page."""

    site: str
    fingerprint: str
    hub: str
    node_runs: bool
    start: str
    """The command that starts the node."""
    waiting: Sequence[Shown]
    active: Sequence[Shown]
    ended: Sequence[Shown]
    accounts: Sequence[Spending]
    no_ledger: str


class Spending(NamedTuple):
    """One data set of the ledger."""

    identity: str
    bar: Bar
    releases: int
    exact: int
    words: Sequence[str]


class Reviewed(NamedTuple):
    """One run's page."""

    shown: Shown
    digest: str
    keys: Table
    sections: Sequence[Section]
    missing: str
    """Why there is no review, where there is none."""
    text: str
    """As the node wrote it down when the proposal came."""
    data_sets: Sequence[str]
    refused: Sequence[str]


def overview(site: Site) -> Overview:
    """Everything at once; short, because it is read twice a second."""
    runs = [_shown(folder, state) for folder, state in every_run(site)]
    runs.reverse()  # the latest first
    accounts, no_ledger = _accounts(site)
    return Overview(
        site=str(site.folder),
        fingerprint=site.fingerprint,
        hub=site.hub().url if site.hub_file.exists() else "",
        node_runs=site.node_runs(),
        start=f"atoll node run{site.option}",
        waiting=[one for one in runs if one.phase == PROPOSED],
        active=[one for one in runs if one.phase in (APPROVED, RUNNING)],
        ended=[one for one in runs if one.phase not in ACTIVE],
        accounts=accounts,
        no_ledger=no_ledger,
    )


@lru_cache(maxsize=1024)
def _proposed(site: Path, name: str) -> Study:
    """A proposal never changes: its signatures are checked once."""
    return RunFolder(Site(site), name).proposed().study


def _shown(folder: RunFolder, state: State) -> Shown:
    study = _proposed(folder.site.folder, folder.name)
    roles = {party.name: ", ".join(party.roles) for party in study.parties}
    return Shown(
        name=folder.name,
        study=state.study,
        submitter=state.submitter,
        reason=state.reason,
        phase=state.phase,
        rehearse=state.rehearse,
        proposed=moment(state.made),
        ended=moment(state.ended) if state.ended else "",
        words=far(folder, state),
        parties=[(name, roles[name], said_by(name, state) or "no answer yet") for name in state.parties],
        progress=_bar(folder) if state.phase == RUNNING else None,
        facts=_progress(folder, state),
        has_result=state.phase == FINISHED and folder.result.exists(),
        has_receipt=folder.receipt.exists(),
        has_own=state.me in data_holders(study) and not state.rehearse,
    )


def _bar(folder: RunFolder) -> Bar:
    progress = folder.progress()
    if progress is None:
        return Bar(0, None, "starting")
    if not progress.of_rounds:
        return Bar(progress.rounds, None, f"round {progress.rounds}")
    at = min(progress.rounds, progress.of_rounds)
    return Bar(at, progress.of_rounds, f"round {at} of {progress.of_rounds}")


def _progress(folder: RunFolder, state: State) -> list[tuple[str, str]]:
    """What the run did so far, and how long it will take."""
    progress = folder.progress()
    if progress is None or state.phase not in (RUNNING, FINISHED):
        return []
    role, _, step = progress.what.rpartition(": ")
    found = [("Messages", f"{progress.messages:,}"), ("Bytes", size(progress.bytes))]
    if state.phase == RUNNING:
        left = "not known" if progress.left is None else f"about {duration(progress.left)}"
        doing = steps.plain(step)
        found += [("Role", role or "none"), ("Step", doing), ("Time left", left)]
    return found


def moment(seconds: float) -> str:
    """When, in this machine's own time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


# ---- the ledger ----


def _accounts(site: Site) -> tuple[list[Spending], str]:
    if not site.ledger.is_file():
        return [], f"This site has no ledger yet: atoll ledger init --ledger {site.ledger}"
    try:
        with Ledger(site.ledger) as book:
            return [_spending(account) for account in book.show()], ""
    except AtollError as error:
        return [], " ".join(filter(None, (error.message, error.hint)))


def _spending(account: Account) -> Spending:
    if account.budget is None:
        epsilon, delta = account.told
        bar = Bar(epsilon, None, f"epsilon {epsilon:.4g} spent at delta {delta:g}; no budget is set")
    else:
        epsilon, delta = account.epsilon, account.budget.delta
        of = account.budget.epsilon
        bar = Bar(epsilon, of, f"epsilon {epsilon:.4g} of {of:.4g} spent, at delta {delta:g}")
    said = [account.in_words(account.told[1]), *account.explained()]
    return Spending(account.identity, bar, account.releases, account.exact, said)


# ---- one run ----


def reviewed(site: Site, folder: RunFolder) -> Reviewed:
    """What its owner reads before deciding, and after."""
    state = folder.state()
    proposed = folder.proposed()
    try:
        sections, missing = _review(site, folder, state), ""
    except AtollError as error:
        sections, missing = [], error.message
    known = {fingerprint: name for name, fingerprint in site.partners().items()}
    keys = [
        (
            party.name,
            "this site" if party.name == state.me else known.get(party.fingerprint or "", "not compared yet"),
            words(party.fingerprint or "").replace("-", " "),
        )
        for party in proposed.study.parties
    ]
    names = (Column("party"), Column("known here as"), Column("key in words"))
    return Reviewed(
        shown=_shown(folder, state),
        digest=state.digest,
        keys=Table("keys", "Who takes part", names, keys),
        sections=sections,
        missing=missing,
        text=folder.review.read_text(encoding="utf-8") if folder.review.exists() else "",
        data_sets=tuple(data_sets(site)) if state.me in data_holders(proposed.study) else (),
        refused=state.refused,
    )


def _review(site: Site, folder: RunFolder, state: State) -> list[Section]:
    study = folder.proposed().study
    try:
        chosen = chosen_data_set(site, state.data_set)
    except ParameterError:
        chosen = None
    local = local_of(site, study, state.me, chosen)
    return review_sections(review_study(study, columns_of(study, state.me, chosen), local))


def receipt_section(folder: RunFolder) -> Section:
    """What the signed record of a run says; one that was altered is an error."""
    receipt = read_receipt(folder.receipt)
    rows = [
        (place, one.did, one.kind or ", ".join(one.names) or "nothing", one.role, one.peer, one.bytes)
        for place, one in enumerate(receipt.entries[:MOST_ENTRIES], 1)
    ]
    names = (Column("#", "{}"), Column("did"), Column("what"), Column("role"), Column("with"))
    table = Table("entries", "Entries", (*names, Column("bytes", "{:,}")), rows)
    facts = [
        ("Run", receipt.header.run),
        ("Study's digest", receipt.header.study),
        ("Party", receipt.header.party),
        ("Ended", " ".join(filter(None, (receipt.end.ended, receipt.end.error)))),
        ("Digest", receipt.end.head),
        ("File", str(folder.receipt)),
    ]
    said = ["Its signature and its chain are good: nothing in it was altered since the run ended."]
    if len(receipt.entries) > MOST_ENTRIES:
        said.append(f"The first {MOST_ENTRIES:,} of {len(receipt.entries):,} entries; the file has them all.")
    return Section("receipt", "Receipt", said, facts=facts, tables=[table])
