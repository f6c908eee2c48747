"""What a ledger holds: budgets, releases and their debits, and the account that they add up to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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


class Stated(NamedTuple):
    """What a study says of its own privacy; no delta: pure."""

    epsilon: float
    delta: float | None


@dataclass(frozen=True)
class Release:
    """What a run is about to release from one data set: its id, its stages, and what each costs."""

    identity: str
    release_id: str
    stages: Mapping[str, Spent]
    neighbours: Neighbours = "add-remove"
    study: str = ""
    exact: bool = False
    stated: Stated | None = None
    """The study's own epsilon and delta, for those who read the ledger; nothing is computed from them."""

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
    stated: Stated | None = None


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
    stated: tuple[Stated | None, ...] = ()
    """What the studies of the releases said, one for each."""

    @property
    def own_delta(self) -> float | None:
        """The delta that all releases' studies were made for, where it is one and the same."""
        deltas = {None if one is None else one.delta or 0.0 for one in self.stated}
        return deltas.pop() if len(deltas) == 1 else None

    @property
    def told(self) -> tuple[float, float]:
        """Epsilon and delta as people know them: at the studies' own delta, else at the budget's."""
        delta = self.delta if self.own_delta is None else self.own_delta
        return self.spent.epsilon(delta), delta

    def explained(self) -> list[str]:
        """Why these numbers are not the sum of the studies' epsilons, and not the same at every delta."""
        epsilon, delta = self.told
        said = []
        alone = [one.epsilon for one in self.stated if one is not None]
        if len(alone) > 1 and self.spent.mu > 0 and self.own_delta is not None:
            each = ", ".join(f"{one:.4g}" for one in alone)
            said.append(
                f"{self.identity}: its {len(alone)} releases have epsilon {each} each by itself, and "
                f"{epsilon:.4g} together, not {sum(alone):.4g}: what adds up is the square of each release's "
                f"signal over its noise, and epsilon is read off that sum (at delta {delta:g})"
            )
        if self.budget is not None and self.releases and self.budget.delta not in (delta, 0.0):
            said.append(
                f"{self.identity}: the budget is kept at delta {self.budget.delta:g}, where the same noise "
                f"counts as epsilon {self.epsilon:.4g}: a smaller delta is a stronger promise, for which the "
                "same noise has a larger epsilon"
            )
        return said

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


COLUMNS = (
    "release_id, identity, fingerprint, study, neighbours, mu, pure, made_at, stage, kind, state, "
    "epsilon, delta"
)

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
    float | None,
    float | None,
]


def read_debit(row: _Row) -> Debit:
    release_id, identity, fingerprint, study, neighbours, mu, pure, made_at, stage, kind, state, *said = row
    spent = Spent(mu, tuple(json.loads(pure)))
    stated = None if said[0] is None else Stated(said[0], said[1])
    return Debit(
        release_id, identity, fingerprint, study, neighbours, spent, made_at, stage, kind, state, stated
    )


def stated_by(debits: Iterable[Debit]) -> tuple[Stated | None, ...]:
    """What the study of each release said, in the order of the releases."""
    return tuple({debit.release_id: debit.stated for debit in debits}.values())


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
