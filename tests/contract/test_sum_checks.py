"""What a session of a secure sum checks, at the bound and on both sides of it."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from math import comb
from typing import Any

import pytest
from tests.support.examples import mediated, summation

from atoll import fixedpoint
from atoll.crypto import fingerprint, shamir
from atoll.errors import MessageError, ParameterError, PartyLeft, StudyError
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums import (
    base,
    chosen,
    graph,
    lattice,
    masks,
    paillier,
    read_options,
    recoverable_masks,
    shares,
)
from atoll.secure_sums.mix import session as mix
from atoll.secure_sums.mix.form import Hop, check_batch
from atoll.secure_sums.mix.layers import Onions
from atoll.secure_sums.mix.segments import _signed
from atoll.study.address import Address

NORTH, SOUTH, WEST, EAST = (Address(name, "contributor") for name in ("north", "south", "west", "east"))
LAB, OFFICE = Address("lab", "receiver"), Address("office", "receiver")


class Net:
    """A network that leads nowhere, for one participant alone."""

    me = NORTH


def made(kind: Any, receivers: tuple[Address, ...], **options: Any) -> Any:
    return kind(
        Net(),
        MemoryRecord(),
        contributors=(NORTH, SOUTH, WEST, EAST),
        receivers=receivers,
        session="s",
        longest=4,
        options=options,
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (paillier.Paillier, {}),
        (lattice.Lattice, {}),
        (lattice.LatticeServerKey, {"key": "server"}),
        (recoverable_masks.RecoverableMasks, {"dropouts": 1}),
    ],
)
def test_who_opens_a_total_alone_is_the_only_receiver(kind: Any, options: dict[str, Any]) -> None:
    made(kind, (LAB,), **options)
    for receivers in ((), (LAB, OFFICE)):
        with pytest.raises(ParameterError, match="one receiver"):
            made(kind, receivers, **options)


@pytest.mark.parametrize(
    ("contributors", "most"), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2), (101, 49), (102, 50), (500, 249)]
)
def test_fewer_than_half_of_the_neighbours_may_leave(contributors: int, most: int) -> None:
    for dropouts in (0, most):
        masks.Masks.check(contributors, masks.MaskOptions(dropouts=dropouts, graph="full"))
    for dropouts in (-1, most + 1):
        with pytest.raises(ParameterError, match=f"{contributors} contributors cannot lose {dropouts} "):
            masks.Masks.check(contributors, masks.MaskOptions(dropouts=dropouts, graph="full"))


def test_a_value_is_cut_into_two_to_a_hundred_segments() -> None:
    for segments in (2, 100):
        mix.Mix.check(3, mix.MixOptions(segments=segments))
    for segments in (1, 101):
        with pytest.raises(ParameterError, match=f"cannot be cut into {segments} segments"):
            mix.Mix.check(3, mix.MixOptions(segments=segments))


def test_random_segments_are_wider_than_a_word_and_leave_room_for_their_sum() -> None:
    for bits in (65, 184):
        mix.Mix.check(3, mix.MixOptions(blind=False, cut="random", spread_bits=bits))
    for bits in (64, 185):
        with pytest.raises(ParameterError, match=f"spread_bits = {bits} is not possible"):
            mix.Mix.check(3, mix.MixOptions(blind=False, cut="random", spread_bits=bits))


@pytest.mark.parametrize("bits", [65, 127, 128, 129, 184])
def test_random_segments_are_as_wide_as_was_asked_for_and_have_both_signs(bits: int) -> None:
    values = fixedpoint.to_integers(_signed(200, bits, b"s" * 32, 0))
    assert -(2 ** (bits - 1)) <= min(values) < -(2 ** (bits - 2))
    assert 2 ** (bits - 2) <= max(values) < 2 ** (bits - 1)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ((b"aa", b"bb"), "2 items came where 3 were due"),
        ((b"aa", b"bb", b"cc", b"dd"), "4 items came where 3 were due"),
        ((b"aa", b"bb", b"c"), "an item does not have the 2 bytes"),
        ((b"aa", b"bb", b"ccc"), "an item does not have the 2 bytes"),
        ((b"aa", b"bb", b"aa"), "an item came twice"),
    ],
)
def test_a_batch_is_whole(batch: tuple[bytes, ...], said: str) -> None:
    check_batch((b"aa", b"bb", b"cc"), 3, 2)
    with pytest.raises(MessageError, match=said):
        check_batch(batch, 3, 2)


@pytest.mark.parametrize("extra", [-1, 1])
def test_what_has_a_length_has_it_exactly(extra: int) -> None:
    with pytest.raises(MessageError, match="south/contributor sent a share seed of"):
        shares._checked_seed(SOUTH, shares.ShareSeed(bytes(32 + extra)))
    with pytest.raises(MessageError, match="came where 32 are due"):
        Onions().check_key(bytes(32 + extra), "")
    with pytest.raises(MessageError, match="cannot be recovered"):
        shamir.recover({1: bytes(shamir.SHARE_BYTES), 2: bytes(shamir.SHARE_BYTES + extra)})
    pair = fingerprint.to_bytes([(1, 2), (3, 4)])
    with pytest.raises(MessageError, match="bytes are not 2 pairs"):
        fingerprint.from_bytes(pair[:-1] if extra < 0 else pair + b"\0", 2)
    with pytest.raises(MessageError, match="does not have 32 bytes"):
        lattice._of_size([bytes(32), bytes(32 + extra)], 32)


def test_a_mask_is_recovered_from_as_many_shares_as_the_threshold_and_no_fewer() -> None:
    """Four contributors of whom one may leave: two of the three neighbours open a backup."""
    session = made(recoverable_masks.RecoverableMasks, (LAB,), dropouts=1)
    secret = bytes(range(32))
    parts = {point - 1: share for point, share in shamir.split(secret, 2, [1, 2, 3], b"s" * 32).items()}
    assert session._recover(3, parts) == secret
    assert session._recover(3, parts | {0: None}) == secret
    with pytest.raises(PartyLeft, match="too few are left to unmask east/contributor"):
        session._recover(3, parts | {0: None, 2: None})


def test_a_mediator_opens_sessions_of_its_own_study_and_for_its_parties_only() -> None:
    study = mediated(summation("mix")).study
    contributors = study.who("contributor")
    receiver = str(study.the("receiver"))

    def opened(session: str, *receivers: str) -> Any:
        told = mix.MixKeys(session, receivers, b"", b"")
        return mix._session_for(Net(), study, MemoryRecord(), contributors, told)  # type: ignore[arg-type]

    assert opened(f"{study.digest}/sum", receiver).receivers == (study.the("receiver"),)
    for session, receivers in (
        ("another digest/sum", (receiver,)),
        (f"{study.digest}", (receiver,)),
        (f"{study.digest}/sum", (receiver, "stranger/receiver")),
        (f"{study.digest}/sum", (receiver, receiver)),
    ):
        with pytest.raises(MessageError, match="opens a session that is not of this study"):
            opened(session, *receivers)


def test_a_mediator_takes_no_values_before_keys() -> None:
    study = mediated(summation("mix")).study

    class Early(Net):
        async def receive(self, kind: Any, sender: Address) -> Any:
            return mix.MixInput("sum#0", 5, ())

    with pytest.raises(MessageError, match="sent values before keys"):
        asyncio.run(mix.serve(Early(), study, MemoryRecord(), study.who("contributor")))  # type: ignore[arg-type]


# ---- what a session says of itself, and what it binds to what ----


def test_it_is_said_of_whom_a_contribution_stays_hidden() -> None:
    """Of nobody's help, of one's, of many's: each number by itself."""
    said = [shares.Shares.hidden_from("receiver", most, 5) for most in (0, 1, 3)]
    begin = "What a single island adds stays hidden from the receiver, "
    assert said == [
        begin + "as long as none of the 5 islands works together with it",
        begin + "even if one of the 5 islands works together with it",
        begin + "even if up to 3 of the 5 islands work together with it",
    ]


def test_every_round_has_a_block_and_every_block_a_name_and_an_end() -> None:
    """A round of no values is one, or a receiver would wait for what nobody sends."""
    assert base.BLOCK_VALUES == 1_048_576
    for n, ends in ((0, [0]), (1, [1]), (4, [4]), (5, [4, 5]), (9, [4, 8, 9])):
        found = list(base.blocks("r", n, 4))
        assert [name for name, _ in found] == [f"r#{k}" for k in range(len(ends))]
        assert [part.stop for _, part in found] == ends
        assert [part.start for _, part in found] == [0, *ends[:-1]]
    size = base.BLOCK_VALUES
    assert [base.count_blocks([n]) for n in (0, 1, size, size + 1, 3 * size)] == [1, 1, 1, 2, 3]
    assert base.count_blocks([0, size + 1]) == 3


def test_a_key_is_planned_for_a_block_and_not_for_a_whole_round() -> None:
    session = shares.Shares(
        Net(),  # type: ignore[arg-type]
        MemoryRecord(),
        contributors=(NORTH, SOUTH),
        receivers=(LAB,),
        session="s",
        longest=1 << 40,
    )
    assert session.longest == 1 << 20


@pytest.mark.parametrize(("n", "kind"), [(100, masks.Masks), (101, masks.DrawnMasks)])
def test_as_many_as_play_a_role_decide_on_the_graph(n: int, kind: Any) -> None:
    """The most that do: a study's receivers are fewer."""
    assert chosen(summation("masks", n=n).study) is kind


@pytest.mark.parametrize(
    "key", [bytes(32), b"\1" + bytes(31), (2**255 - 19).to_bytes(32, "little"), b"\2" * 31]
)
def test_a_mask_key_with_which_all_agree_is_refused(key: bytes) -> None:
    """Its streams would be known to everybody, and with them what was masked."""
    with pytest.raises(MessageError, match="a mask key is not a valid public key"):
        masks.pair_seed(bytes(range(32)), key)
    with pytest.raises(MessageError, match="a mask key is not a valid public key"):
        masks.pair_seeds(bytes(range(32)), {SOUTH: key}, NORTH)


def test_two_neighbours_with_one_key_are_refused() -> None:
    one, two = (masks.public_key(bytes([k]) * 32) for k in (1, 2))
    assert len(masks.pair_seeds(bytes(32), {SOUTH: one, WEST: two}, NORTH)) == 2
    with pytest.raises(MessageError, match="west/contributor sent north/contributor the mask key of another"):
        masks.pair_seeds(bytes(32), {SOUTH: one, WEST: one}, NORTH)


def test_what_is_sealed_or_signed_is_bound_to_session_block_and_sender() -> None:
    """Moved to another session, block or place, or told as another's, it is worth nothing."""
    found = set()
    for session in ("s", "t"):
        sealing = made(paillier.Paillier, (LAB,))
        sealing.session = session
        mixing = made(mix.Mix, (LAB,))
        mixing.session = session
        found |= {sealing._context(block, who) for block in ("a#0", "a#1") for who in (NORTH, SOUTH)}
        found |= {mixing._key_context(who) for who in (NORTH, SOUTH)}
        found |= {
            Hop(session, block, order, place).context
            for block in ("a#0", "a#1")
            for order in (0, 1)
            for place in (0, 1)
        }
    assert len(found) == 2 * (4 + 2 + 8)


def test_what_members_of_a_lattice_sum_compare_is_bound_to_session_topic_and_content() -> None:
    found = set()
    for session in ("s", "t"):
        sum_ = made(lattice.Lattice, (LAB,))
        sum_.session = session
        parts: tuple[tuple[str | bytes, ...], ...] = ((), ("a",), (b"b",), ("a", b"b"), ("ab",), ("", "ab"))
        found |= {sum_._digest(purpose, *more) for purpose in ("coin", "sum") for more in parts}
    assert len(found) == 2 * 2 * 6


def test_a_coin_follows_from_what_it_is_tossed_for_and_from_everybodys_part() -> None:
    """Whoever knew a coin before could make a wrong sum with the right fingerprints."""

    class Told(Net):
        notes: list[bytes]

        async def agree(self, topic: str, digest: bytes, group: Any, note: bytes = b"", **_: Any) -> Any:
            assert len(note) == 32
            return dict(zip(group, self.notes, strict=True))

    def coin(name: str, digest: bytes, *notes: bytes) -> bytes:
        session = made(lattice.Lattice, (LAB,))
        session.net = Told()
        session.net.notes = list(notes)
        return asyncio.run(session._toss(name, digest, b""))

    a, b, c = (bytes([k]) * 32 for k in range(3))
    coins = {
        coin("x#0", a, a, a, a, a),
        coin("x#1", a, a, a, a, a),
        coin("x#0", b, a, a, a, a),
        *(coin("x#0", a, *(c if k == place else a for k in range(4))) for place in range(4)),
    }
    assert len(coins) == 7


def test_a_member_whose_key_never_came_ends_the_round() -> None:
    """Nothing masks an input towards it: it is said, and nothing is sent."""
    session = made(recoverable_masks.RecoverableMasks, (LAB,), dropouts=1)

    class Told(Net):
        async def receive(self, kind: Any, sender: Address) -> Any:
            return recoverable_masks.Members("x#0", (0, 1, 2, 3))

    session.net = Told()
    seeds = {1: bytes(32), 2: bytes(32)}
    with pytest.raises(PartyLeft, match="east/contributor is to be part of x#0, but its key never came"):
        asyncio.run(session._receive_members("x#0", seeds))
    assert asyncio.run(session._receive_members("x#0", seeds | {3: bytes(32)})) == (0, 1, 2, 3)


@pytest.mark.parametrize(("n", "colluders", "dropouts", "degree"), [(120, 40, 6, 20), (400, 60, 20, 30)])
def test_the_chance_that_a_backup_is_opened_is_part_of_the_bound(
    n: int, colluders: int, dropouts: int, degree: int
) -> None:
    """All but as many neighbours as may be missing open one: counted here by hand."""
    without = graph.missing(n, dropouts, degree)
    assert 0 < without < degree
    apart = comb(n, 2) * graph.at_least(degree - 4 * without, population=n, marked=colluders, drawn=degree)
    ways = sum(
        comb(colluders, j) * comb(n - 1 - colluders, degree - j)
        for j in range(degree - without, min(colluders, degree) + 1)
    )
    assert graph.failure(n, colluders, dropouts, degree) == apart + n * Fraction(ways, comb(n - 1, degree))
    assert ways > 0


def test_paillier_keys_are_of_two_lengths_and_clear_exponents_multiply_nothing() -> None:
    assert paillier.PaillierOptions().key_bits == 2048
    for bits in (2048, 3072):
        assert read_options(paillier.Paillier, {"key_bits": bits}).key_bits == bits
    for bits in (1024, 2047, 4096):
        with pytest.raises(StudyError):
            read_options(paillier.Paillier, {"key_bits": bits})
    assert (paillier.Paillier.multiplies, paillier.PaillierExponent.multiplies) == (True, False)
    assert paillier.Paillier.inexact is None
    assert paillier.PaillierExponent.inexact is not None
