"""The command line: its commands, and how it ends."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import Annotated, Any

import typer

from atoll import __version__
from atoll.cli import bench, console, hub, identity, ledger, node, receipt, study
from atoll.cli.check import check
from atoll.cli.commands import Command, Group
from atoll.cli.completion import completion, prepare
from atoll.cli.dashboard import dashboard
from atoll.cli.demo import demo
from atoll.cli.doctor import doctor
from atoll.cli.init import init
from atoll.cli.inspect import inspect
from atoll.cli.options import FLAG
from atoll.cli.report import report
from atoll.cli.review import review
from atoll.cli.run import run
from atoll.errors import AtollError, ParameterError

INTERRUPTED = 130
"""The exit code that shells know for Ctrl-C."""

# typer shows what is wrong with a command line in a box of its own; Atoll speaks with one voice. The
# class has moved between typer's versions, its child has not.
_UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="atoll",
    help="Private PCA and analytics across data islands. Only what the study says is sent to others.",
    epilog="Start with: atoll demo",
    cls=Group,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, init, inspect, review, check, run, report, dashboard, doctor, completion):
    app.command(cls=Command)(command)
app.add_typer(bench.app, name="bench")
app.add_typer(hub.app, name="hub")
app.add_typer(ledger.app, name="ledger")
for name, group in (("identity", identity), ("node", node), ("study", study), ("receipt", receipt)):
    app.add_typer(group.app, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"atoll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar=FLAG, callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", metavar=FLAG, help="Show where in the program an error arose.")
    ] = False,
) -> None:
    del version, debug  # both are read before the command runs


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error ends with its documented exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    _prepare_streams()
    prepare()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            sys.exit(app(args=given, prog_name="atoll", standalone_mode=False) or 0)
    except _UsageError as error:
        console.print_error(_as_parameter_error(error))
        sys.exit(ParameterError.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        console.err().print("[bold red]error:[/] interrupted; nothing was written")
        sys.exit(INTERRUPTED)
    except Exception as error:
        if _wants_debug(given):
            raise
        if isinstance(error, AtollError):
            console.print_error(error)
            sys.exit(error.exit_code)
        console.print_unexpected(error)
        sys.exit(AtollError.exit_code)


def _prepare_streams() -> None:
    """A terminal that knows no bullet gets a question mark for it, not half a review and an error. What
    libraries log (matplotlib: that it makes a cache) is not ours to say, least of all under --quiet."""
    logging.getLogger("matplotlib").addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as the command line says it, without the line of code that raised it."""
    console.print_warning(str(message))


def _as_parameter_error(error: Any) -> ParameterError:
    said = error.format_message().rstrip(".")
    command = error.ctx.command_path if error.ctx else "atoll"
    return ParameterError(said[:1].lower() + said[1:], hint=f"{command} --help shows what it takes")


def _wants_debug(given: list[str]) -> bool:
    """``--debug`` stands before the command."""
    for argument in given:
        if argument == "--debug":
            return True
        if not argument.startswith("-"):
            return False
    return False
