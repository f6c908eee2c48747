"""``atoll inspect``: what an island would bring, for its owner's eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption

if TYPE_CHECKING:
    from atoll.data.summary import ColumnSummary, TableSummary

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A table, or a pattern such as 'part-*.parquet'.", show_default=False
    ),
]


def inspect(file: FileArgument, as_json: JsonOption = False) -> None:
    """Look at a table before it takes part in a study.

    Shows rows, columns, types, ranges and missing values, and what reading
    takes. All of it is for its owner's eyes: nothing is sent and nothing
    written.
    """
    from atoll.data.island import Island
    from atoll.data.summary import summary

    island = Island.from_file(file)
    found = summary(island)
    if as_json:
        shown = found._asdict() | {"columns": [column._asdict() for column in found.columns]}
        console.print_json(shown)
        return
    _show(file, found)


def _show(file: str, found: TableSummary) -> None:
    from rich.markup import escape

    from atoll.report.units import size

    screen = console.out()
    screen.print(f"[bold]{escape(file)}[/]: {found.rows:,} rows, {len(found.columns)} columns")
    made = console.table("column", "type", "from", "to", "missing", "remark", right=("from", "to", "missing"))
    for column in found.columns:
        cells = (column.name, column.kind, *_ends(column), f"{column.missing:,}" if column.missing else "")
        made.add_row(*map(escape, cells), escape(column.remark(found.rows)))
    screen.print(made)
    if not found.rows:
        screen.print("[bold]There are no rows[/]: a study refuses an island without any.")
        return
    plan = f"blocks of {size(found.block)}, columns x columns {size(found.squares)}"
    kept = f"; {size(found.scratch)} in a scratch file" if found.scratch else ""
    screen.print(f"Reading takes {plan}{kept}; all numbers at once would be {size(found.as_doubles)}.")
    screen.print("[dim]For your eyes only: nothing was sent, nothing written.[/]")


def _ends(column: ColumnSummary) -> tuple[str, str]:
    if column.levels is not None:
        return f"{column.levels:,} value{'' if column.levels == 1 else 's'}", ""
    if column.low is None or column.high is None:
        return "", ""
    return f"{column.low:.6g}", f"{column.high:.6g}"
