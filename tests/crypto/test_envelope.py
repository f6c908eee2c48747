"""Envelopes: for one reader and one purpose; whatever else arrives is refused in one sentence."""

from __future__ import annotations

import pytest

from atoll.crypto import envelope
from atoll.errors import MessageError

PRIVATE, SEED = bytes(range(32)), bytes(range(100, 132))
PUBLIC = envelope.public_key(PRIVATE)
SEALED = envelope.seal(PUBLIC, b"content", "context", SEED)

# Points of small order of Curve25519: with each of them everybody agrees on zeros (RFC 7748, section 7).
SMALL = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]


def test_an_envelope_is_longer_by_a_version_a_key_and_a_tag() -> None:
    assert envelope.unseal(PRIVATE, SEALED, "context") == b"content"
    assert len(SEALED) == 1 + 32 + len(b"content") + 16
    assert SEALED[0] == 1


def test_every_byte_of_an_envelope_counts() -> None:
    for place in range(len(SEALED)):
        changed = bytearray(SEALED)
        changed[place] ^= 1
        with pytest.raises(MessageError, match="an envelope cannot be opened"):
            envelope.unseal(PRIVATE, bytes(changed), "context")
    for length in range(len(SEALED)):
        with pytest.raises(MessageError, match="an envelope cannot be opened"):
            envelope.unseal(PRIVATE, SEALED[:length], "context")


@pytest.mark.parametrize("point", SMALL, ids=lambda point: point.hex()[:8])
def test_a_key_with_which_everybody_agrees_is_refused(point: bytes) -> None:
    """What is sealed for it could be read by all."""
    with pytest.raises(MessageError, match="an envelope cannot be opened"):
        envelope.seal(point, b"content", "context", SEED)
    with pytest.raises(MessageError, match="an envelope cannot be opened"):
        envelope.unseal(PRIVATE, SEALED[:1] + point + SEALED[33:], "context")
    with pytest.raises(MessageError, match="an envelope cannot be opened"):
        envelope.agreement(PRIVATE, point, "purpose")


def test_two_keys_agree_on_a_secret_for_each_purpose() -> None:
    assert envelope.agreement(PRIVATE, envelope.public_key(SEED), "a") == envelope.agreement(
        SEED, PUBLIC, "a"
    )
    third = envelope.public_key(bytes(32))
    found = {
        envelope.agreement(PRIVATE, other, *purpose)
        for other in (envelope.public_key(SEED), third)
        for purpose in ((), ("a",), ("b",), ("a", "b"), ("ab",), ("a", 1))
    }
    assert len(found) == 12
