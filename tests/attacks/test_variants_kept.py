"""Kept shares in later steps whose study takes other numbers for shares, or other parties for members.

Where a threshold is enough, shares are weighted by all members' places before they are masked, and the masks
are made for the matrix that the weighted shares add up to: 64 bits wider than that, and not than a share.
A member that says it has another place changes the weights of all, and what is masked is then a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, log2
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.examples import Example, sfpca_later, sfpca_later_of_two
from tests.support.taps import Tap

from atoll import codec
from atoll.codec import Decoder, Message
from atoll.crypto import products as go
from atoll.crypto import shamir
from atoll.errors import AtollError, MessageError
from atoll.protocols import protocol_of
from atoll.protocols.own import Own
from atoll.protocols.pca.sfpca import later
from atoll.protocols.pca.sfpca.kept import Kept
from atoll.protocols.pca.sfpca.later import LaterParameters, own_share
from atoll.runtime.local.engine import LocalEngine
from atoll.secret_matrices import messages as mm
from atoll.study.address import Address
from atoll.study.model import Party, Study

HONEST, LIAR = Address("island-0", "provider"), Address("island-2", "provider")
LIES = (2305843009213693951, 2305843009213693921, 2305843009213693907)
"""Places that nobody has: primes, so that what they say of a mask adds up."""
CHECK = later._check_places


def share(example: Example, member: Address) -> Kept:
    return codec.decode(example.own[member.party].kept["provider"], Kept)


def numbers(one: Kept) -> Any:
    body = one.components.tobytes()
    return shamir.numbers_from_bytes(body, len(body) // shamir.SHARE_BYTES)


def lied(example: Example, place: int) -> Study:
    """The liar first, whom the others send what is masked, and at a place of its choice."""
    parties = sorted(example.study.parties, key=lambda party: party.name != LIAR.party)
    points = [place, share(example, HONEST).point]
    return structs.replace(
        example.study,
        parties=tuple(parties),
        parameters=dict(example.study.parameters) | {"points": points},
    )


def old_check(kept: Kept, study: Study, me: Address) -> None:
    """Its own place, and how many there are."""
    points, members = study.read_parameters(LaterParameters).points or (), study.who("provider")
    assert len(set(points)) == len(points) == len(members) >= kept.threshold
    assert me not in members or points[members.index(me)] == kept.point


def not_by_the_liar(check: Any) -> Any:
    def checked(kept: Kept, study: Study, me: Address) -> None:
        if me == HONEST:
            check(kept, study, me)

    return checked


def observed(example: Example, place: int) -> tuple[Any, AtollError | None]:
    """The honest member's weighted share under its mask: the pair's other mask is the liar's own."""
    study, tap = lied(example, place), Tap()
    protocol, error = protocol_of(study.protocol), None
    try:
        LocalEngine().run(protocol, study, example.own, observer=tap)
    except AtollError as raised:  # what the liar makes of it is no matrix
        error = raised
    decode = Decoder[Message](protocol.all_messages(study)).decode
    arrived = [decode(e.data) for e in tap.received(LIAR) if e.sender == HONEST]
    masked = [m for m in arrived if isinstance(m, mm.MaskedPoint)]
    if not masked:
        return None, error
    sent = [decode(e.data) for e in tap.received(HONEST) if e.sender == LIAR]
    pair = next(m for m in sent if isinstance(m, mm.PairSeed) and m.step == masked[0].step)
    count = len(numbers(share(example, HONEST)))
    seen = shamir.numbers_from_bytes(masked[0].body, count)
    return (seen + shamir.uniform(count, pair.seed, "atoll/pairs")) % shamir.PRIME, error


def stolen(places: Sequence[int], own: int, seen: Sequence[Any]) -> list[int]:
    """The share in p/(p - own) times share plus mask, from three places p; masks are far below the prime."""
    found = []
    for values in zip(*seen, strict=True):
        mask, modulus = 0, 1
        first = places[0]
        for place, value in list(zip(places, values, strict=True))[1:]:
            a, b = place * (first - own), first * (place - own)
            known = int(shamir.centred(np.array([(a * values[0] - b * value) % shamir.PRIME], object))[0])
            g = gcd(a, b)
            assert known % g == 0  # a mask - b mask' = known
            n = b // g
            rest = known // g * pow(a // g, -1, n) % n
            shared = gcd(modulus, n)
            n //= shared if gcd(n // shared, modulus) == 1 else gcd(n, modulus)
            mask += modulus * ((rest - mask) * pow(modulus, -1, n) % n)
            modulus *= n
        assert log2(modulus) > 150  # wider than any mask
        found.append((values[0] - mask) * (first - own) * pow(first, -1, shamir.PRIME) % shamir.PRIME)
    return found


@pytest.fixture(scope="module")
def example() -> Example:
    return sfpca_later_of_two({"scores": ("island-2",)})


def test_a_member_that_said_it_had_another_place_had_the_others_share(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two who are needed, after three projections of its own rows: it opens the components alone."""
    monkeypatch.setattr(later, "_check_places", not_by_the_liar(old_check))
    seen = [observed(example, place)[0] for place in LIES]
    honest, liar = share(example, HONEST), share(example, LIAR)
    found = stolen(LIES, honest.point, seen)
    assert found == list(numbers(honest))
    opened = shamir.joined({honest.point: np.array(found, object), liar.point: numbers(liar)}, 2)
    lengths = (opened.astype(float) / 2.0**liar.components_fraction).reshape(liar.components.shape[:2])
    np.testing.assert_allclose(np.linalg.norm(lengths, axis=1), 1.0, atol=1e-6)


def test_no_other_place_than_the_members_own_is_answered(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "_check_places", not_by_the_liar(CHECK))
    for place in (*LIES, 2):  # the last is that of the member who takes no part
        seen, error = observed(example, place)
        assert seen is None
        assert isinstance(error, MessageError)
        assert f"takes a number of {LIAR} for the share of place {place}" in str(error)


def test_nobody_who_is_no_member_stands_for_one(example: Example) -> None:
    """With the places of members that take no part, a stranger would be told their weights."""
    for stranger in ("island-9", "island-1"):
        parties = tuple(
            structs.replace(party, name=stranger) if party.name == LIAR.party else party
            for party in example.study.parties
        )
        study = structs.replace(example.study, parties=parties, release={"scores": (HONEST.party,)})
        with pytest.raises(MessageError, match=f"takes a number of {stranger}/provider"):
            own_share(example.own[HONEST.party], study, HONEST)


def test_masks_are_wide_enough_for_true_places_of_all_but_one() -> None:
    """With true places the weighted share is the matrix but for what the others know: its mask is made for
    that. With places of their choice 22 of 30 members, one too few, would make it 2^79 times the matrix."""

    def factor(places: Sequence[int], own: int) -> float:
        return sum(log2(place / abs(place - own)) for place in places)

    own, few = 30, 22
    near = sorted((p for p in range(1, 120) if p != own), key=lambda p: -factor([p], own))[:few]
    assert factor(near, own) - factor(range(1, few + 1), own) > go.limits().mask_margin + 14


def test_where_all_are_needed_a_later_step_is_one_of_all() -> None:
    example = sfpca_later({"scores": ("island-0",)})
    own: Own = example.own["island-0"]
    own_share(own, example.study, HONEST)
    fewer = tuple(party for party in example.study.parties if party.name != "island-1")
    more = (*example.study.parties, Party("island-9", ("provider",)))
    for parties in (fewer, more):
        study = structs.replace(example.study, parties=parties)
        with pytest.raises(MessageError, match="all providers with a share, and of no others"):
            own_share(own, study, HONEST)
