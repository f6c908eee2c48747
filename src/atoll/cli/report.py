"""``atoll report``: a result as one HTML page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import QuietOption
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from atoll.report.charts import Chart
    from atoll.report.html import Beside
    from atoll.runtime.result import Result


BookedOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="The ledger in which the study was booked: the page shows the budget before and after.",
        show_default=False,
    ),
]


def report(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result file (.atoll).", show_default=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="TABLE",
            help="Your own table: its rows are projected or predicted, on this machine.",
            show_default=False,
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", metavar="FILE", help="The receipt of the run.", show_default=False),
    ] = None,
    ledger: BookedOption = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="FOLDER", help="Also write every figure to this folder.", show_default=False
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="KIND", help="Of the figures: png, svg or pdf.")
    ] = "png",
    quiet: QuietOption = False,
) -> None:
    """Write a result as one HTML page that needs nothing from elsewhere.

    The page shows what the result file holds, which is what the study released
    to its holder. With --data it also shows your own rows: then it is as
    confidential as your table.
    """
    from atoll.report.html import report_html
    from atoll.report.html.drawing import FORMATS
    from atoll.runtime.result import load_result, write_whole

    if kind not in FORMATS:
        raise ParameterError(f"there is no format {kind!r}", hint=f"one of {', '.join(FORMATS)}")
    if not output.absolute().parent.is_dir():
        raise ParameterError(f"there is no folder {output.parent}", hint="make it first")
    loaded = load_result(result)
    beside = _beside(loaded, data, receipt, ledger)
    page = report_html(loaded, beside).encode()
    written = [] if figures is None else _figures(loaded, beside, figures, kind)
    write_whole(output, page)
    if not quiet:
        console.out().print(f"wrote {output}", soft_wrap=True)
        for path in written:
            console.out().print(f"wrote {path}", soft_wrap=True)


def _beside(result: Result, data: Path | None, receipt: Path | None, ledger: Path | None) -> Beside:
    from atoll.data.island import Island
    from atoll.privacy.ledger import Ledger
    from atoll.report.html.beside import Beside, budget_table, receipt_facts

    own = None if data is None else Island.from_file(data)
    budget = None
    if ledger is not None:
        with Ledger(ledger) as book:
            budget = budget_table(book, result.study.digest)
        if budget is None:
            raise ParameterError(
                f"{ledger} has nothing of this study", hint="give the ledger it was booked in"
            )
    said = () if receipt is None else receipt_facts(receipt, result.study.digest)
    return Beside(own, said, budget)


def _figures(result: Result, beside: Beside, folder: Path, kind: str) -> list[Path]:
    """Every figure of the page as a file."""
    from atoll.cli.outputs import file_name
    from atoll.report.html.drawing import as_file
    from atoll.report.html.sections import sections_of
    from atoll.runtime.result import write_whole

    charts: list[Chart] = [chart for section in sections_of(result, beside) for chart in section.charts]
    drawn = [(chart.name, as_file(chart, kind)) for chart in charts]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"cannot write to {folder}: {error.strerror}") from None
    paths = []
    for name, content in drawn:
        path = folder / f"{file_name(result.study.name)}-{name}.{kind}"
        write_whole(path, content)
        paths.append(path)
    return paths
