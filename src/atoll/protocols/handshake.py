"""Schema handshake: all islands agree on columns and their order before a number moves.

Every provider checks that its columns hold numbers and tells their names to one role, which compares
them, names what is missing or extra and where, and answers with the agreed order. Learned by that
role: column names.

A provider believes no answer that it can check: it reads no column but those that the study names or, where
the study names none, those that it announced itself, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from atoll.codec import Message
from atoll.data.island import Island
from atoll.errors import DataError, MessageError, SchemaError, several
from atoll.network import Network
from atoll.study.address import Address


class Columns(Message, frozen=True):
    """Provider -> checking role: what its table looks like; where islands hold columns of the same rows, the
    name of the order that an alignment gave these."""

    names: tuple[str, ...]
    named: bool
    order: str = ""


class AgreedColumns(Message, frozen=True):
    """Checking role -> provider: the columns of the study, in this order."""

    names: tuple[str, ...]
    named: bool


class JoinedColumns(Message, frozen=True):
    """Checking role -> provider: all islands' columns side by side, how many are whose, and the order of the
    rows."""

    names: tuple[str, ...]
    widths: tuple[int, ...]
    named: bool
    order: str = ""


MESSAGES = (Columns, AgreedColumns)

_SHOWN = 5


def describe(
    island: Island, wanted: Sequence[str] | None, label: str | None, row_ids: str | None = None
) -> Columns:
    """What a provider tells: its feature columns, or of the wanted ones those it has."""
    asked = set(island.columns if wanted is None else wanted)
    names = [c for c in island.columns if c not in (label, row_ids) and c in asked]
    if row_ids is not None and row_ids not in island.columns:
        raise SchemaError(
            f"{island.name}: there is no column of row ids {row_ids!r}",
            hint="it is named under [parameters]: row_ids = ...",
        )
    if label is not None and label not in island.columns:
        raise SchemaError(
            f"{island.name}: there is no label column {label!r}",
            hint=f"its columns are {_listing(island.columns)}",
        )
    island.check_numbers(names)
    return Columns(tuple(names), island.named)


def agree(schemas: Mapping[Address, Columns], wanted: Sequence[str] | None) -> AgreedColumns:
    """The agreed columns, or an error that names island and column."""
    first, reference = next(iter(schemas.items()))
    names = tuple(wanted) if wanted is not None else reference.names
    if not names:
        raise SchemaError(f"{first.party}: 0 feature(s) (no columns) while a minimum of 1 is required")
    problems: list[DataError] = []
    for address, schema in schemas.items():
        try:
            _check_distinct(address, schema)
            _compare(address, schema, first, reference, names, wanted is not None)
        except SchemaError as error:
            problems.append(error)
    if problems:
        raise several(problems)
    return AgreedColumns(names, reference.named or wanted is not None)


def join(schemas: Mapping[Address, Columns], wanted: Sequence[str] | None) -> JoinedColumns:
    """The columns of islands that hold different ones, or an error that names island and column."""
    first, reference = next(iter(schemas.items()))
    owners: dict[str, Address] = {}
    for address, schema in schemas.items():
        if not schema.names:
            raise SchemaError(f"{address.party}: 0 feature(s) (no columns) while a minimum of 1 is required")
        _check_distinct(address, schema)
        _check_named(address, schema, first, reference)
        _check_order(address, schema, first, reference)
        for name in schema.names if schema.named else ():
            if name in owners:
                raise SchemaError(
                    f"{address.party} has the column {name!r}, which {owners[name].party} has too",
                    hint="where islands hold columns, each is on one of them: rename it, or leave it out",
                )
            owners[name] = address
    missing = [name for name in wanted or () if name not in owners]
    if missing:
        raise SchemaError(f"no island has {_listing(missing)}, which the study has", hint=_RENAME)
    widths = tuple(len(schema.names) for schema in schemas.values())
    names = tuple(owners) if reference.named else tuple(f"x{i}" for i in range(sum(widths)))
    return JoinedColumns(names, widths, reference.named, reference.order)


def _check_distinct(address: Address, schema: Columns) -> None:
    seen: set[str] = set()
    for name in schema.names:
        if name in seen:
            raise SchemaError(f"{address.party} announces the column {name!r} twice")
        seen.add(name)


def _check_named(address: Address, schema: Columns, first: Address, reference: Columns) -> None:
    if schema.named != reference.named:
        raise SchemaError(
            f"the columns of {address.party} are {'named' if schema.named else 'not named'}, "
            f"those of {first.party} are {'named' if reference.named else 'not named'}",
            hint="hand in frames everywhere or arrays everywhere",
        )


def _check_order(address: Address, schema: Columns, first: Address, reference: Columns) -> None:
    """Rows that one alignment put in order, or that their owners say are in one order: never a mixture."""
    if schema.order == reference.order:
        return
    if schema.order and reference.order:
        wrong = f"the rows of {address.party} and {first.party} come from two different alignments"
    else:
        aligned, other = (address, first) if schema.order else (first, address)
        wrong = f"the rows of {aligned.party} were aligned, those of {other.party} were not"
    raise SchemaError(wrong, hint="hand in what one atoll.align (protocol 'align') gave, of every island")


def _compare(
    address: Address, schema: Columns, first: Address, reference: Columns, names: tuple[str, ...], fixed: bool
) -> None:
    if not schema.named and not reference.named and len(schema.names) != len(names):
        raise SchemaError(
            f"{address.party} has {len(schema.names)} columns, {first.party} has {len(names)}",
            hint="all islands need the same columns; name them (a frame, or columns=) to see which differ",
        )
    if not fixed:
        _check_named(address, schema, first, reference)
    against = "the study" if fixed else first.party
    wanted, found = set(names), set(schema.names)
    missing = [c for c in names if c not in found]
    extra = [c for c in schema.names if c not in wanted]
    if missing:
        instead = f"; it has {_listing(extra)} instead" if extra else ""
        raise SchemaError(
            f"{address.party} lacks {_listing(missing)}, which {against} has{instead}", hint=_RENAME
        )
    if extra:
        raise SchemaError(f"{address.party} has {_listing(extra)}, which {against} lacks", hint=_RENAME)


_RENAME = (
    "names are compared letter by letter, capitals and spaces too: rename it, or give the study the columns "
    "that all islands have (columns = [...])"
)


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def check_agreed(
    agreed: AgreedColumns, own: Columns, wanted: Sequence[str] | None, island: str, checker: Address
) -> None:
    """Refuse columns other than those that the study names, or else the island announced."""
    due = own.names if wanted is None else tuple(wanted)
    _check_asked(agreed.names, due, own.names, island, checker)
    ordered = wanted is not None or not own.named  # else the order is the first island's
    if ordered and agreed.names != due:
        raise _distrusted(f"{checker} asks {island} for its columns in another order than was agreed")
    if agreed.named != (own.named or wanted is not None):
        raise _distrusted(f"{checker} says of the columns of {island} that they are named otherwise")


def check_own_place(
    joined: JoinedColumns,
    own: Columns,
    wanted: Sequence[str] | None,
    me: Address,
    providers: Sequence[Address],
    checker: Address,
) -> None:
    """Refuse a joint table in which an island's own columns are not where and what they are."""
    names, widths, place, island = joined.names, joined.widths, providers.index(me), me.party
    if len(widths) != len(providers) or sum(widths) != len(names) or min(widths) < 1:
        raise _distrusted(
            f"{checker} sent {island} numbers of columns that do not fit the islands or the names"
        )
    if widths[place] != len(own.names) or joined.named != own.named:
        raise _distrusted(
            f"{checker} says that {island} has {widths[place]} columns; it has {len(own.names)}"
        )
    if joined.order != own.order:
        raise _distrusted(f"{checker} says that the rows of {island} are in another order than they are")
    if not own.named:
        if names != tuple(f"x{i}" for i in range(len(names))):
            raise _distrusted(f"{checker} sent {island} names of columns that have none")
        return
    start = sum(widths[:place])
    for here, mine in zip(names[start : start + len(own.names)], own.names, strict=True):
        if here != mine:
            raise _distrusted(f"{checker} puts {here!r} in the place of the column {mine!r} of {island}")
    _check_asked(names, names if wanted is None else wanted, names, island, checker)


def _check_asked(
    names: Sequence[str], due: Sequence[str], held: Sequence[str], island: str, checker: Address
) -> None:
    """Every due column once, and no other."""
    announced, expected, seen = set(held), set(due), set[str]()
    for name in names:
        if name not in announced or name not in expected:
            where = "named in the study" if name in announced else "announced"
            raise _distrusted(f"{checker} asks {island} for the column {name!r}, which was not {where}")
        if name in seen:
            raise _distrusted(f"{checker} asks {island} twice for the column {name!r}")
        seen.add(name)
    left_out = [name for name in due if name not in seen]
    if left_out:
        raise _distrusted(f"{checker} leaves out the column {left_out[0]!r} of {island}")


def _distrusted(message: str) -> MessageError:
    return MessageError(message, hint="nothing of the table was read; ask whoever agrees on the columns why")


async def announce(
    net: Network,
    island: Island,
    checker: Address,
    wanted: Sequence[str] | None,
    label: str | None,
    row_ids: str | None = None,
) -> AgreedColumns:
    """The provider's side."""
    own = describe(island, wanted, label, row_ids)
    await net.send(checker, own)
    agreed = await net.receive(AgreedColumns, checker)
    check_agreed(agreed, own, wanted, island.name, checker)
    return agreed


async def learn(net: Network, checker: Address, wanted: Sequence[str] | None) -> AgreedColumns:
    """The side of a role that has no table and is told the columns."""
    agreed = await net.receive(AgreedColumns, checker)
    own = Columns(agreed.names, agreed.named) if wanted is None else Columns(tuple(wanted), True)
    check_agreed(agreed, own, wanted, net.me.party, checker)
    return agreed


async def check(net: Network, providers: Sequence[Address], wanted: Sequence[str] | None) -> AgreedColumns:
    """The checking role's side."""
    agreed = agree(await net.gather(Columns, providers), wanted)
    await net.broadcast(providers, agreed)
    return agreed


async def announce_own(
    net: Network, island: Island, checker: Address, wanted: Sequence[str] | None, providers: Sequence[Address]
) -> tuple[JoinedColumns, tuple[str, ...]]:
    """The side of a provider that holds columns of its own: all columns, and its own."""
    own = msgspec.structs.replace(describe(island, wanted, None), order=island.order)
    await net.send(checker, own)
    joined = await net.receive(JoinedColumns, checker)
    check_own_place(joined, own, wanted, net.me, providers, checker)
    return joined, own.names


async def check_joined(
    net: Network, providers: Sequence[Address], wanted: Sequence[str] | None
) -> JoinedColumns:
    """The checking role's side, where islands hold columns."""
    joined = join(await net.gather(Columns, providers), wanted)
    await net.broadcast(providers, joined)
    return joined
