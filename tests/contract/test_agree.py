"""Comparing digests before an opening: ``Network.agree``, as every engine carries it."""

from __future__ import annotations

from typing import Any

import pytest

from atoll.data.island import as_islands
from atoll.errors import MessageError
from atoll.network import Compared, Network, Record
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own, owned
from atoll.runtime.local.engine import LocalEngine
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study


def run(topics: dict[str, str], digests: dict[str, bytes]) -> dict[str, Any]:
    """Three members compare; each with the topic and the digest given for it."""

    async def member(net: Network, study: Study, own: Own, record: Record) -> Learned:
        name = net.me.party
        notes = await net.agree(topics[name], digests[name], study.who("member"), name.encode())
        return Learned({"notes": notes})

    protocol = Protocol(
        name="agreeing",
        title="",
        roles={"member": member},
        data_roles=frozenset({"member"}),
        messages=(Compared,),
        parameters=Parameters,
        outputs={},
        learns=lambda _: [],
        adversary="",
        single_roles=frozenset(),
        uses_sum=False,
    )
    study = Study(
        name="t", protocol="agreeing", parties=tuple(Party(name, ("member",)) for name in sorted(topics))
    )
    islands = as_islands({name: [[1.0]] for name in sorted(topics)})
    outcome = LocalEngine().run(protocol, study, owned(islands))
    return {address.party: learned.outputs["notes"] for address, learned in outcome.learned.items()}


def test_members_that_were_told_the_same_get_everybodys_note() -> None:
    found = run(dict.fromkeys("abc", "keys"), dict.fromkeys("abc", b"one digest"))
    everybody = {Address(name, "member"): name.encode() for name in "abc"}
    assert found == {"a": everybody, "b": everybody, "c": everybody}


@pytest.mark.parametrize("liar", "abc")
def test_one_member_that_was_told_something_else_ends_the_run(liar: str) -> None:
    digests = dict.fromkeys("abc", b"one digest") | {liar: b"other"}
    with pytest.raises(MessageError, match="was told something else"):
        run(dict.fromkeys("abc", "keys"), digests)


def test_a_comparison_of_something_else_is_refused() -> None:
    with pytest.raises(MessageError, match=r"'(sums|keys)' was due"):
        run({"a": "keys", "b": "sums", "c": "keys"}, dict.fromkeys("abc", b"one digest"))
