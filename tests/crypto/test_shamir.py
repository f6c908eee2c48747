"""Shamir's sharing."""

from __future__ import annotations

import contextlib
from itertools import combinations

import pytest

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
