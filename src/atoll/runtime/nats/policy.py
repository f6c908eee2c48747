"""A site's policy: which studies its node may take part in, and which it may approve unattended.

What the policy refuses cannot be approved by anybody at the site: it is changed first. What it does not
refuse still needs an approval, unless the policy, or whoever started the node, names the study's digest.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atoll.errors import ParameterError, StudyError
from atoll.protocols import protocol_of
from atoll.protocols.base import with_helpers
from atoll.study.model import Study
from atoll.study.tables import read_table

Count = Annotated[int, msgspec.Meta(ge=0)]


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What studies may be. Whatever is left out is not restricted."""

    protocols: tuple[str, ...] | None = None
    recipients: tuple[str, ...] | None = None
    """Parties, by name or fingerprint, that may learn anything besides this site."""
    min_partners: Count = 0
    """Other parties with data of their own."""
    min_rows: Count = 0
    """Of this site's table."""
    max_epsilon: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """With it, studies without an epsilon are refused."""
    never_columns: tuple[str, ...] = ()
    min_colluders: Count = 0


class Approve(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is approved unattended: studies by their digests, each for one run unless ``repeat``."""

    digests: tuple[str, ...] = ()
    repeat: bool = False


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file ``policy.toml``."""

    allow: Allow = Allow()
    approve: Approve = Approve()


def read_policy(path: Path) -> Policy:
    """The site's policy; without a file nothing is restricted and nothing approved."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Policy()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"{path} is not valid TOML: {error}", hint="no study is approved before"
        ) from None
    try:
        for name in document:
            if name not in ("allow", "approve"):
                raise StudyError(f"there is no table [{name}]", hint="its tables are [allow] and [approve]")
        return Policy(
            allow=read_table(document.get("allow", {}), Allow, ("allow",)),
            approve=read_table(document.get("approve", {}), Approve, ("approve",)),
        )
    except StudyError as error:
        raise ParameterError(f"{path}: {error.message}", hint=error.hint) from None


class Table(msgspec.Struct, frozen=True):
    """What a policy asks of this site's table."""

    columns: tuple[str, ...]
    rows: int


def refusals(policy: Policy, study: Study, me: str, table: Table | None) -> list[str]:
    """Why the policy refuses a study, for the site's own eyes; empty where it does not."""
    allow, said = policy.allow, []
    if allow.protocols is not None and study.protocol not in allow.protocols:
        said.append(f"the protocol {study.protocol} is not allowed")
    partners = [name for name in protocol_of(study.protocol).table_holders(study) if name != me]
    if len(partners) < allow.min_partners:
        said.append(f"{len(partners)} other parties bring data, at least {allow.min_partners} must")
    said += _about_recipients(allow, study, me)
    said += _about_privacy(allow, study)
    if table is not None:
        said += _about_table(allow, study, table)
    return said


def learners(study: Study) -> list[str]:
    """The parties that learn something: an output, or what their role sees by the protocol's nature."""
    protocol = with_helpers(protocol_of(study.protocol), study)
    seeing = {d.role for d in protocol.learns(study)}
    given = {address.party for output in protocol.outputs for address in study.receivers(output)}
    return [p.name for p in study.parties if p.name in given or seeing & set(p.roles)]


def _about_recipients(allow: Allow, study: Study, me: str) -> Sequence[str]:
    if allow.recipients is None:
        return ()
    fingerprints = {party.name: party.fingerprint for party in study.parties}
    others = [
        name
        for name in learners(study)
        if name != me and name not in allow.recipients and fingerprints[name] not in allow.recipients
    ]
    return [f"{', '.join(others)} would learn something, and is no allowed recipient"] if others else ()


def _about_privacy(allow: Allow, study: Study) -> Sequence[str]:
    terms = protocol_of(study.protocol).privacy(study)
    promised = terms is not None and bool(terms.costs)
    said = []
    if allow.max_epsilon is not None:
        if terms is None or not promised:
            said.append(f"it promises no epsilon, and {allow.max_epsilon:g} is the most")
        elif terms.epsilon > allow.max_epsilon:
            said.append(f"its epsilon is {terms.epsilon:g}, and {allow.max_epsilon:g} is the most")
    withstood = None if terms is None or not promised else terms.colluders
    if withstood is not None and withstood < allow.min_colluders:
        said.append(f"its noise withstands {withstood} colluding owners, not {allow.min_colluders}")
    return said


def _about_table(allow: Allow, study: Study, table: Table) -> Sequence[str]:
    said = []
    if table.rows < allow.min_rows:
        said.append(f"the table has fewer than {allow.min_rows} rows")
    # A column may be named as target, weights, id or level of a schema too: every text of the study counts.
    used = set(_texts(study.parameters))
    used |= {*(study.table.columns or ()), *study.table.categorical}
    named = study.table.columns is not None or study.parameters.get("columns") is not None
    if not named and "schema" not in study.parameters:
        used |= set(table.columns) - set(study.table.exclude)
    never = [column for column in allow.never_columns if column in used]
    if never:
        said.append(f"it would use {', '.join(never)}, which is never to be used")
    return said


def _texts(value: Any) -> Iterator[str]:
    """Every text in a study's parameters, however deep it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (str(key), *_texts(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
