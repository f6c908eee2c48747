"""Shamir's sharing."""

from __future__ import annotations

import contextlib
from itertools import combinations

import numpy as np
import pytest

from atoll import randomness
from atoll.crypto import shamir
from atoll.errors import MessageError

SECRET = bytes(range(224, 256))


def test_any_threshold_of_shares_recover_and_fewer_do_not() -> None:
    shares = shamir.split(SECRET, 3, [1, 2, 5, 9], bytes(32))
    for chosen in combinations(shares, 3):
        assert shamir.recover({point: shares[point] for point in chosen}) == SECRET
    for chosen in combinations(shares, 2):
        with contextlib.suppress(MessageError):
            assert shamir.recover({point: shares[point] for point in chosen}) != SECRET


def test_a_wrong_share_is_not_silently_right() -> None:
    shares = shamir.split(SECRET, 2, [1, 2], bytes(32))
    with pytest.raises(MessageError, match="cannot be recovered"):
        shamir.recover({1: shares[1], 2: shares[2][:-1]})
    with pytest.raises(MessageError, match="cannot be recovered"):
        shamir.recover({})
    with pytest.raises(MessageError, match="cannot be recovered"):  # of 521 bits, not 256
        shamir.recover({1: shares[2], 2: shares[1]})


def test_two_shares_of_three_leave_two_unknowns() -> None:
    """Were all coefficients the same number, s + a x + a x^2, two shares would be enough to solve for s."""
    prime = 2**521 - 1
    shares = {point: int.from_bytes(share, "little") for point, share in split_in_three(bytes(32)).items()}
    a = (shares[2] - shares[1]) * pow((2 + 4) - (1 + 1), -1, prime) % prime
    assert (shares[1] - 2 * a) % prime != int.from_bytes(SECRET, "little")


def test_shares_follow_from_their_seed() -> None:
    again, other = split_in_three(bytes(32)), split_in_three(b"s" * 32)
    assert split_in_three(bytes(32)) == again
    assert all(again[point] != other[point] for point in again)


def split_in_three(seed: bytes) -> dict[int, bytes]:
    return shamir.split(SECRET, 3, [1, 2, 3], seed)


# ---- many numbers ----

PRIME = 2**521 - 1
NUMBERS = np.array([0, 1, -1, 2**300, -(2**500), PRIME // 2, -(PRIME // 2)], dtype=object)


def test_numbers_of_either_sign_come_back_from_a_threshold_or_more() -> None:
    dealt = shamir.deal(NUMBERS, 3, [1, 2, 3, 7], SECRET)
    for count in (3, 4):
        for chosen in combinations(dealt, count):
            assert shamir.joined({p: dealt[p] for p in chosen}, 3).tolist() == NUMBERS.tolist()
    for chosen in combinations(dealt, 2):
        with pytest.raises(MessageError, match="2 shares do not give numbers of which 3 must be there"):
            shamir.joined({p: dealt[p] for p in chosen}, 3)


@pytest.mark.parametrize("point", [1, 2, 3, 7])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_share_more_than_needed_finds_the_wrong_one_out(point: int, place: int) -> None:
    dealt = shamir.deal(NUMBERS, 3, [1, 2, 3, 7], SECRET)
    wrong = dealt[point].copy()
    wrong[place] = (wrong[place] + 1) % PRIME
    with pytest.raises(MessageError, match="one of them is wrong"):
        shamir.joined(dealt | {point: wrong}, 3)


def test_shares_of_numbers_add_up() -> None:
    a, b = (shamir.deal(NUMBERS // 4, 2, [1, 2, 3], bytes([k]) * 32) for k in range(2))
    total = {p: (a[p] + b[p]) % PRIME for p in a}
    assert shamir.joined(total, 2).tolist() == (2 * (NUMBERS // 4)).tolist()


def test_each_number_and_each_degree_has_a_coefficient_of_its_own() -> None:
    """Of equal numbers, equal shares would say that they are; and one polynomial for two secrets more."""
    dealt = shamir.deal(np.array([5, 5, 5], dtype=object), 3, [1, 2], SECRET)
    assert all(len(set(row.tolist())) == 3 for row in dealt.values())
    secret = np.array([int.from_bytes(SECRET, "little")], dtype=object)
    as_number = shamir.deal(secret, 3, [1], bytes(32))[1][0]
    assert int(as_number) != int.from_bytes(split_in_three(bytes(32))[1], "little")


def test_what_travels_is_residues_and_as_many_as_are_due() -> None:
    values = np.array([0, 1, PRIME - 1], dtype=object)
    data = shamir.numbers_to_bytes(values)
    assert shamir.numbers_from_bytes(data, 3).tolist() == values.tolist()
    for count in (2, 4):
        with pytest.raises(MessageError, match=f"198 bytes are not {count} shares"):
            shamir.numbers_from_bytes(data, count)
    for value in (PRIME, PRIME + 1, 2**528 - 1):
        with pytest.raises(MessageError, match="no residue of the field"):
            shamir.numbers_from_bytes(value.to_bytes(66, "little"), 1)


def test_numbers_of_the_field_have_no_favourites() -> None:
    """528 bits reduced would hit the lower part of the field a hundredth more often; 16 bytes more do not."""
    assert shamir.SHARE_BYTES == 66
    drawn = shamir.uniform(1, SECRET, "x")
    stream = randomness.expand(SECRET, 82, "x")
    assert int(drawn[0]) == int.from_bytes(stream, "little") % PRIME
