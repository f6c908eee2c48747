"""What all commands say, and how: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from atoll.errors import AtollError

if TYPE_CHECKING:
    from atoll.report.analyses import base as report


def out() -> Console:
    """Standard output; made anew because tests and pipes replace it."""
    return Console(highlight=False, soft_wrap=False)


def err() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def own_command() -> str:
    """This program as it is called again from here: by name where the shell finds it, else by its path."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{_from_here(Path(sys.executable))} -m atoll"
    found = shutil.which(called.name)
    if called.name != "atoll" or (found is not None and Path(found).resolve() == called.resolve()):
        return "atoll"
    return _from_here(called.absolute())


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def print_error(error: AtollError) -> None:
    """``error:`` and, where there is one, ``hint:``."""
    role = f" (at {error.role})" if error.role else ""
    console = err()
    console.print(f"[bold red]error:[/] {escape(error.message)}{escape(role)}")
    if error.hint:
        console.print(f"[bold cyan]hint:[/] {escape(error.hint)}")


def print_warning(message: str) -> None:
    """Something that its reader should know; the command goes on."""
    err().print(f"[bold yellow]warning:[/] {escape(message)}")


def print_unexpected(error: BaseException) -> None:
    """A fault of Atoll itself: short, unless asked for more."""
    console = err()
    said = f"{type(error).__name__}: {error}".strip().rstrip(":")
    console.print(f"[bold red]error:[/] something went wrong inside Atoll: {escape(said)}")
    console.print("[bold cyan]hint:[/] run it again as [bold]atoll --debug ...[/] to see where")


def print_json(value: Any) -> None:
    """Plain JSON, for programs: no colours, no line breaks of the terminal's making."""
    narrow = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    print(json.dumps(value, indent=2, ensure_ascii=narrow))


def table(*columns: str, right: Iterable[str] = (), title: str | None = None) -> Table:
    """A quiet table: a line under the header and nothing else."""
    made = Table(
        box=None,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        made.add_column(column, justify="right" if column in set(right) else "left", overflow="fold")
    return made


def drawn(shown: report.Table) -> Table:
    """A table of a renderer, numbers to the right."""
    names = [column.name for column in shown.columns]
    right = [column.name for column in shown.columns if column.is_number]
    made = table(*names, right=right, title=shown.title)
    for row in shown.shown():
        made.add_row(*map(escape, row))
    return made
