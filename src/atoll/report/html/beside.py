"""What the maker of a report may lay beside a result: its own table, its receipt, its ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.errors import ParameterError
from atoll.report.analyses.base import Column, Table

if TYPE_CHECKING:
    from atoll.data.island import Island
    from atoll.privacy.accounts import Account
    from atoll.privacy.ledger import Ledger


class Beside(NamedTuple):
    """All of it; each part may be missing."""

    own: Island | None = None
    """Its own table, for pictures of its own rows."""
    receipt: Sequence[tuple[str, str]] = ()
    """What its receipt says, as names and values."""
    budget: Table | None = None
    """What its ledger says of the data set."""


def receipt_facts(path: Path, digest: str) -> list[tuple[str, str]]:
    """What the receipt of a run says; one of another study is refused."""
    from atoll.runtime.nats.receipts import read_receipt

    read = read_receipt(path)
    if read.header.study != digest:
        raise ParameterError(
            f"{path} is the receipt of another study", hint="give the one of this result's run"
        )
    return [
        ("Run", read.header.run),
        ("Receipt", f"{read.header.party}, {read.end.ended}; its signature and chain are good"),
        ("Receipt's digest", read.end.head),
    ]


def budget_table(ledger: Ledger, digest: str) -> Table | None:
    """The study's own data sets, as the ledger has them; None where it has nothing of the study."""
    rows = [
        (
            after.identity,
            "none" if after.budget is None else f"{after.budget.epsilon:.4g}",
            f"{_delta(after):g}",
            _spent(before, _delta(after)),
            _spent(after, _delta(after)),
            f"{before.exact} → {after.exact}",
        )
        for before, after in ledger.around(digest)
    ]
    names = ("data set", "budget (epsilon)", "at delta", "spent before", "spent after", "exact releases")
    title = "Privacy budget before and after this study"
    return Table("budget", title, tuple(map(Column, names)), rows) if rows else None


def _delta(account: Account) -> float:
    """The budget's delta; without a budget, the one that the studies were made for."""
    return account.told[1] if account.budget is None else account.budget.delta


def _spent(account: Account, delta: float) -> str:
    epsilon = account.spent.epsilon(delta)
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "no bound"
