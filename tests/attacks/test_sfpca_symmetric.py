"""A matrix that is opened for its spectrum is opened as (Z + Z^T) / 2: the rest of it is rounding.

Strict multiplies with a basis of 40 fractional bits. What its rounding does to Z is not symmetric, and by far
wider than the noise that is added before the opening: 0.1.0 showed it to all, among them coalitions that
know all roundings but those of one island.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.sfpca_runs import encrypted, strict

from atoll.codec import Decoder, Message
from atoll.crypto.hazmat import product as go
from atoll.network import Address
from atoll.protocols.sfpca import messages as m
from atoll.runtime.local import Observer

RHO = 26


class Openings(Observer):
    def __init__(self) -> None:
        self.decoder = Decoder[Message](m.MESSAGES)
        self.shares: list[Any] = []

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(bytes(data))
        if isinstance(message, m.OpenedShare | m.OpenedMatrix):
            self.shares.append(message)


def test_the_antisymmetric_part_is_rounding_that_noise_does_not_hide_and_it_is_not_opened() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 40)) * np.sqrt(0.6 ** np.arange(40)) + 0.2

    async def tapped(machine: Any, inputs: Any, receivers: frozenset[str]) -> Any:
        opened, seen = machine.opened_symmetric, {}

        async def tap(x: Any, *, smudge_bits: int) -> Any:
            own = await machine.own_part(x)
            seen["share"] = None if own is None else go.to_ints(own)
            seen["width"] = smudge_bits
            seen["opened"] = await opened(x, smudge_bits=smudge_bits)
            return seen["opened"]

        machine.opened_symmetric = tap
        await strict(machine, inputs, 2, receivers)
        return seen

    tap = Openings()
    results, _ = encrypted(tapped, [X[:120], X[120:]], observer=tap)
    Z = sum(seen["share"] for seen in results.values() if seen["share"] is not None)
    antisymmetric = np.abs((Z - Z.T)[np.triu_indices(RHO, 1)]).astype(float)
    # 0.1.0 opened Z entry by entry, under noise of this width for each of two islands.
    width = results["p0/provider"]["width"]
    assert np.median(antisymmetric) > 2.0 ** (width + 10)
    # Now nothing of it leaves an island: a triangle of a symmetric share does.
    for seen in results.values():
        np.testing.assert_array_equal(seen["opened"], seen["opened"].T)
    sizes = {message.words.shape[:2] for message in tap.shares}
    assert sizes == {(1, 1), (RHO * (RHO + 1) // 2, 1)}
    exact = ((Z + Z.T)[np.triu_indices(RHO)] / 2).astype(float) * 2.0**-120
    found = results["p0/provider"]["opened"][np.triu_indices(RHO)]
    np.testing.assert_allclose(found, exact, atol=2.0 ** (width + 2 - 120))
