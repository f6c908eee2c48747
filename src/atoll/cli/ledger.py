"""``atoll ledger``: what was spent on each data set, and what still may be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption

if TYPE_CHECKING:
    from atoll.privacy.ledger import Account, Ledger

app = typer.Typer(cls=Group, help="Make a ledger, look at privacy budgets, and set them.")

LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Use this ledger, not the site's.", show_default=False),
]
DataSetArgument = Annotated[
    str, typer.Argument(metavar="DATA_SET", help="The data set as its owner knows it.", show_default=False)
]


@app.command(cls=Command)
def init(ledger: LedgerOption = None) -> None:
    """Make the ledger of this site. This is done once."""
    from atoll.privacy.ledger import Ledger, site_ledger

    Ledger.create(ledger).close()
    console.out().print(f"made {ledger or site_ledger()}", soft_wrap=True)


@app.command(cls=Command)
def show(ledger: LedgerOption = None, as_json: JsonOption = False) -> None:
    """Show what was spent on each data set, and its budget."""
    from rich.markup import escape

    with _opened(ledger) as book:
        accounts = book.show()
    if as_json:
        console.print_json([_plain(account) for account in accounts])
        return
    right = ("spent", "at delta", "budget", "its delta", "releases", "reserved", "exact")
    made = console.table("data set", *right, right=right, title="Privacy spent (epsilon)")
    for account in accounts:
        epsilon, delta = account.told
        made.add_row(
            escape(account.identity),
            f"{epsilon:.4g}" if math.isfinite(epsilon) else "no bound",
            f"{delta:g}",
            "none" if account.budget is None else f"{account.budget.epsilon:.4g}",
            "" if account.budget is None else f"{account.budget.delta:g}",
            str(account.releases),
            str(account.reserved),
            str(account.exact) if account.exact_allowed else f"{account.exact}, refused",
        )
    console.out().print(made)
    # Below the table: in a column of it, a sentence would be one word wide on a narrow screen.
    told: dict[str, list[str]] = {}
    for account in accounts:
        told.setdefault(account.in_words(account.told[1]), []).append(account.identity)
    for words, identities in told.items():
        console.out().print(escape(f"• {', '.join(identities)}: {words}"))
    for account in accounts:
        for sentence in account.explained():
            console.out().print(escape(f"• {sentence}"))


@app.command("set-budget", cls=Command)
def set_budget(
    identity: DataSetArgument,
    epsilon: Annotated[
        float, typer.Option("--epsilon", metavar="NUMBER", help="How much may be spent in all.")
    ],
    delta: Annotated[
        float, typer.Option("--delta", metavar="NUMBER", help="0 allows only releases without a delta.")
    ] = 0.0,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--no-exact",
            metavar=FLAG,
            help="Whether studies without an epsilon may use it. They may, unless you say no.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerOption = None,
) -> None:
    """Set how much may be spent on a data set. What was spent stays spent."""
    with _opened(ledger) as book:
        book.set_budget(identity, epsilon, delta, exact=exact)


@app.command("give-back", cls=Command)
def give_back(identity: DataSetArgument, ledger: LedgerOption = None) -> None:
    """Give back what stopped runs had reserved and did not spend.

    A run that still goes on has to reserve again, or ends.
    """
    with _opened(ledger) as book:
        stages = book.give_back_all(identity)
    console.out().print(f"gave back {stages} reserved stage(s)")


@app.command(cls=Command)
def history(identity: DataSetArgument, ledger: LedgerOption = None, as_json: JsonOption = False) -> None:
    """Show which exact studies were run on a data set.

    A study that differs from one of them by a few rows, columns or components is
    refused: one result less the other would be about the few.
    """
    from atoll.privacy.history import words_of
    from atoll.privacy.ledger import iso_time

    with _opened(ledger) as book:
        known = [words_of(one) for one in book.history.studies(identity)]
    if as_json:
        console.print_json(known)
        return
    right = ("rows", "columns", "components")
    made = console.table("run", "study", "analysis", *right, right=right, title="Exact studies")
    for one in known:
        made.add_row(
            iso_time(one["made_at"]),
            one["study"][:12],
            one["analysis"],
            f"{one['rows']:,}",
            str(one["columns"]),
            "" if one["components"] is None else str(one["components"]),
        )
    console.out().print(made)


@app.command(cls=Command)
def allow(
    identity: DataSetArgument,
    digest: Annotated[
        str, typer.Argument(metavar="DIGEST", help="The study's digest, whole.", show_default=False)
    ],
    ledger: LedgerOption = None,
) -> None:
    """Let a study run although it differs from an earlier one by a few.

    Whoever has both results then learns about the few rows, columns or
    components in which they differ.
    """
    from atoll.errors import ParameterError

    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ParameterError("a digest is 64 digits and letters a to f", hint="atoll review says it")
    with _opened(ledger) as book:
        book.history.allow(identity, digest)


@app.command(cls=Command)
def moved(ledger: LedgerOption = None) -> None:
    """Say that a ledger was moved here, not copied.

    This is refused while the ledger is still where it was.
    """
    from atoll.privacy import ledger_file

    ledger_file.moved(ledger or ledger_file.site_ledger())


@app.command(cls=Command)
def export(ledger: LedgerOption = None) -> None:
    """Print all budgets and all spending as JSON, for an auditor."""
    with _opened(ledger) as book:
        print(book.export())


def _opened(path: Path | None) -> Ledger:
    """The site's ledger, or the named one; never made by looking."""
    from atoll.privacy.ledger import Ledger, site_ledger

    return Ledger(path or site_ledger())


def _plain(account: Account) -> dict[str, Any]:
    epsilon, delta = account.told
    return {
        "identity": account.identity,
        "epsilon": _finite(epsilon),
        "delta": delta,
        "budget": None if account.budget is None else account.budget.epsilon,
        "budget_delta": None if account.budget is None else account.budget.delta,
        "epsilon_at_budget_delta": _finite(account.epsilon),
        "stated": [None if one is None else one._asdict() for one in account.stated],
        "method": account.method,
        "neighbours": account.neighbours,
        "releases": account.releases,
        "reserved": account.reserved,
        "exact": account.exact,
        "exact_allowed": account.exact_allowed,
        "in_words": account.in_words(delta),
        "explained": account.explained(),
    }


def _finite(epsilon: float) -> float | None:
    """JSON has no infinity."""
    return epsilon if math.isfinite(epsilon) else None
