"""A study file: TOML to a study and its local matters, with errors that name file and line.

What only a protocol can judge (roles, outputs, parameters) is checked in :mod:`atoll.runtime.studies`,
which turns those errors into places of this file too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atoll.errors import StudyError, one_of
from atoll.study.model import DEFAULT_SUM, Assessment, Guards, Local, Party, Study, TablePlan
from atoll.study.places import Places
from atoll.study.tables import read_table

_ENDING = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


class _StudyTable(msgspec.Struct, frozen=True):
    name: str
    protocol: str
    analysis: str = "pca"
    secure_sum: str = DEFAULT_SUM
    partition: str = "horizontal"


class _PartyTable(msgspec.Struct, frozen=True):
    name: str
    role: str | None = None
    roles: tuple[str, ...] = ()
    fingerprint: str | None = None


class _LocalTable(msgspec.Struct, frozen=True):
    data: dict[str, Any] = {}
    identities: dict[str, str] = {}
    ledger: str | None = None
    min_colluders: Annotated[int, msgspec.Meta(ge=0)] = 0
    capacities: dict[str, int] = {}
    alignments: dict[str, str] = {}


class _AssessmentTable(Assessment, frozen=True):
    contact: str | None = None


_TABLES = ("study", "parameters", "party", "release", "sum", "table", "guards", "assessment", "local")


@dataclass(frozen=True)
class StudyFile:
    """A study as read from a file, and the means to say where in it something is wrong."""

    path: Path
    study: Study
    local: Local
    places: Places = field(repr=False)

    def located(self, error: StudyError) -> StudyError:
        """The same error, led by file and line."""
        return _located(self.path, self.places, error)


def read_study_file(path: str | Path) -> StudyFile:
    """Read a study file, not yet checked against its protocol."""
    path = Path(path)
    text = _text(path)
    document = _parsed(path, text)
    places = Places(text)
    try:
        return StudyFile(path, _study(document), _local(document, path.parent), places)
    except StudyError as error:
        raise _located(path, places, error) from None


def _located(path: Path, places: Places, error: StudyError) -> StudyError:
    line = places.line(_as_written(places, error.path)) if error.path else None
    where = f"{path}:{line}" if line is not None else f"{path}"
    return StudyError(f"{where}: {error.message}", hint=error.hint, path=error.path)


def _as_written(places: Places, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A party's only role may be written ``role = ...``."""
    roles = len(path) > 2 and path[0] == "party" and path[2] == "roles"
    return (*path[:2], "role") if roles and not places.holds(path[:3]) else path


def _text(path: Path) -> str:
    if not path.is_file():
        what = "is a folder, not a study file" if path.is_dir() else "does not exist"
        raise StudyError(f"{path} {what}", hint="give the path of a study file, such as study.toml")
    data = path.read_bytes()
    try:
        # Some editors write a byte order mark, which is not part of the text.
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{path}:{line}: the file is not UTF-8 text", hint="save it as UTF-8") from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        ending = _ENDING.search(said)
        line = int(ending["line"]) if ending and ending["line"] else text.rstrip("\n").count("\n") + 1
        message = said[: ending.start()] if ending else said
        column = f", column {ending['column']}" if ending and ending["column"] else ""
        twice = any(word in message for word in ("overwrite", "twice", "Duplicate"))
        if twice:  # the parser has read the line by then, and stands at its end
            message, column = _said_twice(text, line), ""
        raise StudyError(
            f"{path}:{line}: {message[:1].lower() + message[1:]}{column}",
            hint="keep one of the two"
            if twice
            else 'this is not valid TOML: text stands in quotes, as in name = "icu"',
        ) from None


def _said_twice(text: str, line: int) -> str:
    written = text.split("\n")[line - 1].strip()
    if written.startswith("["):
        return f"the table {written[: written.rindex(']') + 1]} is there twice"
    if written.count("=") == 1:
        return f"{written.partition('=')[0].strip()!r} is there twice in its table"
    return "a key is there twice in its table"


def _study(document: Mapping[str, Any]) -> Study:
    for name in document:
        if name not in _TABLES:
            if not isinstance(document[name], dict | list):
                raise StudyError(
                    f"{name!r} stands above all tables",
                    hint=f"put [study] above it, or move it below: tables are {', '.join(_TABLES)}",
                    path=(name,),
                )
            raise StudyError(
                f"there is no table [{name}] in a study",
                hint=one_of(name, _TABLES, "its tables are"),
                path=(name,),
            )
    head = read_table(_table(document, "study", needed=True), _StudyTable, ("study",))
    return Study(
        name=head.name,
        parties=_parties(document),
        protocol=head.protocol,
        analysis=head.analysis,
        secure_sum=head.secure_sum,
        partition=head.partition,
        sum_options=_table(document, "sum"),
        parameters=_table(document, "parameters"),
        release=_release(_table(document, "release")),
        assessment=_assessment(document)[0],
        table=read_table(_table(document, "table"), TablePlan, ("table",)),
        guards=read_table(_table(document, "guards"), Guards, ("guards",)),
    )


def _assessment(document: Mapping[str, Any]) -> tuple[Assessment, str | None]:
    """What all approve, and the contact, which nobody does."""
    stated = msgspec.structs.asdict(
        read_table(_table(document, "assessment"), _AssessmentTable, ("assessment",))
    )
    contact = stated.pop("contact")
    return Assessment(**stated), contact


def _table(document: Mapping[str, Any], name: str, *, needed: bool = False) -> dict[str, Any]:
    if name not in document and needed:
        raise StudyError(f"the study lacks the table [{name}]", hint=f"add a line [{name}]", path=())
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise StudyError(f"{name} must be a table", hint=f"start it with a line [{name}]", path=(name,))
    return table


def _parties(document: Mapping[str, Any]) -> tuple[Party, ...]:
    tables = document.get("party", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise StudyError("party must be a list of tables", hint="write [[party]] once each", path=("party",))
    return tuple(_party(table, ("party", i)) for i, table in enumerate(tables))


def _party(table: Mapping[str, Any], path: tuple[str | int, ...]) -> Party:
    read = read_table(table, _PartyTable, path)
    if (read.role is None) == (not read.roles):
        both = read.role is not None
        raise StudyError(
            f"party {read.name!r} has " + ("role and roles" if both else "no role"),
            hint='write role = "provider", or roles = ["server", "consumer"]',
            path=(*path, "roles") if both else path,
        )
    return Party(read.name, read.roles if read.role is None else (read.role,), read.fingerprint)


def _release(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    release = {}
    for output, named in table.items():
        targets = [named] if isinstance(named, str) else named
        if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
            raise StudyError(
                f"release of {output!r} must name roles or parties",
                hint=f'{output} = ["provider", "consumer"]',
                path=("release", output),
            )
        release[output] = tuple(targets)
    return release


def _local(document: Mapping[str, Any], folder: Path) -> Local:
    """The local table; paths count from the study file's folder."""
    local = read_table(_table(document, "local"), _LocalTable, ("local",))
    for party, file in local.data.items():
        if not isinstance(file, str):
            raise StudyError(
                f"the data of {party!r} must be a path",
                hint=f'data = {{ {party} = "{party}.csv" }}',
                path=("local", "data", party),
            )
    return Local(
        {party: str(folder / file) for party, file in local.data.items()},
        local.identities,
        None if local.ledger is None else str(folder / local.ledger),
        local.min_colluders,
        local.capacities,
        _assessment(document)[1],
        {party: str(folder / file) for party, file in local.alignments.items()},
    )
