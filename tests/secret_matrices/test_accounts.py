"""Accounts of providers, and shares of dealt numbers: every word of what was told counts, masks are as wide
as said, and no seed serves two members."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from atoll import randomness
from atoll.crypto import products as go
from atoll.crypto import shamir
from atoll.errors import MessageError
from atoll.runtime.records import MemoryRecord
from atoll.secret_matrices import threshold
from atoll.secret_matrices.checks import Checks
from atoll.secret_matrices.messages import PairSeed, ReleasedPoint
from atoll.secret_matrices.party import RoleMachine
from atoll.secret_matrices.threshold import Held, summands
from atoll.study.address import Address

GROUP = frozenset({"a", "b"})
D = hashlib.sha256(b"one").digest()


def told(*booked: tuple[str, int, bytes], before: int = 0) -> bytes:
    """The digest of what was seen; ``before``: so many comparisons came in between."""
    checks = Checks(bytes(32))
    for k, (what, step, digest) in enumerate(booked):
        checks.see(GROUP, what, step, digest)
        if k < before:
            checks.accounts = {}
    return checks.account(GROUP).seen


def test_a_digest_is_of_all_that_was_seen_in_its_order_since_the_beginning() -> None:
    other = hashlib.sha256(b"two").digest()
    found = {
        told(("total", 1, D)),
        told(("total", 2, D)),
        told(("second", 1, D)),
        told(("total", 1, other)),
        told(("total", 1, D), ("total", 2, D)),
        told(("total", 2, D), ("total", 1, D)),
        told(("total", 1, other), ("total", 2, D)),
    }
    assert len(found) == 7
    # A comparison ends no history: what differed before it still does.
    for before in (1, 2):
        assert told(("total", 1, D), ("total", 2, D), before=before) == told(("total", 1, D), ("total", 2, D))


def test_what_is_told_is_what_was_seen_by_then() -> None:
    checks = Checks(bytes(32))
    checks.see(GROUP, "total", 1, D)
    first = checks.account(GROUP).note()
    checks.see(GROUP, "total", 2, D)
    assert checks.account(GROUP).told == first[:32] != checks.account(GROUP).seen
    assert checks.account(GROUP).note()[:32] == checks.account(GROUP).seen


def ints(*values: int) -> Any:
    return go.from_ints(np.array([values], dtype=object), 1)


def compared(opened: dict[int, tuple[Any, Any, Any]]) -> None:
    """Providers a and b compare: at every step what each gave, and what both were told it makes."""
    both = {name: Checks(b"s" * 32) for name in "ab"}
    for step, (a, b, total) in opened.items():
        both["a"].open(GROUP, step, a, total)
        both["b"].open(GROUP, step, b, total)
    notes = {name: checks.notes(name) for name, checks in both.items()}
    both["a"].compare("a", notes, "hub")


def test_opened_matrices_are_sums_at_their_own_step_and_place() -> None:
    compared({1: (ints(1, 2), ints(10, 20), ints(11, 22)), 2: (ints(3, 4), ints(5, 6), ints(8, 10))})
    for wrong in (
        {1: (ints(1, 2), ints(10, 20), ints(22, 11))},
        {1: (ints(1, 2), ints(10, 20), ints(11, 23))},
        {1: (ints(1, 2), ints(10, 20), ints(8, 10)), 2: (ints(3, 4), ints(5, 6), ints(11, 22))},
        {1: (ints(1, 2), ints(10, 20), ints(12, 22)), 2: (ints(3, 4), ints(5, 6), ints(7, 10))},
    ):
        with pytest.raises(MessageError, match="hub sent a a sum that is not that of the providers' parts"):
            compared(wrong)


def test_an_opened_matrix_is_in_the_digest() -> None:
    """Two providers may be told two sums that are both right for what each believes."""
    seen = []
    for total in (ints(1, 2), ints(1, 3)):
        checks = Checks(bytes(32))
        checks.open(GROUP, 1, ints(0, 0), total)
        seen.append(checks.account(GROUP).seen)
    assert seen[0] != seen[1]


@pytest.mark.parametrize("change", [lambda note: note[:-1], lambda note: note + b"\0", lambda note: note[:0]])
def test_an_account_has_its_length(change: Any) -> None:
    checks = {name: Checks(b"s" * 32) for name in "ab"}
    for one in checks.values():
        one.see(GROUP, "total", 1, D)
    notes = {name: one.notes(name) for name, one in checks.items()}
    with pytest.raises(MessageError, match="b sent an account of"):
        checks["a"].compare("a", notes | {"b": change(notes["b"])}, "hub")


def test_public_polynomials_are_of_one_step_ring_and_family() -> None:
    """One for two matrices, or two keys, would show their difference."""
    rings = list(go.rings().values())[:2]
    here: Any = SimpleNamespace(session=b"session")
    found = {RoleMachine._common(here, step, ring) for step in (1, 2) for ring in rings}
    found |= {RoleMachine._key_common(here, family) for family in ("wide", "deep")}
    other: Any = SimpleNamespace(session=b"other")
    found |= {RoleMachine._common(other, 1, rings[0]), RoleMachine._key_common(other, "wide")}
    assert len(found) == 8


# ---- shares of which some are enough ----

MEMBERS = tuple(Address(name, "provider") for name in "abc")
FRACTION, BITS = 20, 30


@dataclass
class SharedLike:
    """As much of a shared matrix as is needed."""

    dealt: Any
    shape: tuple[int, int]
    fraction: int
    bits: int
    share: Any = None
    cache: Any = None


class Net:
    """Members in one place: what is sent waits until it is asked for."""

    def __init__(self, me: Address, post: Any) -> None:
        self.me, self.post = me, post

    async def send(self, to: Address, message: Any) -> None:
        self.post[to, type(message)].put_nowait((self.me, message))

    async def gather(self, kind: Any, senders: Any, *, absent: Any = None) -> dict[Address, Any]:
        found = dict([await self.post[self.me, kind].get() for _ in senders])
        return {sender: found[sender] for sender in senders}


def summed(shares: dict[int, Any], sent: list[Any] | None = None) -> list[Any]:
    """Every member's integers of three numbers that were dealt."""

    async def everybody() -> list[Any]:
        post: Any = defaultdict(asyncio.Queue)

        async def one(place: int, me: Address) -> Any:
            held = Held(3, (1, 2, 3), place, shares[place], (1, 3), FRACTION)
            machine: Any = SimpleNamespace(
                net=Net(me, post), providers=MEMBERS, record=MemoryRecord(), next_step=lambda: 7, me=str(me)
            )
            x = SharedLike(dealt=held, shape=(1, 3), fraction=FRACTION, bits=BITS)
            return (await summands(machine, x, (1, 2, 3))).share  # type: ignore[arg-type]

        found = await asyncio.gather(*(one(place, me) for place, me in enumerate(MEMBERS, 1)))
        if sent is not None:
            sent.extend(q for (_, kind), q in post.items() if kind is PairSeed)
        return [go.to_ints(share)[0] for share in found]

    return asyncio.run(everybody())


NUMBERS = np.array([5, -7, 2**45], dtype=object)


def test_summands_add_up_and_each_is_64_bits_wider_than_the_number() -> None:
    widths = []
    for k in range(12):
        shares = shamir.deal(NUMBERS, 3, [1, 2, 3], bytes([k]) * 32)
        found = summed(shares)
        assert (sum(found) == NUMBERS).all()
        widths += [int(abs(value)).bit_length() for row in found for value in row]
    assert FRACTION + BITS + 1 + 64 - 1 <= max(widths) <= FRACTION + BITS + 1 + 64 + 2


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_wrong_share_of_what_was_kept_is_found_out(place: int) -> None:
    shares = shamir.deal(NUMBERS, 3, [1, 2, 3], bytes(32))
    shares[place] = (shares[place] + 2**400) % shamir.PRIME
    with pytest.raises(MessageError, match="shares of what was kept do not belong together"):
        summed(shares)


def test_every_pair_has_a_mask_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member with another pair's seed takes that mask off what the first one was sent."""
    seeds: list[bytes] = []
    real = randomness.derive

    def noted(seed: bytes, *domain: Any) -> bytes:
        found = real(seed, *domain)
        if domain[:1] == ("pair",):
            seeds.append(found)
        return found

    monkeypatch.setattr(threshold.randomness, "derive", noted)
    summed(shamir.deal(NUMBERS, 3, [1, 2, 3], bytes(32)))
    assert len(seeds) == len(set(seeds)) == 3


def test_a_commitment_is_to_one_deal_place_nonce_and_share() -> None:
    values = np.array([1, 2], dtype=object)
    parts = (b"deal", 1, b"n" * 32, values)
    found = {threshold._commitment(*parts)}
    for k, other in enumerate((b"other", 2, b"m" * 32, values + 1)):
        found.add(threshold._commitment(*parts[:k], other, *parts[k + 1 :]))  # type: ignore[arg-type]
    assert len(found) == 5
    assert threshold._commitment(b"", 1, b"", None) == b"\xff" * 32


def point(place: int, values: Any, **changes: Any) -> ReleasedPoint:
    body = memoryview(shamir.numbers_to_bytes(values))
    given = {"which": b"w", "rows": 1, "cols": 3, "fraction": FRACTION, "nonce": b"n" * 32, **changes}
    return ReleasedPoint(point=place, commitments=b"", body=body, **given)


def released(messages: dict[int, ReleasedPoint], needed: int = 2, unheard: int | None = None) -> Any:
    """What a receiver makes of shares; everybody was told everybody's hash, but for one."""
    hashes = [
        bytes(32) if place == unheard else threshold._commitment(m.which, place, m.nonce, _values(m))
        for place, m in messages.items()
    ]
    whole = {
        MEMBERS[place - 1]: ReleasedPoint(
            m.which, m.point, m.rows, m.cols, m.fraction, m.nonce, b"".join(hashes), m.body
        )
        for place, m in messages.items()
    }
    return threshold._opened(whole, needed)


def _values(message: ReleasedPoint) -> Any:
    return shamir.numbers_from_bytes(message.body, len(message.body) // shamir.SHARE_BYTES)


def test_an_output_comes_from_enough_shares_that_fit_and_were_told() -> None:
    dealt = shamir.deal(NUMBERS, 2, [1, 2, 3], bytes(32))
    good = {place: point(place, dealt[place]) for place in (1, 2, 3)}
    want = (NUMBERS / 2.0**FRACTION).astype(float)
    assert (released(good)[0] == want).all()
    assert (released(good, unheard=3)[0] == want).all()
    with pytest.raises(
        MessageError, match="1 members have shares of an output whose hash all others were told"
    ):
        released({1: good[1], 2: good[2]}, unheard=2)
    with pytest.raises(MessageError, match="one of them is wrong"):
        released(good | {3: point(3, dealt[3] + 1)})
    with pytest.raises(MessageError, match="do not belong together"):
        released({1: good[1], 2: point(2, (dealt[2] + 2**400) % shamir.PRIME)})
    for field, other in (("which", b"v"), ("fraction", FRACTION + 1), ("rows", 3), ("cols", 1)):
        with pytest.raises(MessageError, match="sent a share of another output"):
            released(good | {3: point(3, dealt[3], **{field: other})})
