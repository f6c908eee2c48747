"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FLAG = ""
"""The type that the help shows for an option without a value: none."""

StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY.toml", help="The study file.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", metavar=FLAG, help="Print JSON, for programs.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", metavar=FLAG, help="Print only errors and warnings.")
]
