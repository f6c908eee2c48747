"""Functions of secret numbers against the same functions in the clear."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from atoll.errors import RangeOverflow
from atoll.secret_numbers import bits, eigen, functions
from atoll.secret_numbers.field import FRACTION, MAGNITUDE, decoded, encoded
from atoll.secret_numbers.together import Together

POSITIVE = np.array([0.5, 1.0, 2.0, 3.7, 1e-3, 1e-6, 12345.6, 8e6, 2.0**-40, 2.0**24 - 1])
LAST = 2.0**-FRACTION


def parties(n: int = 3) -> Together:
    return Together(n, bytes(range(32)))


def of(coroutine, machine):  # type: ignore[no-untyped-def]
    async def opened():  # type: ignore[no-untyped-def]
        return decoded(await machine.opened(await coroutine))

    return asyncio.run(opened())


def test_the_grid_and_its_limit_are_what_docs_say() -> None:
    assert (FRACTION, MAGNITUDE) == (40, 64)
    with pytest.raises(RangeOverflow, match="2\\^24"):
        encoded([1.0, 2.0**24])
    with pytest.raises(RangeOverflow):
        encoded([np.nan])
    values = np.array([-1.5, 2.0**-40, 3e-13, -(2.0**23)])
    np.testing.assert_allclose(decoded(encoded(values)), values, atol=LAST / 2)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_products_are_rounded_without_bias(n: int) -> None:
    m, rng = parties(n), np.random.default_rng(n)
    x, y = rng.uniform(-4, 4, size=(2, 3000))  # products that a double holds
    x, y = decoded(encoded(x)), decoded(encoded(y))
    off = (of(m.times(m.shared(encoded(x)), m.shared(encoded(y))), m) - x * y) / LAST
    assert np.abs(off).max() < n
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(len(off))


def test_what_a_rounding_opens_is_64_bits_wider_than_the_number() -> None:
    m = parties(2)
    of(m.rounded(m.shared(encoded(np.linspace(-4, 4, 50))), FRACTION, 88), m)
    widths = [int(value).bit_length() for value in m.seen[0]]
    assert max(widths) in (88 + 64, 88 + 64 + 1)
    assert min(widths) > 88 + 64 - 12


def test_bits_are_those_of_the_number() -> None:
    m = parties()
    whole = encoded(POSITIVE)
    found = asyncio.run(_opened_bits(m, m.shared(whole)))
    assert (found @ np.array([1 << i for i in range(MAGNITUDE)], dtype=object) == whole).all()
    assert set(found.ravel()) == {0, 1}


async def _opened_bits(m, x):  # type: ignore[no-untyped-def]
    shares = await bits.bits_of(m, x)
    return (await m.opened(shares.reshape(m.held, -1))).reshape(-1, MAGNITUDE)


def test_roots_and_quotients() -> None:
    m = parties()
    x = decoded(encoded(POSITIVE))
    s = m.shared(encoded(x))
    np.testing.assert_allclose(of(functions.square_root(m, s), m), np.sqrt(x), rtol=1e-12, atol=4 * LAST)
    np.testing.assert_allclose(
        of(functions.inverse_square_root(m, s), m), 1 / np.sqrt(x), rtol=2e-12, atol=4 * LAST
    )
    large = x[x > 2.0**-20]
    np.testing.assert_allclose(
        of(functions.reciprocal(m, m.shared(encoded(large))), m), 1 / large, rtol=4e-12, atol=4 * LAST
    )


def test_of_zero_all_are_zero() -> None:
    m = parties()
    zero = m.shared(encoded([0.0, 1.0]))
    for function in (functions.square_root, functions.inverse_square_root, functions.reciprocal):
        assert abs(of(function(m, zero), m)[0]) < 4 * LAST


def test_signs_and_divisions_of_both_signs() -> None:
    m = parties()
    y = np.array([-0.5, 0.0, 1.0, -2.0, LAST, -LAST, -12345.6, 1e6])
    assert of(functions.signed_one(m, m.shared(encoded(y))), m).tolist() == [-1, 1, 1, -1, 1, -1, -1, 1]
    x, d = np.array([3.0, -3.0, 1e-3, 7.0]), np.array([-0.5, -1e3, 0.25, 1e6])
    found = of(functions.divided(m, m.shared(encoded(x)), m.shared(encoded(d))), m)
    np.testing.assert_allclose(found, x / d, rtol=1e-8, atol=8 * LAST)


@pytest.mark.parametrize("spectrum", ["spread", "close", "equal"])
def test_eigenvectors_of_a_small_matrix_largest_first(spectrum: str) -> None:
    m, rng = parties(2), np.random.default_rng(3)
    values = {"spread": [0.9, 0.05, 0.3], "close": [0.5, 0.5001, 0.499], "equal": [0.25, 0.25, 0.25]}[
        spectrum
    ]
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    matrix = q @ np.diag(values) @ q.T

    async def both():  # type: ignore[no-untyped-def]
        found, vectors = await eigen.eigenvectors(m, m.shared(encoded(matrix)))
        return decoded(await m.opened(found)), decoded(await m.opened(vectors))

    found, vectors = asyncio.run(both())
    np.testing.assert_allclose(found, sorted(values, reverse=True), atol=1e-10)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(vectors @ matrix @ vectors.T, np.diag(found), atol=1e-9)


def test_every_pair_meets_once_in_disjoint_sets() -> None:
    for size in (2, 3, 6, 9):
        rounds = eigen.pairings(size)
        met = [pair for pairs in rounds for pair in pairs]
        assert sorted(met) == [(i, j) for i in range(size) for j in range(i + 1, size)]
        assert all(len({i for pair in pairs for i in pair}) == 2 * len(pairs) for pairs in rounds)
        assert len(rounds) <= size
