"""Notes which seeds a role stretches, and for what: two texts under one stream show their difference."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from atoll import randomness
from atoll.crypto.hazmat import golib

KEYS = {
    "Secret.__init__": "a secret key, in every ring",
    "Secret._key_part": "the two rounds of one key; and the common part of all, which is public",
    "PublicKey.__init__": "the common part of a key, which is public",
    "strip": "a key that opens",
    "read": "a key that opens",
    "raise_elements": "a secret power of everybody's elements",
    "opening an envelope": "the key of an envelope, which whoever wrote it and sends itself one finds again",
    "atoll/sfpca-paper/spreading": "a rotation that everybody knows",
}
"""What the same seed may be taken for more than once."""


class Streams:
    """Every seed that was stretched in this process, with its purpose, and how often."""

    def __init__(self) -> None:
        self.noted: Counter[tuple[str, bytes, Any]] = Counter()

    @property
    def twice(self) -> set[str]:
        """Purposes for which one seed was stretched more than once, though it is no key."""
        return {purpose for (purpose, *_), times in self.noted.items() if times > 1} - KEYS.keys()


class _Mac:
    """Stands for the hash by which seeds are stretched, and notes what it is given."""

    def __init__(self, found: Streams, **how: Any) -> None:
        self._found, self._key, self._mac = found, how["key"], hashlib.blake2b(**how)
        self._parts: list[bytes] = []

    def update(self, data: bytes) -> None:
        self._mac.update(data)
        self._parts.append(bytes(data))

    def digest(self) -> bytes:
        domain = tuple(self._parts[1::2])  # before each part stands its length
        # Of an envelope's key all that is bound is keys; of what it is sealed with, words come first.
        opens = domain[0] == b"atoll/envelope/v1" and len(domain[1]) == randomness.SEED_BYTES
        purpose = "opening an envelope" if opens else domain[0].decode("utf-8", "replace")
        self._found.noted[purpose, self._key, domain] += 1
        return self._mac.digest()


@contextmanager
def streams() -> Iterator[Streams]:
    """Note what is stretched meanwhile, by Python and by the Go library."""
    found, bytes_in = Streams(), golib.bytes_in

    def noting(data: golib.Buffer) -> tuple[Any, int]:
        if len(data) == randomness.SEED_BYTES:
            caller = sys._getframe(1)
            found.noted[caller.f_code.co_qualname, bytes(data), caller.f_lasti] += 1
        return bytes_in(data)

    with pytest.MonkeyPatch.context() as patched:
        hashes = SimpleNamespace(blake2b=lambda **how: _Mac(found, **how))
        patched.setattr(randomness, "hashlib", hashes)
        patched.setattr(golib, "bytes_in", noting)
        yield found
