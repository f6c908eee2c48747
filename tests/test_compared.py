"""With whom a provider compares what it was told, and who may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from atoll.errors import PartyLeft
from atoll.protocols.agreement import compare, comparisons
from atoll.study.address import Address


class Net:
    """Some have left; the others say the same."""

    def __init__(self, me: Address, left: Sequence[Address] = ()) -> None:
        self.me, self.left = me, left
        self.groups: list[tuple[Address, ...]] = []
        self.digests: list[bytes] = []

    async def agree(
        self, topic: str, digest: bytes, group: Sequence[Address], note: bytes = b"", *, absent: Any = None
    ) -> dict[Address, bytes]:
        self.groups.append(tuple(group))
        self.digests.append(digest)
        absent.update(self.left)
        return {member: note for member in group if member not in self.left}


def members(count: int) -> tuple[Address, ...]:
    return tuple(Address(f"i{i}", "provider") for i in range(count))


def compared(net: Net, told: object, group: Sequence[Address], **options: Any) -> Net:
    asyncio.run(compare(net, "the columns", told, group, **options))  # type: ignore[arg-type]
    return net


def test_everybody_compares_with_everybody_and_beyond_101_with_100() -> None:
    few = members(7)
    assert compared(Net(few[3]), "x", few).groups == [few]
    many = members(150)
    (group,) = compared(Net(many[3]), "x", many).groups
    assert len(group) == len(set(group)) == 101
    assert many[3] in group
    assert [comparisons(n) for n in (2, 101, 150)] == [2, 10100, 15000]


def test_the_digest_is_of_all_that_was_told() -> None:
    few, net = members(3), Net(members(3)[0])
    for told in (("a", "b"), ("b", "a"), ("a",), ("a", "b", 1.0), ("a", "b", 2.0)):
        compared(net, told, few)
    assert len(set(net.digests)) == 5


def test_no_more_may_be_missing_than_the_study_lets_leave() -> None:
    few = members(4)
    compared(Net(few[0], few[3:]), "x", few, may_leave=1)
    for left, may_leave in ((few[3:], 0), (few[2:], 1), (few[1:], 2)):
        with pytest.raises(PartyLeft, match=r"i3 left before comparing the columns"):
            compared(Net(few[0], left), "x", few, may_leave=may_leave)
