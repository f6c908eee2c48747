"""What a study's epsilon means for each island: spent before, spent after, in words."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from atoll.privacy.accountant import in_words
from atoll.privacy.ledger import Account, Ledger
from atoll.protocols import protocol_of
from atoll.protocols.base import PrivacyTerms
from atoll.runtime.studies import data_holders
from atoll.study.model import Local, Study


class AccountReview(msgspec.Struct, frozen=True):
    """One island's data set: epsilon spent before and after this study, at ``delta``."""

    island: str
    identity: str
    budget: float | None
    delta: float
    epsilon_before: float
    epsilon_after: float
    covered: bool
    """Whether the budget covers the study; true where none is set."""
    before: str
    after: str


class PrivacyReview(msgspec.Struct, frozen=True):
    """A study's privacy budget."""

    epsilon: float
    delta: float | None
    neighbours: str
    private: bool
    """False where the study names an epsilon but keeps no promise (the paper's own form)."""
    words: tuple[str, ...]
    accounts: tuple[AccountReview, ...]
    accounts_missing: str | None
    """Why nothing is said about single islands, where nothing is."""


def review_privacy(study: Study, local: Local | None = None) -> PrivacyReview | None:
    """None where the study has no epsilon. Ledgers are looked at, never written or made."""
    terms = protocol_of(study.protocol).privacy(study)
    if terms is None:
        return None
    accounts, missing = _accounts(study, terms, local)
    return PrivacyReview(
        terms.epsilon, terms.delta, terms.neighbours, bool(terms.costs), terms.words, accounts, missing
    )


def _accounts(
    study: Study, terms: PrivacyTerms, local: Local | None
) -> tuple[tuple[AccountReview, ...], str | None]:
    if not terms.costs:
        return (), "nothing is promised, so nothing is booked"
    if local is None or local.ledger is None:
        return (), "no ledger is named here: [local] ledger and identities"
    here = [party for party in data_holders(study) if party in local.identities]
    path = Path(local.ledger)
    with Ledger(path if path.is_file() else None) as ledger:
        return tuple(_account(ledger, terms, party, local.identities[party]) for party in here), None


def _account(ledger: Ledger, terms: PrivacyTerms, island: str, identity: str) -> AccountReview:
    before, after = ledger.preview(identity, terms.costs, terms.neighbours)
    budget = before.budget
    delta = budget.delta if budget is not None else (terms.delta or 0.0)
    reached = after.spent.epsilon(delta)
    return AccountReview(
        island,
        identity,
        None if budget is None else budget.epsilon,
        delta,
        before.spent.epsilon(delta),
        reached,
        budget is None or reached <= budget.epsilon * (1.0 + 1e-9),
        _words(before, delta),
        _words(after, delta),
    )


def _words(account: Account, delta: float) -> str:
    epsilon = account.spent.epsilon(delta)
    if epsilon == 0.0:
        return "nothing was spent on it"
    if math.isinf(epsilon):
        return (
            "no pure epsilon holds for it: its budget has delta 0, and a release with a delta was asked for"
        )
    return in_words(epsilon, delta, account.neighbours)
