"""Keys of a run: the same for two parties, another for everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from msgspec import structs
from tests.support.examples import summation
from tests.support.networks import pinned, starts_of

from atoll.errors import MessageError
from atoll.protocols import resolve
from atoll.runtime.nats.keys import RunKeys

STARTS = starts_of(pinned(resolve(summation().study)))
A, B, C = (RunKeys(STARTS[name]) for name in ("island-0", "island-1", "island-2"))
BOOT = b"b" * 16


def opens(sealed: bytes, key: ChaCha20Poly1305) -> bool:
    try:
        return key.decrypt(bytes(12), sealed, None) == b"text"
    except InvalidTag:
        return False


def test_a_key_is_of_one_pair_direction_and_start() -> None:
    sealed = A.sending("island-1", BOOT).encrypt(bytes(12), b"text", None)
    assert opens(sealed, B.receiving("island-0", BOOT))
    assert not opens(sealed, B.receiving("island-0", b"c" * 16))
    assert not opens(sealed, B.sending("island-0", BOOT))
    assert not opens(sealed, A.receiving("island-1", BOOT))
    assert not opens(sealed, C.receiving("island-0", BOOT))
    assert not opens(sealed, B.receiving("island-2", BOOT))


def test_a_key_is_of_one_run() -> None:
    other = RunKeys(replace(STARTS["island-1"], run_id=bytes(32)))
    sealed = A.sending("island-1", BOOT).encrypt(bytes(12), b"text", None)
    assert not opens(sealed, other.receiving("island-0", BOOT))


def test_a_key_that_is_none_is_refused() -> None:
    start = STARTS["island-0"]
    bad = structs.replace(start.approvals["island-1"], ephemeral=bytes(32))
    keys = RunKeys(replace(start, approvals={**start.approvals, "island-1": bad}))
    with pytest.raises(MessageError, match="island-1"):
        keys.sending("island-1", BOOT)


def test_keys_are_not_shown() -> None:
    assert repr(A) == "<RunKeys of island-0>"
