"""Batches of packed ciphertexts: exact sums and products, and clear refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import phe
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll import errors
from atoll.crypto.hazmat import ciphertexts, significands
from atoll.crypto.hazmat.ciphertexts import Description, seal
from atoll.crypto.hazmat.packing import Layout, Limbs, integers_from_limbs, limbs_from_integers
from atoll.crypto.hazmat.paillier import INSECURE_TEST, PAILLIER_2048, PAILLIER_3072, SecretKey, generate
from atoll.randomness import expand_words, fresh_seed

KEY = generate(INSECURE_TEST, bytes(32))
PUBLIC = KEY.public
BITS = INSECURE_TEST.modulus_bits


def opened(batch: bytes, key: SecretKey = KEY, limbs: int = 3) -> list[int]:
    return integers_from_limbs(ciphertexts.decrypt(key, batch, limbs))


def encrypted(values: list[int], layout: Layout, key: SecretKey = KEY) -> bytes:
    return ciphertexts.encrypt(key.public, limbs_from_integers(values), layout, fresh_seed())


def signed_values(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.sampled_from([low, high, 0, 1, -1]) | st.integers(low, high)


@st.composite
def islands(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """2 to 50 islands; values as wide as the grid allows their sum to be."""
    count = draw(st.integers(2, 50))
    value_bits = draw(st.integers(2, 192 - (count - 1).bit_length()))
    size = draw(st.integers(1, 9))
    # Few distinct vectors, so that many islands do not take long to draw.
    row = st.lists(signed_values(value_bits), min_size=size, max_size=size)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return value_bits, [rows[i % len(rows)] for i in range(count)]


@settings(max_examples=60, deadline=None)
@given(islands())
def test_sums_are_exact(case: tuple[int, list[list[int]]]) -> None:
    value_bits, vectors = case
    layout = Layout.plan(BITS, value_bits=value_bits, summands=len(vectors))
    total = ciphertexts.add(PUBLIC, (encrypted(vector, layout) for vector in vectors))
    assert opened(total) == [sum(column) for column in zip(*vectors, strict=True)]


@pytest.mark.parametrize("parameters", [PAILLIER_2048, PAILLIER_3072], ids=lambda p: p.name)
def test_sums_are_exact_with_real_keys(parameters: object) -> None:
    key = generate(parameters, fresh_seed())  # type: ignore[arg-type]
    layout = Layout.plan(key.public.parameters.modulus_bits, summands=3)
    vectors = [expand_words(fresh_seed(), 3 * 101, i).reshape(3, 101).copy() for i in range(3)]
    for vector in vectors:
        vector[2] = (vector[2].view(np.int64) >> 2).view(np.uint64)
    batches = [ciphertexts.encrypt(key.public, vector, layout, fresh_seed()) for vector in vectors]
    expected = [sum(column) for column in zip(*map(integers_from_limbs, vectors), strict=True)]
    assert opened(ciphertexts.add(key.public, batches), key) == expected


def test_sums_equal_those_of_phe() -> None:
    reference, private = phe.generate_paillier_keypair(n_length=512)
    layout = Layout.plan(BITS, value_bits=100, summands=3)
    vectors = [[(-1) ** i * 3**i * (island + 1) for i in range(20)] for island in range(3)]
    theirs = [sum(map(reference.encrypt, column)) for column in zip(*vectors, strict=True)]
    total = ciphertexts.add(PUBLIC, [encrypted(vector, layout) for vector in vectors])
    assert opened(total) == [private.decrypt(x) for x in theirs]


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 20_000])
def test_sizes(size: int) -> None:
    layout = Layout.plan(BITS, value_bits=60, summands=2)
    one = limbs_from_integers([(-1) ** i * (i << 38) for i in range(size)])
    batch = ciphertexts.encrypt(PUBLIC, one, layout, fresh_seed())
    assert (ciphertexts.decrypt(KEY, batch) == one).all()
    assert ciphertexts.describe(PUBLIC, batch) == Description(layout, size, 1)


def test_an_empty_vector() -> None:
    batch = encrypted([], Layout.plan(BITS, summands=2))
    assert opened(ciphertexts.add(PUBLIC, [batch, batch])) == []


def test_encryption_is_a_function_of_its_seed() -> None:
    layout, values, seed = Layout.plan(BITS, summands=2), limbs_from_integers([1, 2, 3]), fresh_seed()
    one = ciphertexts.encrypt(PUBLIC, values, layout, seed)
    assert ciphertexts.encrypt(PUBLIC, values, layout, seed) == one
    assert ciphertexts.encrypt(PUBLIC, values, layout, fresh_seed()) != one


def test_adding_one_at_a_time_is_adding_all() -> None:
    layout = Layout.plan(BITS, summands=4)
    batches = [encrypted([i, -i, 7], layout) for i in range(4)]
    running = batches[0]
    for batch in batches[1:]:
        running = ciphertexts.add(PUBLIC, [running, batch])
    assert running == ciphertexts.add(PUBLIC, batches)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(signed_values(60), min_size=1, max_size=5),
    factor=st.integers(-(2**70), 2**70) | st.sampled_from([0, 1, -1, 2, -2]),
)
def test_products_with_a_constant_are_exact(values: list[int], factor: int) -> None:
    layout = Layout.plan(BITS, value_bits=60, summands=abs(factor) + 1)
    product = ciphertexts.multiply(PUBLIC, encrypted(values, layout), factor)
    assert opened(product) == [factor * v for v in values]


@pytest.mark.parametrize("factor", [7, -7])
def test_the_extreme_product_fits(factor: int) -> None:
    layout = Layout.plan(BITS, value_bits=30, summands=8)
    values = [-(2**29), 2**29 - 1] * 7
    assert opened(ciphertexts.multiply(PUBLIC, encrypted(values, layout), factor)) == [
        factor * v for v in values
    ]


def test_a_power_of_two_fills_the_headroom_only_without_a_sign() -> None:
    layout = Layout.plan(BITS, value_bits=30, summands=8)
    batch = encrypted([-(2**29)], layout)
    assert opened(ciphertexts.multiply(PUBLIC, batch, 8)) == [-(2**32)]
    # 2^32 is one more than the slot's two's complement holds.
    with pytest.raises(errors.RangeOverflow):
        ciphertexts.multiply(PUBLIC, batch, -8)


VALUE_BITS, FACTOR_BITS = 50, 90


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda m: st.tuples(
            st.lists(signed_values(VALUE_BITS), min_size=m, max_size=m),
            st.lists(st.integers(1 - 2**FACTOR_BITS, 2**FACTOR_BITS - 1), min_size=m, max_size=m),
        )
    )
)
def test_blinded_outer_products_row_by_row(case: tuple[list[int], list[int]]) -> None:
    """v b^T + b v^T under encryption, b known in the clear: two powers per row and packed ciphertext."""
    v, b = case
    room = 2 << FACTOR_BITS
    packed_layout = Layout.plan(BITS, value_bits=VALUE_BITS, summands=room)
    single_layout = Layout.plan(BITS, value_bits=VALUE_BITS, summands=room, slots=1)
    singles, packed = encrypted(v, single_layout), encrypted(v, packed_layout)
    factors = limbs_from_integers(b)
    rows = ciphertexts.multiply_packed(PUBLIC, singles, factors, packed_layout, factor_bits=FACTOR_BITS)
    for i, row in enumerate(rows):
        mirrored = ciphertexts.multiply(PUBLIC, packed, b[i], factor_bits=FACTOR_BITS)
        total = ciphertexts.rerandomise(PUBLIC, ciphertexts.add(PUBLIC, [row, mirrored]), fresh_seed())
        assert opened(total) == [v[i] * b[j] + b[i] * v[j] for j in range(len(v))]


def test_a_long_row_of_factors_uses_a_table_and_is_exact() -> None:
    layout = Layout.plan(BITS, value_bits=20, summands=1 << 100)
    singles = encrypted([-12345, 54321], Layout.plan(BITS, value_bits=20, summands=1, slots=1))
    factors = [(-1) ** i * (3**i % 2**99) for i in range(300)]
    rows = ciphertexts.multiply_packed(PUBLIC, singles, limbs_from_integers(factors), layout, factor_bits=99)
    assert [opened(row) for row in rows] == [[v * f for f in factors] for v in (-12345, 54321)]


def test_products_wider_than_the_grid_open_with_more_limbs() -> None:
    layout = Layout.plan(BITS, value_bits=190, summands=1 << 90)
    product = ciphertexts.multiply(PUBLIC, encrypted([-(2**188)], layout), 2**89, factor_bits=90)
    assert opened(product, limbs=5) == [-(2**277)]
    with pytest.raises(errors.RangeOverflow):
        opened(product)


def test_rerandomised_batches_share_no_ciphertext_and_open_alike() -> None:
    layout = Layout.plan(BITS, summands=2)
    batch = encrypted([5, -6, 7], layout)
    again = ciphertexts.rerandomise(PUBLIC, batch, fresh_seed())
    _, before = ciphertexts.unseal(PUBLIC, ciphertexts.KIND_PACKED, batch)
    _, after = ciphertexts.unseal(PUBLIC, ciphertexts.KIND_PACKED, again)
    assert not set(before) & set(after)
    assert opened(again) == [5, -6, 7]
    assert ciphertexts.describe(PUBLIC, again) == ciphertexts.describe(PUBLIC, batch)


def test_rerandomising_two_batches_with_one_seed_uses_different_obfuscators() -> None:
    layout, seed = Layout.plan(BITS, summands=2), fresh_seed()
    quotients = []
    for batch in (encrypted([1], layout), encrypted([2], layout)):
        _, (before,) = ciphertexts.unseal(PUBLIC, 1, batch)
        _, (after,) = ciphertexts.unseal(PUBLIC, 1, ciphertexts.rerandomise(PUBLIC, batch, seed))
        quotients.append(after * pow(before, -1, PUBLIC.n_squared) % PUBLIC.n_squared)
    assert quotients[0] != quotients[1]


def test_more_summands_than_planned_are_refused() -> None:
    layout = Layout.plan(BITS, summands=4)
    batch = encrypted([1], layout)
    full = ciphertexts.add(PUBLIC, [batch] * 4)
    with pytest.raises(errors.RangeOverflow, match="headroom for 5"):
        ciphertexts.add(PUBLIC, [full, batch])
    with pytest.raises(errors.RangeOverflow):
        ciphertexts.multiply(PUBLIC, full, 2)


def test_a_value_beyond_its_bound_is_refused() -> None:
    with pytest.raises(errors.RangeOverflow):
        encrypted([2**39], Layout.plan(BITS, value_bits=40, summands=2))


def test_a_factor_beyond_its_bound_is_refused() -> None:
    layout = Layout.plan(BITS, value_bits=20, summands=1 << 10)
    with pytest.raises(errors.RangeOverflow, match="8 bits"):
        ciphertexts.multiply(PUBLIC, encrypted([1], layout), -256, factor_bits=8)
    singles = encrypted([1], Layout.plan(BITS, value_bits=20, summands=1, slots=1))
    for factor in (256, -256):
        factors = limbs_from_integers([factor])
        with pytest.raises(errors.RangeOverflow, match="8 bits"):
            ciphertexts.multiply_packed(PUBLIC, singles, factors, layout, factor_bits=8)
    with pytest.raises(errors.RangeOverflow, match="headroom"):
        ciphertexts.multiply_packed(PUBLIC, singles, limbs_from_integers([1]), layout, factor_bits=11)


def test_packed_factors_need_single_values() -> None:
    layout = Layout.plan(BITS, value_bits=20, summands=1 << 10)
    with pytest.raises(errors.ParameterError, match="one slot"):
        ciphertexts.multiply_packed(
            PUBLIC, encrypted([1], layout), limbs_from_integers([1]), layout, factor_bits=8
        )


def test_a_foreign_key_is_refused_by_its_id() -> None:
    other = generate(INSECURE_TEST, fresh_seed())
    batch = encrypted([1, 2], Layout.plan(BITS, summands=2))
    for use in (
        lambda: ciphertexts.decrypt(other, batch),
        lambda: ciphertexts.add(other.public, [batch]),
        lambda: ciphertexts.multiply(other.public, batch, 2),
        lambda: ciphertexts.rerandomise(other.public, batch, fresh_seed()),
    ):
        with pytest.raises(errors.KeyMismatch):
            use()


def test_batches_of_different_layouts_or_lengths_are_not_added() -> None:
    layout = Layout.plan(BITS, summands=2)
    other = Layout.plan(BITS, summands=4)
    for batch in (encrypted([1, 2], other), encrypted([1, 2, 3], layout), encrypted([1], layout)):
        with pytest.raises(errors.MessageError, match="different layouts"):
            ciphertexts.add(PUBLIC, [encrypted([1, 2], layout), batch])


def test_nothing_to_add() -> None:
    with pytest.raises(errors.ParameterError):
        ciphertexts.add(PUBLIC, [])


def test_a_layout_for_a_longer_key_is_refused() -> None:
    layout = Layout.plan(2048, summands=2)
    with pytest.raises(errors.ParameterError):
        encrypted([1], layout)


BATCH = encrypted([1, -2, 3, 2**180], Layout.plan(BITS, summands=2))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(BATCH) - 1), st.integers(1, 255))
def test_every_altered_byte_is_noticed(position: int, change: int) -> None:
    altered = bytearray(BATCH)
    altered[position] ^= change
    with pytest.raises(errors.MessageError):
        ciphertexts.decrypt(KEY, bytes(altered))


def test_every_truncation_is_noticed() -> None:
    for length in range(len(BATCH)):
        with pytest.raises(errors.MessageError):
            ciphertexts.decrypt(KEY, BATCH[:length])


def test_islands_in_threads_get_what_they_get_alone() -> None:
    key = generate(INSECURE_TEST, fresh_seed())
    layout = Layout.plan(BITS, value_bits=60, summands=4)
    seeds = [fresh_seed() for _ in range(4)]
    vectors = [limbs_from_integers([i * j for j in range(3000)]) for i in range(4)]

    def encrypt(island: int) -> bytes:
        return ciphertexts.encrypt(key.public, vectors[island], layout, seeds[island])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(encrypt, range(4)))
    assert together == [encrypt(island) for island in range(4)]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.lists(st.integers(0, 2**1024 - 1), max_size=3))
def test_any_content_with_a_right_checksum_opens_or_is_refused(
    description: bytes, numbers: list[int]
) -> None:
    message = seal(PUBLIC, ciphertexts.KIND_PACKED, description, numbers)  # type: ignore[arg-type]
    try:
        found: Limbs | None = ciphertexts.decrypt(KEY, message)
    except (errors.MessageError, errors.RangeOverflow):
        found = None
    assert found is None or found.shape[0] == 3


@pytest.mark.parametrize("number", [0, PUBLIC.n, 3 * PUBLIC.n, PUBLIC.n_squared])
def test_what_is_no_unit_is_no_ciphertext(number: int) -> None:
    """One such number would make the sum of everybody's undefined."""
    layout = Layout.plan(BITS, summands=3)
    batch = seal(PUBLIC, ciphertexts.KIND_PACKED, Description(layout, 1, 1).to_bytes(), [mpz(number)])
    with pytest.raises(errors.MessageError, match=r"not a unit|below n\^2"):
        ciphertexts.add(PUBLIC, [batch])


def test_a_batch_is_as_long_as_it_says() -> None:
    """Whoever has the key id makes good checksums: lengths are checked beside them."""
    whole = encrypted([1, 2, 3], Layout.plan(BITS, value_bits=20, summands=2))
    description, found = ciphertexts.unseal(PUBLIC, ciphertexts.KIND_PACKED, whole)

    def sealed(content: bytes) -> bytes:
        return content + ciphertexts._digest(content)

    head = len(whole) - ciphertexts.DIGEST_BYTES
    for content in (whole[: head - 1], whole[:head] + b"\0", whole[: ciphertexts._HEAD.size]):
        with pytest.raises(errors.MessageError, match="wrong length"):
            ciphertexts.unseal(PUBLIC, ciphertexts.KIND_PACKED, sealed(content))
    for other in ([*found, found[0]], found[:-1]):
        with pytest.raises(errors.MessageError, match="wrong number of ciphertexts"):
            opened(seal(PUBLIC, ciphertexts.KIND_PACKED, description, other))


def test_one_kind_of_batch_is_not_read_as_another() -> None:
    """Significands of base 16 as numbers on the grid would be wrong ones."""
    packed = encrypted([1], Layout.plan(BITS, value_bits=20, summands=2))
    plain = significands.encrypt(PUBLIC, np.array([1.0]), fresh_seed())
    with pytest.raises(errors.MessageError, match="not a ciphertext batch of this version and kind"):
        opened(plain)
    with pytest.raises(errors.MessageError, match="not a ciphertext batch of this version and kind"):
        significands.decrypt(KEY, packed)
    for kind in (0, 3, 255):
        with pytest.raises(errors.MessageError, match="not a ciphertext batch of this version and kind"):
            ciphertexts.unseal(PUBLIC, 1, seal(PUBLIC, kind, b"", [mpz(5)]))


def test_a_batch_is_cut_between_ciphertexts_only() -> None:
    layout = Layout(20, 24, 3)
    batch = encrypted([1, 2, 3, 4, 5, 6], layout)
    assert [opened(part) for part in ciphertexts.split(PUBLIC, batch, 2)] == [[1, 2, 3], [4, 5, 6]]
    for parts in (3, 4, 6, 7):
        with pytest.raises(errors.ParameterError, match="between ciphertexts"):
            ciphertexts.split(PUBLIC, batch, parts)


def test_a_layout_that_the_key_has_no_room_for_is_refused() -> None:
    """Its digits would wrap at the modulus."""
    for slots, good in ((BITS // 30, True), (BITS // 30 + 1, False)):
        description = Description(Layout(20, 30, slots), 1, 1).to_bytes()
        batch = seal(PUBLIC, ciphertexts.KIND_PACKED, description, [mpz(1)])
        if good:
            assert opened(batch) == [0]
        else:
            with pytest.raises(errors.MessageError, match="a layout that the key has no room for"):
                opened(batch)


@pytest.mark.parametrize("load", [0, 4, 1 << 40])
def test_a_description_has_a_load_that_its_layout_bears(load: int) -> None:
    layout = Layout.plan(BITS, value_bits=20, summands=3)
    assert layout.capacity < 1 << 40
    fitting = [Description(layout, 3, load_) for load_ in (1, layout.capacity)]
    assert [Description.from_bytes(one.to_bytes()) for one in fitting] == fitting
    beyond = 0 if load == 0 else layout.capacity + load
    for bad in (Description(layout, 3, beyond).to_bytes(), fitting[0].to_bytes() + b"\0"):
        with pytest.raises(errors.MessageError, match="malformed"):
            Description.from_bytes(bad)
