"""The joint table's columns and rows: the same columns with every island, or the same rows."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.data.island import Island
from atoll.errors import SchemaError
from atoll.network import Network
from atoll.protocols import handshake
from atoll.protocols.agreement import compare
from atoll.protocols.checked import check_counts, refuse
from atoll.protocols.handshake import JoinedColumns
from atoll.protocols.pca.released import PROVIDER
from atoll.protocols.pca.sfpca.messages import RowCounts
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, VERTICAL
from atoll.study.address import Address
from atoll.study.model import Study


async def announce(
    net: Network, study: Study, island: Island, wanted: Sequence[str] | None
) -> tuple[JoinedColumns, tuple[str, ...]]:
    """A provider's side: the joint table's columns, and those of them that it has: all, or its own."""
    if study.partition == VERTICAL:
        return await handshake.announce_own(net, island, study.the(COORDINATOR), wanted, study.who(PROVIDER))
    agreed = await handshake.announce(net, island, study.the(COORDINATOR), wanted, None)
    return JoinedColumns(agreed.names, (), agreed.named), agreed.names


async def check(net: Network, study: Study, wanted: Sequence[str] | None) -> JoinedColumns:
    """The coordinator's side; there are no widths where all islands have all columns."""
    if study.partition == VERTICAL:
        return await handshake.check_joined(net, study.who(PROVIDER), wanted)
    agreed = await handshake.check(net, study.who(PROVIDER), wanted)
    return JoinedColumns(agreed.names, (), agreed.named)


def own_place(study: Study, me: Address, widths: tuple[int, ...]) -> slice:
    """Where an island's columns stand among all."""
    index = study.who(PROVIDER).index(me)
    return slice(sum(widths[:index]), sum(widths[: index + 1])) if widths else slice(None)


def joint_rows(rows: Sequence[int], widths: tuple[int, ...]) -> int:
    """n: the islands' rows together, or the rows that they have in common."""
    return rows[0] if widths else sum(rows)


async def receive_counts(net: Network, study: Study, own: int, columns: JoinedColumns) -> tuple[int, ...]:
    """A provider's side: everybody's number of rows, which all providers were told, with the same columns.

    Bounds and scales follow from these numbers: two providers that take others would mask with others.
    """
    coordinator, providers = study.the(COORDINATOR), study.who(PROVIDER)
    rows = (await net.receive(RowCounts, coordinator)).n
    check_counts(rows, providers.index(net.me), own, providers, coordinator)
    if not all(rows):
        raise refuse(coordinator, f"no rows for {providers[rows.index(0)].party}")
    if columns.widths:
        check_common_rows(providers, rows)
    # The order too: told its own each, islands of two alignments would put rows of other people side by side.
    told = (columns.names, columns.widths, columns.named, columns.order, rows)
    await compare(net, "the columns and rows", told, providers)
    return rows


def check_common_rows(islands: Sequence[Address], rows: Sequence[int]) -> None:
    """Islands that hold columns must hold them of the same rows."""
    for island, count in zip(islands, rows, strict=True):
        if count != rows[0]:
            raise SchemaError(
                f"{island.party} has {count} rows, {islands[0].party} has {rows[0]}",
                hint="where islands hold columns, all have the same rows, in the same order",
            )
