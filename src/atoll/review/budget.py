"""What a study means for each island's account: spent before, spent after, in words; and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from atoll.errors import BudgetExceeded
from atoll.privacy.accountant import Spent
from atoll.privacy.accounts import Release
from atoll.privacy.ledger import Ledger
from atoll.privacy.ledger_file import command
from atoll.protocols import protocol_of
from atoll.protocols.base import PrivacyTerms
from atoll.runtime.studies import data_holders, ledger_of
from atoll.study.model import Local, Study


class AccountReview(msgspec.Struct, frozen=True):
    """One island's data set: epsilon spent before and after this study, at ``delta``."""

    island: str
    identity: str
    budget: float | None
    delta: float
    epsilon_before: float | None
    """None where no epsilon holds: the budget's delta is 0, and a release has one."""
    epsilon_after: float | None
    covered: bool
    """Whether the budget covers the study; without a budget nothing is."""
    before: str
    after: str
    refusal: str | None = None
    """Why the island will refuse, where it will."""


class PrivacyReview(msgspec.Struct, frozen=True):
    """A study's privacy budget."""

    epsilon: float
    delta: float | None
    neighbours: str
    private: bool
    """False where the study names an epsilon but keeps no promise (the paper's own form)."""
    words: tuple[str, ...]
    accounts: tuple[AccountReview, ...]
    without_identity: tuple[str, ...]
    """Islands that have a ledger, but whose data set nobody named."""
    accounts_missing: str | None
    """Why nothing is said about single islands, where nothing is."""
    refusals: tuple[str, ...] = ()
    """What else this site refuses."""
    colluders: int | None = None
    """How many owners may leave out their noise, or use it against the others; None: all, or no promise."""


def review_privacy(study: Study, local: Local | None = None) -> PrivacyReview | None:
    """None where the study has no epsilon. Nothing is booked, and no ledger made."""
    terms = protocol_of(study.protocol).privacy(study)
    if terms is None:
        return None
    local = local or Local()
    path = ledger_of(study, local)
    missing = _why_no_accounts(terms, local, path)
    islands = data_holders(study) if missing is None else ()
    return PrivacyReview(
        terms.epsilon,
        terms.delta,
        terms.neighbours,
        bool(terms.costs),
        terms.words,
        _accounts(terms, local, path, [island for island in islands if island in local.identities]),
        tuple(island for island in islands if island not in local.identities),
        missing,
        tuple(_refusals(terms, local)),
        terms.colluders,
    )


def review_exact(study: Study, local: Local | None = None) -> tuple[str, ...]:
    """What a study without an epsilon means for the accounts of its data sets."""
    local = local or Local()
    path = ledger_of(study, local)
    if protocol_of(study.protocol).privacy(study) is not None or path is None:
        return ()
    if not path.is_file():
        return (_no_ledger(path),)
    with Ledger(path) as ledger:
        named = [island for island in data_holders(study) if island in local.identities]
        return tuple(_exact_words(ledger, island, local.identities[island]) for island in named)


def _exact_words(ledger: Ledger, island: str, identity: str) -> str:
    refused = ledger.refusal(Release.exactly(identity, ""))
    if refused is not None:
        return f"{island} will refuse: {refused.message}"
    before = ledger.account(identity)
    so_far = before.in_words(before.delta)
    return f"{island} (data set {identity!r}): booked as an exact release; so far, {so_far}"


def will_refuse(privacy: PrivacyReview) -> tuple[str, ...]:
    """Why a run would end before anything leaves an island, island by island."""
    accounts = (f"{a.island}: {a.refusal}" for a in privacy.accounts if a.refusal)
    return (*accounts, *(f"the island will refuse: {sentence}" for sentence in privacy.refusals))


def identity_missing(island: str) -> str:
    """What a review says of an island that stands in ``without_identity``."""
    return (
        f"{island}: nobody said which data set its rows are, so nothing can be booked and a run is refused; "
        f'add [local] identities = {{ {island} = "the data set as its owner knows it" }}'
    )


def _why_no_accounts(terms: PrivacyTerms, local: Local, path: Path | None) -> str | None:
    if not terms.costs:
        refused = "" if local.ledger is None else ", and an island with a ledger refuses a run"
        return f"nothing is promised, so nothing is booked{refused}"
    return None if path is not None and path.is_file() else _no_ledger(path)


def _no_ledger(path: Path | None) -> str:
    return f"there is no ledger {path}, and a run is refused without: {command(path, 'init')}"


def _refusals(terms: PrivacyTerms, local: Local) -> Sequence[str]:
    least = local.min_colluders
    if not least or (terms.costs and (terms.colluders is None or terms.colluders >= least)):
        return ()
    withstood = terms.colluders if terms.costs else 0
    return (
        f"this site asks for noise against at least {least} colluding owner(s), the study has {withstood}",
    )


def _accounts(
    terms: PrivacyTerms, local: Local, path: Path | None, islands: Sequence[str]
) -> tuple[AccountReview, ...]:
    if not islands:
        return ()
    with Ledger(path) as ledger:
        return tuple(_account(ledger, terms, island, local.identities[island]) for island in islands)


def _account(ledger: Ledger, terms: PrivacyTerms, island: str, identity: str) -> AccountReview:
    planned = Release(identity, "", {"": Spent.of(terms.costs)}, terms.neighbours)
    before, after = ledger.preview(planned)
    budget, refused = before.budget, ledger.refusal(planned)
    # A pure study after releases with a delta: these need one to be told at all.
    delta = budget.delta if budget is not None else terms.delta or after.delta
    return AccountReview(
        island,
        identity,
        None if budget is None else budget.epsilon,
        delta,
        _finite(before.spent.epsilon(delta)),
        _finite(after.spent.epsilon(delta)),
        refused is None,
        before.in_words(delta),
        after.in_words(delta),
        None if refused is None else _in_short(refused),
    )


def _in_short(refused: Exception) -> str:
    if isinstance(refused, BudgetExceeded):
        return "over budget: the island will refuse"
    return f"the island will refuse: {refused}"


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
