"""The digest of large messages: BLAKE3, as its authors' own implementation has it."""

from __future__ import annotations

import pytest

from atoll.crypto.digest import SIZE, digest

KNOWN = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    63: "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b",
    64: "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98",
    65: "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee",
    1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
    16385: "1dabe216be2578830263b049de1639f39f05a4da616b9b78c7a5e4e41662fd1f",
    31744: "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47",
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
