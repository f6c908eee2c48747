"""``atoll doctor``: what this machine has of what Atoll needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from atoll.cli import console
from atoll.cli.options import JsonOption
from atoll.errors import MissingComponent

if TYPE_CHECKING:
    from rich.console import Console

    from atoll.runtime.doctor import Finding

_MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[bold red]problem[/]"}


def doctor(as_json: JsonOption = False) -> None:
    """Look whether everything works on this machine, and say what to do.

    Looks at the core library, the processor, the calibration of forecasts,
    readers of files, and how long the disk takes. Changes nothing. Ends with
    7 if something that Atoll offers does not work here.
    """
    import msgspec

    from atoll.runtime.doctor import findings

    found = list(findings())
    if as_json:
        console.print_json([msgspec.to_builtins(one) for one in found])
    else:
        show(found, console.out())
    if any(one.state == "problem" for one in found):
        raise typer.Exit(MissingComponent.exit_code)


def show(found: list[Finding], screen: Console) -> None:
    """One line for each finding, and its remedy below."""
    from rich.markup import escape

    made = console.table("", "", "")
    made.show_header = False
    for one in found:
        lines = [escape(one.detail)]
        if one.remedy:
            lines.append(f"[cyan]remedy:[/] {escape(one.remedy)}")
        made.add_row(one.name, _MARKS[one.state], "\n".join(lines))
    screen.print(made)
