"""The papers' encoding, beside phe's, and what it shows to everybody."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import phe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll import errors
from atoll.crypto.hazmat import ciphertexts, significands
from atoll.crypto.hazmat.packing import Layout, limbs_from_integers
from atoll.crypto.hazmat.paillier import INSECURE_TEST, PAILLIER_2048, generate
from atoll.randomness import fresh_seed

KEY = generate(INSECURE_TEST, bytes(32))
PUBLIC = KEY.public

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e20, 1e20).filter(lambda x: x == 0 or abs(x) > 1e-20)


def encrypted(values: list[float]) -> bytes:
    return significands.encrypt(PUBLIC, np.array(values), fresh_seed())


@settings(max_examples=200, deadline=None)
@given(st.lists(finite, min_size=1, max_size=20))
def test_encoding_is_exact_and_the_one_of_phe(values: list[float]) -> None:
    reference = phe.PaillierPublicKey(int(PUBLIC.n))
    found, exponents = significands.encode(np.array(values))
    for x, s, e in zip(values, found, exponents.tolist(), strict=True):
        assert Fraction(s) * Fraction(16) ** e == Fraction(x)
        # phe itself rounds x * 16^-e in doubles, which for the smallest numbers overflows.
        if x == 0 or abs(x) > 1e-290:
            theirs = phe.EncodedNumber.encode(reference, x)
            assert (theirs.encoding, theirs.exponent) == (s % PUBLIC.n, e)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(moderate, moderate, moderate), min_size=1, max_size=4))
def test_sums_are_correctly_rounded(rows: list[tuple[float, float, float]]) -> None:
    batches = [encrypted(list(column)) for column in zip(*rows, strict=True)]
    found = significands.decrypt(KEY, significands.add(PUBLIC, batches))
    assert found.tolist() == [float(sum(map(Fraction, row))) for row in rows]


def test_sums_equal_those_of_phe_with_a_real_key() -> None:
    key = generate(PAILLIER_2048, fresh_seed())
    reference, private = phe.generate_paillier_keypair(n_length=2048)
    one, two = [1.5, -2.25e10, 1e-9], [3.125, 1e3, -7.0]
    theirs = [
        private.decrypt(reference.encrypt(a) + reference.encrypt(b)) for a, b in zip(one, two, strict=True)
    ]
    batches = [significands.encrypt(key.public, np.array(x), fresh_seed()) for x in (one, two)]
    assert significands.decrypt(key, significands.add(key.public, batches)).tolist() == theirs


def test_exponents_are_readable_by_everybody() -> None:
    """The leak, on record: magnitudes to a factor of 16 without the secret key; none in packed batches."""
    incomes = np.array([12.0, 1200.0, 1.2e6])
    shown = significands.exponents_of(PUBLIC, significands.encrypt(PUBLIC, incomes, fresh_seed()))
    guesses = 16.0 ** (shown + math.ceil(53 / 4))
    assert ((guesses / incomes <= 16) & (guesses / incomes >= 1 / 16)).all()
    layout = Layout.plan(512, summands=2)
    packed = [
        ciphertexts.encrypt(PUBLIC, limbs_from_integers([int(x), 0, 0]), layout, fresh_seed())
        for x in incomes
    ]
    assert len({ciphertexts.describe(PUBLIC, batch) for batch in packed}) == 1
    assert len({len(batch) for batch in packed}) == 1


def test_exponents_too_far_apart_are_refused() -> None:
    with pytest.raises(errors.RangeOverflow, match="apart"):
        significands.add(PUBLIC, [encrypted([1e300]), encrypted([1e-300])])


def test_the_bound_grows_until_it_is_reached() -> None:
    parts = [encrypted([16.0 ** (-8 * i)]) for i in range(20)]
    assert significands.decrypt(KEY, significands.add(PUBLIC, parts[:12])).tolist() == [1.0 + 2.0**-32]
    with pytest.raises(errors.RangeOverflow):
        significands.add(PUBLIC, parts)


def test_a_sum_beyond_doubles_is_refused() -> None:
    with pytest.raises(errors.RangeOverflow, match="doubles"):
        significands.decrypt(KEY, significands.add(PUBLIC, [encrypted([1.7e308]), encrypted([1.7e308])]))


@pytest.mark.parametrize("values", [[np.nan], [np.inf], [[1.0]]])
def test_what_is_no_vector_of_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(errors.ParameterError):
        encrypted(values)


def test_bad_messages_are_refused() -> None:
    batch = encrypted([1.0, 2.0])
    _, numbers = ciphertexts.unseal(PUBLIC, ciphertexts.KIND_SIGNIFICANDS, batch)
    good = batch[22:36]
    kind = ciphertexts.KIND_SIGNIFICANDS
    assert ciphertexts.seal(PUBLIC, kind, good, numbers) == batch
    for bad in (
        batch[:-1],
        ciphertexts.seal(PUBLIC, kind, good[:-2], numbers),
        ciphertexts.seal(PUBLIC, kind, good, numbers[:1]),
        ciphertexts.seal(PUBLIC, kind, b"\xff\xff" + good[2:], numbers),
        ciphertexts.seal(PUBLIC, kind, good[:2] + b"\x03" + good[3:], numbers),
        ciphertexts.seal(PUBLIC, ciphertexts.KIND_PACKED, good, numbers),
    ):
        with pytest.raises(errors.MessageError):
            significands.decrypt(KEY, bad)
    with pytest.raises(errors.MessageError, match="lengths"):
        significands.add(PUBLIC, [batch, encrypted([1.0])])
    with pytest.raises(errors.ParameterError):
        significands.add(PUBLIC, [])
    other = generate(INSECURE_TEST, fresh_seed())
    with pytest.raises(errors.KeyMismatch):
        significands.decrypt(other, batch)


def test_every_sum_may_be_a_bit_wider() -> None:
    """The bound that travels with a batch is what refuses a sum that would wrap."""
    one = encrypted([1.5])
    assert significands._read(PUBLIC, one).bits == 57
    for count in (2, 3, 7):
        assert significands._read(PUBLIC, significands.add(PUBLIC, [one] * count)).bits == 56 + count
    far = significands.add(PUBLIC, [one, encrypted([2.0**40])])
    assert significands._read(PUBLIC, far).bits == 57 + 40 + 1
