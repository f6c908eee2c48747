"""Variants of earlier attacks: another role cheats, another message, another order, the edges of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.attacks.test_lattice_receiver import added as added_ciphertexts
from tests.attacks.test_lattice_receiver import check_of_0_1_0, deviating, run, values_of, with_count
from tests.support.examples import summation
from tests.support.taps import Tap, resumed

import atoll
from atoll import fixedpoint
from atoll.codec import Decoder, Message, encode
from atoll.errors import MessageError, RunError
from atoll.fixedpoint import Limbs
from atoll.privacy import dp_moments as dp
from atoll.privacy.mechanisms import Crowd
from atoll.protocols import checked, handshake, protocol_of
from atoll.runtime.inbox import Received
from atoll.runtime.local.engine import LocalEngine
from atoll.secure_sums import masks
from atoll.secure_sums.lattice import AddedInputs, EncryptedInput, Lattice, OpeningShare
from atoll.secure_sums.mix import session as mix
from atoll.secure_sums.mix.layers import Onions
from atoll.study.address import Address

# ---- mixing ----

VECTORS = [np.array([3.25, -1.5]), np.array([-0.75, 2.0]), np.array([1.125, 0.5])]


def noted(monkeypatch: pytest.MonkeyPatch) -> list[list[Limbs]]:
    """What the mediator reads: the segments of each batch, before they are added up."""
    added_up = mix.added_up
    read: list[list[Limbs]] = []

    def noting(segments: Sequence[Limbs], n: int) -> Limbs:
        read.append(list(segments))
        return added_up(segments, n)

    monkeypatch.setattr(mix, "added_up", noting)
    return read


def copying(monkeypatch: pytest.MonkeyPatch) -> list[list[Limbs]]:
    """The last contributor tells the middle one the first one's mask key; what its mediator then reads."""
    honest = mix.Mix.exchange_keys

    async def cheating(self: mix.Mix, arrived: Any) -> None:
        first, middle, last = self.contributors
        if self.net.me == last:
            send = self.net.send

            async def to_all_but_the_middle(to: Any, message: Any) -> None:
                copied = message
                if middle in to:
                    arrived.update(await self.net.gather(mix.MixKeys, [first]))
                    copied = mix.MixKeys(
                        message.session, message.receivers, message.layer, arrived[first].mask
                    )
                for address in to:
                    await send(address, copied if address == middle else message)

            monkeypatch.setattr(self.net, "broadcast", to_all_but_the_middle)
        await honest(self, arrived)

    monkeypatch.setattr(mix.Mix, "exchange_keys", cheating)
    return noted(monkeypatch)


def small_pairs(segments: Sequence[Limbs]) -> list[list[float]]:
    """Two segments whose sum is of the size of a value: an input that no mask hides."""
    sums = [fixedpoint.decode(added(a, b)) for a, b in combinations(segments, 2)]
    return [values.tolist() for values in sums if np.abs(values).max() < 1e6]


def added(a: Limbs, b: Limbs) -> Limbs:
    total = fixedpoint.Accumulator(a.shape[1])
    total.add(a)
    total.add(b)
    return total.total()


def test_a_copied_mask_key_showed_an_input_to_the_mediator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Added for the one neighbour and subtracted for the other, one stream vanishes."""
    read = copying(monkeypatch)

    def unchecked(private: bytes, keys: dict[Address, bytes], _: Address) -> dict[Address, bytes]:
        return {address: masks.pair_seed(private, key) for address, key in keys.items()}

    monkeypatch.setattr(mix, "pair_seeds", unchecked)
    atoll.secure_sum(VECTORS, "mix")
    assert small_pairs(read[0]) == [VECTORS[1].tolist()]


def test_a_copied_mask_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = copying(monkeypatch)
    with pytest.raises(MessageError, match=r"island-2/contributor sent island-1/contributor the mask key of"):
        atoll.secure_sum(VECTORS, "mix")
    assert not read


def test_a_role_run_again_shuffles_no_other_batch_in_the_same_way() -> None:
    """Two batches under one permutation, and with elgamal under the same scalars, show who is who."""
    for options in ({}, {"form": "elgamal"}):
        example, tap = summation("mix", options, 3), Tap()
        protocol = protocol_of("sum")
        LocalEngine().run(protocol, example.study, example.own, observer=tap)
        decoder, me = (
            Decoder[Message](protocol.all_messages(example.study)),
            Address("island-2", "contributor"),
        )

        def turned(data: bytes, decoder: Decoder[Message] = decoder) -> bytes:
            message = decoder.decode(data)
            if not isinstance(message, mix.MixBatch):
                return data
            return encode(mix.MixBatch(message.block, message.order, message.items[::-1]))

        own = example.own["island-2"]
        assert resumed(example, tap, me, own)[1] == tap.outboxes[me]
        with pytest.raises(RunError, match="is not what the recorded run sent"):
            resumed(example, tap, me, own, [Received(a, turned(data)) for a, data in tap.received(me)])


def test_a_segment_replaced_after_its_owners_hop_spoils_the_sum_and_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last contributor strips first; its successor puts an onion of its own in the place of another.

    Nobody notices: the owner's hop is over. But what is left of the owner is still blinded.
    """
    strip, read = Onions.strip, noted(monkeypatch)

    def replacing(self: Onions, batch: Any, private: bytes, below: Any, hop: Any, seed: bytes) -> Any:
        stripped = strip(self, batch, private, below, hop, seed)
        if hop.place != 2:
            return stripped
        forged = self.wrap([fixedpoint.encode(np.zeros(2))], below, hop.at(0), bytes(32)).items[0]
        return (forged, *stripped[1:])

    monkeypatch.setattr(Onions, "strip", replacing)
    for _ in range(20):  # until what was replaced is neither its own nor of one that looks for it later
        with suppress(MessageError):
            total = atoll.secure_sum(VECTORS, "mix")
            break
    assert np.abs(total).max() > 1e6
    assert small_pairs(read[0]) == []


# ---- lattice: the receiver asks twice for one ciphertext, or has two contributors only ----


def test_a_sum_is_not_opened_again_as_that_of_a_later_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shares of one ciphertext: their smudging would average out."""
    asked: list[AddedInputs] = []

    async def total_block(self: Lattice, name: str, n: int) -> Limbs:
        inputs = await self.net.gather(EncryptedInput, self.contributors)
        if not asked:
            asked.append(AddedInputs(name, *added_ciphertexts([m.body for m in inputs.values()])))
        await self.net.broadcast(self.contributors, AddedInputs(name, asked[0].body, asked[0].carries))
        shares = await self.net.gather(OpeningShare, self.contributors)
        return self._public.combine(asked[0].body, [message.share for message in shares.values()])

    monkeypatch.setattr(Lattice, "block_values", 1)
    monkeypatch.setattr(Lattice, "total_block", total_block)
    example = summation("lattice", n=2)
    wire, total, problem = run(example)
    assert total is None
    assert "something else than the sum" in str(problem)
    assert len(wire.sent_by_kind[OpeningShare]) == 2  # the first block's, and none of the second
    # Contributors that only count summands, as those of 0.1.0 did, give shares of it again and again.
    asked.clear()
    monkeypatch.setattr(Lattice, "_check_sum", check_of_0_1_0)
    wire, _, problem = run(example)
    assert problem is None
    assert len(wire.sent_by_kind[OpeningShare]) > 2


def test_of_two_contributors_neither_is_opened_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def the_first(inputs: dict[Address, bytes]) -> tuple[bytes, bytes]:
        total, carries = added_ciphertexts([next(iter(inputs.values()))])
        return with_count(total, 2), carries

    monkeypatch.setattr(Lattice, "total_block", deviating(the_first))
    example = summation("lattice", n=2)
    wire, _, problem = run(example)
    assert isinstance(problem, MessageError)
    assert not wire.sent_by_kind[OpeningShare]
    monkeypatch.setattr(Lattice, "_check_sum", check_of_0_1_0)
    _, opened, _ = run(example)
    np.testing.assert_allclose(opened, values_of(example, Address("island-0", "contributor")))


# ---- the public centre, at the edge of what is believed ----


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", ["normalise", "clip"])
def test_around_every_centre_that_is_believed_one_row_counts_for_no_more_than_one(
    rows: Any, neighbours: Any
) -> None:
    """The farthest centre, the smallest radius, and rows at it, across from it and beyond all numbers."""
    plan = dp.Plan(
        features=3, row_norm=2.0, epsilon=1.0, delta=1e-5, neighbours=neighbours, rows=rows, crowd=Crowd(3, 1)
    )
    point = np.array([2.0, 0.0, 0.0])
    radii = dp.radius_edges(plan.row_norm)
    for radius in (radii[0], radii[-1]):
        told = dp.Centre(point, 1.0, float(radius))
        dp.check_centre(plan, plan.radius.name, dp.Centre(point, 1.0, 2.0), told)
        for row in (
            [2.0, 0.0, 0.0],
            [-2.0, 0.0, 0.0],
            [1e308, 1e308, 0.0],
            [2.0, 5e-324, 0.0],
            [2.0, 1e-9, 0],
        ):
            moments = dp.moments_contribution(plan, np.array([row]), told)
            assert 0 <= moments[:3].sum() <= 1 << 40  # the trace: a row of length 2^20 at most
            step = dp.second_mean_contribution(plan, np.array([row]), told)
            assert int(step @ step) <= 1 << 40


@pytest.mark.parametrize("radius", [1e-300, 5e-324, 0.0, -2.0, np.nan])
def test_a_radius_below_the_limits_is_refused_after_every_stage(radius: float) -> None:
    plan = dp.Plan(features=3, row_norm=2.0, epsilon=1.0, delta=1e-5, rows="clip", crowd=Crowd(3, 1))
    before = dp.Centre(np.zeros(3), 5.0, radius)  # even one that an earlier stage would have let pass
    for stage in plan.stages[:-1]:
        with pytest.raises(MessageError, match="radius outside its limits"):
            dp.check_centre(plan, stage.name, before, before)


# ---- columns: what an island did not announce ----


@pytest.mark.parametrize("asked", [("a", "label"), ("a", "B"), ("a", "b\u200b"), ("a", "b", "b"), ("b", "a")])
def test_labels_and_names_that_look_like_a_column_are_refused(asked: tuple[str, ...]) -> None:
    hub = Address("hub", "server")
    own = handshake.Columns(("a", "b"), True)
    with pytest.raises(MessageError):
        handshake.check_agreed(handshake.AgreedColumns(asked, True), own, ("a", "b"), "x", hub)
    handshake.check_agreed(handshake.AgreedColumns(("a", "b"), True), own, ("a", "b"), "x", hub)


# ---- components: nearly orthonormal is not orthonormal ----


def test_components_that_carry_a_little_of_a_row_are_refused() -> None:
    """Everybody projects with them; a thousandth of a chosen direction can be told from rounding."""
    server = Address("hub", "server")
    components = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0][:2]
    checked.check_components(components, 2, 5, server)
    checked.check_components(components * (1 + 1e-9), 2, 5, server)
    for small in (1e-5, 1e-3):
        tilted = components + small * np.outer([0.0, 1.0], components[0])
        for wrong in (tilted, components * (1 + small)):
            with pytest.raises(MessageError, match="not orthonormal"):
                checked.check_components(wrong, 2, 5, server)
