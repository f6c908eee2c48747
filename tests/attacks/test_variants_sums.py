"""Variants of earlier attacks: another role cheats, another message, another order, the edges of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import atoll
from atoll import fixedpoint
from atoll.errors import MessageError
from atoll.fixedpoint import Limbs
from atoll.secure_sums import masks
from atoll.secure_sums.mix import session as mix

# ---- mixing ----

VECTORS = [np.array([3.25, -1.5]), np.array([-0.75, 2.0]), np.array([1.125, 0.5])]


def copying(monkeypatch: pytest.MonkeyPatch) -> list[list[Limbs]]:
    """The last contributor tells the middle one the first one's mask key; what its mediator then reads."""
    honest, added_up = mix.Mix.exchange_keys, mix.added_up
    read: list[list[Limbs]] = []

    def noting(segments: Sequence[Limbs], n: int) -> Limbs:
        read.append(list(segments))
        return added_up(segments, n)

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

    monkeypatch.setattr(mix, "added_up", noting)
    monkeypatch.setattr(mix.Mix, "exchange_keys", cheating)
    return read


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
    monkeypatch.setattr(
        mix,
        "pair_seeds",
        lambda private, keys, me: {a: masks.pair_seed(private, key) for a, key in keys.items()},
    )
    atoll.secure_sum(VECTORS, "mix")
    assert small_pairs(read[0]) == [VECTORS[1].tolist()]


def test_a_copied_mask_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = copying(monkeypatch)
    with pytest.raises(MessageError, match=r"island-2/contributor sent island-1/contributor the mask key of"):
        atoll.secure_sum(VECTORS, "mix")
    assert not read
