"""``atoll review``: what a study means, before anybody approves it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import FLAG, JsonOption, StudyArgument
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.protocols.base import Forecast
    from atoll.review.study import Review


def review(
    study: StudyArgument,
    columns: Annotated[
        int | None,
        typer.Option(
            "--columns",
            metavar="N",
            help="How many columns the tables have. Else they are counted.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="N",
            min=1,
            help="How many rows each island has. Else they are counted.",
            show_default=False,
        ),
    ] = None,
    latency: Annotated[
        float,
        typer.Option("--latency", metavar="MS", min=0, help="Milliseconds on the way to another party."),
    ] = 20.0,
    bandwidth: Annotated[
        float, typer.Option("--bandwidth", metavar="MBIT", min=0.001, help="Mbit/s to another party.")
    ] = 1000.0,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", metavar=FLAG, help="Print text for an impact assessment."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say in plain words who learns what in a study, and what it costs.

    Reads the study file. To count columns, it also reads the first line of a
    table. It runs nothing.
    """
    # So little is computed that threads which wait for work would be most of it; read when NumPy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from atoll.protocols import protocol_of
    from atoll.report.assessment import as_markdown
    from atoll.review.study import Guess, review_file
    from atoll.runtime.studies import data_holders, open_study

    if markdown and as_json:
        raise ParameterError("--markdown and --json cannot be used together", hint="choose one of them")
    file = open_study(study)
    if not (markdown or as_json):  # before the costs are counted, which takes a moment
        _heading(file.study.name, protocol_of(file.study.protocol).title, file.study.digest, console.out())
    known = () if rows is None else (rows,) * len(data_holders(file.study))
    reviewed = review_file(file, columns, Guess(known, latency / 1000, bandwidth * 125_000))
    if as_json:
        console.print_json(reviewed.to_plain())
    elif markdown:
        print(as_markdown(reviewed), end="")
    else:
        _rest(reviewed, console.out())


def show(review: Review, screen: Console) -> None:
    """The review as tables."""
    _heading(review.name, review.title, review.digest, screen)
    _rest(review, screen)


def _heading(name: str, title: str, digest: str, screen: Console) -> None:
    from rich.markup import escape

    screen.print(f"\n[bold]{escape(name)}[/]  {escape(title)}")
    screen.print(f"[dim]digest {digest}[/]")


def _rest(review: Review, screen: Console) -> None:
    from rich.markup import escape

    from atoll.report.assessment import way_of_running

    screen.print(f"{escape(way_of_running(review))}\n")
    for part in (_learning(review), _releases(review)):
        screen.print(part)
        screen.print()
    for title, sentences in (
        ("What is done to tables first", review.table),
        ("Guard rails", review.guards),
    ):
        if sentences:
            screen.print(f"[bold]{title}[/]")
            screen.print("\n".join(escape(f"• {sentence}") for sentence in sentences) + "\n")
    screen.print("[bold]What this rests on[/]")
    screen.print(escape(review.adversary))
    if review.protection:
        screen.print(escape(review.protection))
    if review.trust:
        scope = f" (for {review.summed} only)" if review.summed else ""
        screen.print(escape(f"{review.secure_sum}{scope}: {review.trust}"))
    _warn(review, screen)
    screen.print()
    _show_privacy(review, screen)
    _show_cost(review, screen)


def _lines(names: tuple[str, ...]) -> str:
    from atoll.report.units import listing

    return listing(names).replace(" and ", "\nand ").replace(", ", "\n")


def _learning(review: Review) -> object:
    from rich.markup import escape

    made = console.table("role", "party", "learns", title="Who learns what")
    for role in review.roles:
        lines = [f"• {escape(line)}" for line in role.learns] + [
            f"[yellow]! {escape(line)}[/]" for line in role.caveats
        ]
        made.add_row(role.role, escape(_lines(role.parties)), "\n".join(lines) or "nothing")
        made.add_row()
    return made


def _releases(review: Review) -> object:
    from rich.markup import escape

    from atoll.report.known import also_known

    made = console.table("output", "released to", "what it is", title="Who gets the outputs")
    for output in review.outputs:
        known = [f"[dim]known anyway to {escape(who)}[/]" for who in also_known(review, output)]
        to = escape(_lines(output.released_to)) or "nobody"
        made.add_row(output.output, "\n".join([to, *known]), escape(output.words))
    return made


def _warn(review: Review, screen: Console) -> None:
    from rich.markup import escape

    for sentence in (*review.combined, *review.determined, *review.cautions):
        screen.print(f"[yellow]! {escape(sentence)}[/]")


def _show_privacy(review: Review, screen: Console) -> None:
    from rich.markup import escape

    from atoll.review.budget import identity_missing

    privacy = review.privacy
    if privacy is None:
        for sentence in review.booking:
            screen.print(f"[yellow]! {escape(sentence)}[/]\n")
        return
    screen.print("[bold]Privacy budget[/]")
    for sentence in privacy.words:
        screen.print(escape(f"• {sentence}") if privacy.private else f"[yellow]! {escape(sentence)}[/]")
    if privacy.accounts_missing:
        screen.print(f"[dim]{escape(privacy.accounts_missing)}[/]")
    for account in privacy.accounts:
        budget = "no budget set" if account.budget is None else f"budget {account.budget:.4g}"
        screen.print(
            escape(
                f"{account.island} (data set {account.identity!r}, {budget}, at delta {account.delta:g})\n"
                f"  before: {_spent(account.epsilon_before)}{account.before}\n"
                f"  after:  {_spent(account.epsilon_after)}{account.after}"
            )
        )
        if account.refusal:
            screen.print(f"[red]! {escape(account.refusal)}[/]")
    for sentence in privacy.refusals:
        screen.print(f"[red]! the island will refuse: {escape(sentence)}[/]")
    for island in privacy.without_identity:
        screen.print(f"[yellow]! {escape(identity_missing(island))}[/]")
    screen.print()


def _spent(epsilon: float | None) -> str:
    return "" if epsilon is None else f"epsilon {epsilon:.4g}; "


def _show_cost(review: Review, screen: Console) -> None:
    from atoll.report.units import size

    cost = review.cost
    if cost is None:
        screen.print(f"[bold]Expected cost[/]  [dim]{review.cost_missing}[/]\n")
        return
    made = console.table("", "", right=("",), title=f"Expected cost, {cost.columns} columns")
    made.show_header = False
    made.columns[0].justify = "left"
    made.add_row("messages", f"{cost.messages:,}")
    made.add_row("rounds", f"{cost.rounds}")
    made.add_row("sent by each island", size(cost.bytes_per_provider))
    made.add_row("sent in all", size(cost.bytes_total))
    if cost.projection_bytes_per_row:
        made.add_row("and for each record's projection", f"{cost.projection_bytes_per_row} B")
    made.add_row("memory for the sums, at the receiver", size(cost.memory_server))
    if cost.further is not None:
        made.add_row("for how many steps of the fit", f"{cost.steps}")
        made.add_row("each step more: messages", f"{cost.further['messages']:,}")
        made.add_row("each step more: rounds", f"{cost.further['rounds']}")
        made.add_row("each step more: sent in all", size(cost.further["bytes_total"]))
    screen.print(made)
    screen.print()
    _show_forecast(cost.forecast, screen)


def _show_forecast(forecast: Forecast | None, screen: Console) -> None:
    from rich.markup import escape

    from atoll.report.units import duration, size

    if forecast is None:
        return
    figures = ("time", "processor", "memory")
    made = console.table("", *figures, right=figures, title="Expected time and memory")
    all_, together, apart = "all roles on one machine", forecast.seconds_together, forecast.seconds_apart
    made.add_row(all_, duration(together), "", size(forecast.memory_together))
    made.add_row("every party on its own", duration(apart), "", "")
    for who, processor, memory in (
        ("  the busiest island", forecast.processor_provider, forecast.memory_provider),
        ("  the coordinator", forecast.processor_server, forecast.memory_server),
    ):
        made.add_row(who, "", duration(processor), size(memory))
    screen.print(made)
    for sentence in forecast.course:
        screen.print(escape(f"• {sentence}"))
    for sentence in forecast.assumes:
        screen.print(f"[dim]assumed: {escape(sentence)}[/]")
    screen.print()
