"""Plain tables (from TOML, from keyword arguments) to typed structs, with errors that say where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from atoll.errors import StudyError, one_of

S = TypeVar("S", bound=msgspec.Struct)

Path = tuple[str | int, ...]

_WHERE = re.compile(r"^(?P<said>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def read_table(table: Mapping[str, Any], kind: type[S], path: Path) -> S:
    """``table`` as ``kind``, whose fields are all it may hold; ``path`` is where it stands in the study."""
    known = kind.__struct_fields__
    for key in table:
        if key not in known:
            raise StudyError(f"{_place(path)} has no {key!r}", hint=_known(key, known), path=(*path, key))
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in table:
            raise StudyError(
                f"{_place(path)} lacks {field.name!r}", hint=f"add {field.name} = ...", path=path
            )
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        said, inner = _split(str(error))
        place = ".".join(str(step) for step in inner if isinstance(step, str)) or _place(path)
        raise StudyError(
            f"{place}: {_plain(said)}",
            hint="text stands in quotes; numbers, true and false do not; lists stand in [ ]",
            path=(*path, *inner),
        ) from None


def _place(path: Path) -> str:
    names = ".".join(str(step) for step in path if isinstance(step, str))
    return f"[[{names}]]" if path and isinstance(path[-1], int) else f"[{names}]"


def _known(key: str, known: tuple[str, ...]) -> str:
    return one_of(key, known, "it may hold") if known else "it takes no options"


def _split(message: str) -> tuple[str, Path]:
    match = _WHERE.match(message)
    assert match is not None  # the expression matches any text
    steps = _STEP.findall(match["path"] or "")
    return match["said"], tuple(name or int(index) for name, index in steps)


def _plain(said: str) -> str:
    """msgspec's words for types, as a reader of TOML knows them."""

    def words(match: re.Match[str]) -> str:
        kinds = match[1].split(" | ")
        return " or ".join(_KINDS.get(kind, kind) for kind in kinds if kind != "null" or len(kinds) == 1)

    said = re.sub(r"`([^`]+)`", words, said)
    return said[:1].lower() + said[1:]
