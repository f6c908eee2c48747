"""``atoll completion``: what a shell needs to complete commands, options and file names."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from atoll.errors import ParameterError, one_of

VARIABLE = "_ATOLL_COMPLETE"
"""Set by the shell when it asks what could come next."""
SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print the script that completes atoll's commands in a shell.

    For bash, put this line into ~/.bashrc: eval "$(atoll completion bash)"
    """
    from typer import completion as shells

    if shell not in SHELLS:
        raise ParameterError(f"there is no completion for the shell {shell!r}", hint=one_of(shell, SHELLS))
    script: Any = vars(shells)["get_completion_script"]  # typer shares it with no types
    print(script(prog_name="atoll", complete_var=VARIABLE, shell=shell))


def prepare() -> None:
    """Teach the program its shells, where one of them is asking; else it takes time for nothing."""
    if VARIABLE in os.environ:
        from typer import completion as shells

        start: Any = vars(shells)["completion_init"]
        start()
