"""``atoll receipt``: what a run's signed records say, and whether they agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import JsonOption
from atoll.errors import RunError

if TYPE_CHECKING:
    from atoll.runtime.nats.receipts import Receipt

app = typer.Typer(cls=Group, help="Check the signed record that every run leaves at each site.")


@app.command(cls=Command)
def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECEIPT...", help="Receipts of one run, from one or more parties.", show_default=False
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Check receipts: signatures, chains and, of several parties, each against the others.

    Needs no network and no keys. A receipt that was altered, or that
    contradicts another party's, is an error.
    """
    from atoll.runtime.nats.receipts import contradictions, read_receipt

    receipts = [read_receipt(path) for path in files]
    wrong = contradictions(receipts)
    if as_json:
        console.print_json({"receipts": [_facts(one) for one in receipts], "contradictions": wrong})
    elif not wrong:
        _show(receipts)
    if wrong:
        raise RunError(
            f"the receipts contradict each other: {'; '.join(wrong)}", hint="ask these parties why"
        )


def _facts(receipt: Receipt) -> dict[str, Any]:
    out = [entry for entry in receipt.entries if entry.did == "sent"]
    opened = {entry.role: list(entry.names) for entry in receipt.entries if entry.did == "opened"}
    return {
        "party": receipt.header.party,
        "run": receipt.header.run,
        "study": receipt.header.study,
        "ended": receipt.end.ended,
        "error": receipt.end.error,
        "missing": list(receipt.end.missing),
        "sent": len(out),
        "bytes": sum(entry.bytes for entry in out),
        "received": sum(entry.did == "received" for entry in receipt.entries),
        "opened": opened,
    }


def _show(receipts: list[Receipt]) -> None:
    from rich.markup import escape

    from atoll.report.units import size

    screen = console.out()
    first = receipts[0].header
    rehearsal = "a rehearsal of " if first.rehearse else ""
    screen.print(f"run {first.run[:16]}, {rehearsal}study {first.study[:16]}")
    made = console.table(
        "party", "ended", "sent", "bytes", "received", "was given", right=("sent", "bytes", "received")
    )
    for receipt in receipts:
        facts = _facts(receipt)
        given = [f"{role}: {', '.join(names) or 'nothing'}" for role, names in facts["opened"].items()]
        made.add_row(
            escape(facts["party"]),
            " ".join(filter(None, (facts["ended"], facts["error"]))),
            str(facts["sent"]),
            size(facts["bytes"]),
            str(facts["received"]),
            escape("\n".join(given)),
        )
    screen.print(made)
    missing = [name for name in first.parties if name not in {one.header.party for one in receipts}]
    agree = "Every signature and chain is good"
    if len(receipts) > 1:
        agree += ", and what one sent the other received"
    screen.print(f"[green]{agree}.[/]")
    if missing:
        screen.print(f"[dim]not looked at: {escape(', '.join(missing))}[/]")
