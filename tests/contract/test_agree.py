"""Comparing digests before an opening: ``Network.agree``, as every engine carries it: roles in one process,
and parties that share nothing but a hub."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.support.networks import ThreadedParties

from atoll.data.island import as_islands
from atoll.errors import AtollError, MessageError
from atoll.network import Compared, Network, Record
from atoll.protocols import PROTOCOLS
from atoll.protocols.base import Learned, Protocol
from atoll.protocols.own import Own, owned
from atoll.runtime.engine import Engine
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.engine import _LocalNetwork as LocalNetwork
from atoll.study.address import Address
from atoll.study.model import Parameters, Party, Study

Run = Callable[[dict[str, str], dict[str, bytes]], dict[str, Any]]


@pytest.fixture(params=[LocalEngine, ThreadedParties])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Three members compare; each with the topic and the digest given for it."""
    return partial(_run, request.param(), monkeypatch)


def _run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, topics: dict[str, str], digests: dict[str, bytes]
) -> dict[str, Any]:

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
    monkeypatch.setitem(PROTOCOLS._loaded, "agreeing", protocol)  # as a package would bring it
    try:
        outcome = engine.run(protocol, study, owned(islands))
    except AtollError as error:  # of parties, some hear only that another has ended the run, and why
        all_said = (error, *getattr(engine, "errors", {}).values())
        raise next((one for one in all_said if isinstance(one, MessageError)), error) from None
    return {address.party: learned.outputs["notes"] for address, learned in outcome.learned.items()}


def test_members_that_were_told_the_same_get_everybodys_note(run: Run) -> None:
    found = run(dict.fromkeys("abc", "keys"), dict.fromkeys("abc", b"one digest"))
    everybody = {Address(name, "member"): name.encode() for name in "abc"}
    assert found == {"a": everybody, "b": everybody, "c": everybody}
    # Coins are made of all notes: everybody has them in the order of the group.
    assert [list(notes) for notes in found.values()] == [list(everybody)] * 3


def test_a_digest_is_compared_to_its_last_byte() -> None:
    """A third role that may choose what it tells would look for two texts whose digests begin alike."""

    class Net(LocalNetwork):
        me = Address("a", "member")

        def __init__(self, told: bytes) -> None:
            self.told = told

        async def gather(self, kind: Any, senders: Any, *, absent: Any = None) -> Any:
            return {sender: Compared("keys", self.told, b"") for sender in senders}

    digest, group = bytes(range(32)), [Address(name, "member") for name in "ab"]
    assert asyncio.run(Net(digest).agreed("keys", digest, group)).keys() == set(group)
    for place in range(32):
        other = bytes(byte ^ (k == place) for k, byte in enumerate(digest))
        with pytest.raises(MessageError, match="was told something else than b/member about keys"):
            asyncio.run(Net(other).agreed("keys", digest, group))
    for other in (digest[:-1], digest + b"\0", b""):
        with pytest.raises(MessageError, match="was told something else"):
            asyncio.run(Net(other).agreed("keys", digest, group))


@pytest.mark.parametrize("liar", "abc")
def test_one_member_that_was_told_something_else_ends_the_run(liar: str, run: Run) -> None:
    digests = dict.fromkeys("abc", b"one digest") | {liar: b"other"}
    # Between machines the first error may be that of a party whom another one told why it ended.
    with pytest.raises(MessageError, match=r"was told something else|ended the run: MessageError"):
        run(dict.fromkeys("abc", "keys"), digests)


def test_a_comparison_of_something_else_is_refused(run: Run) -> None:
    # As above: the first error may be another party's word of its own.
    with pytest.raises(MessageError, match=r"'(sums|keys)' was due|ended the run: MessageError"):
        run({"a": "keys", "b": "sums", "c": "keys"}, dict.fromkeys("abc", b"one digest"))


def test_only_members_compare() -> None:
    """Who is not among them would believe that everybody was told what it was."""

    class Net(LocalNetwork):
        me = Address("d", "member")

        def __init__(self) -> None:
            pass

    with pytest.raises(ValueError, match="d/member is no member of the group that compares 'keys'"):
        asyncio.run(Net().agree("keys", b"one digest", [Address(name, "member") for name in "abc"]))
