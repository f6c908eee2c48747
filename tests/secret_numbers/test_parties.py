"""Parties on an engine, with a dealer or without one: right results, and nothing to see on the way."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.secret_numbers_runs import own_share, run

from atoll import codec
from atoll.crypto import paillier
from atoll.errors import MessageError
from atoll.runtime.engine import Observer
from atoll.secret_numbers import functions, messages
from atoll.secret_numbers.field import PRIME, decoded, encoded, from_bytes, to_bytes
from atoll.secret_numbers.machine import HIDING
from atoll.study.address import Address


class Tap(Observer):
    """Keeps every message that arrived."""

    def __init__(self) -> None:
        self.decoder = codec.Decoder(messages.MESSAGES)
        self.arrived: list[tuple[str, str, codec.Message]] = []

    def delivered(self, receiver: Address, sender: Address, data: bytes) -> None:
        self.arrived.append((str(receiver), str(sender), self.decoder.decode(data)))


async def _root(machine, which):  # type: ignore[no-untyped-def]
    x = own_share(machine, which, encoded([2.0, 2.0**-14]))
    return decoded(await machine.opened(await functions.inverse_square_root(machine, x)))


def test_with_a_dealer_every_party_has_the_function() -> None:
    tap = Tap()
    results, _ = run(_root, 3, observer=tap)
    for found in results:
        np.testing.assert_allclose(found, [2**-0.5, 128.0], rtol=1e-11)
    seen = {(receiver.split("/")[1], type(m).__name__) for receiver, _, m in tap.arrived}
    assert seen == {
        ("provider", "MaskedShares"),
        ("provider", "DealerSeed"),
        ("provider", "Remainder"),
        ("dealer", "Wanted"),
    }
    # One seed each: two parties with one seed would know each other's shares.
    seeds = [m.seed for _, _, m in tap.arrived if isinstance(m, messages.DealerSeed)]
    assert len(seeds) == len(set(seeds)) == 2


async def _product(machine, which):  # type: ignore[no-untyped-def]
    x = own_share(machine, which, encoded([1.5, -2.0, 0.25]))
    first = decoded(await machine.opened(await machine.times(x, x)))
    coins = await machine.opened(await machine.random_bits(40))
    return first, coins


@pytest.mark.parametrize("n", [2, 3])
def test_without_a_dealer_pairs_of_parties_make_their_products(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tap = Tap()
    results, _ = run(_product, n, key_bits=2048, observer=tap)
    for found, coins in results:
        np.testing.assert_allclose(found, [2.25, 4.0, 0.0625], atol=1e-10)
        assert set(coins) == {0, 1}
    assert all(sorted(a[1]) == sorted(results[0][1]) for a in results)
    kinds = {type(m).__name__ for _, _, m in tap.arrived}
    assert kinds == {"MaskedShares", "Factors", "Supplied"}


def test_what_is_seen_of_two_inputs_is_not_told_apart() -> None:
    """All that one party receives, of two very different numbers: equal distributions of what is opened."""
    views = []
    for value in (0.0, 1000.0):
        low = []
        for _ in range(60):
            tap = Tap()

            async def once(machine, which, value=value):  # type: ignore[no-untyped-def]
                x = own_share(machine, which, encoded(np.full(4, value)))
                await machine.times(x, x)

            run(once, 2, observer=tap)
            sent = [
                m for to, _, m in tap.arrived if to == "p0/provider" and isinstance(m, messages.MaskedShares)
            ]
            low += [int(v) / PRIME for v in from_bytes(sent[0].body, 8)]
        views.append(np.sort(low))
    # Kolmogorov and Smirnov: 480 draws each; 0.126 is exceeded once in a thousand where they are equal.
    grid = np.linspace(0, 1, 400)
    gap = np.abs(np.searchsorted(views[0], grid) - np.searchsorted(views[1], grid)) / len(views[0])
    assert gap.max() < 0.126


def test_masks_are_as_wide_as_docs_say_and_drawn_anew() -> None:
    assert HIDING == 64

    async def masks(machine, which):  # type: ignore[no-untyped-def]
        return [machine.own_integers(50, 1 << 100) for _ in range(2)]

    results, _ = run(masks, 2)
    drawn = np.concatenate([m.ravel() for pair in results for m in pair])
    assert len(set(drawn)) == 200
    assert max(int(x).bit_length() for x in drawn) == 100


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(MessageError, match="not below its prime"):
        from_bytes(PRIME.to_bytes(32, "little"), 1)
    with pytest.raises(MessageError, match="were due"):
        from_bytes(to_bytes(encoded([1.0])), 2)
    key = paillier.generate(paillier.parameters_for(2048), bytes(32))
    batch = paillier.gilboa.encrypted(key.public, [1, 2], bytes(32))
    with pytest.raises(MessageError, match="2 encrypted factors arrived where 3"):
        paillier.gilboa.decrypted(key, batch, 3)
    with pytest.raises(MessageError, match="for step 4"):
        messages.check_step(4, 5)


def test_a_product_under_another_partys_key_is_masked_and_fresh() -> None:
    key = paillier.generate(paillier.parameters_for(2048), bytes(32))
    batch = paillier.gilboa.encrypted(key.public, [5, 7], bytes(32))
    answers = [
        paillier.gilboa.times_plus(key.public, batch, [3, 11], [10**6, 10**7], bytes([i]) * 32)
        for i in range(2)
    ]
    assert answers[0] != answers[1]
    for answer in answers:
        assert paillier.gilboa.decrypted(key, answer, 2) == [15 + 10**6, 77 + 10**7]
