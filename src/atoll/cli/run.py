"""``atoll run``: a whole study in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption, QuietOption, StudyArgument
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.cli.outputs import Delivery
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

    Reads the tables that the study names under \\[local]: with the local engine,
    a rehearsal on one machine. Writes a folder for each party that receives
    something: the result file, tables and plots. A run that fails writes
    nothing.
    """
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
    _warn_of_cautions(file)
    finished, delivered = run_and_write(
        output, lambda _: run_file(file, shown=not (as_json or quiet), engine=chosen)
    )
    for warning in renderer_of(file.study.analysis).warnings(finished):
        console.print_warning(warning)
    if as_json:
        console.print_json(summary(finished, output, delivered))
    elif not quiet:
        _show(finished, output, delivered, console.out())


def run_and_write(
    output: Path, runs: Callable[[Path], Run], within: str = "."
) -> tuple[Run, dict[str, Delivery]]:
    """Run, and write everybody's part, all together. What cannot be written is not simply lost.

    ``runs`` is handed the folder that is written to; ``within``: where in it the recipients' folders are.
    """
    from atoll.cli.kept import not_written
    from atoll.cli.outputs import write_recipients, written_together

    finished: Run | None = None
    try:
        with written_together(output) as folder:
            finished = runs(folder)
            return finished, write_recipients(finished, folder / within)
    except BaseException as error:  # an interrupted plot must not cost a booked result either
        if finished is None:
            raise
        raise not_written(finished, output, error) from error


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


def _warn_of_cautions(file: StudyFile) -> None:
    """What a review shows with an exclamation mark of the study's numbers and the islands' rows."""
    from atoll.review.cautions import cautions
    from atoll.review.study import count_rows

    for sentence in cautions(file.study, count_rows(file)):
        console.print_warning(sentence)


def summary(finished: Run, output: Path, delivered: Mapping[str, Delivery]) -> dict[str, Any]:
    """What programs want to know of a run."""
    from atoll.report.analyses import renderer_of

    result, transcript = finished.result, finished.result.transcript
    return {
        "study": result.study.name,
        "digest": result.study.digest,
        "way": "rehearsal in one process",
        "files": [str(output / path) for one in delivered.values() for path in one.files],
        "recipients": {
            party: {"released": list(one.released), "files": [str(output / path) for path in one.files]}
            for party, one in delivered.items()
        },
        "released": sorted(result.outputs),
        "messages": transcript.messages,
        "bytes": transcript.bytes,
        "rounds": transcript.rounds,
        "seconds": round(transcript.wall_seconds, 3),
        "booked": result.booked,
        **renderer_of(result.study.analysis).facts(result),
    }


def _show(finished: Run, output: Path, delivered: Mapping[str, Delivery], screen: Console) -> None:
    from rich.markup import escape

    from atoll.report.analyses import renderer_of
    from atoll.report.units import size

    result, cost = finished.result, finished.result.transcript
    screen.print(f"\n[bold]{escape(result.study.name)}[/] finished in {cost.wall_seconds:.2g} s\n")
    for table in renderer_of(result.study.analysis).tables(result):
        screen.print(console.drawn(table))
        screen.print()
    for note in renderer_of(result.study.analysis).notes(result):
        screen.print(f"- {escape(note)}")
    screen.print(f"{cost.messages:,} messages, {size(cost.bytes)}, {cost.rounds} rounds")
    if result.booked:
        screen.print(f"privacy: {escape(result.booked)}")
    show_delivered(output, delivered, screen)
    screen.print()


def show_delivered(output: Path, delivered: Mapping[str, Delivery], screen: Console) -> None:
    """Who gets which files; those who get none are not named."""
    from rich.markup import escape

    for party, one in delivered.items():
        screen.print(f"{escape(party)} [dim]gets[/]")
        for path in one.files:
            screen.print(f"  {escape(str(output / path))}", soft_wrap=True)
    if not delivered:
        screen.print("the study releases nothing: nothing was written")
