"""``atoll node``: a site's part in studies across machines."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption, QuietOption
from atoll.cli.sites import (
    PassphraseOption,
    RunArgument,
    SiteOption,
    identity_of,
    opened,
    show_run,
    show_runs,
)
from atoll.errors import ParameterError
from atoll.lazy import lazy
from atoll.report.runs import facts, far

if TYPE_CHECKING:
    import asyncio

    from atoll.runtime.nats.node import Node
    from atoll.runtime.nats.runs import RunFolder, State
    from atoll.runtime.nats.site import Site
    from atoll.runtime.nats.starts import Proposed
else:
    asyncio = lazy("asyncio")

app = typer.Typer(cls=Group, help="Join a hub, run this site's node, and decide what it takes part in.")

DataSetOption = Annotated[
    str | None,
    typer.Option("--data-set", metavar="NAME", help="Which of the node's tables to use.", show_default=False),
]


@app.command(cls=Command)
def join(
    invitation: Annotated[
        str,
        typer.Argument(metavar="INVITATION", help="As the hub's owner gave it to you.", show_default=False),
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What the hub's owner reads in its list of sites.")
    ] = "",
    site: SiteOption = None,
    passphrase_file: PassphraseOption = None,
) -> None:
    """Connect this site with a hub. An invitation works once.

    The hub carries sealed messages. It is no source of trust: compare
    fingerprints with your partners yourself.
    """
    from atoll.runtime.nats.invitations import join as redeem

    at = opened(site)
    identity, _ = identity_of(at, passphrase_file)
    hub = asyncio.run(redeem(invitation, identity, name))
    at.set_hub(hub)
    console.out().print(f"joined {hub.url}", soft_wrap=True)


@app.command(cls=Command)
def run(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The table, or a TOML file that lists tables. Without it, the node brings no data.",
            show_default=False,
        ),
    ] = None,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve",
            metavar="DIGEST",
            help="Approve this study without asking, for one run. May be repeated.",
            show_default=False,
        ),
    ] = None,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline", metavar="SECONDS", min=1, help="How long another party may be silent in a run."
        ),
    ] = 600.0,
    ask: Annotated[
        bool, typer.Option("--ask/--no-ask", metavar=FLAG, help="Whether to ask here, at a terminal.")
    ] = True,
    site: SiteOption = None,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run this site's node until you stop it.

    Shows the review of every proposed study and asks whether to take part.
    Unfinished runs of an earlier start go on by themselves. Stop it with Ctrl-C:
    runs wait for the next start.
    """
    from atoll.runtime.nats.node import Node, Options
    from atoll.runtime.nats.site import read_data_sets
    from atoll.runtime.nats.submit import carrier_of, lookup
    from atoll.runtime.nats.worker import log_to

    at = opened(site)
    identity, passphrase = identity_of(at, passphrase_file)
    log_to(at.log_file)
    screen = _Screen(at, as_json, quiet, asks=ask and sys.stdin.isatty() and not (as_json or quiet))
    options = Options(
        data_sets={} if data is None else read_data_sets(data),
        approve=tuple(_digest(one) for one in approve or ()),
        deadline=deadline,
        say=screen.say,
        review=lambda proposed, state: review_text(at, proposed, state),
        passphrase=passphrase,
        lookup=lookup,
    )
    asyncio.run(_until_stopped(Node(at, identity, carrier_of(at, identity), options)))


def _digest(given: str) -> str:
    text = given.strip().lower()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ParameterError(
            "--approve takes a study's digest: 64 hexadecimal digits", hint="atoll review prints it"
        )
    return text


async def _until_stopped(node: Node) -> None:
    import signal

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, node.stop)
    await node.run()


def review_text(site: Site, proposed: Proposed, state: State) -> str:
    """What the site's owner reads before deciding: who asks and why, who learns what, the cost."""
    import io

    from rich.console import Console
    from rich.markup import escape

    from atoll.cli.review import show
    from atoll.crypto.identity import words
    from atoll.errors import ParameterError
    from atoll.review.study import review_study
    from atoll.runtime.nats.owned import chosen_data_set, columns_of, local_of
    from atoll.runtime.nats.runs import plain

    text = io.StringIO()
    screen = Console(file=text, width=80, highlight=False)
    try:
        chosen = chosen_data_set(site, state.data_set)
    except ParameterError:
        chosen = None
    what = "a rehearsal (rows are made up)" if state.rehearse else "one run"
    screen.print(f"[bold]{escape(state.submitter)}[/] asks for {what} of this study.")
    screen.print(f"Reason given: {escape(plain(state.reason)) or 'none'}")
    known = {fingerprint: name for name, fingerprint in site.partners().items()}
    made = console.table("party", "roles", "key in words")
    for party in proposed.study.parties:
        fingerprint = party.fingerprint or ""
        who = "this site" if party.name == state.me else known.get(fingerprint, "[yellow]not compared yet[/]")
        made.add_row(
            f"{escape(party.name)}\n({who})", "\n".join(party.roles), words(fingerprint).replace("-", " ")
        )
    screen.print(made)
    local = local_of(site, proposed.study, state.me, chosen)
    show(review_study(proposed.study, columns_of(proposed.study, state.me, chosen), local), screen)
    for refusal in state.refused:
        screen.print(f"[red]this site's policy refuses it: {escape(refusal)}[/]")
    # What others wrote (names, parameters) must not move this terminal's cursor.
    return "\n".join(plain(line) for line in text.getvalue().split("\n"))


class _Screen:
    """What a node's owner sees: one line for each event, reviews, and the question whether to approve."""

    def __init__(self, site: Site, as_json: bool, quiet: bool, *, asks: bool) -> None:
        self._site = site
        self._as_json = as_json
        self._quiet = quiet
        self._asks = asks

    def say(self, event: str, state: State) -> None:
        if self._as_json:
            import json

            print(json.dumps({"at": round(time.time(), 3), "event": event, "run": state.name}), flush=True)
            return
        if self._quiet:
            return
        from rich.markup import escape

        from atoll.runtime.nats.runs import RunFolder

        screen = console.out()
        now = time.strftime("%H:%M:%S")
        if event == "progress":
            event = far(RunFolder(self._site, state.name), state)
        words = f": {state.words}" if state.words and event == state.phase else ""
        screen.print(f"[dim]{now}[/] {state.name:12} {escape(event + words)}")
        if event == "proposed":
            folder = RunFolder(self._site, state.name)
            screen.print(folder.review.read_text(encoding="utf-8"), markup=False)
            if not state.refused:
                self._ask(state)
        if event in ("finished", "failed"):
            show_run(RunFolder(self._site, state.name), state)

    def _ask(self, state: State) -> None:
        hint = f"atoll node approve {state.name}{self._site.option}"
        if not self._asks:
            console.out().print(f"[bold]to take part:[/] {hint}", soft_wrap=True)
            return
        threading.Thread(target=self._answered, args=(state.name, hint), daemon=True).start()

    def _answered(self, run: str, hint: str) -> None:
        from atoll.runtime.nats import requests
        from atoll.runtime.nats.requests import Request

        print(f"Take part in {run}? [yes / no / later] ", end="", flush=True)
        answer = sys.stdin.readline().strip().lower()
        if answer in ("y", "yes", "n", "no"):
            does: Any = "approve" if answer.startswith("y") else "decline"
            requests.ask(self._site, Request(does=does, run=run))
        else:
            console.out().print(f"later: {hint}", soft_wrap=True)


@app.command("approve", cls=Command)
def approve_run(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="The run's name, if more than one waits for an answer.", show_default=False
        ),
    ] = None,
    data_set: DataSetOption = None,
    site: SiteOption = None,
) -> None:
    """Take part in a proposed run, once."""
    from atoll.runtime.nats.requests import Request
    from atoll.runtime.nats.submit import asked

    if run is None:
        run = _waiting(opened(site))

    name = asked(opened(site), Request(does="approve", run=run, data_set=data_set))
    console.out().print(f"approved {name}")


def _waiting(site: Site) -> str:
    """The one run that waits for this site's answer."""
    from atoll.runtime.nats.runs import PROPOSED, every_run

    found = [folder.name for folder, state in every_run(site) if state.phase == PROPOSED]
    if len(found) != 1:
        many = f"{len(found)} runs wait" if found else "no run waits"
        raise ParameterError(f"{many} for an answer", hint=f"atoll node runs{site.option} lists them")
    return found[0]


@app.command(cls=Command)
def decline(
    run: RunArgument,
    because: Annotated[
        str, typer.Option("--because", metavar="WORDS", help="What the other parties may read.")
    ] = "",
    site: SiteOption = None,
) -> None:
    """Do not take part in a proposed run; it ends for everybody."""
    from atoll.runtime.nats.requests import Request
    from atoll.runtime.nats.submit import asked

    name = asked(opened(site), Request(does="decline", run=run, words=because))
    console.out().print(f"declined {name}")


@app.command(cls=Command)
def status(site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Show whether the node runs, and which runs it is at."""
    from atoll.runtime.nats.runs import ACTIVE, every_run

    at = opened(site)
    active = [(folder, state) for folder, state in every_run(at) if state.phase in ACTIVE]
    hub = at.hub().url if at.hub_file.exists() else None
    runs = at.node_runs()
    if as_json:
        console.print_json(
            {
                "node": runs,
                "hub": hub,
                "fingerprint": at.fingerprint,
                "runs": [facts(folder, state) for folder, state in active],
            }
        )
        return
    screen = console.out()
    screen.print(f"node  {'running' if runs else f'not running: atoll node run{at.option}'}", soft_wrap=True)
    screen.print(f"hub   {hub or 'not joined'}", soft_wrap=True)
    if active:
        show_runs(active)


@app.command(cls=Command)
def runs(site: SiteOption = None, as_json: JsonOption = False) -> None:
    """List all runs that this site was asked for."""
    from atoll.runtime.nats.runs import every_run

    found = list(every_run(opened(site)))
    if as_json:
        console.print_json([facts(folder, state) for folder, state in found])
    else:
        show_runs(found)


@app.command(cls=Command)
def logs(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="One run's worker, not the node.", show_default=False)
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=1, help="How many.")] = 50,
    site: SiteOption = None,
) -> None:
    """Print the last lines of the log: JSON, one object a line, without secrets or data."""
    from atoll.runtime.nats.runs import find_run

    at = opened(site)
    path = at.log_file if run is None else find_run(at, run)[0].path / "worker.log"
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines()[-lines:]:
            print(line)


def watched(folder: RunFolder, state: State) -> str:
    """One line about a run that goes on."""
    waits = f"waiting for {', '.join(state.silent)}" if state.phase == "approved" and state.silent else ""
    return " ".join(filter(None, (state.phase, waits, far(folder, state))))
