"""The digest of a large message: BLAKE3, which hashes many pieces at once on vectors."""

from __future__ import annotations

from atoll.crypto.hazmat import golib

SIZE = 32

golib.declare("int32_t atoll_digest(uint8_t*, uint64_t, uint8_t*, uint64_t, char*, uint64_t);")


def digest(data: golib.Buffer) -> bytes:
    """32 bytes that no other message has; some times as fast as SHA-256."""
    found, *room = golib.bytes_new(SIZE)
    golib.call("atoll_digest", *golib.bytes_in(data), *room)
    return found
