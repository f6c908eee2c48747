"""``atoll study``: studies across machines, from the side of whoever submits them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption, QuietOption, StudyArgument
from atoll.cli.sites import (
    PassphraseOption,
    RunArgument,
    SiteOption,
    identity_of,
    opened,
    show_run,
    show_runs,
)
from atoll.errors import RunError
from atoll.report.runs import facts

if TYPE_CHECKING:
    from atoll.runtime.nats.runs import RunFolder, State
    from atoll.runtime.nats.site import Site
    from atoll.study.model import Study

app = typer.Typer(cls=Group, help="Submit studies to other sites, watch them, and fetch their results.")

HOUR = 3600


@app.command(cls=Command)
def submit(
    study: StudyArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="WORDS", help="Why: every party reads it.", show_default=False)
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", metavar=FLAG, help="Wait until the run has ended.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=1, help="Wait no longer.", show_default=False),
    ] = None,
    expires: Annotated[
        float,
        typer.Option("--expires", metavar="HOURS", min=0.001, help="How long approvals are waited for."),
    ] = 168.0,
    deadline: Annotated[
        float,
        typer.Option("--deadline", metavar="SECONDS", min=1, help="How long another party may be silent."),
    ] = 600.0,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", metavar=FLAG, help="On rows that every party makes up: no data are read."),
    ] = False,
    data_set: Annotated[
        str | None,
        typer.Option(
            "--data-set", metavar="NAME", help="Which of this site's tables to use.", show_default=False
        ),
    ] = None,
    site: SiteOption = None,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Propose a study to all its parties.

    This site must be one of them, and approves by submitting. Where no node of
    this site runs, this command is the node, and waits until the run has ended.
    """
    from atoll.errors import StudyError
    from atoll.runtime.nats import submit as submitting
    from atoll.runtime.studies import open_study

    at, file = opened(site), open_study(study)
    try:
        checked = submitting.check_submission(at, file.study)
    except StudyError as error:
        raise file.located(error) from None
    embedded = not at.node_runs()
    options: dict[str, Any] = {"lifetime": int(expires * HOUR), "deadline": deadline}
    options |= {"data_set": data_set, "rehearse": rehearse}
    shown = not (as_json or quiet)
    if not embedded:
        folder = submitting.submit(at, checked, reason, **options)
        state = _waited(folder, timeout, shown) if wait else folder.state()
    else:
        folder, state = _as_node(at, checked, reason, options, timeout, passphrase_file, shown)
    _report(folder, state, as_json, quiet)


def _as_node(
    at: Site,
    study: Study,
    reason: str,
    options: dict[str, Any],
    timeout: float | None,
    passphrase_file: Path | None,
    shown: bool,
) -> tuple[RunFolder, State]:
    from atoll.cli.node import review_text
    from atoll.runtime.nats import submit as submitting
    from atoll.runtime.nats.node import Options

    identity, passphrase = identity_of(at, passphrase_file)
    chosen = Options(
        review=lambda proposed, state: review_text(at, proposed, state),
        passphrase=passphrase,
        lookup=submitting.lookup,
    )
    with submitting.node_of(at, identity, chosen):
        folder = submitting.submit(at, study, reason, **options)
        state = _waited(folder, timeout, shown)
        submitting.until_told(at)
        return folder, state


def _waited(folder: RunFolder, timeout: float | None, shown: bool) -> State:
    from atoll.cli.node import watched
    from atoll.runtime.nats import submit as submitting

    screen = console.err()
    if not shown or not screen.is_terminal:
        return submitting.wait(folder, timeout)
    with screen.status("") as status:
        return submitting.wait(folder, timeout, lambda state: status.update(watched(folder, state)))


def _report(folder: RunFolder, state: State, as_json: bool, quiet: bool) -> None:
    if as_json:
        console.print_json(facts(folder, state))
    elif not quiet:
        show_run(folder, state)
    if state.phase in ("failed", "declined", "expired", "cancelled"):
        raise RunError(
            f"the run {folder.name} was {state.phase}: {state.words}" if state.words else state.phase
        )


@app.command(cls=Command)
def pin(study: StudyArgument, site: SiteOption = None) -> None:
    """Write the fingerprints of this site and its partners into a study file.

    A party gets the fingerprint that was noted under its name with
    atoll identity trust. One that stands there already is left as it is.
    """
    from atoll.study.pins import pinned_text

    at = opened(site)
    known = at.partners()
    if at.hub_file.exists():
        known = {at.hub().name: at.fingerprint, **known}
    text = study.read_text(encoding="utf-8") if study.is_file() else ""
    written, missing = pinned_text(text, known)
    study.write_text(written, encoding="utf-8")
    for name in missing:
        console.print_warning(
            f"no fingerprint of {name} is noted here: atoll identity trust {name} FINGERPRINT"
        )


@app.command("list", cls=Command)
def list_(site: SiteOption = None, as_json: JsonOption = False) -> None:
    """List the studies that this site submitted."""
    from atoll.runtime.nats.runs import every_run

    mine = [(folder, state) for folder, state in every_run(opened(site)) if state.mine]
    if as_json:
        console.print_json([facts(folder, state) for folder, state in mine])
    else:
        show_runs(mine)


@app.command(cls=Command)
def status(run: RunArgument, site: SiteOption = None, as_json: JsonOption = False) -> None:
    """Show how far a run is, and what each party said."""
    from atoll.runtime.nats.runs import find_run

    folder, state = find_run(opened(site), run)
    if as_json:
        console.print_json(facts(folder, state))
    else:
        show_run(folder, state)


@app.command(cls=Command)
def cancel(run: RunArgument, site: SiteOption = None) -> None:
    """End a run that this site submitted, for everybody."""
    from atoll.runtime.nats.requests import Request
    from atoll.runtime.nats.submit import asked

    name = asked(opened(site), Request(does="cancel", run=run))
    console.out().print(f"cancelled {name}")


@app.command(cls=Command)
def results(
    run: RunArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = Path("atoll-results"),
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Wait so long for the run's end.", show_default=False
        ),
    ] = 0.0,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what a finished run released to this site: result file, tables, plots, receipt."""
    import shutil

    from atoll.cli.outputs import file_name, write_result, written_together
    from atoll.runtime.nats.runs import find_run
    from atoll.runtime.result import load_result

    folder, state = find_run(opened(site), run)
    if wait:
        state = _waited(folder, wait, not as_json)
    if state.phase != "finished":
        why = f": {state.words}" if state.words else ""
        raise RunError(f"the run {folder.name} is {state.phase}{why}", hint="results come with its end")
    with written_together(output) as staging:
        if folder.result.exists():
            write_result(load_result(folder.result), staging)
        shutil.copy(folder.receipt, staging / f"{file_name(state.study)}-receipt-{file_name(state.me)}.jsonl")
        files = [output / path.name for path in sorted(staging.iterdir())]
    if as_json:
        console.print_json(
            {"run": folder.name, "released": folder.result.exists(), "files": [str(f) for f in files]}
        )
        return
    screen = console.out()
    if not folder.result.exists():
        screen.print("the study releases nothing to this site")
    for path in files:
        screen.print(f"[dim]wrote[/] {path}", soft_wrap=True)
