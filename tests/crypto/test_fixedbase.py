"""Powers from tables equal powers."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.crypto.hazmat.fixedbase import MAX_WINDOW, FixedBase, TableCache, best_window, digits
from atoll.crypto.hazmat.paillier import INSECURE_TEST, generate

KEY = generate(INSECURE_TEST, bytes(32)).public


@settings(max_examples=40, deadline=None)
@given(
    window=st.integers(1, 7),
    exponents=st.lists(st.binary(min_size=9, max_size=9), min_size=1, max_size=6),
    base=st.integers(2, 2**500),
    plaintext=st.integers(-(2**510), 2**510),
)
def test_table_powers_are_powers(window: int, exponents: list[bytes], base: int, plaintext: int) -> None:
    unit = mpz(base) if gmpy2.gcd(base, KEY.n) == 1 else mpz(2)
    table = FixedBase(unit, KEY.n, 72, window)
    rows = np.array([list(row) for row in exponents], dtype=np.uint8)
    found = table.powers(rows, [mpz(plaintext)] * len(exponents))
    carrier = 1 + plaintext * KEY.n
    assert found == [
        gmpy2.powmod(unit, int.from_bytes(row, "little"), KEY.n_squared) * carrier % KEY.n_squared
        for row in exponents
    ]


def test_a_base_of_full_length_and_many_exponents() -> None:
    table = FixedBase(KEY.obfuscator_base, KEY.n, 256, 8)
    rows = np.random.default_rng(1).integers(0, 256, (700, 32)).astype(np.uint8)
    rows[0], rows[1] = 0, 255
    integers = [int.from_bytes(row.tobytes(), "little") for row in rows]
    found = table.powers(rows, [mpz(0)] * 700)
    assert found == gmpy2.powmod_exp_list(KEY.obfuscator_base, [mpz(e) for e in integers], KEY.n_squared)
    assert repr(table) == "FixedBase(256-bit exponents, window 8)"


@pytest.mark.parametrize("window", range(1, MAX_WINDOW + 1))
def test_digits_recompose(window: int) -> None:
    rows = np.random.default_rng(window).integers(0, 256, (5, 16)).astype(np.uint8)
    columns = zip(*digits(rows, window), strict=True)
    recomposed = [sum(d << (window * j) for j, d in enumerate(column)) for column in columns]
    assert recomposed == [int.from_bytes(row.tobytes(), "little") for row in rows]


def test_windows_grow_with_the_number_of_powers() -> None:
    windows = [best_window(count, 1024) for count in (1, 10, 100, 1000, 20_000, 10**6)]
    assert windows[0] is None
    assert all(w is not None for w in windows[1:])
    numbers = [w for w in windows if w is not None]
    assert numbers == sorted(numbers)
    assert numbers[-1] == MAX_WINDOW


def test_a_made_table_is_used_for_few_powers() -> None:
    assert best_window(1, 1024, made=10) == 10
    assert best_window(500, 1024, made=10) == 10
    assert best_window(20_000, 1024, made=2) != 2


def test_the_cache_keeps_the_last_tables_only() -> None:
    cache = TableCache(1)

    def table(name: bytes) -> FixedBase | None:
        return cache.table(name, KEY.obfuscator_base, KEY.n, 256, 20)

    first = table(b"a")
    assert first is not None
    assert table(b"a") is first
    second = table(b"b")
    assert second is not None
    assert table(b"b") is second
    assert table(b"a") is not first
    assert cache.table(b"c", KEY.obfuscator_base, KEY.n, 256, 1) is None
