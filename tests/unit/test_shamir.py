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
