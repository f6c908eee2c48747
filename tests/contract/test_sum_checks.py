"""What a session of a secure sum checks, at the bound and on both sides of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.examples import mediated, summation

from atoll import fixedpoint
from atoll.crypto import fingerprint, shamir
from atoll.errors import MessageError, ParameterError, PartyLeft
from atoll.runtime.records import MemoryRecord
from atoll.secure_sums import lattice, masks, paillier, recoverable_masks, shares
from atoll.secure_sums.mix import session as mix
from atoll.secure_sums.mix.form import check_batch
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
