"""What commands about a site share: where it is, its passphrase, and how its runs are shown."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.errors import ParameterError

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


def ago(seconds: float) -> str:
    """When something was, in words."""
    from atoll.report.units import duration

    passed = time.time() - seconds
    return f"{duration(passed)} ago" if passed >= 1 else "just now"


def facts(folder: RunFolder, state: State) -> dict[str, Any]:
    """A run as plain data, for programs."""
    import msgspec

    progress = folder.progress()
    return {
        **msgspec.to_builtins(state),
        "name": folder.name,
        "silent": list(state.silent),
        "progress": None if progress is None else msgspec.to_builtins(progress),
        "result": str(folder.result) if folder.result.exists() else None,
        "receipt": str(folder.receipt) if folder.receipt.exists() else None,
    }


def far(folder: RunFolder, state: State) -> str:
    """How far a run is, in a few words."""
    from atoll.report.units import duration

    if state.phase != "running":
        return state.words if state.phase in ("failed", "declined", "expired", "cancelled") else ""
    progress = folder.progress()
    if progress is None:
        return "starting"
    rounds = f"round {progress.rounds}" + (f" of {progress.of_rounds}" if progress.of_rounds else "")
    left = "" if progress.left is None else f", about {duration(progress.left)} left"
    return rounds + left


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
        answer = state.answers.get(party)
        if party == state.me:
            said = f"{state.phase} (this site)"
        elif answer is None:
            said = "[yellow]no answer yet[/]"
        else:
            said = escape(" ".join(filter(None, (answer.state, answer.words, answer.role))))
        made.add_row(escape(party), said)
    screen.print(made)
    if state.missing:
        screen.print(f"[red]missing: {escape(', '.join(state.missing))}[/]")
    for what, path in (("result", folder.result), ("receipt", folder.receipt)):
        if path.exists():
            screen.print(f"[dim]{what}[/] {escape(str(path))}", soft_wrap=True)
