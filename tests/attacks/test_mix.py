"""Attacks on the mixing secure sum: matching segments, following ciphertexts, tampering on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import atoll
from atoll import fixedpoint, randomness
from atoll.crypto import envelope
from atoll.errors import AtollError, MessageError
from atoll.fixedpoint import Limbs
from atoll.secure_sums.mix import session as mix
from atoll.secure_sums.mix.elgamal import ElGamal
from atoll.secure_sums.mix.form import Batch, Form, Hop, check_batch, shuffled
from atoll.secure_sums.mix.layers import Onions

N, S = 3, 2


def seed(*domain: str | int) -> bytes:
    return randomness.derive(bytes(32), "tests/mix", *domain)


# ---- what the mediator reads ----


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[Limbs]]:
    """Everything the mediator reads: the segments of each batch, before they are added up."""
    seen: list[list[Limbs]] = []
    added_up = mix.added_up

    def noting(segments: Sequence[Limbs], n: int) -> Limbs:
        seen.append(list(segments))
        return added_up(segments, n)

    monkeypatch.setattr(mix, "added_up", noting)
    return seen


def pairings(items: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to put six segments into three pairs."""
    if not items:
        yield []
        return
    first, *rest = items
    for partner in rest:
        for others in pairings([i for i in rest if i != partner]):
            yield [(first, partner), *others]


def smallest_sums(segments: list[list[int]]) -> list[list[int]]:
    """The matching attack: the pairing whose sums are smallest; what each pair adds up to."""
    best = min(
        pairings(list(range(N * S))),
        key=lambda pairs: sum(
            abs(a + b) for i, j in pairs for a, b in zip(segments[i], segments[j], strict=True)
        ),
    )
    return sorted([a + b for a, b in zip(segments[i], segments[j], strict=True)] for i, j in best)


def recovered(segments: list[Limbs]) -> list[list[float]]:
    integers = [fixedpoint.to_integers(segment) for segment in segments]
    return [[x / 2.0**fixedpoint.FRACTION_BITS for x in one] for one in smallest_sums(integers)]


VECTORS = [np.array([3.25, -1.5]), np.array([-0.75, 2.0]), np.array([1.125, 0.5])]
LETTER: dict[str, Any] = {"blind": False, "cut": "random", "spread_bits": fixedpoint.FRACTION_BITS + 22}
"""The paper's random segments, 2^20 times as large as the values."""


def test_random_segments_without_blinding_give_every_input_back(read: list[list[Limbs]]) -> None:
    atoll.secure_sum(VECTORS, "mix", **LETTER)
    assert recovered(read[0]) == sorted(v.tolist() for v in VECTORS)


def test_segments_of_blinded_values_match_no_input(read: list[list[Limbs]]) -> None:
    for form in ("onion", "elgamal"):
        read.clear()
        atoll.secure_sum(VECTORS, "mix", form=form)
        found = np.array(recovered(read[0]))
        # Sums of uniform numbers of 92 bits before the point: nothing of the size of an input.
        assert np.abs(found).min() > 1e20


def test_positive_fractions_of_a_vector_are_parallel(read: list[list[Limbs]]) -> None:
    """The paper's own segments, moved as units: those of one input point into one direction."""
    vectors = [np.array([3.0, 1.0, 2.0]), np.array([0.5, 4.0, 1.0]), np.array([2.0, 2.0, 5.0])]
    atoll.secure_sum(vectors, "mix", blind=False, cut="fractions")
    segments = np.array([fixedpoint.decode(segment) for segment in read[0]])
    directions = segments / np.linalg.norm(segments, axis=1, keepdims=True)
    pairs = [(i, j) for i, j in combinations(range(N * S), 2) if directions[i] @ directions[j] > 1 - 1e-9]
    assert sorted((segments[i] + segments[j]).round(6).tolist() for i, j in pairs) == sorted(
        v.tolist() for v in vectors
    )
    read.clear()
    atoll.secure_sum(vectors, "mix")
    segments = np.array([fixedpoint.decode(segment) for segment in read[0]])
    directions = segments / np.linalg.norm(segments, axis=1, keepdims=True)
    assert not [1 for i, j in combinations(range(N * S), 2) if directions[i] @ directions[j] > 1 - 1e-9]


def test_a_coalition_of_all_but_two_with_the_mediator_sees_uniform_segments(read: list[list[Limbs]]) -> None:
    """Whatever the inputs, every segment is uniform; only all of them together have a sum."""
    n = 20_000
    for values in ((0.0, 0.0), (1e9, -1e9)):
        read.clear()
        vectors = [np.full(n, values[0]), np.full(n, values[1]), np.full(n, 7.0)]
        np.testing.assert_array_equal(atoll.secure_sum(vectors, "mix"), np.full(n, 7.0))
        for segment in read[0]:
            counts = np.bincount(np.frombuffer(segment.tobytes(), np.uint8), minlength=256)
            expected = counts.sum() / 256
            assert np.sum((counts - expected) ** 2 / expected) < 380  # 255 degrees of freedom, p about 1e-6


# ---- who sent what ----


def chain(form: Form, run: int, n: int = 1) -> tuple[list[bytes], list[bytes], list[tuple[bytes, ...]]]:
    """Keys (mediator first), and the batch as every place receives it, outermost first."""
    private = [form.private_key(seed("key", run, k), "c") for k in range(N + 1)]
    public = [form.public_key(key) for key in private]
    hop = Hop("s", "b", 0, 0)
    values = [[fixedpoint.encode(np.full(n, float(10 * i + j))) for j in range(S)] for i in range(N)]
    batch = tuple(
        item for i in range(N) for item in form.wrap(values[i], public, hop, seed("wrap", run, i)).items
    )
    batches = [batch]
    for place in range(N, 0, -1):
        batch = form.strip(batch, private[place], public[:place], hop.at(place), seed("shuffle", run, place))
        batches.append(batch)
    return private, public, batches


def test_the_place_of_a_segment_after_mixing_is_uniform() -> None:
    """Ten thousand runs: the permutations that hops draw, one after another."""
    counts = Counter()
    for run in range(10_000):
        place = 0
        for hop in range(N):
            place = shuffled(N * S, seed("uniform", run, hop)).index(place)
        counts[place] += 1
    expected = 10_000 / (N * S)
    assert sum((counts[k] - expected) ** 2 / expected for k in range(N * S)) < 31  # 5 degrees, p about 1e-5


def test_hops_shuffle_as_they_draw() -> None:
    form = Onions()
    private, _, batches = chain(form, 0)
    hop = Hop("s", "b", 0, N)
    stripped = [envelope.unseal(private[N], item, hop.context) for item in batches[0]]
    order = shuffled(N * S, seed("shuffle", 0, N))
    assert batches[1] == tuple(stripped[k] for k in order)


def test_whoever_holds_all_keys_but_two_guesses_senders_no_better_than_by_chance() -> None:
    """Contributors 0 and 1 are honest. The attacker strips what it can and bets on the places it knows."""
    form, right, runs = Onions(), 0, 300
    for run in range(runs):
        private, _, batches = chain(form, run)
        read = [fixedpoint.decode(v)[0] for v in form.read(batches[-1], private[0], Hop("s", "b", 0, 0), 1)]
        honest = [value for value in read if value < 20]  # the colluder takes its own segments away
        guess = 0 if read.index(honest[0]) < N * S / 2 else 1
        right += int(honest[0] // 10) == guess
    assert abs(right - runs / 2) < 4.5 * (runs / 4) ** 0.5


def blocks(batch: Sequence[bytes]) -> set[bytes]:
    return {item[k : k + 16] for item in batch for k in range(0, len(item), 16)}


@pytest.mark.parametrize("form", [Onions(), ElGamal()], ids=["onion", "elgamal"])
def test_no_block_is_the_same_on_both_sides_of_a_hop(form: Form) -> None:
    _, _, batches = chain(form, 1, n=4)
    for before, after in pairwise(batches):
        blocks = [
            {item[k : k + 16] for item in side for k in range(0, len(item), 16)} for side in (before, after)
        ]
        assert not blocks[0] & blocks[1]


# ---- nothing is drawn twice ----


def inputs(form: str, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What one island hands in for three values in three orders, as single ciphertexts."""
    sent: list[bytes] = []
    wrap = mix.Mix._prepare

    def noting(self: mix.Mix, *args: Any) -> Any:
        wrapped = wrap(self, *args)
        if self.net.me == self.contributors[0]:
            sent.extend(item for part in wrapped for item in part.items)
        return wrapped

    monkeypatch.setattr(mix.Mix, "_prepare", noting)
    atoll.secure_sum([np.arange(3.0)] * N, "mix", form=form, parallel=True)
    return sent


def test_every_onion_has_keys_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nonce is fixed: two layers under one ephemeral key would show the difference of their contents."""
    _, _, batches = chain(Onions(), 6)
    for found in ([item for batch in batches for item in batch], inputs("onion", monkeypatch)):
        assert len({item[1:33] for item in found}) == len(found) > N


def test_every_elgamal_piece_has_a_scalar_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ciphertexts with one first half: the quotient of the others is that of the pieces."""
    items = inputs("elgamal", monkeypatch)
    firsts = [item[k : k + 32] for item in items for k in range(0, len(item), 64)]
    assert len(set(firsts)) == len(firsts) == 3 * S * 2


def test_every_block_is_blinded_and_every_order_shuffled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    blinded, seeds = [], []
    cut, strip = mix.cut, Onions.strip

    def cutting(values: Limbs, *args: Any) -> list[Limbs]:
        blinded.append(values.tobytes())
        return cut(values, *args)

    def stripping(self: Onions, batch: Any, private: bytes, below: Any, hop: Hop, seed: bytes) -> Batch:
        seeds.append(seed)
        return strip(self, batch, private, below, hop, seed)

    monkeypatch.setattr(mix, "cut", cutting)
    monkeypatch.setattr(Onions, "strip", stripping)
    monkeypatch.setattr(mix.Mix, "block_values", 3)
    atoll.secure_sum([np.ones(6)] * N, "mix", parallel=True)
    assert len(set(blinded)) == len(blinded) == 2 * N
    assert len(set(seeds)) == len(seeds) == 2 * N * N  # two blocks, three orders, three hops


def test_another_ones_key_and_proof_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = mix.Mix.exchange_keys

    async def cheating(self: mix.Mix, arrived: Any) -> None:
        first, *_, last = self.contributors
        if self.net.me == last:
            broadcast = self.net.broadcast

            async def copied(to: Any, message: Any) -> None:
                arrived.update(await self.net.gather(mix.MixKeys, [first]))
                await broadcast(to, structs.replace(message, layer=arrived[first].layer))

            monkeypatch.setattr(self.net, "broadcast", copied)
        await honest(self, arrived)

    monkeypatch.setattr(mix.Mix, "exchange_keys", cheating)
    with pytest.raises(MessageError, match="proof of possession"):
        atoll.secure_sum(VECTORS, "mix", form="elgamal")


# ---- tampering ----


def tampered(
    batch: tuple[bytes, ...], other: tuple[bytes, ...], rng: np.random.Generator
) -> tuple[bytes, ...]:
    """One item dropped, doubled, cut, lengthened, replaced, moved in from elsewhere, or changed by a bit."""
    items, k = list(batch), int(rng.integers(len(batch)))
    match int(rng.integers(7)):
        case 0:
            del items[k]
        case 1:
            items[k] = items[k - 1]
        case 2:
            items[k] = items[k][: int(rng.integers(len(items[k])))]
        case 3:
            items[k] += b"\x00"
        case 4:
            items[k] = rng.bytes(len(items[k]))
        case 5:
            items[k] = other[k]
        case _:
            changed = bytearray(items[k])
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
            items[k] = bytes(changed)
    return tuple(items)


def received(
    form: Form, batch: tuple[bytes, ...], private: bytes, below: Sequence[bytes], place: int
) -> None:
    """What a contributor does with a batch."""
    check_batch(batch, N * S, form.size(1, place + 1))
    form.strip(batch, private, below, Hop("s", "b", 0, place), seed("again"))


def test_ten_thousand_tampered_batches_are_refused_at_the_hop() -> None:
    form, rng = Onions(), np.random.default_rng(3)
    private, public, batches = chain(form, 2)
    _, _, others = chain(form, 3)
    for _ in range(10_000):
        place = int(rng.integers(1, N + 1))
        bad = tampered(batches[N - place], others[N - place], rng)
        with pytest.raises(MessageError):
            received(form, bad, private[place], public[:place], place)


def test_tampered_elgamal_is_refused_at_the_hop_or_by_the_mediator() -> None:
    """What is still a group element passes the hops and is noticed where it is read: never a wrong sum."""
    form, rng = ElGamal(), np.random.default_rng(4)
    private, public, batches = chain(form, 4)
    for _ in range(200):
        bad = tampered(batches[0], tuple(rng.bytes(len(item)) for item in batches[0]), rng)
        with pytest.raises(AtollError):
            mixed_and_read(form, bad, private, public)


def mixed_and_read(form: Form, batch: Batch, private: Sequence[bytes], public: Sequence[bytes]) -> None:
    check_batch(batch, N * S, form.size(1, N + 1))
    for place in range(N, 0, -1):
        batch = form.strip(batch, private[place], public[:place], Hop("s", "b", 0, place), seed("t", place))
    form.read(batch, private[0], Hop("s", "b", 0, 0), 1)


def test_a_batch_of_another_order_place_or_round_does_not_open() -> None:
    form = Onions()
    private, public, batches = chain(form, 5)
    for hop in (Hop("s", "b", 1, N), Hop("s", "b", 0, N - 1), Hop("s", "c", 0, N), Hop("t", "b", 0, N)):
        with pytest.raises(MessageError, match="layer 1 of 6 cannot be opened"):
            form.strip(batches[0], private[N], public[:N], hop, seed("again"))


def test_a_mediator_that_replaces_an_islands_segments_is_found_by_that_island(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows all public keys, so it can make onions of its own; the island looks for its own segments."""
    send = mix.Mix.mediate

    async def cheating(self: mix.Mix, name: str, n: int, arrived: Any = mix.NOTHING) -> Limbs:
        forged = self._form.wrap(
            [fixedpoint.encode(np.zeros(n))] * S,
            self._layer_keys((0, 1, 2)),
            Hop(self.session, name, 0, 0),
            seed("f"),
        )
        gather = self.net.gather

        async def replaced(kind: Any, senders: Any, **options: Any) -> Any:
            found = await gather(kind, senders, **options)
            if kind is mix.MixInput:
                victim = self.contributors[1]
                found[victim] = mix.MixInput(name, n, (forged.items,))
            return found

        monkeypatch.setattr(self.net, "gather", replaced)
        return await send(self, name, n, arrived)

    monkeypatch.setattr(mix.Mix, "mediate", cheating)
    with pytest.raises(MessageError, match=r"hop 2 of 3 \(island-1/contributor\): its own segments"):
        atoll.secure_sum(VECTORS, "mix")


def test_a_rogue_key_has_no_proof() -> None:
    form = ElGamal()
    public = form.public_key(form.private_key(seed("rogue"), "session/a"))
    form.check_key(public, "session/a")
    with pytest.raises(MessageError, match="proof of possession"):
        form.check_key(public, "session/b")
    with pytest.raises(AtollError):
        form.check_key(bytes(96), "session/a")
