"""What commands about a site share: where it is, its passphrase, and how its runs are shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.errors import ParameterError
from atoll.report.runs import ago, far, said_by

if TYPE_CHECKING:
    from atoll.crypto.identity import Identity
    from atoll.runtime.nats.runs import RunFolder, State
    from atoll.runtime.nats.site import Site

SiteOption = Annotated[
    Path | None,
    typer.Option(
        "--site", metavar="FOLDER", help="The site's folder, if not the usual one.", show_default=False
    ),
]
PassphraseOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="Read the passphrase from a file.", show_default=False
    ),
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's name, its first digits, or last.", show_default=False)
]


def opened(folder: Path | None) -> Site:
    """The site that a command is about."""
    from atoll.runtime.nats.site import Site

    return Site(folder)


def passphrase_of(site: Site, given: Path | None) -> str | None:
    """The passphrase of the site's identity, where it has one: from a file, or asked for."""
    if not site.needs_passphrase:
        return None
    return (
        read_passphrase(given) if given is not None else typer.prompt("passphrase", hide_input=True, err=True)
    )


def read_passphrase(path: Path) -> str:
    """A passphrase from the first line of a file."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8").split("\n", 1)[0]
    except OSError as error:
        raise ParameterError(f"cannot read {path}: {error.strerror}") from None
    if mode & 0o077 and os.name == "posix":
        raise ParameterError(f"others on this machine can read {path}", hint=f"chmod 600 {path}")
    return text


def identity_of(site: Site, given: Path | None) -> tuple[Identity, str | None]:
    """The site's keys, and the passphrase that opened them."""
    passphrase = passphrase_of(site, given)
    return site.identity(passphrase), passphrase


def show_runs(runs: list[tuple[RunFolder, State]]) -> None:
    """All runs as a table."""
    from rich.markup import escape

    made = console.table("run", "study", "from", "is", "proposed", "")
    for folder, state in runs:
        phase = "rehearsal, " * state.rehearse + state.phase
        made.add_row(
            folder.name,
            escape(state.study),
            escape(state.submitter),
            phase,
            ago(state.made),
            escape(far(folder, state)),
        )
    console.out().print(made)


def show_run(folder: RunFolder, state: State) -> None:
    """One run with what every party said."""
    from rich.markup import escape

    screen = console.out()
    screen.print(
        f"[bold]{folder.name}[/]  {escape(state.study)}: {state.phase}  {escape(far(folder, state))}"
    )
    screen.print(f"[dim]digest {state.digest}[/]", soft_wrap=True)
    made = console.table("party", "says")
    for party in state.parties:
        made.add_row(escape(party), escape(said_by(party, state)) or "[yellow]no answer yet[/]")
    screen.print(made)
    if state.missing:
        screen.print(f"[red]missing: {escape(', '.join(state.missing))}[/]")
    for what, path in (("result", folder.result), ("receipt", folder.receipt)):
        if path.exists():
            screen.print(f"[dim]{what}[/] {escape(str(path))}", soft_wrap=True)
