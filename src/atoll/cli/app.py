"""The command line: its commands, and how it ends."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from atoll import __version__
from atoll.cli import console
from atoll.cli.demo import demo
from atoll.cli.review import review
from atoll.cli.run import run
from atoll.errors import AtollError

app = typer.Typer(
    name="atoll",
    help="Private PCA across data islands: the joint result, and nothing else leaves an island.",
    epilog="Start with: atoll demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(run)
app.command()(review)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"atoll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    del version, debug  # both are read before the command runs


def main(arguments: list[str] | None = None) -> None:
    """Run the command; every error ends with its documented exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        app(args=given, prog_name="atoll")
    except Exception as error:
        if _wants_debug(given):
            raise
        if isinstance(error, AtollError):
            console.print_error(error)
            sys.exit(error.exit_code)
        console.print_unexpected(error)
        sys.exit(AtollError.exit_code)


def _wants_debug(given: list[str]) -> bool:
    """``--debug`` stands before the command."""
    for argument in given:
        if argument == "--debug":
            return True
        if not argument.startswith("-"):
            return False
    return False
