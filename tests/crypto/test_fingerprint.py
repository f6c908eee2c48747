"""Fingerprints: polynomials at points that nobody can foresee."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.crypto import fingerprint
from atoll.errors import MessageError, ParameterError

COIN = bytes(range(32))


def plain(values: list[int], point: fingerprint.Point) -> int:
    return sum(x * pow(point.z, j, point.modulus) for j, x in enumerate(values)) % point.modulus


@given(st.integers(1, 64), st.integers(0, 1200), st.integers(0, 2**32))
def test_a_fingerprint_is_the_polynomial_at_the_point(size: int, n: int, seed: int) -> None:
    data = np.random.default_rng(seed).bytes(size * n)
    values = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    at = fingerprint.points(COIN)
    assert fingerprint.evaluate(data, size, at) == (plain(values, at[0]), plain(values, at[1]))


@given(st.integers(1, 20), st.integers(1, 600), st.integers(1, 5), st.integers(1, 3), st.integers(0, 2**32))
def test_vectors_that_take_turns_have_the_fingerprints_of_each(
    size: int, together: int, rows: int, turns: int, seed: int
) -> None:
    data = np.random.default_rng(seed).bytes(size * together * rows * turns)
    at = [fingerprint.points(bytes([row]) * 32) for row in range(rows)]
    step = size * together
    apart = [
        b"".join(data[i : i + step] for i in range(row * step, len(data), rows * step)) for row in range(rows)
    ]
    assert fingerprint.evaluate_rows(data, size, together, at) == [
        fingerprint.evaluate(part, size, pair) for part, pair in zip(apart, at, strict=True)
    ]
    for other, pairs in ((together + 1, at), (together, [*at, *at, *at, *at])):
        with pytest.raises(ParameterError):
            fingerprint.evaluate_rows(data[: size * together * rows], size, other, pairs)


def test_fingerprints_add_as_the_vectors_do() -> None:
    rng = np.random.default_rng(0)
    parts = rng.integers(0, 2**50, (5, 1000), dtype=np.uint64)
    at = fingerprint.points(COIN)
    each = [fingerprint.evaluate(part.tobytes(), 8, at) for part in parts]
    total = parts.sum(axis=0)
    assert fingerprint.plus(at, each) == fingerprint.evaluate(total.tobytes(), 8, at)
    total[777] ^= np.uint64(1)
    changed = fingerprint.evaluate(total.tobytes(), 8, at)
    assert all(a != b for a, b in zip(changed, fingerprint.plus(at, each), strict=True))


def test_points_are_two_primes_of_61_bits_that_follow_the_coin() -> None:
    seen = set()
    for i in range(50):
        for point in fingerprint.points(bytes([i]) * 32):
            assert point.modulus.bit_length() == 61
            assert pow(3, point.modulus - 1, point.modulus) == 1
            assert all(point.modulus % small for small in range(2, 1000))
            assert 0 <= point.z < point.modulus
            seen.add(point)
    assert len({point.modulus for point in seen}) == len(seen) == 100


def test_a_difference_of_a_fixed_primes_multiple_is_seen() -> None:
    """Were the prime known beforehand, a multiple of it could be added unseen."""
    mersenne = 2**61 - 1
    data, other = bytes(35), (mersenne * 12345).to_bytes(35, "little")
    for i in range(20):
        at = fingerprint.points(bytes([i]) * 32)
        assert fingerprint.evaluate(data, 35, at) != fingerprint.evaluate(other, 35, at)


def test_points_modulo_a_given_prime_for_residues() -> None:
    prime = 0x3FFFFFFFEF8001
    first, second = fingerprint.points_modulo(prime, COIN)
    assert (first.modulus, second.modulus) == (prime, prime)
    assert first.z != second.z
    values = [prime - 1, 0, 5, prime - 2]
    data = b"".join(v.to_bytes(7, "little") for v in values)
    assert fingerprint.evaluate(data, 7, (first, second)) == (plain(values, first), plain(values, second))


def test_points_modulo_one_prime_follow_the_coin() -> None:
    """A key's primes are public: were the points too, another key could have the same fingerprints."""
    prime = 0x3FFFFFFFEF8001
    drawn = {p.z for i in range(50) for p in fingerprint.points_modulo(prime, bytes([i]) * 32)}
    assert len(drawn) == 100
    assert max(drawn) > prime * 3 // 4
    assert min(drawn) < prime // 4


def test_pseudoprimes_are_no_primes() -> None:
    """Some pass the usual test for nine bases; all are looked at before the first true prime."""
    pseudo = [3215031751, 3825123056546413051, 2**61 + 1, 41 * 43]
    for prime in (2**61 - 1, 2305843009213693921, 1000003):
        assert fingerprint.first_prime(np.array([*pseudo, prime, 7], dtype=np.uint64)) == prime
    with pytest.raises(ParameterError, match="prime"):
        fingerprint.first_prime(np.array(pseudo, dtype=np.uint64))


def test_what_travels_is_two_words_for_each_pair() -> None:
    pairs = [(1, 2), (2**61 - 2, 0)]
    data = fingerprint.to_bytes(pairs)
    assert len(data) == 32
    assert fingerprint.from_bytes(data, 2) == pairs
    with pytest.raises(MessageError):
        fingerprint.from_bytes(data[:-1], 2)
    with pytest.raises(ParameterError):
        fingerprint.evaluate(b"abc", 2, fingerprint.points(COIN))
