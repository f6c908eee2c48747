"""Fingerprints written into a study file's text, beside the names of parties; all else stays as it was."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from atoll.errors import StudyError

_HEADER = re.compile(r"^\s*\[")
_NAME = re.compile(r"^(\s*)name\s*=")


def pinned_text(text: str, known: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with a fingerprint for every party that is known, and the names of those that have none."""
    try:
        parties = tomllib.loads(text).get("party", [])
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"this is not valid TOML: {error}") from None
    if not isinstance(parties, list) or not parties:
        raise StudyError("the study names no [[party]]", hint="write [[party]] once for each")
    lines, out, place, inside = text.splitlines(keepends=True), list[str](), -1, False
    for line in lines:
        out.append(line)
        if _HEADER.match(line):
            inside = line.strip().startswith("[[party]]")
            place += inside
        named = _NAME.match(line) if inside else None
        party = parties[place] if named and place < len(parties) else {}
        if named and "fingerprint" not in party and party.get("name") in known:
            ending = "\n" if line.endswith("\n") else ""
            out[-1] = line if ending else line + "\n"
            out.append(f'{named[1]}fingerprint = "{known[party["name"]]}"{ending}')
    missing = [
        p["name"] for p in parties if "fingerprint" not in p and p.get("name") not in known and "name" in p
    ]
    return "".join(out), missing
