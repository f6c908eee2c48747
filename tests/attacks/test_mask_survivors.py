"""A receiver of masked sums that tells contributors different things about who stayed opens no input.

``as_before`` puts back what 0.1.0 did: a contributor answered any list that was long enough and named itself,
at once, and sent its own mask along. Every attack here opens inputs of that form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, summation
from tests.support.taps import Tap, resumed

import atoll
from atoll import fixedpoint
from atoll.codec import Decoder, Message, encode
from atoll.crypto import shamir
from atoll.errors import Deadlock, MessageError, PartyLeft, RunError
from atoll.protocols import protocol_of, resolve
from atoll.protocols.base import Learned
from atoll.runtime.inbox import Received
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums import masks, shares
from atoll.secure_sums.masks import MaskedInput, MaskKey
from atoll.secure_sums.recoverable_masks import BackedUp, Members, RecoverableMasks, Survivors, Unmasking
from atoll.secure_sums.shares import ShareSeed, ShareSum
from atoll.study.address import Address

BLOCK, ISLANDS, DROPOUTS, VICTIM = "values#0", 6, 2, 1
THRESHOLD = 3  # of five neighbours, when two may leave
EVERYONE = tuple(range(ISLANDS))
OTHERS = tuple(u for u in EVERYONE if u != VICTIM)

Lists = dict[int, tuple[int, ...]]


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1.0's contributors."""
    send_backups = RecoverableMasks._send_backups

    async def keep_own(self: Any, name: str, own: bytes, seeds: Any) -> None:
        self._own_mask = own
        await send_backups(self, name, own, seeds)

    async def nothing(self: Any, *_: Any) -> None: ...

    def only_counted(self: Any, what: str, listed: tuple[int, ...], among: Any) -> tuple[int, ...]:
        enough = len(self.contributors) - self.options.dropouts
        if what == "survivors" and (len(listed) < enough or self._index[self.net.me] not in listed):
            raise MessageError("the receiver asks to unmask what it may not see")
        return tuple(u for u in listed if u < len(self.contributors))

    def own_mask_too(self: Any, name: str, survivors: tuple[int, ...], backups: Any) -> Unmasking:
        staying = {str(v): backup.self_share for v, backup in backups.items() if v in survivors}
        left = {str(v): backup.key_share for v, backup in backups.items() if v not in survivors}
        return Unmasking(name, staying | {str(self._index[self.net.me]): self._own_mask}, left)

    monkeypatch.setattr(RecoverableMasks, "_send_backups", keep_own)
    monkeypatch.setattr(RecoverableMasks, "_compare", nothing)
    monkeypatch.setattr(RecoverableMasks, "_checked", only_counted)
    monkeypatch.setattr(RecoverableMasks, "_answer", own_mask_too)
    monkeypatch.setattr(RecoverableMasks, "_check_partners", lambda *_: None)


def example() -> Example:
    return summation("masks", {"dropouts": DROPOUTS}, ISLANDS)


def values_of(example: Example, index: int) -> np.ndarray:
    island = example.islands[f"island-{index}"]
    return island.features(island.columns).ravel()


class Loot:
    """What a deviating receiver got: masked inputs and whatever was answered."""

    def __init__(self) -> None:
        self.inputs: dict[int, MaskedInput] = {}
        self.answers: dict[int, Unmasking] = {}

    def opens(self, victim: int, session: str, partners: tuple[int, ...]) -> np.ndarray:
        """The victim's input, from its own mask and, where it has partners, its key."""
        block, y = f"{session}/{BLOCK}", self.inputs[victim].body
        own = self.answers[victim].self_shares[str(victim)]
        x = fixedpoint.subtract(y, masks.stream(own, block, y.shape[1]))
        if partners:
            found = {u + 1: a.key_shares[str(victim)] for u, a in self.answers.items() if u != victim}
            private = shamir.recover(dict(list(found.items())[:THRESHOLD]))
            for u in partners:
                mask = masks.stream(masks.pair_seed(private, self.inputs[u].key), block, y.shape[1])
                x = (fixedpoint.subtract if u > victim else fixedpoint.add)(x, mask)
        return fixedpoint.decode(x)


def run(receiver: Callable[..., Any], example: Example) -> Tap:
    protocol, tap = protocol_of("sum"), Tap()
    deviating = replace(protocol, roles={**protocol.roles, "receiver": receiver})
    LocalEngine().run(deviating, example.study, example.own, observer=tap)
    return tap


def liar(loot: Loot, members: Lists, survivors: Lists) -> Callable[..., Any]:
    """A receiver that tells each contributor its own lists."""

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        index = {address: u for u, address in enumerate(contributors)}
        await net.gather(BackedUp, contributors)
        for u, listed in members.items():
            await net.send(contributors[u], Members(BLOCK, listed))
        due = [contributors[u] for u in members]
        for address, message in (await net.gather(MaskedInput, due)).items():
            loot.inputs[index[address]] = message
        for u, listed in survivors.items():
            await net.send(contributors[u], Survivors(BLOCK, listed))
        for u in survivors:
            loot.answers[u] = await net.receive(Unmasking, contributors[u])
        return Learned()

    return receiver


ALONE: Lists = {u: EVERYONE if u == VICTIM else OTHERS for u in EVERYONE}
HALVES: Lists = {u: EVERYONE if u < 3 else OTHERS for u in EVERYONE}
PADDED: Lists = {u: (u, 100, 101, 102) for u in EVERYONE}
ALL: Lists = dict.fromkeys(EVERYONE, EVERYONE)


@pytest.mark.usefixtures("as_before")
@pytest.mark.parametrize("survivors", [ALONE, HALVES, PADDED], ids=["alone", "halves", "padded"])
def test_two_survivor_lists_opened_one_input(survivors: Lists) -> None:
    study, loot = example(), Loot()
    run(liar(loot, ALL, survivors), study)
    # The halves that were told of different survivors hold enough shares of the victim's key between them.
    loot.answers = {u: a for u, a in loot.answers.items() if u == VICTIM or str(VICTIM) in a.key_shares}
    found = loot.opens(VICTIM, f"{resolve(study.study).digest}/sum", OTHERS)
    np.testing.assert_array_equal(found, values_of(study, VICTIM))


@pytest.mark.parametrize("survivors", [ALONE, HALVES], ids=["alone", "halves"])
def test_contributors_that_were_told_different_lists_find_out(survivors: Lists) -> None:
    study, loot, tap = example(), Loot(), Tap()
    protocol = protocol_of("sum")
    deviating = replace(protocol, roles={**protocol.roles, "receiver": liar(loot, ALL, survivors)})
    told = r"island-\d/contributor was told something else than .* about who stayed in values#0"
    with pytest.raises(MessageError, match=told):
        LocalEngine().run(deviating, study.study, study.own, observer=tap)
    assert_nothing_opens(study, tap, VICTIM)


def test_contributors_that_were_told_different_members_of_one_round_find_out() -> None:
    study, loot, tap = example(), Loot(), Tap()
    without_the_last = EVERYONE[:-1]
    members = {u: without_the_last if u in (3, 4) else EVERYONE for u in EVERYONE}
    survivors = dict.fromkeys(without_the_last, without_the_last)
    protocol = protocol_of("sum")
    deviating = replace(protocol, roles={**protocol.roles, "receiver": liar(loot, members, survivors)})
    told = r"island-\d/contributor was told something else than .* about who stayed in values#0"
    with pytest.raises(MessageError, match=told):
        LocalEngine().run(deviating, study.study, study.own, observer=tap)
    assert answers_of(study, tap) == {}


def answers_of(study: Example, tap: Tap) -> dict[Address, Unmasking]:
    decoder = Decoder[Message](protocol_of("sum").all_messages(study.study))
    sent = {a: [decoder.decode(data) for _, data in box] for a, box in tap.outboxes.items()}
    return {a: m for a, box in sent.items() for m in box if isinstance(m, Unmasking)}


def assert_nothing_opens(study: Example, tap: Tap, victim: int) -> None:
    """Never are there enough shares of both secrets of the victim, nor its mask itself."""
    answers = answers_of(study, tap)
    keys = sum(str(victim) in answer.key_shares for answer in answers.values())
    own = sum(str(victim) in answer.self_shares for answer in answers.values())
    assert min(keys, own) < THRESHOLD
    assert all(len(share) == 66 for a in answers.values() for share in a.self_shares.values())
    assert Address(f"island-{victim}", "contributor") not in answers


@pytest.mark.parametrize(
    ("listed", "wrong"),
    [
        ((0, 1, 2, 100), "names somebody who is not part of the round"),
        ((0, 1, 2, -1), "names somebody twice or out of order"),
        ((0, 1, 1, 2, 3), "names somebody twice or out of order"),
        ((3, 2, 1, 0), "names somebody twice or out of order"),
        ((0, 2, 3, 4), "leaves it out"),
        ((0, 1, 2), "names 3 of 6 contributors where 4 must stay"),
    ],
)
@pytest.mark.parametrize("what", ["members", "survivors"])
def test_a_list_that_would_open_single_inputs_is_refused(
    what: str, listed: tuple[int, ...], wrong: str
) -> None:
    study, loot = example(), Loot()
    lists = (ALL | {VICTIM: listed}, ALL) if what == "members" else (ALL, ALL | {VICTIM: listed})
    with pytest.raises(MessageError, match=f"sent island-1/contributor a list of {what} that {wrong}"):
        run(liar(loot, *lists), study)
    assert loot.answers == {}


def test_survivors_that_are_no_members_are_refused() -> None:
    study, loot = example(), Loot()
    few = (0, 1, 2, 3)
    lists = dict.fromkeys(few, few), dict.fromkeys(few, (0, 1, 2, 3, 4))
    with pytest.raises(MessageError, match="a list of survivors that names somebody who is not part of the"):
        run(liar(loot, *lists), study)
    assert loot.answers == {}


@pytest.mark.usefixtures("as_before")
def test_a_round_of_one_member_opened_its_input() -> None:
    study, loot = example(), Loot()
    run(liar(loot, ALL | {VICTIM: (VICTIM,)}, ALL), study)
    found = loot.opens(VICTIM, f"{resolve(study.study).digest}/sum", ())
    np.testing.assert_array_equal(found, values_of(study, VICTIM))


def test_a_round_of_one_member_is_refused() -> None:
    study, loot = example(), Loot()
    with pytest.raises(MessageError, match="names 1 of 6 contributors where 4 must stay"):
        run(liar(loot, ALL | {VICTIM: (VICTIM,)}, ALL), study)
    assert loot.inputs == {}


@pytest.mark.parametrize("others", [3, 2, 0])
def test_a_list_that_too_few_have_compared_is_not_answered(others: int) -> None:
    """A receiver that cuts a contributor off from the rest could tell it any list."""
    contributors = example().study.who("contributor")

    class CutOff:
        me = contributors[0]

        async def broadcast(self, to: Any, message: Message) -> None: ...

        async def agree(self, topic: str, digest: bytes, group: Any, *, absent: Any) -> dict[Address, bytes]:
            assert tuple(group) == contributors
            return dict.fromkeys(contributors[: 1 + others], b"")

    session = RecoverableMasks(
        CutOff(),
        MemoryRecord(),
        contributors=contributors,
        receivers=example().study.who("receiver"),
        session="s",
        options={"dropouts": DROPOUTS},
        longest=1,
    )
    if others >= THRESHOLD:
        asyncio.run(session._compare(BLOCK, EVERYONE, EVERYONE))
        return
    with pytest.raises(PartyLeft, match="too few are left to compare who stayed in values#0"):
        asyncio.run(session._compare(BLOCK, EVERYONE, EVERYONE))


# ---- two sums of one run over different islands ----


def in_two_blocks(opened: list[str]) -> Callable[..., Any]:
    """A receiver that lets everybody stay in the first block and leaves the victim out of the second."""

    async def receiver(net: Any, study: Any, own: Any, record: Any) -> Learned:
        contributors = study.who("contributor")
        for block, staying in (("values#0", EVERYONE), ("values#1", OTHERS)):
            here = [contributors[u] for u in staying]
            await net.gather(BackedUp, contributors)
            await net.broadcast(here, Members(block, staying))
            await net.gather(MaskedInput, here)
            await net.broadcast(here, Survivors(block, staying))
            await net.gather(Unmasking, here)
            opened.append(block)
        return Learned()

    return receiver


@pytest.mark.usefixtures("as_before")
def test_a_second_block_was_opened_over_fewer_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 3)
    opened: list[str] = []
    with pytest.raises(Deadlock, match="island-1/contributor waits for Members"):
        run(in_two_blocks(opened), example())
    assert opened == ["values#0", "values#1"]


def test_a_second_block_is_opened_over_the_same_islands_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 3)
    opened: list[str] = []
    with pytest.raises(MessageError, match="members that names 5 of 6 contributors where 6 must stay"):
        run(in_two_blocks(opened), example())
    assert opened == ["values#0"]


# ---- what leaves ----


@pytest.mark.parametrize("dies_at", [None, 7, 12])
def test_a_survivor_sends_one_share_for_each_neighbour(dies_at: int | None) -> None:
    """Of its mask if it stayed, of its key if it left: whoever has both opens the input."""
    study, tap = example(), Tap()
    gone = {"4"} if dies_at == 12 else set()  # one that left before the round is no member of it
    faults = None if dies_at is None else Faults(crash={"island-4/contributor": dies_at})
    LocalEngine(faults=faults).run(protocol_of("sum"), study.study, study.own, observer=tap)
    staying = {str(u) for u in EVERYONE} - ({"4"} if dies_at else set())
    answers = answers_of(study, tap)
    assert {address.party for address in answers} == {f"island-{u}" for u in staying}
    for address, answer in answers.items():
        me = address.party.removeprefix("island-")
        assert set(answer.self_shares) == staying - {me}
        assert set(answer.key_shares) == gone
        assert {len(s) for s in (*answer.self_shares.values(), *answer.key_shares.values())} == {66}


def test_a_receiver_takes_no_shares_that_it_did_not_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(self: Any, name: str, survivors: tuple[int, ...], backups: Any) -> Unmasking:
        selves = {str(v): backup.self_share for v, backup in backups.items()}
        return Unmasking(name, selves, {str(v): backup.key_share for v, backup in backups.items()})

    monkeypatch.setattr(RecoverableMasks, "_answer", both)
    study = example()
    with pytest.raises(MessageError, match=r"island-\d/contributor sent shares of other masks and keys than"):
        LocalEngine().run(protocol_of("sum"), study.study, study.own)


def test_a_role_run_again_answers_no_other_list() -> None:
    study, tap = example(), Tap()
    protocol = protocol_of("sum")
    LocalEngine().run(protocol, study.study, study.own, observer=tap)
    decoder = Decoder[Message](protocol.all_messages(study.study))
    address = Address("island-1", "contributor")

    def changed(kind: type[Message], listed: tuple[int, ...]) -> list[Any]:
        inbox = [(sender, data, decoder.decode(data)) for sender, data in tap.received(address)]
        return [
            Received(sender, encode(kind(BLOCK, listed)) if isinstance(message, kind) else data)  # type: ignore[call-arg]
            for sender, data, message in inbox
        ]

    for kind in (Members, Survivors):
        with pytest.raises(RunError, match="is not what the recorded run sent"):
            resumed(study, tap, address, study.own["island-1"], changed(kind, (0, 1, 2, 3)))


def test_a_contributor_that_copies_anothers_key_is_refused() -> None:
    """Its stream and the other's would cancel in what a third one sends."""
    study = summation("masks", {}, 4)
    protocol = protocol_of("sum")
    honest = protocol.roles["contributor"]

    async def copier(net: Any, study: Any, own: Any, record: Any) -> Learned:
        if net.me.party != "island-3":
            return await honest(net, study, own, record)
        peers = [a for a in study.who("contributor") if a != net.me]
        keys = await net.gather(MaskKey, peers)
        stolen = bytearray(keys[peers[0]].key)
        stolen[31] ^= 0x80  # other bytes, the same point
        await net.broadcast(peers, MaskKey("session", bytes(stolen)))
        return Learned()

    with pytest.raises(MessageError, match=r"island-3/contributor sent island-[12]/contributor the mask key"):
        LocalEngine().run(
            replace(protocol, roles={**protocol.roles, "contributor": copier}), study.study, study.own
        )


# ---- streams and seeds ----


def sent_by(study: Example, kind: type[Message]) -> list[tuple[Address, Address, Any]]:
    tap, protocol = Tap(), protocol_of("sum")
    LocalEngine().run(protocol, study.study, study.own, observer=tap)
    decoder = Decoder[Message](protocol.all_messages(study.study))
    found = [(a, to, decoder.decode(data)) for a, box in tap.outboxes.items() for to, data in box]
    return [(sender, to, message) for sender, to, message in found if isinstance(message, kind)]


@pytest.mark.parametrize(("method", "kind"), [("masks", MaskedInput), ("shares", ShareSum)])
def test_every_block_has_a_mask_of_its_own(
    method: str, kind: type[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one stream for all, the difference of two blocks would be that of the values."""
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 2)
    study = summation(method, {}, 3)
    islands = {name: type(i).from_array(np.zeros((1, 4)), name=name) for name, i in study.islands.items()}
    study = Example(structs.replace(study.study, parameters={"length": 4}), islands)
    bodies = [message.body.tobytes() for _, _, message in sent_by(study, kind)]
    assert len(bodies) == 6
    assert len(set(bodies)) == 6


def test_every_block_has_streams_of_its_own() -> None:
    seed = bytes(32)
    assert not np.array_equal(masks.stream(seed, "a#0", 4), masks.stream(seed, "a#1", 4))
    assert not np.array_equal(shares.share(seed, "a#0", 4), shares.share(seed, "a#1", 4))


def test_shares_have_a_seed_for_every_pair() -> None:
    """With one seed for all peers, a receiver with one contributor opens every other's input."""
    seeds = [message.seed for _, _, message in sent_by(summation("shares", {}, 4), ShareSeed)]
    assert len(seeds) == 12
    assert len(set(seeds)) == 12


# ---- later sums ----


def test_contributors_refuse_a_later_sum_over_fewer_islands_also_if_the_receiver_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that forgets who was in the mean gets no covariance without one of them."""
    rng = np.random.default_rng(0)
    tables = {f"i{i}": rng.normal(size=(20, 3)) for i in range(5)}
    options: dict[str, Any] = {"secure_sum": "masks", "dropouts": 1, "accept_determined": True}
    monkeypatch.setattr(RecoverableMasks, "require", lambda *_: None)
    for dies_at in (26, 34):  # its keys of the second sum are due, or its backups
        late = LocalEngine(faults=Faults(crash={"i3/provider": dies_at}))
        with pytest.raises(MessageError, match="names 4 of 5 contributors where 5 must stay"):
            atoll.PCA(2, engine=late, **options).fit(tables)
