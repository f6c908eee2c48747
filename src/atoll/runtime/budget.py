"""What a study's epsilon means for each island: spent before, spent after, in words."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from atoll.privacy.ledger import Ledger
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
    epsilon_before: float | None
    """None where no epsilon holds: the budget's delta is 0, and a release has one."""
    epsilon_after: float | None
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
    without_identity: tuple[str, ...]
    """Islands that have a ledger, but whose data set nobody named."""
    accounts_missing: str | None
    """Why nothing is said about single islands, where nothing is."""


def review_privacy(study: Study, local: Local | None = None) -> PrivacyReview | None:
    """None where the study has no epsilon. Nothing is booked, and no ledger made."""
    terms = protocol_of(study.protocol).privacy(study)
    if terms is None:
        return None
    local = local or Local()
    missing = _why_no_accounts(terms, local)
    islands = data_holders(study) if missing is None else ()
    return PrivacyReview(
        terms.epsilon,
        terms.delta,
        terms.neighbours,
        bool(terms.costs),
        terms.words,
        _accounts(terms, local, [island for island in islands if island in local.identities]),
        tuple(island for island in islands if island not in local.identities),
        missing,
    )


def identity_missing(island: str) -> str:
    """What a review says of an island that stands in ``without_identity``."""
    return (
        f"{island}: nobody said which data set its rows are, so nothing can be booked and a run is refused; "
        f'add [local] identities = {{ {island} = "the data set as its owner knows it" }}'
    )


def _why_no_accounts(terms: PrivacyTerms, local: Local) -> str | None:
    if not terms.costs:
        refused = "" if local.ledger is None else ", and an island with a ledger refuses a run"
        return f"nothing is promised, so nothing is booked{refused}"
    if local.ledger is None:
        return "no ledger is named here, and a run is refused without: add [local] ledger and identities"
    return None


def _accounts(terms: PrivacyTerms, local: Local, islands: list[str]) -> tuple[AccountReview, ...]:
    path = None if local.ledger is None else Path(local.ledger)
    with Ledger(path if path is not None and path.is_file() else None) as ledger:
        return tuple(_account(ledger, terms, island, local.identities[island]) for island in islands)


def _account(ledger: Ledger, terms: PrivacyTerms, island: str, identity: str) -> AccountReview:
    before, after = ledger.preview(identity, terms.costs, terms.neighbours)
    budget = before.budget
    # A pure study after releases with a delta: these need one to be told at all.
    delta = budget.delta if budget is not None else terms.delta or after.delta
    reached = after.spent.epsilon(delta)
    return AccountReview(
        island,
        identity,
        None if budget is None else budget.epsilon,
        delta,
        _finite(before.spent.epsilon(delta)),
        _finite(reached),
        budget is None or reached <= budget.epsilon * (1.0 + 1e-9),
        before.in_words(delta),
        after.in_words(delta),
    )


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
