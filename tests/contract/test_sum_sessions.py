"""What travels inside a secure sum, message by message: nothing is used twice, nothing is told too much."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, summation
from tests.support.lying import lying

import atoll
from atoll import fixedpoint, secure_sums
from atoll.codec import Decoder, Message
from atoll.crypto import shamir
from atoll.errors import MessageError, ParameterError, PartyLeft
from atoll.network import Compared
from atoll.protocols import protocol_of
from atoll.runtime.engine import Observer
from atoll.runtime.local.engine import LocalEngine
from atoll.runtime.local.faults import Faults
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums import base, lattice, masks, recoverable_masks, shares
from atoll.secure_sums.encrypted import SealedInput
from atoll.secure_sums.graph import neighbours
from atoll.study.address import Address

pytestmark = pytest.mark.timeout(120)


class Tap(Observer):
    """Every message with its sender and receiver, and every role's record."""

    def __init__(self, example: Example) -> None:
        self._decoder = Decoder[Message](protocol_of(example.study.protocol).all_messages(example.study))
        self.messages: list[tuple[Address, Address, Any]] = []
        self.records: dict[str, MemoryRecord] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        self.messages.append((sender, receiver, self._decoder.decode(data)))

    def finished(self, address: Address, record: MemoryRecord) -> None:
        self.records[str(address)] = record

    def of(self, kind: type[Message]) -> list[tuple[Address, Address, Any]]:
        return [one for one in self.messages if type(one[2]) is kind]


def tapped(example: Example, engine: LocalEngine | None = None) -> Tap:
    tap = Tap(example)
    protocol = protocol_of(example.study.protocol)
    (engine or LocalEngine()).run(protocol, example.study, example.own, observer=tap)
    return tap


def sum_of(method: str, options: dict[str, Any], vectors: dict[str, np.ndarray]) -> Example:
    example = summation(method, options, len(vectors))
    islands = {name: atoll.Island(v.reshape(1, -1), name=name) for name, v in vectors.items()}
    parties = tuple(
        structs.replace(party, name=name)
        for party, name in zip(example.study.parties, [*vectors, "receiver"], strict=True)
    )
    length = {"length": len(next(iter(vectors.values())))}
    return Example(structs.replace(example.study, parameters=length, parties=parties), islands)


class Net:
    """A network that leads nowhere, for one participant alone."""

    me = Address("i0", "contributor")

    async def compute(self, step: Any, *args: Any) -> Any:
        return step(*args)

    async def broadcast(self, to: Any, message: Message) -> None: ...


# ---- shares ----


def test_every_pair_has_a_seed_of_its_own() -> None:
    """With one seed for all peers, whoever receives it knows all shares but the kept one."""
    seeds = [message.seed for _, _, message in tapped(summation()).of(shares.ShareSeed)]
    assert len(seeds) == len(set(seeds)) == 4 * 3
    assert {len(seed) for seed in seeds} == {32}


@pytest.mark.parametrize("method", ["shares", "masks"])
@pytest.mark.parametrize("options", [{}, {"dropouts": 1}])
def test_every_block_has_masks_of_its_own(
    method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one stream for every block, the difference of two blocks is that of the values."""
    if options and method == "shares":
        options = {}
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 4)
    ones = {f"i{i}": np.ones(8) for i in range(5)}
    tap = tapped(sum_of(method, options, ones))
    kind = shares.ShareSum if method == "shares" else masks.MaskedInput
    bodies = defaultdict(list)
    for sender, _, message in tap.of(kind):
        bodies[sender].append(np.array(message.body))
    assert len(bodies) == 5
    for first, second in bodies.values():
        assert (first != second).all()


@pytest.mark.parametrize("stream", [shares.share, masks.stream])
def test_streams_of_two_blocks_or_two_seeds_have_nothing_in_common(stream: Any) -> None:
    one = stream(bytes(32), "sums#0", 100)
    assert not (one == stream(bytes(32), "sums#1", 100)).any()
    assert not (one == stream(b"s" * 32, "sums#0", 100)).any()
    assert (one == stream(bytes(32), "sums#0", 100)).all()


def test_a_round_is_contributed_to_once() -> None:
    """A second contribution under the same masks would show the difference of both."""
    contributors = tuple(Address(f"i{i}", "contributor") for i in range(3))
    session = shares.Shares(
        Net(), MemoryRecord(), contributors=contributors, receivers=(Address("r", "receiver"),), session="s",
        longest=1,
    )  # fmt: skip
    session._sent = session._received = [bytes(32)] * 2

    async def twice() -> None:
        await session.contribute("sums", fixedpoint.encode([1.0]))
        await session.contribute("sums", fixedpoint.encode([2.0]))

    with pytest.raises(MessageError, match="'sums' was already contributed to"):
        asyncio.run(twice())


@pytest.mark.parametrize("method", ["shares", "masks"])
def test_a_block_of_another_round_is_not_added(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        late = type(message) in (shares.ShareSum, masks.MaskedInput) and sender.party == "island-1"
        return structs.replace(message, block="values#1") if late else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=r"island-1/contributor is in round 'values#1'"):
        atoll.secure_sum([[1.0], [2.0], [3.0]], method)


@pytest.mark.parametrize("method", ["shares", "masks"])
def test_a_block_of_another_length_is_not_added(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) in (shares.ShareSum, masks.MaskedInput) and sender.party == "island-1":
            return structs.replace(message, body=np.array(message.body)[:, :1])
        return message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="island-1/contributor sent a block of shape"):
        atoll.secure_sum([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]], method)


def test_a_short_seed_of_shares_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(sender: Address, to: Address, message: Any) -> Message:
        return structs.replace(message, seed=b"") if type(message) is shares.ShareSeed else message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="a share seed of 0 bytes"):
        atoll.secure_sum([[1.0], [2.0]])


@pytest.mark.parametrize(
    "body", [np.zeros((3, 2), np.int64), np.zeros((2, 2), np.uint64), np.zeros(6, np.uint64)]
)
def test_a_block_is_made_of_limbs(body: np.ndarray) -> None:
    with pytest.raises(MessageError, match="where 2 values were due"):
        base.check_block(body, 2, Address("i", "contributor"))


def test_an_opened_total_is_as_long_as_it_was_asked_for() -> None:
    assert base.of_length(np.zeros((3, 2), np.uint64), 2).shape == (3, 2)
    with pytest.raises(MessageError, match="3 values came where 2 were due"):
        base.of_length(np.zeros((3, 3), np.uint64), 2)


# ---- masks with dropouts ----


def six() -> dict[str, np.ndarray]:
    return {f"i{i}": np.array([10.0**i, 1.0]) for i in range(6)}


def unmasked(tap: Tap) -> dict[int, tuple[set[int], set[int]]]:
    """Of everybody's answer: whose self masks, and whose keys it helps to open."""
    return {
        int(sender.party[1:]): (set(map(int, message.self_shares)), set(map(int, message.key_shares)))
        for sender, _, message in tap.of(recoverable_masks.Unmasking)
    }


def test_while_all_stay_nobodys_key_is_opened() -> None:
    """Self mask and key of one contributor, both opened, are its input: one share of both is too much."""
    answers = unmasked(tapped(sum_of("masks", {"dropouts": 2}, six())))
    assert answers == {u: (set(range(6)) - {u}, set()) for u in range(6)}


def test_of_one_that_left_the_key_is_opened_and_never_the_self_mask() -> None:
    example = sum_of("masks", {"dropouts": 2}, six())
    whole = tapped(example)
    order = [type(message) for sender, _, message in whole.messages if sender.party == "i2"]
    engine = LocalEngine(faults=Faults(crash={"i2/contributor": order.index(masks.MaskedInput) + 1}))
    answers = unmasked(tapped(example, engine))
    assert answers == {u: ({0, 1, 3, 4, 5} - {u}, {2}) for u in (0, 1, 3, 4, 5)}


def test_backups_open_with_as_many_shares_as_the_study_says_and_with_no_fewer() -> None:
    """Five contributors, one may leave: three of its four neighbours open one's secrets, two do not."""
    vectors = {f"i{i}": np.ones(1) for i in range(5)}
    tap = tapped(sum_of("masks", {"dropouts": 1}, vectors))
    given: dict[str, dict[int, Any]] = defaultdict(dict)
    for sender, receiver, message in tap.of(recoverable_masks.MaskBackup):
        given[sender.party][int(receiver.party[1:]) + 1] = message
    for owner, backups in given.items():
        drawn = tap.records[f"{owner}/contributor"].drawn
        key, own = (
            next(v for tag, v in drawn.items() if f"/masks/{part}/" in tag) for part in ("key", "self")
        )
        for secret, part in ((key, "key_share"), (own, "self_share")):
            held = {point: getattr(message, part) for point, message in backups.items()}
            assert shamir.recover(dict(list(held.items())[:3])) == secret
            for few in combinations(held.items(), 2):
                assert _opened(dict(few)) != secret


def _opened(few: dict[int, bytes]) -> bytes | None:
    try:
        return shamir.recover(few)
    except MessageError:
        return None


def test_the_two_secrets_of_a_contributor_are_shared_by_two_polynomials() -> None:
    """Were it one, the difference of a neighbour's two shares would be that of the secrets themselves."""
    tap = tapped(sum_of("masks", {"dropouts": 1}, {f"i{i}": np.ones(1) for i in range(5)}))
    differences = defaultdict(set)
    for sender, _, message in tap.of(recoverable_masks.MaskBackup):
        key, own = (int.from_bytes(share, "little") for share in (message.key_share, message.self_share))
        differences[sender].add((key - own) % (2**521 - 1))
    assert {len(found) for found in differences.values()} == {4}


def test_keys_and_self_masks_of_two_blocks_are_different(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is opened after one block must not open what its owner sent in another."""
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 1)
    tap = tapped(sum_of("masks", {"dropouts": 1}, {f"i{i}": np.ones(2) for i in range(5)}))
    keys = [message.key for _, _, message in tap.of(masks.MaskedInput)]
    assert len(keys) == len(set(keys)) == 10


def test_who_leaves_between_two_blocks_of_one_sum_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a part of the total would be of six islands and a part of five."""
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 1)
    example = sum_of("masks", {"dropouts": 2}, six())
    whole = tapped(example)
    order = [type(message) for sender, _, message in whole.messages if sender.party == "i2"]
    second = len(order) - 1 - order[::-1].index(masks.MaskedInput)
    with pytest.raises(PartyLeft, match="i2 left after an earlier sum was opened"):
        tapped(example, LocalEngine(faults=Faults(crash={"i2/contributor": second + 1})))


def test_a_total_is_of_the_same_islands_in_all_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a session says of who is there: its blocks must agree."""
    monkeypatch.setattr("atoll.secure_sums.base.BLOCK_VALUES", 1)
    study = summation("shares").study

    class Shrinking(shares.Shares):
        async def total_block(self, name: str, n: int) -> fixedpoint.Limbs:
            self.present = frozenset(list(self.contributors)[int(name.partition("#")[2]) :])
            return np.zeros((fixedpoint.LIMBS, n), np.uint64)

    session = Shrinking(
        Net(),
        MemoryRecord(),
        contributors=study.who("contributor"),
        receivers=study.who("receiver"),
        session="s",
        longest=2,
    )
    assert asyncio.run(session.total("one", 1)).shape == (3, 1)
    with pytest.raises(PartyLeft, match="left between two blocks of one sum"):
        asyncio.run(session.total("two", 2))


def test_the_stated_numbers_of_neighbours_and_colluders() -> None:
    assert [len(neighbours(0, n)) for n in (2, 100, 101, 102, 5000)] == [1, 99, 100, 100, 100]
    plain = secure_sums.read_options(masks.Masks, {})
    most = {n: masks.Masks.withstands(n, plain, adder_apart=False) for n in (2, 3, 50, 100, 101, 500)}
    assert most == {2: 0, 3: 1, 50: 48, 100: 98, 101: 33, 500: 166}
    leaving = secure_sums.read_options(masks.Masks, {"dropouts": 10})
    assert masks.Masks.withstands(50, leaving, adder_apart=False) == 38
    masks.Masks.check(22, leaving)
    with pytest.raises(ParameterError, match="21 contributors cannot lose 10"):
        masks.Masks.check(21, leaving)
    for method in (shares.Shares, lattice.Lattice):
        assert method.withstands(7, None, adder_apart=False) == 5
    assert lattice.LatticeServerKey.withstands(7, None, adder_apart=False) == 0
    assert lattice.LatticeServerKey.withstands(7, None, adder_apart=True) == 5


# ---- under a key ----


def test_an_input_cannot_be_passed_off_as_another_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever carries envelopes could else count one island twice, and so learn it."""
    seen: dict[str, SealedInput] = {}

    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is not SealedInput:
            return message
        seen.setdefault("first", message)
        return seen["first"]

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match="an envelope cannot be opened"):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "lattice", key="server")


@pytest.mark.parametrize(
    ("topic", "due"),
    [
        ("the key's session", "32 bytes"),
        ("the key's reference", "32 bytes"),
        ("the sum of key", "32 bytes"),
        ("the key's fingerprints", "pairs of fingerprints"),
        ("the sum of values#0", "64 bytes"),
        ("the fingerprints of values#0", "1 pairs of fingerprints"),
    ],
)
def test_a_comparison_without_everybodys_part_is_refused(
    topic: str, due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the reference, of a promise, of a coin, of a fingerprint."""
    opened: list[str] = []

    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is lattice.OpeningShare and sender.party != "island-1":
            opened.append(sender.party)
        if type(message) is Compared and message.topic == topic and sender.party == "island-1":
            return structs.replace(message, note=message.note[:-1])
        return message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError, match=due):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "lattice")
    assert opened == []


def test_contributors_open_nothing_but_the_sum_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that asks for one island's ciphertext in place of the sum gets no share."""
    inputs: dict[str, Any] = {}
    given: list[str] = []

    def lie(sender: Address, to: Address, message: Any) -> Message:
        if type(message) is lattice.EncryptedInput:
            inputs[sender.party] = message
        if type(message) is lattice.AddedInputs:
            return structs.replace(message, body=inputs["island-0"].body)
        if type(message) is lattice.OpeningShare:
            given.append(sender.party)
        return message

    lying(monkeypatch, lie)
    with pytest.raises(MessageError):
        atoll.secure_sum([[1.0], [2.0], [3.0]], "lattice")
    assert given == []


def test_two_sessions_of_one_study_have_no_key_in_common() -> None:
    first, second = (tapped(summation("lattice")) for _ in range(2))
    drawn = [message.share for tap in (first, second) for _, _, message in tap.of(lattice.KeyShare)]
    assert len(drawn) == len(set(drawn)) == 8
    for topic in ("the key's session", "the sum of key", "the sum of values#0"):
        told = [m for tap in (first, second) for _, _, m in tap.of(Compared) if m.topic == topic]
        assert len({message.note for message in told}) == 8
    # The reference polynomial, which follows from the nonces, is another one too.
    head = 36
    parts = [message.share for tap in (first, second) for _, _, message in tap.of(lattice.KeyShare)]
    assert len({bytes(part[head : head + 32]) for part in parts}) == 2


def test_more_members_than_the_table_plans_for_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most 256 members, the study has 257"):
        lattice.Lattice.check(257, None)
    with pytest.raises(ParameterError, match="at most 1024 contributors, the study has 1025"):
        lattice.LatticeServerKey.check(1025, None)
    lattice.Lattice.check(256, None)
    lattice.LatticeServerKey.check(1024, None)


def test_a_session_is_bound_to_the_approved_study_and_to_its_purpose() -> None:
    study = summation().study
    who = study.who("contributor")

    def session(of: Any, name: str) -> str:
        return secure_sums.session(
            of, Net(), MemoryRecord(), contributors=who, receivers=study.who("receiver"), longest=1, name=name
        ).session

    other = structs.replace(study, name="another study")
    assert len({session(study, "sum"), session(study, "range"), session(other, "sum")}) == 3
    assert session(study, "sum").startswith(study.digest)
