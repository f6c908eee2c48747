"""The joint table's columns and rows, and an island's part of it.

Every island tells the server the names of its columns and how many rows it has; the server checks that the
rows are as many everywhere and the names different, and answers with all of them. Islands compare the answer
and, where all have the target, the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from atoll.codec import Message
from atoll.data.island import Chosen, Island, Matrix
from atoll.data.levels import check_classes, codes, levels_of
from atoll.data.statistics import raise_for_missing
from atoll.errors import DataError, SchemaError
from atoll.network import Network
from atoll.protocols import checked, handshake
from atoll.protocols.agreement import compare
from atoll.protocols.handshake import Columns, JoinedColumns
from atoll.protocols.learning import normal
from atoll.protocols.learning.columns.consent import JointParameters
from atoll.study.address import Address

NO_CLASSES: tuple[str, ...] = ()


class Held(Message, frozen=True):
    """Provider -> server: its columns, its number of rows and, where it has the target, the classes."""

    names: tuple[str, ...]
    named: bool
    rows: int
    classes: tuple[str, ...]
    order: str = ""
    """The name of the order that an alignment gave the rows."""

    @property
    def columns(self) -> Columns:
        return Columns(self.names, self.named, self.order)


class Joint(Message, frozen=True):
    """Server -> provider: all columns side by side, how many are whose, the common rows, the classes."""

    names: tuple[str, ...]
    widths: tuple[int, ...]
    named: bool
    rows: int
    classes: tuple[str, ...]
    order: str = ""


class Part(NamedTuple):
    """An island's own columns of the joint table, and the response where it has one."""

    X: Matrix
    centre: Matrix
    """What was taken off every column."""
    y: Matrix | None
    names: tuple[str, ...]
    island: str


def has_target(p: JointParameters, me: Address) -> bool:
    """Whether this provider's table holds the target."""
    return p.target is not None and p.y_holder in (None, me.party)


def leader_of(p: JointParameters, providers: Sequence[Address]) -> Address:
    """Who computes residuals: whoever has the target; the first island, where all have it."""
    if p.y_holder is None:
        return providers[0]
    return next(address for address in providers if address.party == p.y_holder)


async def announce(
    net: Network, island: Island, p: JointParameters, server: Address, group: Sequence[Address], classes: bool
) -> tuple[Joint, Chosen]:
    """A provider's side: the joint table, and this island's columns in it."""
    mine = own_columns(island, p, net.me, classes)
    await net.send(server, mine)
    joint = await net.receive(Joint, server)
    columns = JoinedColumns(joint.names, joint.widths, joint.named, joint.order)
    handshake.check_own_place(columns, mine.columns, p.columns, net.me, group, server)
    if joint.rows != mine.rows:
        raise checked.refuse(
            server, f"{joint.rows} as the number of rows to {island.name}, which has {mine.rows}"
        )
    if mine.classes and joint.classes != mine.classes:
        raise checked.refuse(server, f"other classes to {island.name} than it has")
    # The order too: told its own each, islands of two alignments would add up rows of other people.
    told = (joint.names, joint.widths, joint.named, joint.order, joint.rows, joint.classes)
    await compare(net, "the columns and rows", told, group)
    return joint, island.chosen(mine.names)


def own_columns(island: Island, p: JointParameters, me: Address, classes: bool) -> Held:
    """What this island tells: columns that exist and hold numbers."""
    if has_target(p, me) and p.target not in island.columns:
        raise SchemaError(
            f"{island.name}: there is no column {p.target!r}, which is to be explained",
            hint="every island has the target, or one of them (y_holder)",
        )
    asked = set(island.columns if p.columns is None else p.columns)
    names = tuple(name for name in island.columns if name != p.target and name in asked)
    island.check_numbers(names)
    if island.n_rows == 0:
        raise DataError(f"{island.name}: the table has no rows", hint="leave the island out of the study")
    told = NO_CLASSES
    if classes and has_target(p, me):
        told = levels_of(island, str(p.target))
        check_classes(told, island.name, str(p.target))
        if len(told) < 2:
            raise DataError(
                f"{island.name}: the target {p.target!r} has one class only", hint="a classifier needs two"
            )
    return Held(names, island.named, island.n_rows, told, island.order)


async def join(net: Network, p: JointParameters, providers: Sequence[Address], classes: bool) -> Joint:
    """The server's side."""
    told = await net.gather(Held, providers)
    columns = handshake.join({a: held.columns for a, held in told.items()}, p.columns)
    first = told[providers[0]]
    for address, held in told.items():
        if held.rows != first.rows:
            raise SchemaError(
                f"{address.party} has {held.rows} rows, {providers[0].party} has {first.rows}",
                hint="where islands hold columns, all have the same rows, in the same order",
            )
    found = NO_CLASSES
    if classes:
        found = told[leader_of(p, providers)].classes
        others = [a for a, held in told.items() if held.classes and held.classes != found]
        if others:
            raise SchemaError(
                f"{others[0].party} has other classes of {p.target!r} than the others",
                hint="all islands have the same target, or one of them has it (y_holder)",
            )
    joint = Joint(columns.names, columns.widths, columns.named, first.rows, found, columns.order)
    await net.broadcast(providers, joint)
    return joint


async def response(
    net: Network, island: Island, p: JointParameters, joint: Joint, group: Sequence[Address], classes: bool
) -> Matrix | None:
    """The target: a number, or the place of its class. Where all have it, it is the same everywhere."""
    if p.target is None or not has_target(p, net.me):
        return None
    if classes:
        values = codes(island.values(p.target), joint.classes, island.name, p.target).astype(np.float64)
        if (values < 0).any():
            where = island.place(int(np.argmax(values < 0)))
            raise DataError(
                f"{island.name}: the target {p.target!r} is missing at {where}", hint="drop the row"
            )
    else:
        island.check_numbers([p.target])
        table = island.chosen([p.target])
        raise_for_missing(table)
        values = table.whole()[:, 0]
    if p.y_holder is None:
        await compare(net, "the target, which all islands must have alike, row by row", values, group)
    return values


def read(table: Chosen, *, centred: bool) -> tuple[Matrix, Matrix]:
    """An island's rows, and what was taken off every column."""
    raise_for_missing(table)
    X = table.whole()
    with np.errstate(over="ignore"):
        large = np.flatnonzero(~np.isfinite((X**2).sum(axis=0)))
    if len(large):
        raise DataError(
            f"{table.island.name}: the squares of column {table.columns[large[0]]!r} exceed a double's range",
            hint="rescale the column",
        )
    centre = X.mean(axis=0) if centred else np.zeros(X.shape[1])
    return X - centre, centre


def check_independent(part: Part, intercept: bool) -> None:
    """Refuse columns of one island that follow from its others, by name. Across islands nobody sees it."""
    scale = np.sqrt((part.X**2).sum(axis=0))
    flat = [name for name, size in zip(part.names, scale, strict=True) if size == 0.0]
    if flat and intercept:
        raise DataError(
            f"{part.island}: the column {flat[0]!r} is constant",
            hint="leave it out; the intercept does its work",
        )
    safe = np.where(scale > 0, scale, 1.0)
    Z = part.X / safe
    normal.check_independent(Z.T @ Z, part.names, of=f"{part.island}: the columns")


def refuse_few_rows(joint: Joint, coefficients: int) -> None:
    """With no more rows than coefficients a model says what rows hold."""
    if joint.rows <= coefficients:
        raise DataError(
            f"{joint.rows} rows for {coefficients} coefficients: a model would say what single rows hold",
            hint="use fewer columns, or more rows",
        )


def plain_array(values: Any) -> Matrix:
    return np.ascontiguousarray(values, dtype=np.float64)
