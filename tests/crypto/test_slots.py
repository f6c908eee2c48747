"""Encrypted slots through the recipe: every operation against plain numbers, and what must be refused."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from tests.crypto.slot_group import TEST_SET, label, slot_group
from tests.support.handles import opened as opened_since

from atoll.crypto.slots import (
    Ciphertext,
    Keys,
    Secret,
    Shares,
    find,
    from_inputs,
    opened,
    opened_all,
    public_share,
    refreshed,
    refreshed_all,
    sets,
    switched,
    total,
)
from atoll.errors import MessageError, ParameterError, RangeOverflow

GROUP = slot_group()
SLOTS = GROUP.set.slots
RNG = np.random.default_rng(5)
A, B = RNG.uniform(-2, 2, SLOTS), RNG.uniform(-2, 2, SLOTS)
X, Y = GROUP.encrypt(A), GROUP.encrypt(B)


def near(x: Ciphertext, want: np.ndarray, bound: float = 1e-6) -> None:
    """The ciphertext holds these numbers."""
    assert np.abs(GROUP.open(x) - want).max() <= bound


def test_sums_and_products():
    keys = GROUP.keys
    near(keys.add(X, Y, X), 2 * A + B)
    near(keys.subtract(X, Y), A - B)
    near(keys.plus(X, B), A + B)
    near(keys.plus(X, np.ones(3)), A + np.r_[np.ones(3), np.zeros(SLOTS - 3)])
    near(keys.scaled(X, 3), 3 * A)
    near(keys.scaled(X, 0.37), 0.37 * A)
    near(keys.times(X, Y), A * B)
    near(keys.times(X, X), A * A)
    near(keys.weighted(X, B), A * B)
    near(keys.rerandomised(X, GROUP.seed()), A)
    assert keys.scaled(X, 3).level == X.level
    assert keys.times(X, Y).level == keys.weighted(X, B).level == keys.scaled(X, 0.37).level == X.level - 1


@pytest.mark.parametrize("lazy", [True, False])
def test_inner_products_mix_ciphertexts_and_clear_numbers_at_any_level(lazy):
    low = GROUP.keys.lowered(Y, 5)
    inner = GROUP.keys.inner([(X, low), (Y, B), (low, low)], lazy=lazy)
    assert inner.level == 4
    near(inner, A * B + 2 * B * B)


@pytest.mark.parametrize("steps", [0, 1, 37, -1, -300, SLOTS, SLOTS + 5])
def test_rotations_are_those_of_numpy_to_the_left(steps):
    near(GROUP.keys.rotate(X, steps), np.roll(A, -steps))


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7, 8, 31, 32, 63])
def test_chebyshev_series_of_any_degree(degree):
    coefficients = RNG.uniform(-1, 1, degree + 1)
    interval = (-2.0, 3.0)
    found = GROUP.keys.polynomial(X, list(coefficients), interval)
    want = np.polynomial.Chebyshev(coefficients, domain=interval)(A)
    near(found, want, 1e-6 * (degree + 1))
    assert found.level == X.level - 1 - int(np.ceil(np.log2(degree + 1)))


def test_a_series_may_be_a_constant_of_any_length():
    near(GROUP.keys.polynomial(X, [-1.0] + [0.0] * 31, (0.0, 3.0)), -np.ones(SLOTS))


def test_a_refresh_brings_all_levels_back():
    low = GROUP.keys.lowered(X, GROUP.set.refresh_level)
    fresh = GROUP.refreshed(low)
    assert fresh.level == GROUP.set.top
    near(fresh, A)
    near(GROUP.keys.times(fresh, Y), A * B)


def test_lists_do_what_single_ones_do():
    keys = GROUP.keys
    for got, want in zip(keys.inner_all([[(X, Y)], [(X, X), (Y, Y)]]), [A * B, A * A + B * B], strict=True):
        near(got, want)
    for got, want in zip(keys.add_all([[X, Y], [Y]]), [A + B, B], strict=True):
        near(got, want)
    for got, want in zip(keys.rotate_all([X, Y], [3, -2]), [np.roll(A, -3), np.roll(B, 2)], strict=True):
        near(got, want)
    assert keys.rotate_all([], []) == []


def test_a_receiver_alone_reads_what_was_handed_over():
    receiver, common = Secret.generate(GROUP.set, label("receiver")), label("receiver's common")
    public = receiver.public_part(common, label("receiver's error"))
    low = GROUP.keys.lowered(X, 4)
    parts = [s.switching_part(low, common, public, GROUP.seed(), 10) for s in GROUP.secrets]
    message = switched(low, total(GROUP.set, parts))
    assert np.abs(receiver.decrypt(message) - A).max() < 1e-5
    with pytest.raises(RangeOverflow):
        GROUP.secrets[0].decrypt(message)


def integers(shares: Shares) -> list[int]:
    """Two's complement."""
    return [int(low) + (int(high) << 64) - ((int(high) >> 63) << 128) for low, high in shares]


def from_integers(values: list[int]) -> Shares:
    """The inverse of :func:`integers`."""
    words = [[value % 2**64, (value >> 64) % 2**64] for value in values]
    return np.array(words, dtype=np.uint64)


def test_shares_add_up_to_the_slots_and_come_back():
    low = GROUP.keys.lowered(X, 3)
    made = [s.share_part(low, GROUP.seed()) for s in GROUP.secrets]
    public = public_share(low, total(GROUP.set, [part for part, _ in made]), len(made))
    everybody = [integers(shares) for _, shares in made] + [integers(public)]
    unit = 2.0**-GROUP.set.scale_bits
    found = np.array([sum(column) * unit for column in zip(*everybody, strict=True)])
    assert np.abs(found - A).max() < 1e-6
    # Alone, a share is as wide as its mask.
    assert min(max(abs(v) for v in shares) for shares in everybody).bit_length() > 110
    common = label("inputs")
    held = [from_integers([x + y for x, y in zip(everybody[0], everybody[3], strict=True)])]
    held += [shares for _, shares in made[1:]]
    parts = [s.input_part(one, common, GROUP.seed()) for s, one in zip(GROUP.secrets, held, strict=True)]
    near(from_inputs(GROUP.set, total(GROUP.set, parts), common), A)


def test_errors_name_what_is_wrong():
    keys, low = GROUP.keys, GROUP.keys.lowered(X, 0)
    with pytest.raises(RangeOverflow, match="no level"):
        keys.times(low, Y)
    with pytest.raises(RangeOverflow, match="takes 6 levels"):
        keys.polynomial(keys.lowered(X, 5), [0.0] * 32, (-1, 1))
    with pytest.raises(ParameterError, match="encoded for level 4"):
        keys.times(X, keys.encoded(A, 4))
    with pytest.raises(ParameterError, match="cannot be taken"):
        keys.lowered(low, 3)
    with pytest.raises(RangeOverflow):
        keys.encrypt(np.array([1024.0]), GROUP.seed())
    with pytest.raises(RangeOverflow):
        keys.weighted(X, np.array([np.nan]))
    with pytest.raises(ParameterError, match="slots"):
        keys.encrypt(np.zeros(SLOTS + 1), GROUP.seed())
    bare = Keys(GROUP.set, GROUP.common, GROUP.totals[:1])
    with pytest.raises(ParameterError, match="relinearisation"):
        bare.times(X, Y)
    with pytest.raises(ParameterError, match="rotates by 1"):
        bare.rotate(X, 1)
    with pytest.raises(ParameterError, match="public key"):
        Keys(GROUP.set, GROUP.common).encrypt(A, GROUP.seed())


def test_insecure_sets_are_for_tests_only():
    assert [row.name for row in sets()] == ["paper-14"]
    with pytest.raises(ParameterError):
        find(TEST_SET)


def test_messages_are_checked_to_the_last_residue():
    message = bytearray(X.to_bytes())
    assert Ciphertext.from_bytes(GROUP.set, bytes(message)).to_bytes() == bytes(message)
    assert len(message) == GROUP.set.ciphertext_bytes() == 8 + 2 * 10 * 1024 * 8
    with pytest.raises(MessageError):
        Ciphertext.from_bytes(GROUP.set, bytes(message[:-1]))
    for place, value in [(0, 9), (1, 2), (2, 1), (3, 8), (3, 10), (4, 1), (-1, 255), (8 + 7, 255)]:
        wrong = bytearray(message)
        wrong[place] = value
        with pytest.raises(MessageError):
            Ciphertext.from_bytes(GROUP.set, bytes(wrong))


def test_the_same_seeds_make_the_same_bytes_and_others_do_not():
    secret, low = GROUP.secrets[0], GROUP.keys.lowered(X, 4)
    common, seed, other = label("c"), label("s"), label("t")
    public = GROUP.totals[0]

    def parts(common: bytes, seed: bytes) -> list[bytes]:
        return [
            secret.public_part(common, seed),
            secret.relinearisation_part_1(common, seed),
            secret.rotation_part(common, seed, 2),
            bytes(secret.refresh_part(low, common, seed)),
            bytes(secret.opening_part(low, seed, 20)),
            bytes(secret.switching_part(low, common, public, seed, 20)),
            bytes(secret.share_part(low, seed)[0]),
            GROUP.keys.encrypt(A, seed).to_bytes(),
            GROUP.keys.rerandomised(low, seed).to_bytes(),
        ]

    assert parts(common, seed) == parts(common, seed)
    assert all(x != y for x, y in zip(parts(common, seed), parts(common, other), strict=True))


def test_many_threads_make_the_bytes_of_one():
    """A list is spread over all cores: what comes out does not depend on them."""
    rows = [A * i for i in range(1, 9)]
    together = GROUP.keys.encrypt_all(rows, label("s"))
    again = GROUP.keys.encrypt_all(rows, label("s"))
    assert [x.to_bytes() for x in together] == [x.to_bytes() for x in again]
    products = GROUP.keys.times_all(together, together[::-1])
    alone = [GROUP.keys.times(x, y) for x, y in zip(together, together[::-1], strict=True)]
    assert [x.to_bytes() for x in products] == [x.to_bytes() for x in alone]


def test_ciphertexts_are_freed_with_their_last_reference(monkeypatch):
    with opened_since(monkeypatch) as found:
        made = GROUP.keys.rotate_all([X, Y], [1, 2])
        assert found.alive == 2
        del made
        assert found.alive == 0
        spent = GROUP.keys.lowered(X, 0)
        with pytest.raises(RangeOverflow):
            GROUP.keys.times_all([X, spent], [X, spent])
        assert found.alive == 1


def test_secrets_do_not_show():
    assert "hidden" in repr(GROUP.secrets[0])
    assert "hidden" in repr(X)


def test_levels_and_scales_are_known_to_all():
    assert X.level == 9
    assert X.scale == 2.0**38
    for level in range(9):
        assert abs(GROUP.keys.lowered(X, level).scale / 2.0**38 - 1) < 2.0**-17


def test_the_set_of_the_paper_is_pinned():
    paper = find("paper-14")
    assert (paper.slots, paper.top, paper.refresh_level, paper.scale_bits) == (8192, 9, 2, 38)
    assert (paper.magnitude_bits, paper.mask_bits, paper.max_parties, paper.security_bits) == (
        10,
        112,
        63,
        128,
    )
    assert math.log2(math.prod(paper.moduli) * paper.special) <= 430
    assert paper.ciphertext_bytes() == 2_621_448
    assert paper.rotation_steps == tuple(2**i for i in range(13))


def test_the_set_of_the_paper_multiplies_and_refreshes():
    paper = find("paper-14")
    secrets = [Secret.generate(paper, label("paper", i)) for i in range(3)]
    public = total(paper, [s.public_part(label("c"), label(i)) for i, s in enumerate(secrets)])
    keys = Keys(paper, label("c"), [public])
    values = RNG.uniform(-2, 2, paper.slots)
    x = keys.lowered(keys.weighted(keys.encrypt(values, label("e")), values), 2)
    parts = [s.refresh_part(x, label("r"), label("m", i)) for i, s in enumerate(secrets)]
    fresh = refreshed(x, total(paper, parts), label("r"), 3)
    openings = [s.opening_part(fresh, label("o", i), 12) for i, s in enumerate(secrets)]
    assert np.abs(opened(fresh, total(paper, openings)) - values**2).max() < 1e-5


def test_lists_that_do_not_go_together_are_refused():
    """What is beyond the shorter one would be left out, or read from beside it."""
    keys, secret = GROUP.keys, GROUP.secrets[0]
    for xs, others in (([X, Y], 1), ([X], 2)):
        for use in (
            lambda xs=xs, n=others: keys.subtract_all(xs, [Y] * n),
            lambda xs=xs, n=others: keys.plus_all(xs, [A] * n),
            lambda xs=xs, n=others: keys.times_all(xs, [Y] * n),
            lambda xs=xs, n=others: keys.rotate_all(xs, [1] * n),
        ):
            with pytest.raises(ParameterError, match="do not go with"):
                use()
        with pytest.raises(ParameterError, match="do not go with"):
            opened_all(xs, [b""] * others, 1)
        with pytest.raises(ParameterError, match="do not go with"):
            refreshed_all(xs, [b""] * others, [bytes(32)] * len(xs), 3)
    with pytest.raises(ParameterError, match="0 ciphertexts"):
        opened_all([], [], 1)
    with pytest.raises(ParameterError, match="no parts"):
        total(GROUP.set, [])
    for commons in ([bytes(31), bytes(33)], [bytes(64), b""], [bytes(16), bytes(48)]):
        with pytest.raises(ParameterError, match="a seed has 32 bytes"):
            secret.refresh_parts([X, Y], commons, bytes(32))


@pytest.mark.parametrize(
    "shares",
    [
        np.zeros((SLOTS - 1, 2), np.uint64),
        np.zeros((SLOTS, 1), np.uint64),
        np.zeros((2, SLOTS), np.uint64),
        np.zeros((SLOTS, 2), np.int64),
    ],
    ids=lambda shares: f"{shares.dtype}-{shares.shape}",
)
def test_shares_have_two_words_for_every_slot(shares):
    with pytest.raises(ParameterError, match="shares are a"):
        GROUP.secrets[0].input_part(shares, bytes(32), label("s"))


def test_no_numbers_are_no_vector():
    for rows in ([], [np.zeros(0)]):
        with pytest.raises(ParameterError, match="0 numbers do not fit"):
            GROUP.keys.encrypt_all(rows, label("s"))


def test_a_mark_tells_ciphertexts_apart_and_not_the_moduli_that_are_left():
    """A party makes one part of a ciphertext: cut short, it is the same one."""
    lowered = GROUP.keys.lowered(X, 3)
    assert len(X.mark()) == 32
    assert X.mark() != Y.mark()
    assert X.mark() == Ciphertext.from_bytes(X.set, X.to_bytes()).mark()
    assert X.mark() == Ciphertext.from_half(X.set, X.half()).mark()
    row, head = 2 * SLOTS * 8, 8
    assert X.mark() == hashlib.sha256(X.half()[head : head + row]).digest()
    assert lowered.mark() == hashlib.sha256(lowered.half()[head : head + row]).digest()
