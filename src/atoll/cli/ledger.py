"""``atoll ledger``: what was spent on each data set, and what still may be."""

from __future__ import annotations

import math
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from atoll.privacy.ledger import Account, Ledger

app = typer.Typer(help="Look at privacy budgets, and set them.", no_args_is_help=True)

LedgerArgument = Annotated[
    Path, typer.Argument(metavar="LEDGER", help="The ledger file.", show_default=False)
]


@app.command()
def show(ledger: LedgerArgument, as_json: JsonOption = False) -> None:
    """Say what was spent on each data set, and its budget."""
    from rich.markup import escape

    with _opened(ledger) as book:
        accounts = book.show()
    if as_json:
        console.print_json([_plain(account) for account in accounts])
        return
    right = ("epsilon spent", "at delta", "budget", "releases")
    made = console.table("data set", *right, "in words", right=right, title="Privacy spent")
    for account in accounts:
        facts = _plain(account)
        made.add_row(
            escape(account.identity),
            f"{account.epsilon:.4g}" if math.isfinite(account.epsilon) else "no bound",
            f"{account.delta:g}",
            "none" if account.budget is None else f"{account.budget.epsilon:.4g}",
            str(account.releases),
            escape(facts["in_words"]),
        )
    console.out().print(made)


@app.command("set-budget")
def set_budget(
    ledger: LedgerArgument,
    identity: Annotated[
        str,
        typer.Argument(metavar="DATA_SET", help="The data set as its owner knows it.", show_default=False),
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="How much may be spent in all.")],
    delta: Annotated[float, typer.Option("--delta", help="0 allows pure releases only.")] = 0.0,
) -> None:
    """Set how much may be spent on a data set in all; what was spent before stays spent."""
    from atoll.privacy.ledger import Ledger

    with Ledger(ledger) as book:
        book.set_budget(identity, epsilon, delta)


@app.command()
def export(ledger: LedgerArgument) -> None:
    """Print budgets and all debits as JSON, for an auditor."""
    with _opened(ledger) as book:
        print(book.export())


@contextmanager
def _opened(path: Path) -> Iterator[Ledger]:
    """A ledger that is there: looking must not make one."""
    from atoll.privacy.ledger import Ledger

    if not path.is_file():
        raise ParameterError(f"there is no ledger {path}", hint="atoll ledger set-budget makes one")
    with Ledger(path) as book:
        yield book


def _plain(account: Account) -> dict[str, Any]:
    return {
        "identity": account.identity,
        "epsilon": account.epsilon if math.isfinite(account.epsilon) else None,  # JSON has no infinity
        "delta": account.delta,
        "budget": None if account.budget is None else account.budget.epsilon,
        "neighbours": account.neighbours,
        "releases": account.releases,
        "in_words": account.in_words(account.delta),
    }
