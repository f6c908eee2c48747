"""A result that could not be written where it should: kept in a second place, asked for, or said to be lost.

By then the release may be booked, and a second run would be a second debit. Writing the same result again is
none.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from atoll.cli import console
from atoll.cli.outputs import file_name, folder_names, write_result
from atoll.errors import AtollError, NotWritten

if TYPE_CHECKING:
    from atoll.runtime.execute import Run


def not_written(finished: Run, output: Path, error: BaseException) -> NotWritten:
    """The error that says where the result is, after an attempt to keep it."""
    booked = finished.result.booked or ""
    spent = ", and its release is booked," if booked.startswith("booked") else ""
    what = f"the run finished{spent} but its result could not be written to {output}: {_reason(error)}"
    place = _keep(finished)
    again = "another release, and another debit" if spent else "another run"
    if place is None:
        return NotWritten(f"{what}; it is lost", hint=f"make room; to run the study again is {again}")
    return NotWritten(
        what,
        hint=f"it is kept in {place}: copy it from there, which costs nothing; to run the study again "
        f"is {again}",
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return error.message if isinstance(error, AtollError) else type(error).__name__


def _keep(finished: Run) -> Path | None:
    for place in _places():
        try:
            return _write(finished, place)
        except OSError:
            continue
    while (asked := _ask()) is not None:
        try:
            return _write(finished, asked)
        except OSError as error:
            console.print_warning(f"that did not work either: {error.strerror}")
    return None


def _places() -> Iterator[Path]:
    from atoll.privacy.ledger_file import site_ledger

    yield site_ledger().parent / "kept"
    yield Path(tempfile.gettempdir())


def _write(finished: Run, place: Path) -> Path:
    """Result files alone, one for each recipient: what tables and figures are made from."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place, prefix=f"{file_name(finished.result.study.name)}-"))
    try:
        for name, result in zip(folder_names(finished.by_party), finished.by_party.values(), strict=True):
            (folder / name).mkdir(mode=0o700)
            write_result(result, folder / name, shown=False)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)  # half a result is none, and takes room
        raise
    return folder


def _ask() -> Path | None:
    """Another folder, of whoever sits at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    try:
        said = typer.prompt("The result fits nowhere. Another folder (empty: give up)", default="", err=True)
    except (typer.Abort, EOFError):
        return None
    return Path(said).expanduser() if said.strip() else None
