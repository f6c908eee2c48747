"""What a ledger holds: budgets, releases and their debits, and the account that they add up to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.privacy.accountant import Method, Spent, in_words
from atoll.privacy.sensitivity import Neighbours

# Suggested where an owner allowed none.
USUAL_DELTA = "1e-5"
EXACT = "exact"


@dataclass(frozen=True)
class Budget:
    """How much may be spent on a data set in all; delta 0 means pure releases only."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Release:
    """What a run is about to release from one data set: its id, its stages, and what each costs."""

    identity: str
    release_id: str
    stages: Mapping[str, Spent]
    neighbours: Neighbours = "add-remove"
    study: str = ""
    exact: bool = False

    @classmethod
    def exactly(cls, identity: str, release_id: str, study: str = "") -> Release:
        """One without noise."""
        return cls(identity, release_id, {EXACT: Spent()}, study=study, exact=True)


@dataclass(frozen=True)
class Debit:
    """One stage of a release: what it was made from and for, what it cost, and whether it was made."""

    release_id: str
    identity: str
    fingerprint: str
    study: str
    neighbours: Neighbours
    spent: Spent
    made_at: float = 0.0
    stage: str = ""
    kind: Literal["private", "exact"] = "private"
    state: Literal["reserved", "settled"] = "settled"


@dataclass(frozen=True)
class Account:
    """Where a data set stands. ``epsilon`` is what was spent, at ``delta``: the budget's, if there is one.

    What is reserved for releases that are not made yet counts as spent; ``reserved`` says how many they are.
    """

    identity: str
    budget: Budget | None
    neighbours: Neighbours
    spent: Spent
    epsilon: float
    delta: float
    releases: int
    exact: int = 0
    reserved: int = 0
    method: Method | None = None
    exact_allowed: bool = True

    def in_words(self, delta: float) -> str:
        """What was spent, for the person who answers for the data set."""
        return self._private_words(delta) + self._exact_words()

    def _private_words(self, delta: float) -> str:
        epsilon = self.spent.epsilon(delta)
        if epsilon == 0.0:
            return "nothing private was spent on it" if self.exact else "nothing was spent on it"
        if math.isinf(epsilon):
            return (
                "no epsilon holds at delta 0: a release with a delta is among these, and the budget allows "
                f"pure releases only (set-budget --delta {USUAL_DELTA} allows both)"
            )
        return in_words(epsilon, delta, self.neighbours)

    def _exact_words(self) -> str:
        if not self.exact:
            return ""
        many = "1 exact release was" if self.exact == 1 else f"{self.exact} exact releases were"
        return f"; {many} made of it, and what they show no epsilon bounds"


COLUMNS = "release_id, identity, fingerprint, study, neighbours, mu, pure, made_at, stage, kind, state"

_Row = tuple[
    str,
    str,
    str,
    str,
    Neighbours,
    float,
    str,
    float,
    str,
    Literal["private", "exact"],
    Literal["reserved", "settled"],
]


def read_debit(row: _Row) -> Debit:
    release_id, identity, fingerprint, study, neighbours, mu, pure, made_at, stage, kind, state = row
    spent = Spent(mu, tuple(json.loads(pure)))
    return Debit(release_id, identity, fingerprint, study, neighbours, spent, made_at, stage, kind, state)


def count_releases(debits: Iterable[Debit]) -> int:
    return len({debit.release_id for debit in debits})


def compose(debits: Sequence[Debit]) -> tuple[Neighbours, Spent]:
    mixed = len({debit.neighbours for debit in debits}) > 1
    total = Spent.total(
        debit.spent.for_pairs() if mixed and debit.neighbours == "add-remove" else debit.spent
        for debit in debits
    )
    if mixed:
        return "replace", total
    return (debits[0].neighbours if debits else "add-remove"), total


def same_release(one: Debit, other: Debit) -> bool:
    return (one.identity, one.study, one.neighbours, one.spent, one.kind) == (
        other.identity,
        other.study,
        other.neighbours,
        other.spent,
        other.kind,
    )
