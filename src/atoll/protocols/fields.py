"""Which columns of a table a model uses, and how islands agree on them.

A study names the target and, if it likes, the other columns; each island tells one role the names of its
columns and, of those that hold categories, the levels. That role answers with the joint list: numbers in
the first island's order, levels in their natural order. An island believes no answer that it can check: it
reads no column but those that the study names or that it announced, and its own levels must all be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from atoll.codec import Message
from atoll.data.island import Island
from atoll.data.levels import MAX_LEVELS, check_classes, levels_of, sorted_levels
from atoll.errors import MessageError, SchemaError, StudyError
from atoll.study.model import Parameters


class FieldParameters(Parameters, frozen=True):
    """What of a table a model uses.

    ``target``: the column to be explained; ``columns``: those that explain it, or all others;
    ``categorical``: those of them that hold categories; ``levels``: their levels, where the study says
    them (else islands tell theirs); ``weights`` and ``offset``: columns with prior weights and with a known
    part of the predictor; ``missing``: "refuse" a table with missing values, or "drop" such rows and
    count them.
    """

    target: str | None = None
    columns: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    weights: str | None = None
    offset: str | None = None
    missing: Literal["refuse", "drop"] = "refuse"

    @property
    def special(self) -> tuple[str, ...]:
        """Columns that are used otherwise than to explain."""
        return tuple(name for name in (self.target, self.weights, self.offset) if name is not None)


class Fields(Message, frozen=True):
    """Provider -> server: its feature columns in order, and the levels of those that hold categories."""

    names: tuple[str, ...]
    named: bool
    levels: dict[str, tuple[str, ...]]


class AgreedFields(Message, frozen=True):
    """Server -> provider: the columns of all islands, in this order, with the levels of all of them."""

    names: tuple[str, ...]
    named: bool
    levels: dict[str, tuple[str, ...]]


def check_fields(p: FieldParameters, classifies: bool) -> None:
    """What a study's types cannot say of its columns."""
    for name, wrong, why in (
        ("columns", p.columns is not None and not p.columns, "columns must name at least one column"),
        ("columns", len(set(p.columns or ())) < len(p.columns or ()), "columns names a column twice"),
        (
            "columns",
            bool(set(p.special) & set(p.columns or ())),
            "columns names the target, weights or offset",
        ),
        (
            "target",
            len(set(p.special)) < len(p.special),
            "target, weights and offset must be different columns",
        ),
        (
            "categorical",
            bool(set(p.special) & set(p.categorical)),
            "categorical names the target, weights or offset",
        ),
        (
            "categorical",
            p.columns is not None and not set(p.categorical) <= set(p.columns),
            "categorical names a column that is not among columns",
        ),
        (
            "levels",
            not set(p.levels) <= {*p.categorical, *((p.target,) if classifies else ())},
            "levels names a column that holds no categories",
        ),
    ):
        if wrong:
            raise StudyError(why, path=("parameters", name))


# ---- what an island tells ----


def own_fields(island: Island, p: FieldParameters, classes: bool, beside: Sequence[str] = ()) -> Fields:
    """What this island tells: columns that exist and hold what they must, and levels.

    ``beside``: columns that are not used, unless the study names them.
    """
    others = {*p.special, *beside}
    asked = p.columns if p.columns is not None else tuple(c for c in island.columns if c not in others)
    missing = [name for name in (*asked, *p.special, *p.categorical) if name not in island.columns]
    if missing:
        raise SchemaError(
            f"{island.name}: there is no column {missing[0]!r}, which the study uses",
            hint=f"its columns are {', '.join(map(repr, island.columns[:5]))}",
        )
    island.check_numbers([name for name in asked if name not in p.categorical])
    telling = [*p.categorical, *([p.target] if classes and p.target else [])]
    levels = {name: levels_of(island, name) for name in telling if name not in p.levels}
    if classes and p.target in levels:
        check_classes(levels[p.target], island.name, p.target)
    return Fields(asked, island.named, levels)


# ---- what they agree on ----


def agree(told: Mapping[str, Fields], p: FieldParameters) -> AgreedFields:
    """The joint columns and levels, or an error that names island and column. ``told``: by island."""
    first, reference = next(iter(told.items()))
    for island, fields in told.items():
        lacking = [name for name in reference.names if name not in fields.names]
        extra = [name for name in fields.names if name not in reference.names]
        if lacking or extra:
            one, other, name = (island, first, lacking[0]) if lacking else (first, island, extra[0])
            raise SchemaError(
                f"{one} lacks {name!r}, which {other} has",
                hint="rename it, or name the columns that all islands have (columns = [...])",
            )
        if fields.named != reference.named:
            raise SchemaError(f"the columns of {island} and of {first} are not both named")
    if not reference.names:
        raise SchemaError(f"{first}: there is no column to use")
    levels = {name: set[str]() for name in reference.levels}
    for fields in told.values():
        for name in levels:
            levels[name] |= set(fields.levels.get(name, ()))
    for name, found in levels.items():
        if len(found) > MAX_LEVELS:
            raise SchemaError(
                f"column {name!r} holds {len(found):,} different values on all islands: that is no category",
                hint="leave the column out, group its values, or name its levels in the study",
            )
    joint = {name: tuple(sorted_levels(found)) for name, found in levels.items()}
    return AgreedFields(reference.names, reference.named, joint | dict(p.levels))


def check_agreed(agreed: AgreedFields, own: Fields, p: FieldParameters, island: str, server: object) -> None:
    """Refuse columns that were not announced, and levels that are not those of this island and others."""
    due = own.names if p.columns is None else p.columns
    if sorted(agreed.names) != sorted(due) or len(set(agreed.names)) < len(agreed.names):
        raise _distrusted(f"{server} asks {island} for other columns than were announced")
    if set(agreed.levels) != {*own.levels, *p.levels}:
        raise _distrusted(f"{server} sent {island} levels of other columns than those with categories")
    for name, levels in agreed.levels.items():
        if name in p.levels and levels != p.levels[name]:
            raise _distrusted(f"{server} sent {island} other levels of {name!r} than the study says")
        if name not in p.levels and len(levels) > MAX_LEVELS:
            raise _distrusted(f"{server} sent {island} {len(levels):,} levels of {name!r}")
        if not set(own.levels.get(name, ())) <= set(levels) or len(set(levels)) < len(levels):
            raise _distrusted(f"{server} leaves out levels of {name!r} that {island} has")


def _distrusted(message: str) -> MessageError:
    return MessageError(message, hint="nothing of the table was read; ask whoever agrees on the columns why")


def terms(agreed: AgreedFields, categorical: Sequence[str]) -> tuple[str, ...]:
    """The names of a design's columns: a number is one, a category one for each level but the first."""
    names: list[str] = []
    for name in agreed.names:
        if name in categorical:
            names.extend(f"{name}[{level}]" for level in agreed.levels[name][1:])
        else:
            names.append(name)
    return tuple(names)
