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
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write the results.")
    ] = Path("atoll-run"),
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="What carries the roles; others can register.")
    ] = "local",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a study, with all its roles in this process unless --engine says otherwise.

    Reads the tables named in the study's \\[local] table and writes what the
    study releases into a folder: the result file, a table and a picture of
    the projections, a scree plot. A run that fails writes nothing.
    """
    from atoll.cli.outputs import write_result, written_together
    from atoll.runtime.engines import engine_of
    from atoll.runtime.studies import open_study

    if as_json and quiet:
        raise ParameterError("--json and --quiet exclude each other", hint="choose one of them")
    chosen = engine_of(engine)
    file = open_study(study)
    _refuse_what_stays_with_roles(file)
    _warn_of_no_promise(file.study)
    with written_together(output) as folder:
        finished = run_file(file, shown=not (as_json or quiet), engine=chosen)
        files = [output / path.name for path in write_result(finished.result, folder)]
    _warn_of_few_rows(finished)
    _warn_of_small_islands(finished)
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


def _warn_of_few_rows(finished: Run) -> None:
    """Whoever learns a covariance of few rows learns much about each."""
    for address, learned in finished.learned.items():
        known = {**learned.outputs, **learned.inherent}
        n, d = known.get("n_samples", 0), len(known.get("covariance", ()))
        if d and n <= d:
            console.print_warning(
                f"the joint table has {n} rows for {d} columns: its mean and covariance, which {address} "
                "learns, then say much about single rows"
            )


def _warn_of_small_islands(finished: Run) -> None:
    """SF-PCA opens a spectrum to all its roles; noise, where there is any, hides single rows in it."""
    from atoll.protocols import protocol_of
    from atoll.protocols.pca.sfpca.parameters import small_islands

    study = finished.result.study
    if protocol_of(study.protocol).privacy(study) is not None:
        return
    for learned in finished.learned.values():
        known = {**learned.outputs, **learned.inherent}
        if "spectrum" in known:
            words = small_islands(known["rows"], len(known["explained_variance"]))
            if words:
                console.print_warning(words)
            return


def summary(finished: Run, files: list[Path]) -> dict[str, Any]:
    """What programs want to know of a run."""
    result, transcript = finished.result, finished.result.transcript
    summary: dict[str, Any] = {
        "study": result.study.name,
        "digest": result.study.digest,
        "files": [str(path) for path in files],
        "released": sorted(result.outputs),
        "messages": transcript.messages,
        "bytes": transcript.bytes,
        "rounds": transcript.rounds,
        "seconds": round(transcript.wall_seconds, 3),
        "booked": result.booked,
    }
    if "n_samples" in result:
        summary["n_samples"] = int(result["n_samples"])
    if "explained_variance" in result:
        total = float(result["total_variance"]) or 1.0
        summary["explained_variance_ratio"] = (result["explained_variance"] / total).tolist()
    return summary


def _show(finished: Run, files: list[Path], screen: Console) -> None:
    from rich.markup import escape

    from atoll.report.units import size

    result, cost = finished.result, finished.result.transcript
    screen.print(f"\n[bold]{escape(result.study.name)}[/] finished in {cost.wall_seconds:.2g} s\n")
    if "explained_variance" in result:
        screen.print(variance_table(result["explained_variance"], result["total_variance"]))
        screen.print()
    screen.print(f"{cost.messages:,} messages, {size(cost.bytes)}, {cost.rounds} rounds")
    if result.booked:
        screen.print(f"privacy: {escape(result.booked)}")
    for path in files:
        screen.print(f"[dim]wrote[/] {escape(str(path))}", soft_wrap=True)
    screen.print()


def variance_table(explained: Any, total: float) -> object:
    """Component by component: variance, share, share of all so far."""
    made = console.table(
        "component",
        "variance",
        "share",
        "together",
        right=("variance", "share", "together"),
        title="Variance",
    )
    together = 0.0
    for i, value in enumerate(explained, 1):
        share = float(value) / (total or 1.0)
        together += share
        made.add_row(f"PC{i}", f"{value:.6g}", f"{share:.1%}", f"{together:.1%}")
    return made
