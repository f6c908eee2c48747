"""``atoll run``: a whole study in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption, QuietOption, StudyArgument
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.runtime.engine import Engine
    from atoll.runtime.execute import Run
    from atoll.study.load import StudyFile
    from atoll.study.model import Study


def run(
    study: StudyArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write to.")
    ] = Path("atoll-run"),
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="What carries the roles; others can register.")
    ] = "local",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a study, with all its roles in this process unless --engine says otherwise.

    Reads the tables that the study names under \\[local]. Writes what the study
    releases into a folder: the result file, tables and plots. A run that
    fails writes nothing.
    """
    from atoll.cli.outputs import write_result, written_together
    from atoll.report.analyses import renderer_of
    from atoll.runtime.engines import engine_of
    from atoll.runtime.studies import open_study

    if as_json and quiet:
        raise ParameterError("--json and --quiet cannot be used together", hint="choose one of them")
    chosen = engine_of(engine)
    if chosen.elsewhere:
        raise ParameterError(
            f"--engine {engine} leaves tables where they are", hint=f"atoll study submit {study}"
        )
    file = open_study(study)
    _refuse_what_stays_with_roles(file)
    _warn_of_no_promise(file.study)
    with written_together(output) as folder:
        finished = run_file(file, shown=not (as_json or quiet), engine=chosen)
        files = [output / path.name for path in write_result(finished.result, folder)]
    for warning in renderer_of(file.study.analysis).warnings(finished):
        console.print_warning(warning)
    if as_json:
        console.print_json(summary(finished, files))
    elif not quiet:
        _show(finished, files, console.out())


def run_file(file: StudyFile, *, shown: bool, engine: Engine | None = None) -> Run:
    """Run a study file, with a progress bar where somebody watches."""
    from atoll.cli.progress import bar
    from atoll.review.study import expected_messages
    from atoll.runtime.execute import run_study
    from atoll.runtime.studies import read_own

    expected = expected_messages(file)
    own = read_own(file)
    try:
        with bar(expected, shown) as progress:
            return run_study(file.study, own, engine=engine, progress=progress)
    finally:
        for mine in own.values():
            if mine.ledger is not None:
                mine.ledger.close()


def _refuse_what_stays_with_roles(file: StudyFile) -> None:
    """An output without values is a share that its role keeps; here there is nowhere to keep it."""
    from atoll.errors import StudyError
    from atoll.protocols import protocol_of

    for name, output in protocol_of(file.study.protocol).outputs.items():
        if not output.values and file.study.receivers(name):
            raise file.located(
                StudyError(
                    f"atoll run has nowhere to keep each role's share of the output {name!r}",
                    hint=f"release other outputs, or use Python: atoll.PCA(..., release={name!r})",
                    path=("release", name),
                )
            )


def _warn_of_no_promise(study: Study) -> None:
    """A published form may name an epsilon that it does not keep; said before anything runs."""
    from atoll.protocols import protocol_of

    terms = protocol_of(study.protocol).privacy(study)
    if terms is not None and not terms.costs:
        console.print_warning("; ".join(terms.words))


def summary(finished: Run, files: list[Path]) -> dict[str, Any]:
    """What programs want to know of a run."""
    from atoll.report.analyses import renderer_of

    result, transcript = finished.result, finished.result.transcript
    return {
        "study": result.study.name,
        "digest": result.study.digest,
        "files": [str(path) for path in files],
        "released": sorted(result.outputs),
        "messages": transcript.messages,
        "bytes": transcript.bytes,
        "rounds": transcript.rounds,
        "seconds": round(transcript.wall_seconds, 3),
        "booked": result.booked,
        **renderer_of(result.study.analysis).facts(result),
    }


def _show(finished: Run, files: list[Path], screen: Console) -> None:
    from rich.markup import escape

    from atoll.report.analyses import renderer_of
    from atoll.report.units import size

    result, cost = finished.result, finished.result.transcript
    screen.print(f"\n[bold]{escape(result.study.name)}[/] finished in {cost.wall_seconds:.2g} s\n")
    for table in renderer_of(result.study.analysis).tables(result):
        screen.print(console.drawn(table))
        screen.print()
    screen.print(f"{cost.messages:,} messages, {size(cost.bytes)}, {cost.rounds} rounds")
    if result.booked:
        screen.print(f"privacy: {escape(result.booked)}")
    for path in files:
        screen.print(f"[dim]wrote[/] {escape(str(path))}", soft_wrap=True)
    screen.print()
