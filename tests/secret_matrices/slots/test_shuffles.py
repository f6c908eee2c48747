"""A list that every provider shuffles in turn: the same numbers, in an order that nobody knows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.support.slot_runs import COORDINATOR, MESSAGES, clear, encrypted, provider

from atoll.codec import Decoder, Message
from atoll.errors import RunError
from atoll.runtime.engine import Observer
from atoll.secret_matrices.slots import shuffles as shuffling
from atoll.secret_matrices.slots.messages import ListRow
from atoll.secret_matrices.slots.shuffles import order
from atoll.study.address import Address

VALUES = [-0.75, -0.25, 0.25, 0.75]
EVERYBODY = frozenset({provider(0), provider(1), provider(2), str(COORDINATOR)})


def shuffles(times: int) -> Any:
    """The list, so often; everybody sees what stands where."""

    async def program(m: Any, own: Any) -> Any:
        lists = [await m.shuffled(VALUES) for _ in range(times)]
        opened = await m.opened([x for one in lists for x in one], [1] * (times * len(VALUES)), EVERYBODY)
        return np.array(opened).reshape(times, len(VALUES))

    return program


class Tap(Observer):
    """What was on the list after each provider."""

    def __init__(self) -> None:
        self.decoder = Decoder[Message](MESSAGES)
        self.rows: dict[tuple[str, str], list[bytes]] = {}

    def sent(self, sender: Address, receiver: Address, data: bytes) -> None:
        message = self.decoder.decode(data)
        if isinstance(message, ListRow):
            self.rows.setdefault((str(sender), str(receiver)), []).append(bytes(message.body))


def test_the_numbers_stay_and_their_order_is_new_each_time() -> None:
    """With 48 shuffles every number stands everywhere about as often: 12 times, plus or minus three."""
    times = 48
    seen = encrypted(shuffles(times), [None] * 4).results[provider(1)]
    np.testing.assert_allclose(np.sort(seen, axis=1), [VALUES] * times, atol=1e-5)
    place = np.argsort(np.argsort(seen, axis=1), axis=1)
    for i in range(len(VALUES)):
        counts = np.bincount(place[:, i], minlength=4)
        assert ((counts - times / 4) ** 2 / (times / 4)).sum() < 25  # chi-squared, 3 degrees: one in 60,000
    assert len({tuple(row) for row in place}) > 10


def test_a_tap_sees_each_list_at_one_hop_only_and_no_ciphertext_twice() -> None:
    """Nobody but the next one is sent a list, and nothing of it comes out as it went in."""
    tap = Tap()
    encrypted(shuffles(1), [None] * 4, observer=tap)
    chain = [*(provider(i) for i in range(3)), str(COORDINATOR)]
    assert list(tap.rows) == list(pairwise(chain))
    lists = list(tap.rows.values())
    assert {len(rows) for rows in lists} == {len(VALUES)}
    # Both halves are new: equal second halves would say which ciphertext became which.
    for start in (0, len(lists[0][0]) // 2):
        pieces = [row[start + 8 :][:4096] for rows in lists for row in rows]
        assert len(set(pieces)) == len(pieces)


def test_each_provider_has_an_order_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds of no two providers, and of no two lists, are the same."""
    seeds: list[bytes] = []

    def noted(count: int, seed: bytes) -> list[int]:
        seeds.append(seed)
        return order(count, seed)

    monkeypatch.setattr(shuffling, "order", noted)
    encrypted(shuffles(2), [None] * 4)
    assert len(seeds) == len(set(seeds)) == 6


def test_differences_of_ciphertexts_are_no_encodings() -> None:
    """Whoever permuted without hiding would leave differences of zero, or of small numbers."""
    tap = Tap()
    encrypted(shuffles(1), [None] * 4, observer=tap)
    before, after = (np.array([_residues(row) for row in rows]) for rows in list(tap.rows.values())[:2])
    for x in before:
        for y in after:
            assert np.abs(x - y).min() > 0 or (x != y).mean() > 0.99
            assert (np.abs(x - y) < 2.0**30).mean() < 0.02


def _residues(row: bytes) -> np.ndarray[Any, Any]:
    """Of the second half, modulo its first modulus."""
    half = 8 + (len(row) - 8) // 2
    return np.frombuffer(row[half : half + 8 * 1024], "<u8").astype(np.float64)


def test_orders_are_uniform_and_of_their_seed() -> None:
    drawn = Counter(tuple(order(3, bytes([i]) * 32)) for i in range(240))
    assert len(drawn) == 6
    assert max(drawn.values()) < 75
    assert order(50, b"a" * 32) == order(50, b"a" * 32) != order(50, b"b" * 32)


def test_machines_count_alike_and_who_verifies_refuses() -> None:
    given = [None] * 4
    secret, twin = encrypted(shuffles(1), given), clear(shuffles(1), given)
    for role, tally in twin.tallies.items():
        assert secret.tallies[role].total == tally.total
    with pytest.raises(RunError, match="cannot check a shuffle"):
        encrypted(shuffles(1), given, verify=True)
