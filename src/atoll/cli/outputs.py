"""Where commands write: a folder that gets all files of a run together, or none."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.errors import ParameterError

if TYPE_CHECKING:
    from atoll.runtime.result import Result


@contextmanager
def written_together(target: Path) -> Iterator[Path]:
    """A folder to write into. Its files appear in ``target`` when the block ends well, else nowhere.

    It is made beforehand, so that a place that cannot be written to is known before a long run.
    """
    if target.exists() and not target.is_dir():
        raise ParameterError(f"{target} is a file, not a folder", hint="choose another one with --output")
    place = next(folder for folder in (target, *target.absolute().parents) if folder.is_dir())
    try:
        staging = Path(tempfile.mkdtemp(dir=place, prefix=".atoll-"))
    except OSError as error:
        raise ParameterError(
            f"cannot write to {target}: {error.strerror}", hint="choose another folder with --output"
        ) from None
    try:
        yield staging
        target.mkdir(parents=True, exist_ok=True)
        for file in sorted(staging.iterdir()):
            file.replace(target / file.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def file_name(study_name: str) -> str:
    """A study's name as a file's: letters, digits, dots, dashes; never a path."""
    return re.sub(r"[^\w.-]+", "-", study_name).strip("-.") or "study"


def write_result(result: Result, folder: Path) -> list[Path]:
    """The result file, and the tables and figures that the analysis makes of what was released."""
    from atoll.report.analyses import renderer_of
    from atoll.runtime.result import write_whole

    name = file_name(result.study.name)
    files = [result.save(folder / f"{name}.atoll")]
    for ending, data in renderer_of(result.study.analysis).files(result):
        path = folder / f"{name}{ending}"
        write_whole(path, data)  # readable by its owner only: projections are data about single records
        files.append(path)
    return files
