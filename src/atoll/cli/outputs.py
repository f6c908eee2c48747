"""Where commands write: a folder that gets all files of a run together, or none.

Everybody who receives something has a folder there, with what the study releases to them and nothing else. A
list beside these folders says who got what. By it, files of an earlier run of the same study that this one
does not write again are taken away.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.errors import ParameterError

if TYPE_CHECKING:
    from atoll.runtime.execute import Run
    from atoll.runtime.result import Result

LIST = "-recipients.json"
"""The ending of the name of the list of who got what."""
LEAST_ROOM = 1 << 16
"""Bytes: with less, no result could be written, and a private run would spend its budget in vain."""


class Delivery(NamedTuple):
    """What one party gets: the released values, and the files that hold them, relative to the folder."""

    released: tuple[str, ...]
    files: tuple[Path, ...]


@contextmanager
def written_together(target: Path) -> Iterator[Path]:
    """A folder to write into. Its files appear in ``target`` when the block ends well, else nowhere.

    It is made beforehand, so that a place that cannot be written to is known before a long run.
    """
    for folder in (target, *target.parents):
        if folder.is_file():
            raise ParameterError(f"{folder} is a file, not a folder", hint="choose another one with --output")
    place = next(folder for folder in (target, *target.absolute().parents) if folder.is_dir())
    try:
        if shutil.disk_usage(place).free < LEAST_ROOM:
            raise ParameterError(
                f"there is no room left in {target}", hint="choose another one with --output"
            )
        staging = Path(tempfile.mkdtemp(dir=place, prefix=".atoll-"))
    except OSError as error:
        raise ParameterError(
            f"cannot write to {target}: {error.strerror}", hint="choose another folder with --output"
        ) from None
    try:
        yield staging
        _publish(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _publish(staging: Path, target: Path) -> None:
    """Every file to its place, lists last; then what earlier lists name and the new ones do not goes."""
    new = sorted(path.relative_to(staging) for path in staging.rglob("*") if path.is_file())
    lists = [path for path in new if path.name.endswith(LIST)]
    stale = {path for one in lists for path in _listed(target / one)} - {target / path for path in new}
    target.mkdir(parents=True, exist_ok=True)
    for path in [*(path for path in new if path not in lists), *lists]:
        (target / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what one party gets
        (staging / path).replace(target / path)
    for path in stale:
        path.unlink(missing_ok=True)
        if path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()


def _listed(path: Path) -> set[Path]:
    """The files that an earlier list names: only such as a run writes, whatever the list says."""
    try:
        recipients = json.loads(path.read_text(encoding="utf-8"))["recipients"]
        named = [Path(file) for one in recipients.values() for file in one["files"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
    study = path.name.removesuffix(LIST)
    return {
        path.parent / file
        for file in named
        if len(file.parts) == 2 and ".." not in file.parts and file.name.startswith(study)
    }


def file_name(name: str, otherwise: str = "study") -> str:
    """A study's or a party's name as a file's: letters, digits, dots, dashes; never a path."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or otherwise


def write_recipients(finished: Run, folder: Path) -> dict[str, Delivery]:
    """A folder for each party to which something was released, and the list of who got what."""
    folder.mkdir(exist_ok=True)
    study = finished.result.study
    written: dict[str, Delivery] = {}
    for name, (party, result) in zip(folder_names(finished.by_party), finished.by_party.items(), strict=True):
        place = folder / name
        place.mkdir(mode=0o700)
        files = tuple(path.relative_to(folder) for path in write_result(result, place))
        written[party] = Delivery(tuple(sorted(result.outputs)), files)
    listed = {
        "study": study.name,
        "digest": study.digest,
        "recipients": {
            party: {"released": list(one.released), "files": [str(path) for path in one.files]}
            for party, one in written.items()
        },
    }
    text = json.dumps(listed, indent=2, ensure_ascii=False)
    (folder / f"{file_name(study.name)}{LIST}").write_text(text + "\n", encoding="utf-8")
    return written


def folder_names(parties: Mapping[str, object]) -> list[str]:
    """Names of folders, none twice, whatever the parties are called."""
    names: list[str] = []
    for party in parties:
        name, number = file_name(party, "party"), 1
        while (name if number == 1 else f"{name}-{number}").casefold() in map(str.casefold, names):
            number += 1
        names.append(name if number == 1 else f"{name}-{number}")
    return names


def write_result(result: Result, folder: Path, *, shown: bool = True) -> list[Path]:
    """The result file and, unless only that is wanted, what the analysis makes of it: tables and figures."""
    from atoll.report.analyses import renderer_of
    from atoll.runtime.result import write_whole

    name = file_name(result.study.name)
    files = [result.save(folder / f"{name}.atoll")]
    for ending, data in renderer_of(result.study.analysis).files(result) if shown else ():
        path = folder / f"{name}{ending}"
        write_whole(path, data)  # readable by its owner only: projections are data about single records
        files.append(path)
    return files
