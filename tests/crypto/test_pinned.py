"""What follows from seeds and keys, pinned: a part of a domain that gets lost would make two purposes one,
and whatever was recorded, signed or sealed before could not be used any more.

The numbers are digests of what the functions gave when they were first written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from atoll import randomness
from atoll.crypto import envelope, fingerprint, identity, intersection, mixing, onion, shamir
from atoll.fixedpoint import from_integers
from atoll.secret_numbers import field, supplies
from atoll.secure_sums import drawn_graph, masks, shares
from atoll.secure_sums.mix import form, segments

SEED, OTHER = bytes(range(32)), bytes(range(100, 132))
PUBLIC = envelope.public_key(OTHER)
VALUES = from_integers([5, -7, 2**150])
NONCES = (SEED, OTHER, bytes(32))


def digest(value: Any) -> str:
    """16 hexadecimal digits of bytes, of arrays, or of what stands for itself."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        value = value.astype("<u8").tobytes()
    data = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def _order() -> drawn_graph.Order:
    said = [drawn_graph.commitment("s", index, nonce) for index, nonce in enumerate(NONCES)]
    return drawn_graph.order_of("s", said, NONCES)


def _notice() -> identity.Notice:
    return identity.rotation(identity.Identity(SEED), identity.Identity(OTHER), 17)


def _cut(how: segments.Cut) -> list[bytes]:
    return [part.tobytes() for part in segments.cut(VALUES, 3, how, 150, SEED)]


def _rows(dealt: dict[int, Any]) -> dict[int, Any]:
    return {point: [int(x) for x in row] for point, row in dealt.items()}


PINNED: dict[str, tuple[Callable[[], Any], str]] = {
    "derive": (lambda: randomness.derive(SEED, "a", b"b", 3), "2a4af350af2d699f"),
    "expand": (lambda: randomness.expand(SEED, 40, "a"), "ae51b60ab83613f6"),
    "words": (lambda: randomness.expand_words(SEED, 5, "a"), "ae51b60ab83613f6"),
    "envelope": (lambda: envelope.seal(PUBLIC, b"content", "context", SEED), "70ef1a6be65b903c"),
    "agreement": (lambda: envelope.agreement(SEED, PUBLIC, "purpose", 1), "9e611deb0129ac09"),
    "onion": (
        lambda: onion.wrap(b"x", [onion.Layer(PUBLIC, "a"), onion.Layer(PUBLIC, "a")], SEED),
        "934e2a307b33c7e8",
    ),
    "identity": (lambda: identity.Identity(SEED).public.raw, "3e3a0b556f48169d"),
    "fingerprint of an identity": (lambda: identity.Identity(SEED).fingerprint, "fdf366096fcf3feb"),
    "words of an identity": (lambda: identity.Identity(SEED).public.words, "772b1cd95ee35382"),
    "signature": (lambda: identity.Identity(SEED).sign("approval", b"data"), "445c5cc3848dcf62"),
    "derived by an identity": (lambda: identity.Identity(SEED).derive("login"), "dd930c918239c0f8"),
    "notice": (lambda: _notice().encode(), "e059c2a8a37c0593"),
    "shares of a secret": (lambda: shamir.split(OTHER, 3, [1, 2, 5], SEED), "62d3cfe4d5cce54b"),
    "shares of numbers": (
        lambda: _rows(shamir.deal(VALUES[0].astype(object), 3, [1, 2], SEED)),
        "5696b9d3ad207934",
    ),
    "points": (lambda: fingerprint.points(SEED), "6e75329f9cc48f9c"),
    "points modulo a prime": (lambda: fingerprint.points_modulo(2**54 - 33, SEED), "277b287949d17ece"),
    "blinded ids": (lambda: intersection.blinded(SEED, ["anna", "bert"], "context"), "65b405f827c3ee15"),
    "mask": (lambda: masks.stream(SEED, "block", 4), "2f94c8c697206b42"),
    "share": (lambda: shares.share(SEED, "block", 4), "446cebc0838d31e5"),
    "commitment": (lambda: drawn_graph.commitment("s", 1, SEED), "1fcf1ff6bd118449"),
    "order": (_order, "59445713275ca378"),
    "cut uniformly": (lambda: _cut("uniform"), "e20f608131e8a178"),
    "cut in fractions": (lambda: _cut("fractions"), "5cea62b24a9e68be"),
    "cut at random": (lambda: _cut("random"), "ea9a4086aa36d3bb"),
    "shuffle": (lambda: form.shuffled(20, SEED, "x", 1), "63b7a0e31ecda3b1"),
    "key of the group": (lambda: tuple(mixing.keygen(SEED, "context")), "24e390a89773482a"),
    "elements": (lambda: [int(x) for x in field.uniform(SEED, (3,), "a", 1)], "393101d98892ba62"),
    "integers": (
        lambda: [int(x) for x in field.integers_below(SEED, (3,), 1 << 100, "a")],
        "b896fa5abede9706",
    ),
    "supply": (lambda: [int(x) for x in supplies._expanded(SEED, 2, 1, 2)], "922f61525cc2e13d"),
}


@pytest.mark.parametrize("name", PINNED)
def test_what_follows_from_a_seed_stays_the_same(name: str) -> None:
    made, pinned = PINNED[name]
    assert digest(made()) == pinned
