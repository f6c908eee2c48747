"""``atoll init``: a study file by questions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from atoll.cli import console
from atoll.errors import AtollError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from atoll.protocols.base import Protocol


T = TypeVar("T")

_ASSESSMENT = {
    "purpose": "What is the study for?",
    "legal_basis": "On which legal basis?",
    "controller": "Who is the controller?",
    "processors": "Who processes on their behalf (several: with commas)?",
    "data_categories": "Which categories of data (with commas)?",
    "retention": "How long are results kept?",
    "contact": "Whom can one ask about it?",
}
_LISTS = ("processors", "data_categories")


def init(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY.toml", help="The study file to write.", show_default=False)
    ] = Path("study.toml"),
) -> None:
    """Ask what a study should be, and write its file.

    An empty answer takes what stands in brackets, or leaves the thing out.
    The file is checked before it is written, and never written over
    another one.
    """
    if study.exists():
        raise ParameterError(f"{study} is there already", hint="name another file: atoll init other.toml")
    if not study.absolute().parent.is_dir():
        raise ParameterError(f"there is no folder {study.parent}", hint="make it first")
    protocol, tables = _asked(study)
    while (problem := _problem(written(tables), study)) is not None:
        console.print_error(problem)
        _say("Once more, what is computed and who receives it:")
        tables["parameters"], tables["release"] = (
            _parameters(protocol),
            _releases(protocol, tables["party"]),
        )
    study.write_text(written(tables), encoding="utf-8")
    command = console.own_command()
    console.out().print(f"wrote {study}", soft_wrap=True)
    console.out().print(
        f"go on with: {command} review {shlex.quote(str(study))}", soft_wrap=True, markup=False
    )


def _problem(text: str, study: Path) -> AtollError | None:
    """What every other command would say of it, read from beside its place: paths count from there."""
    from atoll.runtime.studies import open_study

    draft = study.with_name(f".{study.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        open_study(draft)
    except AtollError as error:
        said = error.message.partition(": ")[2] or error.message
        return ParameterError(f"there can be no such study: {said}", hint=error.hint)
    finally:
        draft.unlink(missing_ok=True)
    return None


# ---- questions ----


def _asked(study: Path) -> tuple[Protocol, dict[str, Any]]:
    """The study's tables, as its file has them."""
    name = _ask("What is the study called?", study.stem)
    protocol = _protocol()
    islands = _names("Which islands bring records (names, with commas)?", at_least=2)
    parties = [{"name": island, "role": _data_role(protocol)} for island in islands]
    parties += _others(protocol, islands)
    parameters = _parameters(protocol)
    local: dict[str, Any] = {"data": _each(islands, "Where is the table of {}?")}
    if "epsilon" in parameters:
        local["identities"] = _each(islands, "What does its owner call the data set of {}?")
    return protocol, {
        "study": {"name": name, "analysis": protocol.analysis, "protocol": protocol.name},
        "parameters": parameters,
        "party": parties,
        "release": _releases(protocol, parties),
        "assessment": _assessment(),
        "local": {key: table for key, table in local.items() if table},
    }


def _protocol() -> Protocol:
    from atoll.protocols import PROTOCOLS, protocol_of

    known = [protocol_of(name) for name in PROTOCOLS]
    offered = [one for one in known if not one.follows and one.analysis == "pca"]
    for number, one in enumerate(offered, 1):
        _say(f"  {number}  {one.title}. {one.adversary}")

    def read(said: str) -> Protocol:
        chosen = [one for i, one in enumerate(offered, 1) if said in (str(i), one.name)]
        if not chosen:
            raise ValueError(f"a number from 1 to {len(offered)}")
        return chosen[0]

    return _until("Which way of computing it?", "1", read)


def _data_role(protocol: Protocol) -> str:
    return next(role for role in protocol.roles if role in protocol.data_roles)


def _others(protocol: Protocol, islands: Sequence[str]) -> list[dict[str, Any]]:
    """Roles without records: one that is needed is played by somebody, another one may be left out."""
    players: dict[str, list[str]] = {}
    for role in protocol.roles:
        if role in protocol.data_roles:
            continue
        needed = role in protocol.single_roles
        more = "" if needed else " (empty: nobody)"
        asked = f"Who is the {role.replace('_', ' ')}?{more}"
        said = _ask(asked, role if needed and role not in islands else "")
        for name in [said] if said else []:
            players.setdefault(name, []).append(role)
    return [{"name": name, "roles": roles} for name, roles in players.items()]


def _parameters(protocol: Protocol) -> dict[str, Any]:
    found: dict[str, Any] = {"n_components": _until("How many components?", "2", _whole)}
    takes, needs = getattr(protocol.parameters, "takes", ()), getattr(protocol.parameters, "needs", ())
    if "epsilon" not in takes:
        return found
    empty = "" if "epsilon" in needs else " (empty: an exact result)"
    epsilon = _until(f"Epsilon, for a differentially private result?{empty}", "", _number_or_none)
    if epsilon is None:
        return found
    found["epsilon"] = epsilon
    found["delta"] = _until("Delta, far below one divided by the number of rows?", "1e-5", _number)
    if "row_norm" in takes:
        bound = "A public bound on the length of a row, never taken from the rows? (empty: none)"
        found["row_norm"] = _until(bound, "", _number_or_none)
    return {name: value for name, value in found.items() if value is not None}


def _releases(protocol: Protocol, parties: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    playing = {role for party in parties for role in (party.get("roles") or [party["role"]])}
    released = {}
    for number, (name, output) in enumerate(protocol.outputs.items()):
        able = [role for role in output.roles if role in playing]
        if not able or not output.values:
            continue
        _say(f"  {name}: {output.words}. It can go to {', '.join(able)}, or to some of these by name.")
        usual = ", ".join(role for role in able if role in protocol.data_roles) if number == 0 else ""
        to = _list(_ask(f"Who receives {name}? (- for nobody)", usual))
        if to and to != ["-"]:
            released[name] = to
    return released


def _assessment() -> dict[str, Any]:
    _say("For the impact assessment; what is left empty is marked “to be filled in”.")
    said = {key: _ask(question, "") for key, question in _ASSESSMENT.items()}
    return {key: _list(value) if key in _LISTS else value for key, value in said.items() if value}


def _each(islands: Sequence[str], question: str) -> dict[str, str]:
    said = {island: _ask(f"{question.format(island)} (empty: later)", "") for island in islands}
    return {island: answer for island, answer in said.items() if answer}


def _names(question: str, at_least: int) -> list[str]:
    def read(said: str) -> list[str]:
        names = _list(said)
        if len(names) < at_least:
            raise ValueError(f"at least {at_least} names, with commas between them")
        return names

    return _until(question, "", read)


def _until(question: str, usual: str, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read."""
    while True:
        try:
            return read(_ask(question, usual))
        except ValueError as error:
            _say(f"  {error}")


def _ask(question: str, usual: str) -> str:
    return str(typer.prompt(question, default=usual, show_default=bool(usual), err=True)).strip()


def _say(text: str) -> None:
    console.err().print(text, markup=False)


def _list(said: str) -> list[str]:
    return [part.strip() for part in said.split(",") if part.strip()]


def _whole(said: str) -> int:
    try:
        return int(said)
    except ValueError:
        raise ValueError("a whole number") from None


def _number(said: str) -> float:
    try:
        return float(said)
    except ValueError:
        raise ValueError("a number, such as 1 or 1e-5") from None


def _number_or_none(said: str) -> float | None:
    return _number(said) if said else None


# ---- the file ----


def written(tables: dict[str, Any]) -> str:
    """The file's text. A name or a sentence can hold any character, and stays in its quotes."""
    parts = []
    for name, table in tables.items():
        if isinstance(table, list):
            parts += [f"[[{name}]]\n{_pairs(one)}" for one in table]
        elif table:
            parts.append(f"[{name}]\n{_pairs(table)}")
    return "\n".join(parts)


def _pairs(table: dict[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML reads JSON's text
    return repr(value)
