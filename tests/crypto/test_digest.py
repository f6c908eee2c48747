"""The digest of large messages: BLAKE3, as its authors' own implementation has it."""

from __future__ import annotations

import pytest

from atoll.crypto.digest import SIZE, digest

KNOWN = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    102400: "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
}


@pytest.mark.parametrize("length", KNOWN)
def test_known_digests(length: int) -> None:
    data = bytes(i % 251 for i in range(length))
    assert digest(data).hex() == KNOWN[length]
    assert digest(memoryview(data)) == digest(data)


def test_every_bit_counts() -> None:
    data = bytearray(5000)
    found = {digest(data)}
    for place in (0, 63, 64, 1023, 1024, 4095, 4999):
        data[place] ^= 128
        found.add(digest(data))
        data[place] ^= 128
    assert len(found) == 8
    assert {len(value) for value in found} == {SIZE}
